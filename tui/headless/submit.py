"""`submit`: a run on a Slurm cluster."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.hosts import host_of, path_of
from tui.headless.output import SCHEMA, announce, ask, print_json, say, show

if TYPE_CHECKING:
    import argparse

    from launcher.request import Cost, SubmitRequest
    from launcher.submit.submit import StartEstimate, SubmissionPlan

_STALE_AFTER_S = 86_400.0
"""Age at which the doctor's findings are not mentioned any more."""


def run(options: argparse.Namespace) -> int:
    """Submit a run to Slurm, exactly once."""
    from launcher.submit.review_facts import ReviewFacts
    from launcher.submit.submit import estimate_start, plan_submission, send, storage_of
    from recipes.inheritance import Resolver
    from tui.headless.detect import detect_on
    from tui.headless.recipe_files import jsonable
    from tui.headless.runs_root import choose_runs_root
    from tui.headless.saving import with_saved_choices
    from tui.headless.stores import run_store

    store, detection = run_store(options.host), detect_on(options.host)
    environment = store.transport.environment()
    request = with_saved_choices(
        request_of(options),
        save_child=options.save_child,
        save_into=options.save_into,
        dry_run=options.dry_run or options.test_only,
    )
    proposal = plan_submission(request, detection, store, environment)
    storage = storage_of(proposal, store, environment)
    quiet = options.host is not None or options.dry_run or options.test_only or options.json or options.yes
    if choose_runs_root(proposal, storage, store.transport, asking=not quiet):
        store = run_store()
        proposal = plan_submission(request, detection, store, environment)
        storage = storage_of(proposal, store, environment)
    sends = not (options.dry_run or options.test_only)
    _describe(proposal, sends=sends)
    for warning in storage.warnings():
        say(warning)
    result = _as_json(proposal, store.root) | {"storage": storage.as_json()}
    if options.dry_run:
        facts = ReviewFacts.of(proposal, Resolver().resolve(request.recipe), storage)
        result["effective"] = proposal.submission.files["effective.yaml"].decode()
        result |= {"changes": jsonable(facts.changes_json()), "script": facts.script}
    elif options.test_only:
        start_estimate = estimate_start(proposal, store, environment)
        result |= _estimate_json(start_estimate)
    else:
        submitted = send(proposal, store, environment, confirmed=_confirmed(proposal))
        for doubt in _doubts(proposal):  # accepted all the same: such a job may wait for ever
            say(f"accepted, although {doubt}")
        result["jobs"] = [{"id": job.id, "role": "training", "link": job.link} for job in submitted.jobs]
        announce(f"submitted: job {', '.join(job.id for job in submitted.jobs)}, run {submitted.spec.id}")
    _show(options, result)
    if proposal.obstacle is not None:
        for line in str(proposal.obstacle).split("\n"):
            say(line)
        return proposal.obstacle.exit_code
    return Exit.FAILED if proposal.blocking else Exit.OK


def request_of(options: argparse.Namespace) -> SubmitRequest:
    """Return the request that the options of `submit` make."""
    from launcher.fields.assignments import assign
    from launcher.request import SubmitRequest

    values, recipe = vars(options), _path_there(options.recipe, options.host)
    assigned = assign(
        recipe,
        options.override,
        options.assignments,
        for_both=options.assignments_both,
        checkout=_checkout(options),
        nodes=options.nodes,
        gpus_per_node=options.gpus_per_node,
    )
    return SubmitRequest.of(
        {
            **values,
            "recipe": recipe,
            "kind": "rehearsal" if options.rehearse else "smoke" if options.smoke else "training",
            "env_file": _path_there(options.env_file, options.host) if options.env_file else None,
            "overrides": (*options.override, *assigned.overrides),
            "env": (*options.env, *assigned.env),
            "no_env": tuple(options.no_env),
            "sbatch_args": tuple(options.sbatch_args),
            "skip_checks": tuple(options.skip_checks),
            "mounts": tuple(mount for text in options.mounts for mount in text.split(",")),
        }
    )


def _path_there(file: str, host: str | None) -> Path:
    """Return the path of a file on the machine whose scheduler gets the job.

    Raises:
        InputError: the file is on another machine.
    """
    from launcher.errors import InputError

    path = path_of(file, host)
    if host is None and (other := host_of(path)) is not None:
        where = file.partition(":")[2]
        raise InputError(
            f"{file} is on another machine than the job",
            fix=f"Submit it there: --host {other}, with {where}.",
        )
    return path


def _checkout(options: argparse.Namespace) -> Path | None:
    """Return the checkout that names the keys of fields; None where none is known, or no field was set."""
    if not options.assignments and not options.assignments_both:
        return None
    from launcher.checkout import choose
    from launcher.errors import InputError, TransportError
    from tui.headless.stores import run_store

    try:
        transport, near = run_store(options.host).transport, (path_of(options.recipe, options.host),)
        path = choose(transport, options.checkout, transport.environment(), near=near).path
    except (InputError, TransportError):  # a rehearsal needs none; the plan says what is wrong with one
        return None
    return transport.path(path)


def _as_json(proposal: SubmissionPlan, root: str) -> dict[str, Any]:
    """Return what `submit --json` prints, before anything is submitted."""
    from tui.headless.check import checks_json
    from tui.headless.memory import memory_json

    submission, cost = proposal.submission, proposal.cost
    return SCHEMA | {
        "run": submission.spec.id,
        "dir": str(Path(root, submission.spec.id)),
        "jobs": [],
        "plan": submission.plans[0].as_json(),
        "cost": {
            "node_hours": cost.node_hours,
            "gpu_hours": cost.gpu_hours,
            "core_hours": cost.core_hours,
        },
        "starts": None,
        "environment": _environment_json(proposal),
        "checks": checks_json(proposal.report),
        "skipped_checks": [item.id for item in submission.spec.skipped_checks],
        "memory": memory_json(proposal.memory) if proposal.memory is not None else None,
        "notes": list(proposal.notes),
        "obstacle": str(proposal.obstacle) if proposal.obstacle is not None else None,
    }


