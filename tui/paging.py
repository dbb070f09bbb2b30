"""Opening a log in the user's own pager."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from launcher.errors import InputError

_DEFAULT = ("less", "-R")
_BY_LINE = ("more", "most", "vi", "vim", "nvim", "nano", "view")
"""Programs that open a file at a line for `+LINE`."""


def pager_command(environ: Mapping[str, str], path: str, place: tuple[int, int | None] | None) -> list[str]:
    """Return the arguments that open a file in $PAGER (else less), at a place (offset and line) or its end.

    No shell takes part, and the path is absolute, so that no file name is taken for anything else.

    Raises:
        InputError: there is no such program.
    """
    try:
        program, *options = shlex.split(environ.get("PAGER", "")) or _DEFAULT
    except ValueError:
        raise InputError(
            "$PAGER cannot be understood: a quote in it is not closed",
            fix="Set PAGER to a program, such as less.",
        ) from None
    if shutil.which(program) is None:
        raise InputError(
            f"the pager '{program}' is not installed",
            fix="Install it, or set PAGER to a program that is there.",
        )
    at = []
    if Path(program).name == "less":
        # By bytes: less would count the lines of a gigabyte first.
        at = [f"+{place[0]}P"] if place is not None else ["+G"]
    elif Path(program).name in _BY_LINE and place is not None and place[1] is not None:
        at = [f"+{place[1]}"]
    return [program, *options, *at, os.path.abspath(path)]


def page(command: list[str], environ: Mapping[str, str]) -> int:
    """Run the pager on the terminal until it ends; returns its exit code.

    Raises:
        InputError: it cannot be started.
    """
    # Without a preprocessor of less's, which would run for the name of any file.
    env = {name: value for name, value in environ.items() if name not in ("LESSOPEN", "LESSCLOSE")}
    try:
        return subprocess.run(command, env=env, check=False).returncode
    except OSError as error:
        raise InputError(f"the pager '{command[0]}' cannot be started: {error.strerror}") from error
