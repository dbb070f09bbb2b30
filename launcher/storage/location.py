"""Where a directory lies: in the home directory or not, free bytes, the user's quota.

Every question to the file system or to a command has a deadline of 2 s; what is not answered is None.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from launcher.errors import TransportError
from launcher.transports.base import Transport, is_remote
from recipes import reading

Answer = TypeVar("Answer")
DEADLINE_S = 2.0
_THERE_S = 10.0
_LOOK = """
real=$(realpath -m -- "$1") home=$(realpath -m -- "$2") existing=$real
while [ ! -e "$existing" ]; do existing=$(dirname -- "$existing"); done
printf '%s\\n' "$real"
df -B1 --output=avail -- "$existing" | tail -n 1 | tr -d ' '
case $real/ in
"${home%/}"/*) [ "$(stat -c %d -- "$existing")" = "$(stat -c %d -- "$home")" ] && echo yes || echo no ;;
*) echo no ;;
esac
"""
_MOUNTS = Path("/proc/self/mounts")


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


def within(action: Callable[[], Answer], deadline_s: float = DEADLINE_S) -> Answer | None:
    """Return what an action returns; None if it fails or takes longer. A call that hangs costs its thread."""
    try:
        return reading.within(action, deadline_s)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links
        return None


def locate(transport: Transport, path: Path, environment: Mapping[str, str]) -> Location:
    """Return where a directory lies."""
    home = environment.get("HOME", "")
    if is_remote(transport):
        return _locate_there(transport, path, home)
    answer = within(lambda: _look(path, Path(home) if home else None))
    if answer is None:
        return Location(path)
    real, in_home, free = answer
    quota = _quota(transport, real)
    if quota is None:
        return Location(path, real, in_home, free)
    limit, left = quota
    return Location(path, real, in_home, min(left, free), limit)


def _locate_there(transport: Transport, path: Path, home: str) -> Location:
    """Return where a directory of another machine lies, by one command there; quotas are not asked for."""
    try:
        done = transport.run(["sh", "-c", _LOOK, "sh", str(path), home or "/"], timeout_s=_THERE_S)
    except TransportError:
        return Location(path)
    lines = done.stdout.split("\n")
    if done.code or len(lines) < 3 or not lines[1].isdecimal():
        return Location(path)
    in_home = lines[2] == "yes" if home else None
    return Location(path, Path(lines[0]), in_home, int(lines[1]))


def _look(path: Path, home: Path | None) -> tuple[Path, bool | None, int]:
    real = Path(os.path.realpath(path))
    existing = next(item for item in (real, *real.parents) if item.exists())
    free = shutil.disk_usage(existing).free
    if home is None:
        return real, None, free
    real_home = Path(os.path.realpath(home))
    same = real_home.exists() and existing.stat().st_dev == real_home.stat().st_dev
    return real, same and real.is_relative_to(real_home), free


# ------------------------------------------------------------ quotas


def _quota(transport: Transport, path: Path) -> tuple[int, int] | None:
    """Return limit and rest of the user's quota in bytes; None where no command tells them."""
    mount = within(lambda: mount_of(path, mounts()))
    if mount is None:
        return None
    device, point, kind = mount
    user = str(os.getuid())
    if kind == "lustre":
        return lustre_quota(command_output(transport, ["lfs", "quota", "-q", "-u", user, point]))
    if kind == "gpfs":
        return gpfs_quota(command_output(transport, ["mmlsquota", "-Y", "-u", user]), device)
    if kind in ("nfs", "nfs4", "ext3", "ext4", "xfs"):
        return unix_quota(command_output(transport, ["quota", "-w", "-u"]), device, point)
    return None


def mounts() -> str:
    """Return the mount table of this machine."""
    return _MOUNTS.read_text(encoding="utf-8", errors="replace")


def command_output(transport: Transport, argv: list[str]) -> str:
    """Return what a command prints; `quota` exits with 1 where a quota is exceeded."""
    if shutil.which(argv[0]) is None:
        return ""
    try:
        return transport.run(argv, timeout_s=DEADLINE_S).stdout
    except TransportError:
        return ""


def mount_of(path: Path, mounts: str) -> tuple[str, str, str] | None:
    """Return device, mount point and type of the file system that holds a path."""
    best: tuple[str, str, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        device, point = (
            re.sub(r"\\(\d{3})", lambda match: chr(int(match[1], 8)), text) for text in fields[:2]
        )
        if path.is_relative_to(point) and (best is None or len(point) >= len(best[1])):
            best = (device, point, fields[2])
    return best


def lustre_quota(text: str) -> tuple[int, int] | None:
    """Read `lfs quota -q`: name, KiB, quota, limit, grace, files and more; a long name has its own line."""
    words = text.split()
    numbers = [int(word.rstrip("*")) for word in words[1:4] if re.fullmatch(r"\d+\*?", word)]
    return _rest(numbers, 1024) if len(numbers) == 3 else None


def unix_quota(text: str, device: str, point: str) -> tuple[int, int] | None:
    """Read `quota -w`: file system, blocks of 1 KiB, quota, limit and more."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] in (device, point):
            numbers = [int(word.rstrip("*")) for word in words[1:4] if re.fullmatch(r"\d+\*?", word)]
            return _rest(numbers, 1024) if len(numbers) == 3 else None
    return None


def gpfs_quota(text: str, device: str) -> tuple[int, int] | None:
    """Read `mmlsquota -Y`: a header with the names of the columns, a row for each file system, in KiB."""
    columns: list[str] = []
    name = Path(device).name
    for line in text.splitlines():
        fields = line.split(":")
        if "HEADER" in fields[:3]:
            columns = fields
            continue
        row = dict(zip(columns, fields, strict=False))
        if row.get("filesystemName") != name:
            continue
        values = [row.get(column, "") for column in ("blockUsage", "blockQuota", "blockLimit")]
        if all(value.isdecimal() for value in values):
            return _rest([int(value) for value in values], 1024)
    return None


def _rest(numbers: list[int], unit: int) -> tuple[int, int] | None:
    """Return limit and rest in bytes, from usage, soft and hard limit; past the soft one days are left."""
    used, soft, hard = numbers
    limit = soft or hard
    return (limit * unit, max(limit - used, 0) * unit) if limit else None


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
