"""Report of an internal error of the app."""

from __future__ import annotations

import os
from pathlib import Path
from traceback import format_exception

from launcher.text import clean, clean_lines
from recipes.secrets import masked

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""A report never goes where a link that somebody left points to."""


def crash_report(error: BaseException | None, runs_root: Path) -> str:
    """Write the traceback to a file beside the runs; returns the message to the user, in three lines."""
    traceback = "".join(format_exception(error)) if error is not None else "no exception was recorded\n"
    path = runs_root.parent / "crash.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, masked(clean_lines(traceback)))
        where = f"  in {clean(str(path))}"
    except OSError as failure:
        problem = failure.strerror or str(failure)
        where = f"  in {masked(clean(str(error)))} (and {clean(str(path))} cannot be written: {problem})"
    message = f"distill-tui: internal error ({type(error).__name__}); runs continue"
    return f"{message}\n{where}\n  Please report it with that file; `distill-tui` opens the app again."


def _write(path: Path, text: str) -> None:
    """Write a file that only the user can read.

    Raises:
        OSError: it cannot be written, is a link, or another user's.
    """
    descriptor = os.open(path, _FLAGS, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(0, "it belongs to another user")
        os.fchmod(descriptor, 0o600)
        file.write(text.encode("utf-8", "backslashreplace"))
