"""Base directories of the program's files, as the XDG Base Directory Specification has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

from launcher.errors import InputError
from launcher.text import clean
from recipes.cache_root import base_directory

DRAFTS, RUN_DRAFTS = "drafts", "run-drafts"
"""Directories below the state directory: of recipes with unsaved edits, and of runs being prepared."""


def default_runs_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of runs where nothing was decided: $XDG_STATE_HOME/distill-tui/runs."""
    return state_root(environment) / "runs"


def state_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the program's state: $XDG_STATE_HOME/distill-tui."""
    return base_directory(environment, "XDG_STATE_HOME", ".local/state") / "distill-tui"


def config_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of the user's settings: $XDG_CONFIG_HOME/distill-tui."""
    return base_directory(environment, "XDG_CONFIG_HOME", ".config") / "distill-tui"


def expand(text: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Return a path with `~` and `$NAME` replaced; a variable that is not set stays as it is.

    Raises:
        InputError: there is no such user, or no home directory.
    """
    replaced = Template(text).safe_substitute(environment)
    if replaced == "~" or replaced.startswith("~/"):
        return _home(environment) / replaced[2:]
    return _expanded(replaced) if replaced.startswith("~") else Path(replaced)


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or _expanded("~"))


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise InputError(
            f"the home directory of '{clean(text.partition('/')[0])}' is unknown",
            fix="Set HOME, or give a path.",
        ) from error
