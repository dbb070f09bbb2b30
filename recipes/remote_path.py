"""Paths on another machine: a path knows where it lives, so that code which takes paths works there, too.

`RemotePath` is a `Path` whose file accesses go to a `RemoteFiles`, which a layer above gives to a class of
its own for each machine (`remote_path_type`). What is made of such a path (`parent`, `/`, `with_name`) is on
the same machine. The standard library cannot open one by mistake: `os.fspath` refuses it.
"""

from __future__ import annotations

import errno
import fnmatch
import io
import os
import posixpath
from collections.abc import Generator, Mapping
from pathlib import Path, PosixPath, PurePath
from typing import Any, ClassVar, NoReturn, Protocol, Self

WHOLE_BYTES = 8 << 20
"""Largest file that is read whole to count its lines: 8 MiB take a second at 10 MB/s."""


class RemoteFiles(Protocol):
    """Files of another machine; refusals are OSErrors with the errno that a system call gives."""

    @property
    def machine(self) -> str:
        """Name of the machine, as the user gives it."""
        ...

    @property
    def directory(self) -> str:
        """Directory that relative paths count from: the user's home."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the user's shell there."""
        ...

    def status(self, path: str) -> os.stat_result:
        """Return what `stat` says of an absolute path."""
        ...

    def look_again(self, path: str) -> None:
        """Forget what was listed of a directory: another program may have changed it."""
        ...

    def names(self, path: str) -> list[str]:
        """Return the names in a directory."""
        ...

    def below(self, path: str) -> list[str]:
        """Return the paths of all files below a directory, relative to it; none where there is none."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        ...

    def real(self, path: str) -> str:
        """Return a path without symbolic links."""
        ...

    def prefetch_checkout(self, root: str) -> None:
        """Fetch the sources of a checkout that are not at hand, in one go."""
        ...

    def save(self, path: str, data: bytes, opened: bytes | None) -> None:
        """Replace a file's content under its lock, if it still is what it was when it was opened."""
        ...


class RemotePath(PosixPath):
    """A path on another machine; `remote_path_type` makes the class of one machine."""

    remote: ClassVar[RemoteFiles]

    def __fspath__(self) -> NoReturn:
        """Refuse to be opened as a file of this machine.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{self} is a file of {self.remote.machine}")

    def __eq__(self, other: object) -> bool:
        """Compare with another path: those of two machines differ."""
        return type(other) is type(self) and str(other) == str(self)

    def __hash__(self) -> int:
        """Return the hash of path and machine."""
        return hash((type(self), str(self)))

    def absolute(self) -> Self:
        """Return the path from the root; relative ones count from the user's home there."""
        return self if self.is_absolute() else type(self)(posixpath.join(self.remote.directory, str(self)))

    def expanduser(self) -> Self:
        """Return the path with a leading `~` replaced by the user's home there."""
        text = str(self)
        if text == "~" or text.startswith("~/"):
            return type(self)(posixpath.join(self.remote.directory, text[2:]))
        return self

    def resolve(self, strict: bool = False) -> Self:
        """Return the path without symbolic links."""
        del strict
        return type(self)(self.remote.real(self._text))

    def samefile(self, other_path: Any) -> bool:  # noqa: ANN401 - as pathlib declares it
        """Return whether two paths lead to one file."""
        return self.remote.real(self._text) == self.remote.real(str(type(self)(str(other_path)).absolute()))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return size, time and kind.

        Raises:
            OSError: there is no such file, or it cannot be looked at.
        """
        del follow_symlinks
        return self.remote.status(self._text)

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether there is a file or directory."""
        del follow_symlinks
        return self._mode() != 0

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self._mode() & 0o170000 == 0o100000

    def is_dir(self) -> bool:
        """Return whether it is a directory."""
        return self._mode() & 0o170000 == 0o040000

    def is_symlink(self) -> bool:
        """Return False: links are followed everywhere."""
        return False

    def iterdir(self) -> Generator[Self, None, None]:
        """Yield the paths in a directory.

        Raises:
            OSError: it cannot be listed.
        """
        for name in self.remote.names(self._text):
            yield self / name

    def glob(self, pattern: Any, **_: Any) -> Generator[Self, None, None]:  # noqa: ANN401 - differs between Pythons
        """Yield the paths that match a pattern of one name or of several with `/` between."""
        first, slash, rest = str(pattern).partition("/")
        try:
            names = sorted(fnmatch.filter(self.remote.names(self._text), first))
        except OSError:
            return
        for name in names:
            if slash:
                yield from (self / name).glob(rest)
            else:
                yield self / name

    def rglob(self, pattern: Any, **_: Any) -> Generator[Self, None, None]:  # noqa: ANN401
        """Yield the files below a directory whose name, or path where the pattern has a `/`, matches."""
        text = str(pattern)
        for path in self.remote.below(self._text):
            whole = "/" in text and fnmatch.fnmatch(path, text.replace("**/", "*"))
            if whole or fnmatch.fnmatch(posixpath.basename(path), text):
                yield self / path

    def read_bytes(self) -> bytes:
        """Return the bytes of a file.

        Raises:
            OSError: it cannot be read.
        """
        return self.remote.read(self._text)

    def read_text(
        self, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> str:
        """Return the text of a file.

        Raises:
            OSError: it cannot be read.
        """
        del newline
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def open(self, mode: str = "r", *_: Any, **__: Any) -> Any:  # noqa: ANN401 - as pathlib declares it
        """Open a file's bytes, which are read whole.

        Raises:
            OSError: it cannot be read, is larger than `WHOLE_BYTES`, or not opened for reading bytes.
        """
        if mode != "rb" or self.stat().st_size > WHOLE_BYTES:
            what = f"not read over SSH: larger than {WHOLE_BYTES >> 20} MiB"
            raise OSError(errno.EFBIG, what if mode == "rb" else "opened for reading bytes only", str(self))
        return io.BytesIO(self.read_bytes())

    @property
    def _text(self) -> str:
        """The absolute path."""
        return str(self.absolute())

    def _mode(self) -> int:
        try:
            return self.remote.status(self._text).st_mode
        except (OSError, ValueError):
            return 0


def remote_path_type(files: RemoteFiles) -> type[RemotePath]:
    """Return the class of the paths of one machine."""
    return type("RemotePath", (RemotePath,), {"remote": files})


def on_machine_of(path: Path, text: str | PurePath) -> Path:
    """Return a path on the machine that another path is on."""
    return type(path)(str(text)) if isinstance(path, RemotePath) else Path(text)


def environment_at(path: Path) -> Mapping[str, str]:
    """Return the variables of the user's shell on the machine that a path is on."""
    return path.remote.environment if isinstance(path, RemotePath) else os.environ


def prefetch(checkout: Path | None) -> None:
    """Fetch the sources of a checkout on another machine in one go; one of this machine is read as it is."""
    if isinstance(checkout, RemotePath):
        checkout.remote.prefetch_checkout(str(checkout.absolute()))


def machine_of(path: Path) -> str:
    """Return the name of the machine that a path is on; empty for this one."""
    return path.remote.machine if isinstance(path, RemotePath) else ""


def look_again(path: Path) -> None:
    """Look at a file anew at its next use: it may have changed; one of this machine is always looked at."""
    if isinstance(path, RemotePath):
        path.remote.look_again(str(path.absolute().parent))


def identity_of(path: Path) -> str:
    """Return the name of a directory for caches: absolute, and with its machine where that is another one."""
    if isinstance(path, RemotePath):
        return f"{path.remote.machine}:{path.absolute()}"
    return os.path.abspath(path)
