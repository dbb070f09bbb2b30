"""The user's own editor: its command line, and running it on a copy of the text."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from launcher.errors import InputError

_DEFAULTS = ("nano", "vim", "vi")
_PLUS_LINE = (
    "nano",
    "vi",
    "vim",
    "nvim",
    "view",
    "emacs",
    "emacsclient",
    "micro",
    "joe",
    "jed",
    "mg",
    "kak",
    "ne",
    "mcedit",
)
"""Editors that take the line as `+LINE`."""
_GOTO = ("code", "codium", "cursor", "subl", "zed", "hx", "helix")
"""Editors that take the line as `FILE:LINE`."""


def editor_command(environ: Mapping[str, str], path: str, line: int) -> list[str]:
    """Return the arguments that open a file at a line in $VISUAL, $EDITOR, or an installed editor.

    Raises:
        InputError: the variable is invalid, or the editor is not installed.
    """
    variable = "VISUAL" if environ.get("VISUAL") else "EDITOR"
    text = environ.get(variable) or next((name for name in _DEFAULTS if shutil.which(name)), "")
    if not text:
        raise InputError("no editor is installed", fix="Set EDITOR to a program, such as vim.")
    try:
        program, *options = shlex.split(text)
    except ValueError:
        raise InputError(
            f"invalid ${variable}: unbalanced quote", fix=f"Set {variable} to a program, such as vim."
        ) from None
    if shutil.which(program) is None:
        raise InputError(
            f"the editor '{program}' is not installed",
            fix=f"Install it, or set {variable} to an installed program.",
        )
    name = Path(program).name
    if name in _PLUS_LINE:
        return [program, *options, f"+{line}", path]
    if name in ("code", "codium", "cursor"):
        return [program, *options, "--wait", "--goto", f"{path}:{line}"]
    return [program, *options, f"{path}:{line}" if name in _GOTO else path]


def edit_copy(text: str, name: str, line: int, environ: Mapping[str, str]) -> str:
    """Have the user edit a text in a private copy; returns the text that the editor left.

    The copy has the recipe's name, so that the editor knows its language; the recipe itself stays as it is.

    Raises:
        InputError: the editor cannot be started, failed, or left no UTF-8 text.
    """
    with tempfile.TemporaryDirectory(prefix="distill-tui-") as directory:
        path = Path(directory) / name
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        command = editor_command(environ, str(path), line)
        try:
            code = subprocess.run(command, env=dict(environ), check=False).returncode
        except OSError as error:
            raise InputError(f"the editor '{command[0]}' cannot be started: {error.strerror}") from error
        if code:
            raise InputError(f"the editor ended with exit code {code}; the text is as it was before")
        try:
            return path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the editor left no readable text: {error}") from error
