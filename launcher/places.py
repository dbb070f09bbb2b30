"""Where the program keeps things."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

RUNS_VARIABLE = "DISTILL_TUI_RUNS"


def runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where runs are kept: $DISTILL_TUI_RUNS, else $XDG_STATE_HOME/distill-tui/runs."""
    if given := environment.get(RUNS_VARIABLE):
        return Path(given).expanduser()
    state = environment.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state) / "distill-tui" / "runs"
