"""Renaming and removal of whole runs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from launcher.errors import InputError, LaunchError, TransportError
from launcher.logs.events import JobState
from launcher.monitor.watch_run import summarise, watch_run
from launcher.ownership import require_owner
from launcher.runs import SPEC, Run, load
from launcher.storage.disk_use import DiskCounter
from launcher.stored import dump
from launcher.text import clean
from launcher.transports.base import Transport, is_remote

NAME_LIMIT = 200
_THERE_S = 60.0
"""Time for counting the bytes of a run on another machine."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """What the removal of a run would remove."""

    directory: str
    """Its own directory; that which a link leads to where the run was moved."""
    bytes: int
    complete: bool = True
    """Whether everything was counted."""


def rename_run(transport: Transport, directory: str, name: str) -> Run:
    """Give a run another name; its id and directory stay, so that links and jobs stay valid.

    Raises:
        InputError: the name is empty or too long, or the directory is no run.
        LaunchError: it is another user's run.
        TransportError: the directory cannot be written.
    """
    name = clean(name).strip()
    if not 0 < len(name) <= NAME_LIMIT:
        raise InputError(f"invalid name '{name[:40]}' (expected 1 to {NAME_LIMIT} characters)")
    run = load(transport, directory)
    require_owner(transport, run, "is not renamed")
    spec = run.spec.model_copy(update={"name": name})
    transport.write_atomic(str(Path(directory, SPEC)), dump(spec))
    return load(transport, directory)


def size_of(transport: Transport, directory: str) -> RunSize:
    """Return what the removal of a run would remove.

    Raises:
        InputError: the directory is no run.
        LaunchError: the run has not ended, or it is not known whether it has.
    """
    _require_ended(transport, directory)
    if is_remote(transport):
        return _size_there(transport, directory)
    counter = DiskCounter()
    real = os.path.realpath(directory)
    return RunSize(real, sum(counter.count(real).values()), counter.complete)


def remove_run(transport: Transport, directory: str, measured: str = "") -> None:
    """Remove a run that has ended, with everything in its directory; of a moved run also the link.

    It gets a hidden name first, so that one that is removed in part is not listed. `measured` is the
    directory that the user was asked about: a link may lead elsewhere by now.

    Raises:
        InputError: the directory is no run.
        LaunchError: the run has not ended, it is not known whether it has, or it is another user's.
        TransportError: it cannot be removed.
    """
    _require_ended(transport, directory)
    if is_remote(transport):
        _remove_there(transport, directory, measured)
        return
    real = Path(os.path.realpath(directory))
    if measured and str(real) != measured:
        raise LaunchError("not removed: the run is another one now", where=Path(directory))
    hidden = real.with_name(f".removed-{real.name}")
    try:
        real.rename(hidden)
        if Path(directory).is_symlink():
            Path(directory).unlink()
        shutil.rmtree(hidden)
    except OSError as error:
        raise TransportError(f"cannot remove the run: {error.strerror}", where=real) from error


def _size_there(transport: Transport, directory: str) -> RunSize:
    real = transport.real_path(directory)
    done = transport.run(["du", "-s", "-B1", "--", real], timeout_s=_THERE_S)
    size = done.stdout.partition(real)[0].strip()
    return RunSize(real, int(size) if size.isdecimal() else 0, done.code == 0 and size.isdecimal())


def _remove_there(transport: Transport, directory: str, measured: str) -> None:
    """Remove a run of another machine: it gets a hidden name first, as here."""
    real = transport.real_path(directory)
    if measured and real != measured:
        raise LaunchError("not removed: the run is another one now", where=Path(directory))
    hidden = str(Path(real).with_name(f".removed-{Path(real).name}"))
    link = '[ ! -L "$3" ] || rm -- "$3"'
    done = transport.run(["sh", "-c", f'mv -T -- "$1" "$2" && {link}', "sh", real, hidden, directory])
    if done.code != 0:
        raise TransportError(
            f"cannot remove the run: {done.stderr.strip().rpartition(':')[2].strip()}", where=real
        )
    transport.remove_tree(hidden)


def _require_ended(transport: Transport, directory: str) -> None:
    """Refuse a run that may still run; its logs and its cluster are asked, not what was saved before."""
    run = load(transport, directory)
    require_owner(transport, run, "is not removed", ("rm", "-r", "--", os.path.realpath(directory)))
    watch = watch_run(transport, run)
    watch.catch_up()
    summary = summarise(transport, run, watch)
    state = JobState(str(summary["state"]))
    if not state.ended:
        what = "it is not known whether it runs" if state is JobState.UNKNOWN else f"it is {state.value}"
        raise LaunchError(
            f"{clean(run.spec.id)} is not removed: {what}",
            where=Path(directory),
            fix="Cancel it first; a run of another machine can be removed there.",
        )
