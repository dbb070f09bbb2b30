"""Where a directory lies: in the home directory or not, free bytes, the user's quota.

Every question to the file system or to a command has a deadline of 2 s; what is not answered is None.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.storage.host_directories import host_directory
from launcher.storage.quotas import QuotaReader, nearest, within
from launcher.transports.base import Transport, is_remote
from recipes.remote_path import on_machine_of


@dataclass(frozen=True, slots=True)
class Location:
    """Where a directory lies; it need not exist yet. None: unknown."""

    path: Path
    """As given."""
    real: Path | None = None
    """Without links."""
    in_home: bool | None = None
    """Whether it is below $HOME, on the same file system."""
    free_bytes: int | None = None
    """Free for the user: of the file system, and of the quota where a command tells it."""
    quota_bytes: int | None = None
    """Limit of the user's quota."""
    dated: bool = False
    """Whether what is left of the quota was counted hours or days ago."""


def locate(
    transport: Transport, path: Path, environment: Mapping[str, str], quotas: QuotaReader | None = None
) -> Location:
    """Return where a directory lies; `quotas` is one that has asked the machine's commands already."""
    home = environment.get("HOME", "")
    if is_remote(transport):
        return _locate_there(transport, path, home, quotas)
    answer = within(lambda: _look(path, Path(home) if home else None))
    if answer is None:
        return Location(path)
    real, in_home, free = answer
    quota = (quotas or QuotaReader(transport)).at(real)
    if quota.bytes is None:
        return Location(path, real, in_home, free)
    return Location(path, real, in_home, min(quota.bytes.left, free), quota.bytes.limit, dated=quota.dated)


def _locate_there(transport: Transport, path: Path, home: str, quotas: QuotaReader | None) -> Location:
    """Return where a directory of another machine lies, by one command there."""
    answer = host_directory(transport, str(path), home)
    if answer is None or answer.free_bytes is None:
        return Location(path)
    real = on_machine_of(path, answer.real)
    in_home, free = answer.in_home if home else None, answer.free_bytes
    quota = (quotas or QuotaReader(transport)).at(real, answer.existing)
    if quota.bytes is None:
        return Location(path, real, in_home, free)
    return Location(path, real, in_home, min(quota.bytes.left, free), quota.bytes.limit, dated=quota.dated)


def _look(path: Path, home: Path | None) -> tuple[Path, bool | None, int]:
    real = Path(os.path.realpath(path))
    existing = nearest(real)
    free = shutil.disk_usage(existing).free
    if home is None:
        return real, None, free
    real_home = Path(os.path.realpath(home))
    same = real_home.exists() and existing.stat().st_dev == real_home.stat().st_dev
    return real, same and real.is_relative_to(real_home), free


# ------------------------------------------------------------ better directories


@dataclass(frozen=True, slots=True)
class Offer:
    """A directory that could hold the runs."""

    path: Path
    source: str
    """The variable or the site fact that names it."""
    free_bytes: int | None = None

    @property
    def purged(self) -> bool:
        """Whether it is named as scratch, which sites clean up after some weeks."""
        return "SCRATCH" in self.source.upper()


def offers(
    transport: Transport, environment: Mapping[str, str], scratch: str = "", user: str = ""
) -> tuple[Offer, ...]:
    """Return directories outside the home directory that exist and can be written, the best first.

    Args:
        transport: The machine's.
        environment: The user's.
        scratch: The site's directory for large files; may name variables.
        user: The user's name, for directories that several people share.
    """
    result: list[Offer] = []
    reals: set[Path] = set()
    for source, base in _bases(environment, scratch):
        writable = within(lambda base=base: _writable(base, user))  # type: ignore[misc]
        if writable is None:
            continue
        location = locate(transport, writable, environment)
        if location.real is None or location.in_home is not False or location.real in reals:
            continue
        reals.add(location.real)
        result.append(Offer(writable / "distill-tui" / "runs", source, location.free_bytes))
    return tuple(result)


def _bases(environment: Mapping[str, str], scratch: str) -> list[tuple[str, Path]]:
    """Return named directories: $SCRATCH, $WORK, $PROJECT, those of single projects, the site's."""
    from launcher.paths import expand

    fixed = [name for name in ("SCRATCH", "WORK", "PROJECT") if environment.get(name)]
    single = [
        name
        for name in sorted(environment)
        if re.fullmatch(r"(SCRATCH|PROJECT)_\w+", name) and environment[name]
    ]
    named = [(f"${name}", environment[name]) for name in (*fixed, *single)]
    if scratch:
        named.append((scratch, str(expand(scratch, environment))))
    clean = [(source, text) for source, text in named if text.startswith("/") and text.isprintable()]
    return [(source, Path(os.path.normpath(text))) for source, text in clean]


def _writable(base: Path, user: str) -> Path | None:
    """Return the user's own part of a directory: itself, or a directory of the user's name in it."""
    if not base.is_dir():
        return None
    own = base / user if user else base
    if own != base and own.is_dir() and os.access(own, os.W_OK | os.X_OK):
        return own
    if not os.access(base, os.W_OK | os.X_OK):
        return None
    return base if not user or user in base.parts else own
