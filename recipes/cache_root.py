"""The directory of cached data: what was read from checkouts, and a cluster's answers."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

POINTER = "distill-tui/cache"
"""File below $XDG_CONFIG_HOME (~/.config) that names the directory, where it is not the default."""


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """Return $XDG_CACHE_HOME/distill-tui, else what the file `cache` beside the settings names.

    A named directory that others can write is not used, since cached answers are believed.
    """
    default = default_cache_root(environment)
    if environment.get("XDG_CACHE_HOME"):
        return base_directory(environment, "XDG_CACHE_HOME", ".cache") / "distill-tui"
    try:
        text = pointer(environment).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        text = ""  # the usual case: nobody decided
    path = Path(text)
    return path if path.is_absolute() and _is_own(path) else default


def _is_own(path: Path) -> bool:
    """Return whether only the user can write a directory, or there is none yet.

    Runs may lie in a directory that colleagues can write: one of them may have put another one in its place.
    """
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def default_cache_root(environment: Mapping[str, str]) -> Path:
    """Return the directory in the home directory."""
    return _home(environment) / ".cache" / "distill-tui"


def pointer(environment: Mapping[str, str]) -> Path:
    """Return the file that names another directory."""
    return base_directory(environment, "XDG_CONFIG_HOME", ".config") / POINTER


def base_directory(environment: Mapping[str, str], name: str, default: str) -> Path:
    """Return a base directory: the variable's, else one in the home directory.

    A relative path counts as none (XDG Base Directory Specification): it would be another one everywhere.
    """
    text = environment.get(name, "")
    path = Path(text).expanduser() if text else Path()
    return path if path.is_absolute() else _home(environment) / default


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path("~").expanduser())
