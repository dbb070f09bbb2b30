"""Directories of the program's files, as the environment and the user's settings have them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.base_directories import config_root, default_runs_root, expand
from recipes.cache_root import cache_root

if TYPE_CHECKING:
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
    if directory := environment.get(RUNS_VARIABLE):
        return expand(directory, environment)
    from launcher.settings import load_settings

    configured = load_settings(environment).runs
    return Path(configured) if configured else default_runs_root(environment)


def runs_roots_on(transport: Transport) -> tuple[str, ...]:
    """Return the directories of runs on a transport's machine: that of new ones, then those before it.

    Raises:
        InputError: the settings there cannot be read.
        TransportError: the machine does not answer.
    """
    environment = transport.environment()
    if directory := environment.get(RUNS_VARIABLE):
        return (str(expand(directory, environment)),)
    from launcher.settings import Settings, settings_of, settings_path

    path, settings = settings_path(environment), Settings()
    if transport.stat(str(path)) is not None:
        text = transport.read(str(path)).decode("utf-8", errors="replace")
        settings = settings_of(text, path, environment)
    default = str(default_runs_root(environment))
    return tuple(dict.fromkeys((settings.runs or default, *settings.earlier_runs, default)))


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
