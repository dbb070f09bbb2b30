"""The doctor's latest reports, kept in the cache: one for each site and checkout."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launcher.doctor.measured import mapping, rows, text
from launcher.durations import in_words
from launcher.errors import TransportError
from launcher.paths import cache_root
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_limited
from recipes.remote_path import RemotePath, look_again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from launcher.doctor.subject import Subject
    from launcher.doctor.verdict import HealthReport

_LATEST = 1e11
"""Seconds since the epoch of no real report: the year 5138."""
_KEYS = ("id", "title", "where", "outcome", "evidence")
_SCHEMA = 1
_KEPT = 50
"""Files that are looked at for the latest one; more sites and checkouts than anybody has."""
_PATIENCE_S = 2.0
_NAMED = 3
"""Checks that one line names."""
_JUST_NOW_S = 100.0


@dataclass(frozen=True, slots=True)
class KeptReport:
    """A report of an earlier examination."""

    at: float | None
    """Seconds since the epoch."""
    host: str
    recipe: str
    """Path; empty where none was examined."""
    checks: tuple[Mapping[str, str], ...]
    """Each with `id`, `title`, `where`, `outcome` and `evidence`."""

    def with_outcome(self, outcome: str) -> tuple[Mapping[str, str], ...]:
        """Return the checks with an outcome."""
        return tuple(item for item in self.checks if item["outcome"] == outcome)

    def as_json(self) -> dict[str, Any]:
        """Return it as `report` has it."""
        checks = [dict(item) for item in self.checks]
        return {"at": self.at, "host": self.host, "recipe": self.recipe, "checks": checks}

    def age(self, now: float) -> str:
        """Return how long ago it was made, in words."""
        if self.at is None:
            return "at an unknown time"
        return "just now" if now - self.at < _JUST_NOW_S else f"{in_words(now - self.at)} ago"

    def failures_in_words(self, now: float, within_s: float = math.inf) -> str:
        """Return what was not ready as one line; empty where everything was, or too long ago."""
        failing = self.with_outcome("fail")
        if not failing or (within_s < math.inf and now - (self.at or 0.0) > within_s):
            return ""
        named = ", ".join(f"{item['id']} {item['title']}" for item in failing[:_NAMED])
        more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
        return f"{len(failing)} not ready {self.age(now)}: {named}{more}"


def _path(environment: Mapping[str, str], site: str, checkout: str) -> Path:
    """Return the file of the latest report on a site with a checkout."""
    digest = hashlib.sha256(f"{site}\0{checkout}".encode(errors="surrogateescape")).hexdigest()[:16]
    name = re.sub(r"[^\w.-]", "_", site, flags=re.ASCII)[:40]
    return cache_root(environment) / "doctor" / f"report-{name}-{digest}.json"


def save_report(subject: Subject, report: HealthReport) -> KeptReport:
    """Keep a report, and return it as it is kept; without effect where the cache cannot be written."""
    recipe = subject.context.recipe.path if subject.context is not None else None
    checkout = subject.checkout.path if subject.checkout is not None else ""
    value = {
        "schema": _SCHEMA,
        "at": round(time.time(), 3),
        "host": subject.transport.host,
        "recipe": _absolute(recipe) if recipe is not None else "",
        "checks": [item.as_json() for item in report.examinations],
    }
    path = _path(subject.shell, subject.site.id, checkout)
    with suppress(TransportError):
        subject.transport.write_atomic(str(path), json.dumps(value).encode(), 0o600)
    return _kept_report(value)


def _absolute(recipe: Path) -> str:
    return str(recipe.absolute()) if isinstance(recipe, RemotePath) else os.path.abspath(recipe)


def load_report(
    environment: Mapping[str, str], site: str, checkout: str, path_of: Callable[[str], Path] = Path
) -> KeptReport | None:
    """Return the latest report on a site with a checkout (empty: without one); None where there is none.

    `path_of` returns a path on the machine of the site.
    """
    path = path_of(str(_path(environment, site, checkout)))
    look_again(path)
    return _read(path)


def latest_report(environment: Mapping[str, str]) -> KeptReport | None:
    """Return the latest report of all; None without one."""
    reports = [report for path in _files(environment) if (report := _read(path)) is not None]
    return max(reports, key=lambda item: item.at or 0.0, default=None)


def _files(environment: Mapping[str, str]) -> Iterator[Path]:
    folder = cache_root(environment) / "doctor"
    try:
        yield from sorted(folder.glob("report-*.json"))[:_KEPT]
    except OSError:
        return


def _read(path: Path) -> KeptReport | None:
    try:
        data = mapping(json.loads(read_limited(path, SOURCE_BYTES, deadline_s=_PATIENCE_S)))
    except (OSError, ValueError, RecursionError):
        return None
    return _kept_report(data) if data.get("schema") == _SCHEMA else None


def _kept_report(data: Mapping[str, Any]) -> KeptReport:
    at = data.get("at")
    return KeptReport(
        float(at) if isinstance(at, int | float) and 0 <= at < _LATEST else None,
        text(data.get("host")),
        text(data.get("recipe")),
        tuple({key: text(item.get(key)) for key in _KEYS} for item in rows(data.get("checks"))),
    )
