"""Files that may still be made in a directory: the file system's inodes, and the user's quota of files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from launcher.storage.host_directories import host_directory
from launcher.storage.quotas import Quota, QuotaReader, nearest, within
from launcher.transports.base import is_remote
from recipes.remote_path import on_machine_of


@dataclass(frozen=True, slots=True)
class FileRoom:
    """Number of files; None where unknown."""

    free: int | None
    limit: int | None = None
    """The quota."""
    dated: bool = False
    """Whether what is left of the quota was counted hours or days ago."""


def file_room(quotas: QuotaReader, path: Path) -> FileRoom:
    """Return how many more files the user may make in a directory, which need not exist yet."""
    if is_remote(quotas.transport):
        return _room_there(quotas, path)
    answer = within(lambda: _look(path))
    return FileRoom(None) if answer is None else _with_quota(answer[1], quotas.at(answer[0]))


def _room_there(quotas: QuotaReader, path: Path) -> FileRoom:
    answer = host_directory(quotas.transport, str(path), "")
    if answer is None:
        return FileRoom(None)
    return _with_quota(answer.free_files, quotas.at(on_machine_of(path, answer.real), answer.existing))


def _with_quota(free: int | None, quota: Quota) -> FileRoom:
    if quota.files is None:
        return FileRoom(free)
    left = quota.files.left
    return FileRoom(left if free is None else min(free, left), quota.files.limit, quota.dated)


def _look(path: Path) -> tuple[Path, int | None]:
    real = Path(os.path.realpath(path))
    status = os.statvfs(nearest(real))
    return real, status.f_favail if status.f_files else None  # btrfs and others count none
