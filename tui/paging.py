"""The user's pager: its command line, and running it on a log."""

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
"""Programs that open a file at a line given as `+LINE`."""


def pager_command(
    environ: Mapping[str, str], path: str, position: tuple[int, int | None] | None
) -> list[str]:
    """Return the arguments that open a file in $PAGER (default: less), at an offset and line, or at its end.

    No shell is involved and the path is absolute, so that no file name is taken for an option.

    Raises:
        InputError: $PAGER is invalid, or not installed.
    """
    try:
        program, *options = shlex.split(environ.get("PAGER", "")) or _DEFAULT
    except ValueError:
        raise InputError(
            "invalid $PAGER: unbalanced quote",
            fix="Set PAGER to a program, such as less.",
        ) from None
    if shutil.which(program) is None:
        raise InputError(
            f"the pager '{program}' is not installed",
            fix="Install it, or set PAGER to an installed program.",
        )
    start = []
    if Path(program).name == "less":
        # By offset: less would count the lines of a gigabyte first.
        start = [f"+{position[0]}P"] if position is not None else ["+G"]
    elif Path(program).name in _BY_LINE and position is not None and position[1] is not None:
        start = [f"+{position[1]}"]
    return [program, *options, *start, os.path.abspath(path)]


def page(command: list[str], environ: Mapping[str, str]) -> int:
    """Run the pager on the terminal; returns its exit code.

    Raises:
        InputError: it cannot be started.
    """
    # Without less's preprocessor, which would run on any file name.
    env = {name: value for name, value in environ.items() if name not in ("LESSOPEN", "LESSCLOSE")}
    try:
        return subprocess.run(command, env=env, check=False).returncode
    except OSError as error:
        raise InputError(f"the pager '{command[0]}' cannot be started: {error.strerror}") from error
