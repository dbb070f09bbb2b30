"""`doctor`: whether this place is ready for a run, and the commands that make it so."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.errors import Exit
from tui.headless.hosts import host_of
from tui.headless.inputs import recipe_path
from tui.headless.output import SCHEMA, ask, print_json, say, show

if TYPE_CHECKING:
    import argparse

    from launcher.doctor.doctor_request import DoctorRequest
    from launcher.doctor.fixing import FixStep
    from launcher.doctor.subject import Subject
    from launcher.doctor.verdict import Examination, HealthReport
    from launcher.runs import Run, RunStore
    from launcher.transports.base import Transport

MARKS = {"fail": "FAIL", "warn": "warn", "unknown": "  ? ", "pass": " ok "}
_FILES_S = 2.0
"""Deadline of each file call: a file system that hangs costs one verdict."""
_LIMIT_S = 60.0
"""For the whole examination; it takes some 2 s, on a busy machine more."""
_POLL_S = 3.0


def run(options: argparse.Namespace) -> int:
    """Examine the place; with `--on devel` nodes, too; with `--fix`, make it ready."""
    request = _request(options)
    host = options.host
    if host is None and request.recipe is not None:
        host = host_of(request.recipe)
    if options.screen:
        return _on_screen(request, host or "")
    if options.on == "devel":
        return _on_devel(_subject(request, host), options, host)
    report = _examined(request, host)
    if options.print:
        from launcher.doctor.fixing import script

        show(script(report).rstrip("\n"))
        return Exit.OK
    if options.fix:
        report = _fix(report, request, host, yes=options.yes)
    _print(report, options)
    return Exit.OK if report.ok else Exit.FAILED


def _on_screen(request: DoctorRequest, host: str) -> int:
    from launcher.paths import runs_root
    from tui.terminal import require_terminal

    require_terminal()
    from tui.app import run_app

    return run_app(runs_root=runs_root(), doctor=request, host=host)


def _request(options: argparse.Namespace) -> DoctorRequest:
    from launcher.doctor.doctor_request import DoctorRequest

    file = options.file
    overrides = tuple(options.override)
    # An override, without a recipe.
    if file is not None and "=" in file and (options.host is not None or not Path(file).exists()):
        file, overrides = None, (file, *overrides)
    recipe = recipe_path(file, options.host) if file is not None else None
    return DoctorRequest(
        recipe,
        overrides,
        "smoke" if options.smoke else "training",
        options.nodes,
        options.time,
        options.partition,
        options.account,
        options.profile,
        options.checkout,
        options.modules,
        options.container,
    )


@dataclass(frozen=True)
class _Machine:
    """The machine that is examined."""

    transport: Transport
    runs: Path
    environment: Mapping[str, str]

    def own(self, request: DoctorRequest) -> DoctorRequest:
        """Return a request with the recipe's path on this machine."""
        if request.recipe is None:
            return request
        return replace(request, recipe=self.transport.path(str(request.recipe)))


def _machine(host: str | None) -> _Machine:
    if host is None:
        from launcher.paths import runs_root
        from launcher.transports.local import LocalTransport

        return _Machine(LocalTransport(_FILES_S), runs_root(), os.environ)
    from launcher.runs import store_on
    from tui.headless.hosts import transport_to

    # Beside the others: it looks at everything anew.
    transport = transport_to(host).beside()
    return _Machine(transport, transport.path(store_on(transport).root), transport.environment())


def _subject(request: DoctorRequest, host: str | None) -> Subject:
    from launcher.submit.doctor_subject import subject_of

    place = _machine(host)
    return subject_of(place.own(request), place.transport, place.runs, place.environment)


def _examined(request: DoctorRequest, host: str | None) -> HealthReport:
    """Return the verdicts of the login node, and of what was measured on nodes; they are kept."""
    from launcher.doctor.isolation import isolated
    from launcher.submit.doctor_subject import examined

    def examination() -> HealthReport:
        place = _machine(host)
        return examined(place.own(request), place.transport, place.runs, place.environment)[1]

    # A host's calls have limits, and its login may ask a question at the terminal.
    return isolated(examination, _LIMIT_S) if host is None else examination()


# ------------------------------------------------------------ printing


def _print(report: HealthReport, options: argparse.Namespace, **more: object) -> None:
    if options.json:
        checks = [item.as_json() for item in report.examinations]
        print_json(SCHEMA | {"ok": report.ok, "checks": checks, **more})
        return
    for outcome in MARKS:
        if outcome == "pass" and not options.all:
            continue
        for item in report.examinations:
            if item.verdict.outcome == outcome:
                print_examination(item)
    show(report.in_words())
    if not report.ok and any(_is_automatic(item) for item in report.examinations):
        say("`distill-tui doctor --fix` offers the commands one by one, `--print` makes a script of them")


