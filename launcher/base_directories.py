"""Base directories of the program's files, as the XDG Base Directory Specification has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template


def default_runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of runs where nothing was decided: $XDG_STATE_HOME/distill-tui/runs."""
    return state_root(environment) / "runs"


def state_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the program's state: $XDG_STATE_HOME/distill-tui."""
    state = environment.get("XDG_STATE_HOME") or _home(environment) / ".local" / "state"
    return Path(state) / "distill-tui"


def config_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the user's settings: $XDG_CONFIG_HOME/distill-tui."""
    return Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config") / "distill-tui"


def expand(text: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return a path with `~` and `$NAME` replaced; a variable that is not set stays as it is."""
    replaced = Template(text).safe_substitute(environment)
    if replaced == "~" or replaced.startswith("~/"):
        return _home(environment) / replaced[2:]
    return Path(replaced).expanduser() if replaced.startswith("~") else Path(replaced)


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path("~").expanduser())
