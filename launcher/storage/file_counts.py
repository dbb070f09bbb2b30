"""Files that may still be made in a directory: the file system's inodes, and the user's quota of files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from launcher.storage.location import DEADLINE_S, command_output, mount_of, mounts, within
from launcher.transports.base import Transport


@dataclass(frozen=True, slots=True)
class FileRoom:
    """Number of files; None where unknown."""

    free: int | None
    limit: int | None = None
    """The user's quota."""


def file_room(transport: Transport, path: Path) -> FileRoom:
    """Return how many more files the user may make in a directory, which need not exist yet."""
    answer = within(lambda: _look(path), DEADLINE_S)
    if answer is None:
        return FileRoom(None)
    real, free = answer
    quota = _quota(transport, real)
    if quota is None:
        return FileRoom(free)
    limit, left = quota
    return FileRoom(left if free is None else min(free, left), limit)


def _look(path: Path) -> tuple[Path, int | None]:
    real = Path(os.path.realpath(path))
    existing = next(item for item in (real, *real.parents) if item.exists())
    status = os.statvfs(existing)
    return real, status.f_favail if status.f_files else None  # btrfs and others count none


def _quota(transport: Transport, path: Path) -> tuple[int, int] | None:
    mount = within(lambda: mount_of(path, mounts()))
    if mount is None:
        return None
    device, point, kind = mount
    user = str(os.getuid())
    if kind == "lustre":
        return lustre_files(command_output(transport, ["lfs", "quota", "-q", "-u", user, point]))
    if kind == "gpfs":
        return gpfs_files(command_output(transport, ["mmlsquota", "-Y", "-u", user]), device)
    if kind in ("nfs", "nfs4", "ext3", "ext4", "xfs"):
        return unix_files(command_output(transport, ["quota", "-w", "-u"]), device, point)
    return None


def lustre_files(text: str) -> tuple[int, int] | None:
    """Read `lfs quota -q`: name, KiB, quota, limit, grace, files, quota, limit, grace."""
    words = [word.rstrip("*") for word in text.split()[1:]]
    return _rest(words[4:7]) if len(words) >= 7 else None


def unix_files(text: str, device: str, point: str) -> tuple[int, int] | None:
    """Read `quota -w`: file system, blocks, quota, limit, grace where exceeded, then the same of files."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 7 and words[0] in (device, point):
            # The grace time of the blocks stands only where their quota is exceeded, which a star marks.
            begin = 5 if words[1].endswith("*") else 4
            return _rest([word.rstrip("*") for word in words[begin : begin + 3]])
    return None


def gpfs_files(text: str, device: str) -> tuple[int, int] | None:
    """Read `mmlsquota -Y`: a header with the names of the columns, a row for each file system."""
    columns: list[str] = []
    for line in text.splitlines():
        fields = line.split(":")
        if "HEADER" in fields[:3]:
            columns = fields
            continue
        row = dict(zip(columns, fields, strict=False))
        if row.get("filesystemName") == Path(device).name:
            return _rest([row.get(column, "") for column in ("filesUsage", "filesQuota", "filesLimit")])
    return None


def _rest(words: list[str]) -> tuple[int, int] | None:
    """Return limit and rest, from usage, soft and hard limit; 0 is no limit."""
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        return None
    used, soft, hard = map(int, words)
    limit = soft or hard
    return (limit, max(limit - used, 0)) if limit else None
