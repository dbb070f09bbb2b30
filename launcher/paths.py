"""Directories of runs, configuration and cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

RUNS_VARIABLE = "DISTILL_TUI_RUNS"


def runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of runs: $DISTILL_TUI_RUNS, else $XDG_STATE_HOME/distill-tui/runs."""
    if given := environment.get(RUNS_VARIABLE):
        return Path(given).expanduser()
    state = environment.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state) / "distill-tui" / "runs"


def config_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the user's configuration: $XDG_CONFIG_HOME/distill-tui."""
    return Path(environment.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "distill-tui"


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the cache: $XDG_CACHE_HOME/distill-tui."""
    return Path(environment.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "distill-tui"
