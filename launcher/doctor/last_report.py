"""The doctor's latest report, kept in the cache for `report`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.doctor.measured import mapping, rows, text
from launcher.errors import TransportError
from launcher.paths import cache_root
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_limited

if TYPE_CHECKING:
    from launcher.doctor.verdict import HealthReport
    from launcher.transports.base import Transport

_LATEST = 1e11
"""Seconds since the epoch of no real report: the year 5138."""
_KEYS = ("id", "title", "where", "outcome", "evidence")


def _path(environment: Mapping[str, str]) -> Path:
    return cache_root(environment) / "doctor" / "last.json"


def save_report(
    transport: Transport, environment: Mapping[str, str], report: HealthReport, recipe: Path | None
) -> None:
    """Keep a report; without effect where the cache cannot be written."""
    value = {
        "schema": 1,
        "at": round(time.time(), 3),
        "host": transport.host,
        "recipe": str(recipe) if recipe is not None else "",
        "checks": [item.as_json() for item in report.examinations],
    }
    try:
        transport.write_atomic(str(_path(environment)), json.dumps(value).encode(), 0o600)
    except TransportError:
        return


def load_report(environment: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the latest report as data: time, machine, recipe and checks; None without one."""
    try:
        data = mapping(json.loads(read_limited(_path(environment), SOURCE_BYTES)))
    except (OSError, ValueError, RecursionError):
        return None
    if data.get("schema") != 1:
        return None
    at = data.get("at")
    return {
        "at": at if isinstance(at, int | float) and 0 <= at < _LATEST else None,
        "host": text(data.get("host")),
        "recipe": text(data.get("recipe")),
        "checks": [{key: text(item.get(key)) for key in _KEYS} for item in rows(data.get("checks"))],
    }
