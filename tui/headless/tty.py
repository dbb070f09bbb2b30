"""Whether there is a terminal that can show the app."""

from __future__ import annotations

import os
import sys

from recipes.errors import Exit, ExplainedError


class NoTerminalError(ExplainedError):
    """The app cannot be shown here."""

    exit_code = Exit.USAGE


def require_terminal() -> None:
    """Refuse to open the app where it could not be seen or left; textual is not imported for that."""
    from tui.terminal import refuse_reason

    reason = refuse_reason(os.environ, sys.stdin.isatty(), sys.stdout.isatty())
    if reason is not None:
        raise NoTerminalError(reason)
