"""`watch`: the state of a run, once or as it changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from launcher.errors import AmbiguousError, InputError, TransportError
from launcher.logs.events import Role
from launcher.monitor.watch import Watch, watch_directory, watch_logs
from launcher.transports.local import LocalTransport
from recipes.reading import kind_of
from tui.headless.output import print_json, say, show
from tui.headless.stores import run_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from launcher.runs import RunStore
    from launcher.transports.base import Transport

ROLES = tuple(role.value for role in Role)


class Target(NamedTuple):
    """A watch and the name to show for it."""

    name: str
    watch: Watch
    run: str | None = None
    """Directory of a run of this program, which can be cancelled too."""


def run(options: argparse.Namespace) -> int:
    """Watch a run, a Slurm job, a directory of logs or single log files."""
    if not (options.once or options.plain or options.json):
        return _open_monitor(options)
    target = _target(options)
    if options.once:
        return _once(target, as_json=options.json)
    return _follow(target, options.notify, as_json=options.json)


def _open_monitor(options: argparse.Namespace) -> int:
    from tui.terminal import require_terminal

    require_terminal()
    from launcher.monitor.notify import channels
    from launcher.paths import runs_root
    from tui.app import run_app

    if options.host is not None and not options.log and len(options.target) == 1:
        channels(tuple(options.notify))
        # The app itself connects: a code is asked for on its screen, and orders go to the host.
        return run_app(
            runs_root=runs_root(), mouse=not options.no_mouse, open_run=options.target[0],
            notify=tuple(options.notify), host=options.host,
        )  # fmt: skip
    target = _target(options)
    mouse, notify = not options.no_mouse, tuple(options.notify)
    channels(notify)  # an invalid --notify fails before the app takes the screen
    if target.run is not None:
        return run_app(runs_root=runs_root(), mouse=mouse, open_run=target.run, notify=notify)
    return run_app(runs_root=runs_root(), mouse=mouse, open_watch=(target.name, target.watch), notify=notify)


def _target(options: argparse.Namespace) -> Target:
    if options.host is not None:
        if options.log or len(options.target) != 1:
            raise InputError(
                "--host takes one run, job or directory of logs",
                fix=f"`distill-tui runs --host {options.host}`",
            )
        # Orders about it are given by `cancel` and `resume` with --host.
        return remote_target(options.host, options.target[0])._replace(run=None)
    transport = LocalTransport()
    role = Role(options.role) if options.role else None
    logs = [_role_and_file(item) for item in options.log]
    if not logs and len(options.target) == 1:
        path = Path(options.target[0])
        if (numbered := job_before_path(options.target[0])) is not None:
            return numbered
        kind = kind_of(path)
        if kind == "directory" and not kind_of(path / "run.json"):
            return Target(str(path), watch_directory(transport, str(path)))
        if not kind and "/" in options.target[0]:
            raise InputError(f"no such file or directory: {options.target[0]}")
        if kind != "file":
            return run_or_job(options.target[0])
    for item in options.target:
        if kind_of(item) != "file":
            raise InputError(f"no such file: {item}", fix="Give one run, one directory, or files that exist.")
        if role is None and Path(item).suffix in (".yaml", ".yml"):
            raise InputError(
                f"{item} is a recipe, not a log",
                fix=f"`distill-tui edit {item}` opens it; --role says that it is a log.",
            )
        logs.append((role, item))
    if not logs:
        raise InputError(
            "nothing to watch", fix="Give a run, a directory or files; `distill-tui runs` lists runs."
        )
    return Target(" ".join(path for _, path in logs), watch_logs(transport, logs))


def remote_target(host: str, reference: str) -> Target:
    """Return what a reference means on another machine: a run, a Slurm job, or a directory of logs there.

    Raises:
        InputError: there is no such thing.
        TransportError: the machine does not answer.
    """
    store = run_store(host)
    if "/" in reference:
        entry = store.transport.stat(reference)
        if entry is None or not entry.is_dir:
            raise InputError(f"no such directory on {host}: {reference}")
        if store.transport.stat(f"{reference}/run.json") is None:
            return Target(f"{host}:{reference}", watch_directory(store.transport, reference))
    target = run_or_job(reference, store)
    return target._replace(name=f"{host}:{target.name}")


def job_before_path(reference: str) -> Target | None:
    """Return what a number means that is also the name of a file or directory here: a job first.

    None where there is no such path, or no such job.
    """
    from launcher.run_reference import is_job_id

    if not is_job_id(reference) or not kind_of(reference):
        return None
    try:
        return run_or_job(reference)
    except AmbiguousError:
        raise
    except (InputError, TransportError):
        return None


def run_or_job(reference: str, store: RunStore | None = None) -> Target:
    """Return a run of this program, by its name or the id of one of its jobs, else a Slurm job.

    `store` holds the runs; None: those of this machine.

    Raises:
        InputError: there is neither, or several runs match.
        TransportError: Slurm did not answer.
    """
    from launcher.monitor.watch_run import watch_job, watch_run
    from launcher.run_reference import is_job_id

    store = store or run_store()
    try:
        match = store.find(reference)
    except AmbiguousError:
        raise
    except InputError as error:
        if not is_job_id(reference):
            raise
        return Target(f"job {reference}", _job(watch_job, store.transport, reference, error))
    from launcher.overview.usual_runs import usual_of_run

    watch = watch_run(store.transport, match)
    watch.usual = usual_of_run(store.transport, match)
    return Target(match.spec.id, watch, match.directory)


def _job(
    watch_job: Callable[[Transport, str], Watch], transport: Transport, reference: str, otherwise: InputError
) -> Watch:
    try:
        return watch_job(transport, reference)
    except TransportError as error:
        if "cannot be run" in error.what:  # no Slurm here: a number can only have meant a run
            raise otherwise from error
        raise


def _role_and_file(text: str) -> tuple[Role | None, str]:
    role, _, path = text.partition("=")
    if role not in ROLES or not path:
        raise InputError(
            f"invalid --log '{text}' (expected ROLE=FILE)", fix=f"ROLE is one of {', '.join(ROLES)}."
        )
    if kind_of(path) != "file":
        raise InputError(f"no such file: {path}")
    return Role(role), path


def _once(target: Target, *, as_json: bool) -> int:
    from launcher.monitor.summary import state_json

    target.watch.catch_up(final=True)
    if target.watch.problem:
        raise TransportError(target.watch.problem)
    state = state_json(target.name, target.watch.state)
    if as_json:
        print_json(state)
        return 0
    from tui.headless.plain import state_lines

    for line in state_lines(state):
        show(line)
    _tell_removal(target)
    return 0


def _follow(target: Target, notify: Sequence[str], *, as_json: bool) -> int:
    from launcher.monitor.notify import Notifier, channels, channels_in_settings
    from tui.headless.stream import EventStream

    notifier = Notifier(target.name, channels(notify or channels_in_settings()))
    stream = EventStream(as_json, notifier=notifier)
    stream.follow(target.watch, lambda state: state.state.ended)
    code = stream.close(target.name, target.watch.state)
    if not as_json:
        _tell_removal(target)
    return code


def _tell_removal(target: Target) -> None:
    """Say how to remove the checkpoints of a smoke run or rehearsal that has ended."""
    if target.run is None or not target.watch.state.state.ended:
        return
    from launcher.runs import load
    from launcher.storage.removal import removal_hint

    if hint := removal_hint(load(run_store().transport, target.run)):
        say(hint)
