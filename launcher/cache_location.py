"""Where cached data is kept: with the runs where these are outside the home directory, which stays small."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from recipes.cache_root import default_cache_root, pointer

FOLDER = ".cache"
"""Directory of cached data in the directory of the runs."""


def cache_beside_runs(environment: Mapping[str, str], runs: Path) -> None:
    """Keep cached data in the directory of the runs; in the home directory where that is in it, too.

    What was cached in the home directory before is removed: it is made anew within seconds. Nothing is
    changed where the settings' directory cannot be written.
    """
    file, old = pointer(environment), default_cache_root(environment)
    with suppress(OSError):
        if _is_in_home(environment, runs):
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        # Its own mode: one that a group could write would not be used.
        (runs / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(f"{runs / FOLDER}\n", encoding="utf-8")
        if not old.is_symlink():
            shutil.rmtree(old, ignore_errors=True)


def _is_in_home(environment: Mapping[str, str], runs: Path) -> bool:
    home = environment.get("HOME", "")
    return bool(home) and Path(os.path.realpath(runs)).is_relative_to(os.path.realpath(home))
