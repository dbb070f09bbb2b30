"""`watch`: what a run is doing, once or as it happens."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from tui.headless.output import print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from launcher.errors import InputError
    from launcher.logs.events import Role
    from launcher.monitor.watch import Watch
    from launcher.transports.base import Transport

ROLES = ("slurm", "head", "driver", "worker", "companion")


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser("watch", help="watch a run, or any logs", description=_watch.__doc__)
    command.add_argument(
        "target",
        metavar="RUN|JOBID|DIR|FILE",
        nargs="*",
        help="a run, a job of Slurm, a directory of logs, or log files",
    )
    command.add_argument("--once", action="store_true", help="read what is there, print the state, and end")
    command.add_argument("--plain", action="store_true", help="print events line by line")
    command.add_argument(
        "--json", action="store_true", help="as JSON: one object with --once, else one a line"
    )
    command.add_argument(
        "--log", metavar="ROLE=FILE", action="append", default=[], help="a log and who wrote it"
    )
    command.add_argument("--role", choices=ROLES, help="who wrote the FILEs")
    command.add_argument(
        "--notify",
        metavar="bell|terminal|COMMAND",
        action="append",
        default=[],
        help="tell of start, failure and end; COMMAND gets the facts as DISTILL_TUI_… in its environment",
    )
    command.set_defaults(handler=_watch)


class Target(NamedTuple):
    """What is being watched, and by which name."""

    name: str
    watch: Watch
    run: str | None = None
    """Directory of a run of this program: such a run can be cancelled, too."""


def _watch(options: argparse.Namespace) -> int:
    """Watch a run of this program, any job of Slurm, a directory of anything's logs, or single logs."""
    if not (options.once or options.plain or options.json):
        return _open_monitor(options)
    target = _target(options)
    if options.once:
        return _once(target, as_json=options.json)
    return _follow(target, options.notify, as_json=options.json)


def _open_monitor(options: argparse.Namespace) -> int:
    from tui.headless.tty import require_terminal

    require_terminal()
    from launcher.monitor.notify import channels
    from launcher.paths import runs_root
    from tui.app import run_app

    target = _target(options)
    mouse, notify = not options.no_mouse, tuple(options.notify)
    channels(notify)  # what cannot be understood is said before the screen is taken
    if target.run is not None:
        return run_app(runs_root=runs_root(), mouse=mouse, open_run=target.run, notify=notify)
    return run_app(runs_root=runs_root(), mouse=mouse, open_watch=(target.name, target.watch), notify=notify)


def _target(options: argparse.Namespace) -> Target:
    from pathlib import Path

    from launcher.errors import InputError
    from launcher.logs.events import Role
    from launcher.monitor.watch import watch_directory, watch_logs
    from launcher.transports.local import LocalTransport

    transport = LocalTransport()
    role = Role(options.role) if options.role else None
    logs = [_role_and_file(item) for item in options.log]
    if not logs and len(options.target) == 1:
        path = Path(options.target[0])
        if path.is_dir() and not (path / "run.json").exists():
            return Target(str(path), watch_directory(transport, str(path)))
        if not path.exists() and "/" in options.target[0]:
            raise InputError(f"no such file or directory: {options.target[0]}")
        if not path.is_file():
            return run_or_job(options.target[0])
    for item in options.target:
        if not Path(item).is_file():
            raise InputError(f"no such file: {item}", fix="Give one run, one directory, or files that exist.")
        logs.append((role, item))
    if not logs:
        raise InputError(
            "nothing to watch", fix="Give a run, a directory or files; `distill-tui runs` lists runs."
        )
    return Target(" ".join(path for _, path in logs), watch_logs(transport, logs))


def run_or_job(reference: str) -> Target:
    """Return a run of this program, by its name or by the number of one of its jobs; else a job of Slurm.

    Raises:
        InputError: there is neither.
        TransportError: Slurm gave no answer.
    """
    import re

    from launcher.errors import InputError
    from launcher.monitor.watch_run import watch_job, watch_run
    from launcher.runs import Run
    from tui.headless.runs import store

    known = store()
    is_number = re.fullmatch(r"\d+(?:[_+]\d+)?", reference) is not None
    ours = [item for item in known.list() if isinstance(item, Run)] if is_number else []
    run = next((item for item in ours if any(job.id == reference for job in item.jobs)), None)
    if run is None:
        try:
            run = known.find(reference)
        except InputError as error:
            if not is_number:
                raise
            return Target(f"job {reference}", _job(watch_job, known.transport, reference, error))
    return Target(run.spec.id, watch_run(known.transport, run), run.directory)


def _job(
    watch_job: Callable[[Transport, str], Watch], transport: Transport, reference: str, otherwise: InputError
) -> Watch:
    from launcher.errors import TransportError

    try:
        return watch_job(transport, reference)
    except TransportError as error:
        if "cannot be run" in error.what:  # no Slurm here: a number can only have meant a run
            raise otherwise from error
        raise


def _role_and_file(text: str) -> tuple[Role | None, str]:
    from pathlib import Path

    from launcher.errors import InputError
    from launcher.logs.events import Role

    role, _, path = text.partition("=")
    if role not in ROLES or not path:
        raise InputError(f"--log wants ROLE=FILE, not '{text}'", fix=f"ROLE is one of {', '.join(ROLES)}.")
    if not Path(path).is_file():
        raise InputError(f"no such file: {path}")
    return Role(role), path


def _once(target: Target, *, as_json: bool) -> int:
    from launcher.errors import TransportError
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
        print(line)
    return 0


def _follow(target: Target, notify: Sequence[str], *, as_json: bool) -> int:
    from launcher.monitor.notify import Notifier, channels, wanted_by_settings
    from tui.headless.stream import EventStream

    notifier = Notifier(target.name, channels(notify or wanted_by_settings()))
    stream = EventStream(as_json, notifier=notifier)
    stream.follow(target.watch, lambda state: state.state.ended)
    return stream.close(target.name, target.watch.state)
