"""Directories of the program's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

RUNS_VARIABLE = "DISTILL_TUI_RUNS"


def runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of runs: $DISTILL_TUI_RUNS, else the setting `storage.runs`, else the default.

    Raises:
        InputError: the settings cannot be read.
    """
    if directory := environment.get(RUNS_VARIABLE):
        return Path(directory).expanduser()
    from launcher.settings import load_settings

    configured = load_settings(environment).runs
    return Path(configured) if configured else default_runs_root(environment)


def earlier_runs_roots(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return further directories whose runs are listed: those before `storage.runs`, as far as they exist.

    Raises:
        InputError: the settings cannot be read.
    """
    if environment.get(RUNS_VARIABLE):
        return ()
    from launcher.settings import load_settings

    settings, default = load_settings(environment), default_runs_root(environment)
    if not settings.runs:
        return ()
    earlier = [*map(Path, settings.earlier_runs), default]
    return tuple(path for path in dict.fromkeys(earlier) if path != Path(settings.runs) and path.is_dir())


def default_runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of runs where nothing was decided: $XDG_STATE_HOME/distill-tui/runs."""
    state = environment.get("XDG_STATE_HOME") or _home(environment) / ".local" / "state"
    return Path(state) / "distill-tui" / "runs"


def config_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the user's settings: $XDG_CONFIG_HOME/distill-tui."""
    return Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config") / "distill-tui"


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of cached data: $XDG_CACHE_HOME/distill-tui."""
    return Path(environment.get("XDG_CACHE_HOME") or _home(environment) / ".cache") / "distill-tui"


def expand(text: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return a path with `~` and `$NAME` replaced; a variable that is not set stays as it is."""
    replaced = Template(text).safe_substitute(environment)
    if replaced == "~" or replaced.startswith("~/"):
        return _home(environment) / replaced[2:]
    return Path(replaced).expanduser() if replaced.startswith("~") else Path(replaced)


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path("~").expanduser())
