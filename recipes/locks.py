"""A lock per recipe around reading, editing and saving it, so that two editors at once lose nothing.

The lock is a file beside the recipe that names its holder. A lock of the kernel (flock) on it ends with its
process, also after kill -9. Where a file system has none, or keeps it from other machines (Lustre with
`localflock`), the name in the file counts: a holder on this machine is looked up, and one elsewhere is
taken for gone when it has not released the lock for `STALE_S`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import hashlib
import json
import os
import platform
import time
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from recipes.errors import Exit, RecipeError

if TYPE_CHECKING:
    from types import TracebackType

WAIT_S = 30.0
"""Longest wait for somebody else's edit: a command holds the lock for less than a second."""
STALE_S = 20.0
"""Time after which a holder on another machine counts as gone, watched by this machine's clock."""
LOCK_SUFFIX = ".distill-tui.lock"
_POLL_S = 0.02
_MOST_BYTES = 1000
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF)
"""Errors of flock on file systems without locks; EBADF: NFS locks only files that are open for writing."""


class LockedError(RecipeError):
    """Error for a recipe that somebody else is editing."""

    exit_code = Exit.OUTSIDE


class Holder(NamedTuple):
    """Process that holds a lock."""

    user: str
    host: str
    pid: int
    started: int
    """Start time in clock ticks after boot: a later process may have the same number."""

    def __str__(self) -> str:
        """Render for a message."""
        return f"{self.user} (process {self.pid} on {self.host})"

    @classmethod
    def this(cls) -> Holder:
        """Return this process."""
        return cls(_user(), platform.node(), os.getpid(), _started(os.getpid()) or 0)

    @classmethod
    def read(cls, data: bytes) -> Holder | None:
        """Return the holder that a lock file names; None where it names none."""
        try:
            values = json.loads(data)
            return cls(str(values["user"]), str(values["host"]), int(values["pid"]), int(values["started"]))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return None

    @property
    def alive(self) -> bool | None:
        """Whether it still runs; None where this machine cannot know."""
        if self.host != platform.node():
            return None
        return _started(self.pid) == self.started


@dataclass
class RecipeLock:
    """Lock of one recipe, to be used with `with`; it does nothing where no file can be made beside it.

    Raises (on entering):
        LockedError: somebody else holds it for longer than `wait_s`.
    """

    path: Path
    wait_s: float = WAIT_S
    stale_s: float = STALE_S
    _descriptor: int | None = field(default=None, repr=False)

    @property
    def file(self) -> Path:
        """The lock file: beside the recipe, or beside what it links to."""
        target = Path(os.path.realpath(self.path))
        name = os.fsencode(target.name)
        if len(name) > 200:  # a name has at most 255 bytes
            name = hashlib.sha256(name).hexdigest()[:32].encode()
        return target.parent / os.fsdecode(b"." + name + LOCK_SUFFIX.encode())

    def __enter__(self) -> Self:
        watch = _Watch(self.stale_s)
        deadline = time.monotonic() + self.wait_s
        file = self.file
        while not self._try(file, watch):
            if time.monotonic() > deadline:
                who = watch.holder or "another process"
                what = f"{self.path} is being edited by {who}, for more than {self.wait_s:g} s"
                fix = f"Try again; if nobody edits it, remove {file}."
                raise LockedError(what, where=self.path, fix=fix)
            time.sleep(_POLL_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with contextlib.suppress(OSError):
            if _is_at(descriptor, self.file):
                os.ftruncate(descriptor, 0)
                # Removed while it is held: whoever opened it before looks whether it is still there.
                self.file.unlink()
        os.close(descriptor)

    def _try(self, file: Path, watch: _Watch) -> bool:
        """Take the lock, or return False where somebody holds it; True also where there can be none."""
        try:
            descriptor, access = _open(file)
        except FileExistsError:  # removed meanwhile
            return False
        except OSError:
            return True  # saving will say what is wrong with the directory
        try:
            taken = _take(descriptor, access, file, watch)
        except OSError:  # a file system that fails at this will fail at saving, too
            taken = True
        if taken:
            self._descriptor = descriptor
        else:
            os.close(descriptor)
        return taken


class _Access(Enum):
    """Way in which a lock file was opened."""

    CREATED = auto()
    WRITABLE = auto()
    READABLE = auto()
    """It is another user's."""


@dataclass
class _Watch:
    """Watch of a lock file's content, for holders on machines that cannot be asked."""

    stale_s: float
    holder: Holder | None = None
    _content: bytes | None = None
    _since: float = 0.0

    def holds(self, content: bytes) -> bool:
        """Return whether the process that a lock file names may still hold it; an empty file may be new."""
        self.holder = Holder.read(content)
        if content != self._content:
            self._content, self._since = content, time.monotonic()
        alive = self.holder.alive if self.holder is not None else None
        return time.monotonic() - self._since < self.stale_s if alive is None else alive

    def holds_elsewhere(self, content: bytes) -> bool:
        """Return the same for a lock that no process of this machine holds."""
        holder = Holder.read(content)
        return holder is not None and holder.alive is None and self.holds(content)


def _open(file: Path) -> tuple[int, _Access]:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with contextlib.suppress(FileExistsError):
        return os.open(file, flags | os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), _Access.CREATED
    try:
        return os.open(file, flags | os.O_RDWR), _Access.WRITABLE
    except FileNotFoundError as error:
        raise FileExistsError(error.errno, error.strerror) from error
    except PermissionError:
        return os.open(file, flags), _Access.READABLE


def _take(descriptor: int, access: _Access, file: Path, watch: _Watch) -> bool:
    """Take an open lock file, or return False where somebody holds it."""
    content = os.pread(descriptor, _MOST_BYTES, 0)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        watch.holds(content)
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        if access is not _Access.CREATED:
            if not watch.holds(content):
                _remove_stale(file, content)
            return False
    if not _is_at(descriptor, file) or watch.holds_elsewhere(os.pread(descriptor, _MOST_BYTES, 0)):
        return False
    if access is not _Access.READABLE:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(Holder.this()._asdict()).encode(), 0)
    return True


def _remove_stale(file: Path, content: bytes) -> None:
    """Remove a lock file whose holder is gone; if it has another holder by now, it gets its name back."""
    aside = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        file.rename(aside)
        if aside.read_bytes() != content:
            os.link(aside, file)
        aside.unlink()


def _is_at(descriptor: int, file: Path) -> bool:
    """Return whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(file))
    except OSError:
        return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user here, no variable that names one
        return f"user {os.getuid()}"


def _started(pid: int) -> int | None:
    """Return a process's start time in clock ticks after boot; None for one that is gone or a zombie."""
    try:
        status = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = status.rpartition(b")")[2].split()
    return None if fields[0] == b"Z" else int(fields[19])
