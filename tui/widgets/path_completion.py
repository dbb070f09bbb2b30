"""Completion of typed paths, shown behind the cursor; the right arrow takes it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from textual.suggester import Suggester

_MOST = 2000
"""Entries of a directory that are looked at."""


class PathSuggester(Suggester):
    """Suggests how a path goes on; directories are read on a thread."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the path as far as it is certain, else its first continuation; None for none."""
        return await asyncio.to_thread(completed_path, value)


def completed_path(text: str) -> str | None:
    """Return a typed path, continued: to the part that all entries share, else to the first of them."""
    folder, _, start = text.rpartition("/")
    if not text or (not folder and not text.startswith("/") and start.startswith("~")):
        return None
    typed_folder = text[: len(text) - len(start)]
    names = _entries(Path(typed_folder or ".").expanduser(), start)
    if not names:
        return None
    shared = _shared_start(names[0], names[-1])
    name = shared if len(shared) > len(start) else names[0]
    return typed_folder + name if name != start else None


def _shared_start(first: str, last: str) -> str:
    """Return what the first and the last of sorted names, and so all of them, begin with."""
    pairs = zip(first, last, strict=False)
    length = next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))
    return first[:length]


def _entries(directory: Path, start: str) -> list[str]:
    """Return the names that begin so, directories with a slash; hidden ones only where asked for."""
    try:
        with os.scandir(directory) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry, _ in zip(entries, range(_MOST), strict=False)
                if entry.name.startswith(start) and (start.startswith(".") or not entry.name.startswith("."))
            ]
    except OSError:  # there is no such directory, or it may not be read
        return []
    return sorted(names)
