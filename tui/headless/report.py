"""`report`: what happened to a run, as one document without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError
from tui.headless.output import print_json, say, write_document
from tui.run_report import report_of

if TYPE_CHECKING:
    import argparse

    from launcher.monitor.watch import Watch
    from launcher.runs import Run
    from tui.headless.watch import Target


def run(options: argparse.Namespace) -> int:
    """Print the report of a run: state, cause, evidence, settings. Keys and names are removed.

    Raises:
        TransportError: its logs cannot be read.
    """
    from launcher.monitor.report import markdown, write_tar

    name, watch, own_run = _open_far(options) if options.host is not None else _open(options.target)
    report, redact = report_of(name, watch, own_run, say)
    if options.tar:
        write_tar(options.tar, report, watch, redact, options.lines)
        say(f"wrote {options.tar}")
    if options.json:
        print_json(report)
    else:
        write_document(markdown(report))
    return 0


def _open_far(options: argparse.Namespace) -> tuple[str, Watch, Run | None]:
    """Return what is reported of another machine: a run, a Slurm job, or a directory of logs there."""
    from tui.headless.watch import remote_target

    target = remote_target(options.host, options.target)
    return target.name, target.watch, _run_of(target)


def _open(target: str) -> tuple[str, Watch, Run | None]:
    from launcher.monitor.watch import watch_directory
    from launcher.transports.local import LocalTransport
    from recipes.reading import kind_of
    from tui.headless.watch import job_before_path, run_or_job

    path = Path(target)
    if (numbered := job_before_path(target)) is not None:
        return numbered.name, numbered.watch, _run_of(numbered)
    kind = kind_of(path)
    if kind == "directory" and not kind_of(path / "run.json"):
        return str(path), watch_directory(LocalTransport(), str(path)), None
    if not kind and "/" in target:
        raise InputError(f"no such run or directory: {target}")
    if kind == "file":
        raise InputError(f"{target} is a file", fix="Give a run, or the directory that its logs are in.")
    opened = run_or_job(target)
    return opened.name, opened.watch, _run_of(opened)


def _run_of(target: Target) -> Run | None:
    from launcher.runs import load

    return load(target.watch.transport, target.run) if target.run is not None else None
