"""Directories of the program's files, as the environment and the user's settings have them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.base_directories import config_root, default_runs_root, expand
from recipes.cache_root import cache_root

if TYPE_CHECKING:
    from launcher.settings import Settings
    from launcher.transports.base import Transport

__all__ = [
    "RUNS_VARIABLE",
    "cache_root",
    "config_root",
    "default_runs_root",
    "earlier_runs_roots",
    "expand",
    "runs_root",
    "runs_roots_on",
]
RUNS_VARIABLE = "DISTILL_TUI_RUNS"


def runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of runs: $DISTILL_TUI_RUNS, else the setting `storage.runs`, else the default.

    Raises:
        InputError: the settings cannot be read.
    """
    return Path(_runs_roots(environment)[0])


def earlier_runs_roots(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return further directories whose runs are listed: those before `storage.runs`, as far as they exist.

    Raises:
        InputError: the settings cannot be read.
    """
    return tuple(path for path in map(Path, _runs_roots(environment)[1:]) if path.is_dir())


def runs_roots_on(transport: Transport) -> tuple[str, ...]:
    """Return the directories of runs on a transport's machine: that of new ones, then those before it.

    Raises:
        InputError: the settings there cannot be read.
        TransportError: the machine does not answer.
    """
    from launcher.settings import settings_on

    environment = transport.environment()
    return _roots(environment, lambda: settings_on(transport, environment))


def _runs_roots(environment: Mapping[str, str]) -> tuple[str, ...]:
    from launcher.settings import load_settings

    return _roots(environment, lambda: load_settings(environment))


def _roots(environment: Mapping[str, str], settings: Callable[[], Settings]) -> tuple[str, ...]:
    """Return the directories by the variable, else by the settings, which are read only then."""
    if directory := environment.get(RUNS_VARIABLE):
        return (str(expand(directory, environment)),)
    chosen, default = settings(), str(default_runs_root(environment))
    if not chosen.runs:
        return (default,)
    return tuple(dict.fromkeys((chosen.runs, *chosen.earlier_runs, default)))
