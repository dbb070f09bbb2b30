"""Rows of runs that have ended, kept in the user's cache: a list of a thousand runs reads one file.

A row is valid as long as its directory is as it was: every file of a run is written beside and renamed, which
changes the directory's time. Written as JSON and read without pydantic, whose import takes 0.1 s.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from launcher.logs.job_state import JobState
from launcher.overview.rows import RunRow
from launcher.text import clean
from recipes.cache_root import cache_root

_FORMAT = 1
_MAX_BYTES = 64 * 1024 * 1024
_LARGEST = 1e20
"""Number that nothing of a row reaches: inodes have 64 bits."""
_LATEST = 1e11
"""Seconds since the epoch of no real run: the year 5138."""
_TEXTS = frozenset(item.name for item in fields(RunRow) if item.type == "str")
_NUMBERS = frozenset(item.name for item in fields(RunRow) if str(item.type) in ("float | None",))
_WHOLE = frozenset(item.name for item in fields(RunRow) if str(item.type) in ("int", "int | None"))
Version = tuple[float, int]
"""Time of change and inode of a run's directory."""


@dataclass(frozen=True, slots=True)
class CachedRow:
    """A row, and the state of the directory that it was read from."""

    version: Version
    row: RunRow


def cache_file(root: str, environment: Mapping[str, str], host: str = "") -> Path:
    """Return the file of the rows of a runs root, here or on a host."""
    place = f"{host}:{root}" if host else os.path.realpath(root)
    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    return cache_root(environment) / "runs" / f"{name}.json"


def load_rows(file: Path) -> dict[str, CachedRow]:
    """Return the kept rows by directory; empty where there are none, or the file is not the user's own."""
    try:
        status = file.stat()
        if status.st_uid != os.getuid() or status.st_mode & 0o022 or status.st_size > _MAX_BYTES:
            return {}
        data = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("rows"), list):
        return {}
    rows = (_row_of(item) for item in data["rows"])
    return {cached.row.directory: cached for cached in rows if cached is not None}


def dumped(rows: Mapping[str, CachedRow]) -> bytes:
    """Return rows as the bytes of their file."""
    listed = []
    for cached in rows.values():
        values = {
            item.name: value
            for item in fields(RunRow)
            if (value := getattr(cached.row, item.name)) != item.default
        }
        listed.append({"version": cached.version, "row": values})
    return json.dumps({"format": _FORMAT, "rows": listed}, separators=(",", ":")).encode()


def _row_of(item: object) -> CachedRow | None:
    """Return a kept row; None where anything of it has another type than it was written with."""
    if not isinstance(item, dict) or not isinstance(item.get("row"), dict):
        return None
    version, values = item.get("version"), dict(item["row"])
    if not (isinstance(version, list) and len(version) == 2 and all(map(_is_number, version))):
        return None
    if not isinstance(version[1], int):
        return None
    losses, jobs, durations = (values.pop(name, []) for name in ("losses", "jobs", "durations"))
    if not (isinstance(losses, list) and all(map(_is_number, losses))):
        return None
    if not (isinstance(jobs, list) and all(isinstance(job, str) for job in jobs)):
        return None
    if not (isinstance(durations, list) and all(map(_is_duration, durations))):
        return None
    try:
        state = JobState(values.pop("state"))
    except (KeyError, ValueError):
        return None
    if not all(_is_valid(name, value) for name, value in values.items()):
        return None
    texts: dict[str, Any] = {
        name: clean(value) if isinstance(value, str) and name != "directory" else value
        for name, value in values.items()
    }
    try:
        row = RunRow(
            **texts,
            state=state,
            losses=tuple(losses),
            jobs=tuple(map(clean, jobs)),
            durations=tuple((clean(name), float(seconds)) for name, seconds in durations),
        )
    except TypeError:
        return None
    return CachedRow((float(version[0]), version[1]), row)


def _is_valid(name: str, value: object) -> bool:
    if name in _TEXTS:
        return isinstance(value, str)
    if name in _WHOLE:
        return isinstance(value, int) and _is_number(value)
    return name in _NUMBERS and _is_time(value)


def _is_duration(item: object) -> bool:
    return isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and _is_time(item[1])


def _is_number(value: Any) -> bool:  # noqa: ANN401 - what JSON holds
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < _LARGEST


def _is_time(value: Any) -> bool:  # noqa: ANN401 - what JSON holds
    return _is_number(value) and 0 <= value < _LATEST
