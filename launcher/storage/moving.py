"""Moves of runs to another directory: each complete or not at all, none that lives.

On one file system a run is renamed; to another it is copied under a hidden name, written through, renamed,
and only then removed. A link stays in the old directory: the paths in the run's plan go on to hold, so it can
be resumed, and a list of the old directory goes on to show it.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import InputError
from launcher.logs.events import JobState
from launcher.monitor.watch_run import summary_of
from launcher.ownership import require_owner
from launcher.runs import SPEC, Run, RunStore
from launcher.storage.disk_use import DiskCounter
from launcher.storage.size import gigabytes
from recipes.errors import ExplainedError

_ENDED = frozenset(state.value for state in JobState if state.ended)


@dataclass(frozen=True, slots=True)
class RunMove:
    """What became of a run that was to be moved."""

    run: str
    source: str
    target: str
    problem: str = ""
    """Why it was not moved; empty if it was."""
    remark: str = ""


class _NotMovedError(Exception):
    """A run stays where it is; the text says why."""


def runs_to_move(store: RunStore, references: Sequence[str]) -> list[Run]:
    """Return the runs that are named, or all.

    Raises:
        InputError: there is no such run, or more than one.
    """
    if references:
        return [store.find(reference) for reference in references]
    return [item for item in store.list() if isinstance(item, Run)]


def move_run(store: RunStore, run: Run, directory: Path) -> RunMove:
    """Move a run below a directory, if it has ended."""
    source = Path(os.path.realpath(run.directory))
    target = Path(os.path.realpath(directory)) / source.name
    move = RunMove(run.spec.id, str(source), str(target))
    try:
        if target == source:
            raise _NotMovedError("it is there already")
        if target.is_relative_to(source):
            raise _NotMovedError("the directory lies inside the run")
        require_owner(store.transport, run, "is not moved", ("mv", "--", str(source), str(target)))
        _require_ended(store, run)
        remark = _move(source, target)
        if Path(run.directory).is_symlink():
            _link(Path(run.directory), target)
    except _NotMovedError as problem:
        return RunMove(move.run, move.source, move.target, str(problem))
    except ExplainedError as error:
        return RunMove(move.run, move.source, move.target, error.what)
    except OSError as error:
        return RunMove(move.run, move.source, move.target, error.strerror or str(error))
    return RunMove(move.run, move.source, move.target, remark=remark)


def prepare(directory: Path) -> Path:
    """Make the directory that runs are moved to; return it without links.

    Raises:
        InputError: it cannot be made or written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"runs cannot be moved there: {error.strerror}", where=directory) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError("runs cannot be moved there: it cannot be written", where=directory)
    return Path(os.path.realpath(directory))


def _require_ended(store: RunStore, run: Run) -> None:
    summary = summary_of(store.transport, run)
    state = str(summary["state"])
    if state == "unknown":
        raise _NotMovedError("its state is unknown; perhaps it lives")
    if state not in _ENDED:
        raise _NotMovedError(f"it is {state}")


def _move(source: Path, target: Path) -> str:
    """Move a run's directory, leave a link; return a remark where something stays behind."""
    if target.is_symlink() and os.path.realpath(target) == str(source):
        target.unlink()  # left by an earlier move the other way
    if target.exists() or target.is_symlink():
        if not _same(source, target):
            raise _NotMovedError("another directory of this name is there")
        return _retire(source, target)  # copied before, and interrupted
    try:
        os.rename(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)
        return _retire(source, target)
    _link(source, target)
    return ""


def _copy(source: Path, target: Path) -> None:
    """Copy a run under a hidden name, then give it its name."""
    counter = DiskCounter()
    needed, free = sum(counter.count(source).values()), shutil.disk_usage(target.parent).free
    if needed > free:
        raise _NotMovedError(f"it needs {gigabytes(needed)}, and {gigabytes(free)} are free there")
    before = _listing(source)
    hidden = target.with_name(f".moving-{target.name}-{secrets.token_hex(3)}")
    try:
        _copy_tree(source, hidden, {})
        if _listing(source) != before:
            raise _NotMovedError("it changed while it was copied")
        os.rename(hidden, target)
        _sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def _copy_tree(source: Path, target: Path, copies: dict[tuple[int, int], Path]) -> None:
    """Copy a directory with modes and times; links stay links, files of several names stay one file."""
    target.mkdir()
    with os.scandir(source) as entries:
        items = list(entries)
    for entry in items:
        status, copy = entry.stat(follow_symlinks=False), target / entry.name
        identity = (status.st_dev, status.st_ino)
        if entry.is_symlink():
            copy.symlink_to(os.readlink(entry.path))
        elif entry.is_dir():
            _copy_tree(Path(entry.path), copy, copies)
        elif identity in copies:
            os.link(copies[identity], copy)
        elif stat.S_ISREG(status.st_mode):
            _copy_file(entry.path, copy)
            copies[identity] = copy
        # Pipes and sockets belong to processes that are gone.
    shutil.copystat(source, target)
    _sync_directory(target)


def _copy_file(source: str, target: Path) -> None:
    with open(source, "rb") as reading, target.open("xb") as writing:
        shutil.copyfileobj(reading, writing, 1 << 20)
        writing.flush()
        os.fsync(writing.fileno())
    shutil.copystat(source, target)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _retire(source: Path, target: Path) -> str:
    """Put a link in the place of a run that was copied, then remove it."""
    old = source.with_name(f".moved-{source.name}-{secrets.token_hex(3)}")
    os.rename(source, old)
    _link(source, target)
    try:
        shutil.rmtree(old)
    except OSError as error:
        return f"what is left of the old one is in {old} ({error.strerror})"
    return ""


def _link(path: Path, target: Path) -> None:
    """Make a link, or let an existing one lead to another target, at once."""
    new = path.with_name(f".link-{path.name}-{secrets.token_hex(3)}")
    new.symlink_to(target)
    os.replace(new, path)


def _listing(directory: Path) -> set[tuple[str, int, int]]:
    """Return names, sizes and times of the files below a directory."""
    files = set()
    for folder, _, names in os.walk(directory):
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            if stat.S_ISREG(status.st_mode):
                path = os.path.relpath(os.path.join(folder, name), directory)
                files.add((path, status.st_size, status.st_mtime_ns // 1000))
    return files


def _same(source: Path, target: Path) -> bool:
    """Return whether a directory is a complete copy of a run."""
    spec = target / SPEC
    return (
        spec.is_file()
        and spec.read_bytes() == (source / SPEC).read_bytes()
        and _listing(source) == _listing(target)
    )
