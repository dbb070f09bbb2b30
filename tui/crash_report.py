"""Report of an internal error of the app."""

from __future__ import annotations

from pathlib import Path
from traceback import format_exception

from launcher.text import clean


def crash_report(error: BaseException | None, runs_root: Path) -> str:
    """Write the traceback to a file beside the runs; returns the message to the user, in three lines."""
    traceback = "".join(format_exception(error)) if error is not None else "no exception was recorded\n"
    path = runs_root.parent / "crash.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(traceback, encoding="utf-8")
        where = f"  in {path}"
    except OSError as failure:
        where = f"  in {clean(str(error))} (and {path} cannot be written: {failure.strerror})"
    message = f"distill-tui: internal error ({type(error).__name__}); runs continue"
    return f"{message}\n{where}\n  Please report it with that file; `distill-tui` opens the app again."
