"""Directories that may be runs, listed without the models of stored runs, whose import takes 0.1 s."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.paths import RUNS_VARIABLE, earlier_runs_roots, runs_root

if TYPE_CHECKING:
    from launcher.transports.base import FileStat, Transport


def list_directories(transport: Transport, roots: Iterable[str]) -> list[tuple[str, FileStat]]:
    """Return the directories below some roots with their entries, newest first; nothing of them is read.

    Of two of one name, that of the first root counts.

    Raises:
        TransportError: a root cannot be listed.
    """
    directories: dict[str, tuple[str, FileStat]] = {}
    for root in roots:
        if transport.stat(root) is None:
            continue
        base = str(Path(root))  # made once: a path for each of a thousand runs takes 9 ms
        for entry in transport.listdir(root):
            # A run that is being moved has a hidden name until it is complete.
            if (entry.is_dir or entry.is_silent) and not entry.name.startswith("."):
                directories.setdefault(entry.name, (os.path.join(base, entry.name), entry))
    return [item for _, item in sorted(directories.items(), reverse=True)]


def user_roots(root: Path, environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return a root; if it is the user's, with the earlier ones.

    Raises:
        InputError: the settings cannot be read.
    """
    if environment.get(RUNS_VARIABLE) or root != runs_root(environment):
        return (str(root),)
    return (str(root), *map(str, earlier_runs_roots(environment)))
