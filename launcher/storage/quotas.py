"""Quotas of bytes and files, as the site's command tells them: lfs, mmlsquota, quota, jutil.

Only limits count: what a file system itself has left is `df`'s answer (`location`, `file_counts`).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from launcher.errors import TransportError
from launcher.transports.base import Transport, is_remote
from recipes import reading

Answer = TypeVar("Answer")
DEADLINE_S = 2.0
"""For each question to the file system or to a command."""
JUTIL_S = 1.5
"""jutil asks a server; what the file system says is told without it."""
_SSH_S = 8.0
"""Seconds more where the machine is a host."""
_MOUNTS = Path("/proc/self/mounts")
_KIB = 1024
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(?:I?B)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@dataclass(frozen=True, slots=True)
class Allowance:
    """A limit, and what is left of it."""

    limit: int
    left: int


@dataclass(frozen=True, slots=True)
class Quota:
    """What the user may write in a directory; None where there is no limit, or no command tells it."""

    bytes: Allowance | None = None
    files: Allowance | None = None
    source: str = ""
    """The command that told it."""
    dated: bool = False
    """Whether it is of the last count, hours or days ago."""

    def tighter(self, other: Quota) -> Quota:
        """Return the limits of both, of each kind the one that leaves less."""
        told = [item for item in (self, other) if item.bytes or item.files]
        return Quota(
            _least(item.bytes for item in told),
            _least(item.files for item in told),
            " and ".join(dict.fromkeys(item.source for item in told if item.source)),
            any(item.dated for item in told),
        )


def _least(items: Iterable[Allowance | None]) -> Allowance | None:
    return min((item for item in items if item is not None), key=lambda item: item.left, default=None)


def within(action: Callable[[], Answer], deadline_s: float = DEADLINE_S) -> Answer | None:
    """Return what an action returns; None if it fails or takes longer. A call that hangs costs its thread."""
    try:
        return reading.within(action, deadline_s)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links
        return None


@dataclass
class QuotaReader:
    """Asks the commands of a machine, each once."""

    transport: Transport
    home: Path | None = None
    """The user's home directory, without links: of it jutil tells the user's own limits."""
    with_jutil: bool = False
    """Whether jutil is asked where no other command tells a limit; it takes a second."""
    over_ssh: bool = False
    """Whether another machine is asked, too: that takes some four requests."""
    _outputs: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, repr=False)
    _locks: dict[tuple[str, ...], threading.Lock] = field(default_factory=dict, init=False, repr=False)
    _guard: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def at(self, path: Path, existing: str = "") -> Quota:
        """Return the quota for a directory without links, which need not exist yet.

        `existing` is the nearest one that does, where that is known.
        """
        is_far = is_remote(self.transport)
        if is_far and not self.over_ssh:
            return Quota()
        mount = mount_of(path, self.mounts()) if is_far else within(lambda: mount_of(path, mounts()))
        if mount is None:
            return Quota()
        quota = self._of_file_system(path, existing, *mount)
        if quota.bytes is None and quota.files is None and self.with_jutil:
            return self._of_jutil(path, mount[1])
        return quota

    def mounts(self) -> str:
        """Return the mount table of the machine."""
        return self._output("cat", str(_MOUNTS)) if is_remote(self.transport) else mounts()

    def _user(self) -> str:
        return self._output("id", "-u").strip() if is_remote(self.transport) else str(os.getuid())

    def _group(self, path: Path, existing: str) -> str:
        if is_remote(self.transport):
            return self._output("stat", "-L", "-c", "%g", "--", existing or str(path)).strip()
        group = within(lambda: nearest(path).stat().st_gid)
        return str(group) if group is not None else ""

    def _of_file_system(self, path: Path, existing: str, device: str, point: str, kind: str) -> Quota:
        if kind == "lustre":
            own = lustre_quota(self._output("lfs", "quota", "-q", "-u", self._user(), point))
            group = self._group(path, existing)
            if not group:
                return own
            return own.tighter(lustre_quota(self._output("lfs", "quota", "-q", "-g", group, point)))
        if kind == "gpfs":
            own = gpfs_quota(self._output("mmlsquota", "-Y", "-u", self._user()), device)
            fileset = _first_below(path, point)
            if own.bytes or own.files or not fileset:
                return own
            return gpfs_quota(self._output("mmlsquota", "-Y", "-j", fileset, Path(device).name), device)
        if kind in ("nfs", "nfs4", "ext3", "ext4", "xfs"):
            return unix_quota(self._output("quota", "-w", "-u"), device, point)
        return Quota()

    def _of_jutil(self, path: Path, point: str) -> Quota:
        form = ("-o", "json", "-U", "KB")
        if self.home is not None and path.is_relative_to(self.home):
            return jutil_quota(self._output("jutil", "user", "dataquota", *form), path)
        project = _first_below(path, point)
        if not project:
            return Quota()
        return jutil_quota(self._output("jutil", "project", "dataquota", "-p", project, *form), path)

    def _output(self, *argv: str) -> str:
        """Return what a command prints; `quota` exits with 1 where a quota is exceeded."""
        with self._guard:
            lock = self._locks.setdefault(argv, threading.Lock())
        with lock:
            if argv not in self._outputs:
                self._outputs[argv] = self._run(argv)
            return self._outputs[argv]

    def _run(self, argv: tuple[str, ...]) -> str:
        limit_s = JUTIL_S if argv[0] == "jutil" else DEADLINE_S
        try:
            if is_remote(self.transport):
                from launcher.plan import passed_on  # imports pydantic

                # With the PATH of the login shell there; its connection takes time of its own.
                environment = passed_on(self.transport.environment())
                return self.transport.run(list(argv), env=environment, timeout_s=limit_s + _SSH_S).stdout
            return self.transport.run(list(argv), timeout_s=limit_s).stdout if shutil.which(argv[0]) else ""
        except TransportError:
            return ""


def nearest(path: Path) -> Path:
    """Return a path without links, or its nearest parent that exists."""
    real = Path(os.path.realpath(path))
    return next(item for item in (real, *real.parents) if item.exists())


def _first_below(path: Path, point: str) -> str:
    """Return the first directory of a path below a mount point: a project's name, or its fileset's."""
    parts = path.relative_to(point).parts if path.is_relative_to(point) else ()
    name = parts[0] if parts else ""
    return name if re.fullmatch(r"\w[\w.-]*", name, re.ASCII) else ""


def mounts() -> str:
    """Return the mount table of this machine."""
    return _MOUNTS.read_text(encoding="utf-8", errors="replace")


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


# ------------------------------------------------------------ what the commands print


def lustre_quota(text: str) -> Quota:
    """Read `lfs quota -q`: name, KiB, quota, limit, grace, files, quota, limit, grace.

    A long name has a line of its own; a star marks a use above the quota.
    """
    words = [word.rstrip("*") for word in text.split()[1:]]
    return Quota(_allowance(words[0:3], _KIB), _allowance(words[4:7]), "lfs quota")


def unix_quota(text: str, device: str, point: str) -> Quota:
    """Read `quota -w`: file system, blocks of 1 KiB, quota, limit, grace, then the same of files."""
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] in (device, point):
            # The grace time of the blocks stands only where their quota is exceeded, which a star marks.
            begin = 5 if words[1].endswith("*") else 4
            plain = [word.rstrip("*") for word in words]
            return Quota(_allowance(plain[1:4], _KIB), _allowance(plain[begin : begin + 3]), "quota")
    return Quota()


def gpfs_quota(text: str, device: str) -> Quota:
    """Read `mmlsquota -Y`: a header with the names of the columns, rows for file systems and filesets."""
    quota = Quota()
    for row in _gpfs_rows(text):
        if row.get("filesystemName") == Path(device).name:
            blocks, files = (
                [row.get(f"{kind}{column}", "") for column in ("Usage", "Quota", "Limit")]
                for kind in ("block", "files")
            )
            quota = quota.tighter(Quota(_allowance(blocks, _KIB), _allowance(files), "mmlsquota"))
    return quota


def _gpfs_rows(text: str) -> Iterator[Mapping[str, str]]:
    columns: list[str] = []
    for line in text.splitlines():
        fields = line.split(":")
        if "HEADER" in fields[:3]:
            columns = fields
        elif columns:
            yield dict(zip(columns, fields, strict=False))


def jutil_quota(text: str, path: Path) -> Quota:
    """Read `jutil … dataquota -o json`: a list with use and limits of each directory of a project.

    The directory is whichever value names one that holds the path: it is `project-dir` for projects.
    """
    best: tuple[int, Mapping[str, Any]] | None = None
    for row in _json_rows(text):
        folders = [value for value in row.values() if isinstance(value, str) and value.startswith("/")]
        depth = max((len(Path(item).parts) for item in folders if path.is_relative_to(item)), default=0)
        if depth and (best is None or depth > best[0]):
            best = depth, row
    if best is None:
        return Quota()
    blocks, files = (
        [_amount(best[1].get(f"{kind}-{column}")) for column in ("usage", "soft-limit", "hard-limit")]
        for kind in ("data", "inode")
    )
    return Quota(_allowance(blocks), _allowance(files), "jutil", dated=True)


def _json_rows(text: str) -> list[Mapping[str, Any]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [row for row in data if isinstance(row, dict)] if isinstance(data, list) else []


def _amount(value: object) -> str:
    """Return a number, with a unit or without, as digits; empty for anything else."""
    match = _SIZE.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if match is None:
        return ""
    return str(int(float(match[1]) * _KIB ** _POWERS[match[2].upper()]))


def _allowance(words: list[str], unit: int = 1) -> Allowance | None:
    """Return limit and rest, from use, soft and hard limit; 0 is none. Past the soft one days are left."""
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() for word in words):
        return None
    used, soft, hard = map(int, words)
    limit = soft or hard
    return Allowance(limit * unit, max(limit - used, 0) * unit) if limit else None