def _estimate_json(start_estimate: StartEstimate) -> dict[str, Any]:
    """Return when it would start, and what would start sooner."""
    return {
        "starts": start_estimate.start,
        "starts_now": start_estimate.requested.now,
        "sooner": [
            {"time_s": item.time_s, "starts": item.start, "now": item.now} for item in start_estimate.sooner
        ],
    }


def _value_text(value: object) -> str:
    """Return a recipe's value on one line."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _environment_json(proposal: SubmissionPlan) -> list[dict[str, str]]:
    """Return what becomes of each variable; values of secrets are not in it."""
    environment = proposal.options.environment
    decisions = environment.decisions if environment is not None else ()
    return [
        {"name": item.name, "value": item.value, "outcome": item.outcome.value, "reason": item.reason}
        for item in decisions
    ]


def _doubts(proposal: SubmissionPlan) -> list[str]:
    """Return why Slurm may refuse the job."""
    from launcher.submit.hints import MAY_REFUSE

    return [note.removeprefix(MAY_REFUSE) for note in proposal.notes if note.startswith(MAY_REFUSE)]


def _describe(proposal: SubmissionPlan, *, sends: bool = False) -> None:
    """Print the cost, the notes, and the checks that fail or warn; `sends`: Slurm answers for itself."""
    from launcher.submit.hints import MAY_REFUSE

    options, cost = proposal.options, proposal.cost
    say(cost_line(options.nodes, options.gpus_per_node, cost))
    for note in proposal.notes:
        if not (sends and note.startswith(MAY_REFUSE)):
            say(note)
    for item in proposal.submission.spec.skipped_checks:
        say(f"skipped {item.id}: {item.message}")
    for result in proposal.blocking:
        say(f"FAIL {result.id:4} {result.message or result.title}")
        for where in result.where:
            say(f"          {where.file}:{where.line} {where.key}".rstrip())
        for fix in result.fixes:
            say(f"          fix: {fix.title}")
    for result in proposal.report.results:
        if result.outcome == "warn":
            say(f"warn {result.id:4} {result.message}")
    unknown = dict.fromkeys(item.id for item in proposal.report.results if item.outcome == "unknown")
    if unknown:
        say(f"unknown: {', '.join(unknown)}; `check` says what is missing")
    for question in proposal.asks:
        say(f"memory: {question}")
    if unready := _unready(proposal):
        say(f"doctor: {unready}")


def _unready(proposal: SubmissionPlan) -> str:
    """Return what the doctor last missed for this recipe, as one line; empty where it missed nothing."""
    from launcher.doctor.last_report import load_report
    from recipes.remote_path import RemotePath

    recipe = proposal.submission.recipe.path
    if isinstance(recipe, RemotePath):  # the reports here are of this machine
        return ""
    checkout = proposal.options.checkout
    site = proposal.submission.layout.site.id
    report = load_report(os.environ, site, checkout.path if checkout is not None else "")
    if report is None or report.recipe != os.path.abspath(recipe):
        return ""
    return report.failures_in_words(time.time(), within_s=_STALE_AFTER_S)


def cost_line(nodes: int, gpus_per_node: int, cost: Cost) -> str:
    """Return a job's size and its maximum cost."""
    return (
        f"{nodes} node{'s' * (nodes != 1)} x {gpus_per_node} GPUs, at most "
        f"{cost.node_hours:g} node-hours, {cost.gpu_hours:g} GPU-hours"
        + (f", {cost.core_hours:g} core-hours" if cost.core_hours is not None else "")
    )


def _confirmed(proposal: SubmissionPlan) -> bool:
    """Ask for confirmation where something needs it and standard input is a terminal."""
    if proposal.request.yes or proposal.blocking or not proposal.asks or not sys.stdin.isatty():
        return proposal.request.yes
    return ask("Submit anyway?")


def _show(options: argparse.Namespace, result: dict[str, Any]) -> None:
    if options.json:
        print_json(result)
        return
    if options.dry_run or options.test_only:
        for item in result.get("changes", ()):
            after = "removed" if item["removed"] else _value_text(item["to"])
            show(f"{item['key']}: {_value_text(item['from'])} -> {after}")
        show(shlex.join(result["plan"]["argv"]))
        for name, value in sorted(result["plan"]["env"].items()):
            show(f"  {name}={value}")
        for item in result["environment"]:
            if not item["value"]:
                show(f"  # {item['name']}: {item['outcome']}" + f" ({item['reason']})" * bool(item["reason"]))
        if result["starts"]:
            _show_start(result)
        return
    on_host = f"--host {options.host} " if options.host is not None else ""
    for job in result["jobs"]:
        show(f"job {job['id']}")
    show(f"run {result['run']}; follow it with `distill-tui watch {on_host}{result['run']}`")
    if options.smoke and result["storage"]["checkpoints_kept"]:
        say(f"afterwards `distill-tui runs --remove-checkpoints {result['run']}` removes its checkpoint")


def _show_start(result: dict[str, Any]) -> None:
    from launcher.durations import format_time_limit

    show(f"would start {'now' if result['starts_now'] else 'at ' + result['starts']}")
    for item in result["sooner"]:
        when = "now" if item["now"] else f"at {item['starts']}"
        show(f"{format_time_limit(item['time_s'])} would start {when}")