def print_examination(item: Examination) -> None:
    """Print a verdict with its evidence and its remedy."""
    show(f"{MARKS[item.verdict.outcome]} {item.check.id:4} {item.check.title}: {item.verdict.evidence}")
    if item.verdict.remedy is not None and item.verdict.outcome != "pass":
        for command in item.verdict.remedy.commands:
            show(f"          {command}")


def _is_automatic(item: Examination) -> bool:
    return item.verdict.remedy is not None and item.verdict.remedy.automatic


# ------------------------------------------------------------ fixing


def _fix(report: HealthReport, request: DoctorRequest, host: str | None, *, yes: bool) -> HealthReport:
    """Run the remedies that can be run as they are, each after a question; return the new report."""
    from launcher.doctor.fixing import steps

    chosen = [step for step in steps(report) if step.automatic]
    if not chosen:
        say("there is nothing that a command alone could fix")
        return report
    if not yes and not sys.stdin.isatty():
        say("no terminal to ask at: --yes runs the commands without a question, --print prints them")
        return report
    done = 0
    for number, step in enumerate(chosen, 1):
        say(f"[{number}/{len(chosen)}] {', '.join(step.checks)}: {step.command}")
        if step.changes:
            say(f"      changes {step.changes}")
        if not yes and not ask("      Run it?"):
            continue
        begun = time.monotonic()
        code = _run_step(step, host)
        say(f"      {'done' if code == 0 else f'exit code {code}'} after {time.monotonic() - begun:.0f} s")
        done += code == 0
    say(f"{done} of {len(chosen)} commands succeeded; examining again")
    return _examined(request, host)


def _run_step(step: FixStep, host: str | None) -> int:
    from launcher.doctor.fixing import run_step, run_step_there

    if host is None:
        return run_step(step, os.environ, sys.stderr.fileno())
    from tui.headless.hosts import transport_to

    return run_step_there(step, transport_to(host), sys.stderr.fileno())


# ------------------------------------------------------------ nodes


def _on_devel(subject: Subject, options: argparse.Namespace, host: str | None) -> int:
    """Measure nodes in a job of its own, wait for it, and print the verdicts."""
    from launcher.doctor.check_table import NODE_CHECKS
    from launcher.doctor.node_job import plan_examination, results_of, send_examination
    from launcher.doctor.runner import examine
    from tui.headless.stores import run_store

    store = run_store(host)
    examination = plan_examination(subject, store, subject.shell)
    size = examination.size
    say(
        f"{size.nodes} node{'s' * (size.nodes != 1)} of {size.partition} for at most "
        f"{(size.time_s or 0) // 60} minutes, account {size.account or '-'}"
    )
    if not options.yes and sys.stdin.isatty() and not ask("Submit this job?"):
        return Exit.OK
    run = send_examination(examination, subject, store)
    say(f"job {run.job.id if run.job else '?'}, run {run.spec.id}; ctrl-c leaves it in the queue")
    reason = _wait(run, store)
    record = results_of(subject, run, store)
    measured = replace(subject, measured=record.nodes, size=size)
    report = examine(NODE_CHECKS, measured)
    if not record.nodes:
        say(f"no node wrote a result: {reason}; `distill-tui report {run.spec.id}` says more")
    _print(report, options, run=run.spec.id, nodes=sorted(record.nodes))
    return Exit.OK if report.ok and len(record.nodes) == run.spec.nodes else Exit.FAILED


def _wait(run: Run, store: RunStore) -> str:
    """Wait until the job is over, or all nodes have written their results; return its last state."""
    from launcher.clusters.registry import cluster_of
    from launcher.doctor.node_results import collect
    from launcher.runs import load

    state = ""
    while True:
        current = load(store.transport, run.directory)
        job = current.job
        status = (
            cluster_of(current, store.transport, _POLL_S).state(current, job) if job is not None else None
        )
        if status is not None and status.state.value != state:
            state = status.state.value
            say(f"{time.strftime('%H:%M:%S')}  {state}" + f"  {status.reason}" * bool(status.reason))
        if len(collect(store.transport, run.directory)) >= run.spec.nodes:
            return state
        if status is not None and (status.state.ended or status.over):
            return "; ".join(filter(None, (state, status.reason)))
        time.sleep(_POLL_S)
