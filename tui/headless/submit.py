"""`submit`: a run on a Slurm cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.output import print_json, say

if TYPE_CHECKING:
    from launcher.clusters.slurm.job_options import Cost
    from launcher.submit.submit import StartEstimate, SubmissionPlan, SubmitRequest


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser("submit", help="submit a run to Slurm", description=_submit.__doc__)
    _add_job(command)
    _add_kind(command)
    _add_foresight(command)
    only = command.add_mutually_exclusive_group()
    only.add_argument(
        "--test-only", action="store_true", help="ask Slurm when it would start; submits nothing"
    )
    only.add_argument("--dry-run", action="store_true", help="print what would happen; does nothing")
    command.add_argument("--json", action="store_true", help="as one JSON object")
    command.set_defaults(handler=_submit)


def _add_job(command: argparse.ArgumentParser) -> None:
    command.add_argument("recipe", metavar="FILE", help="the recipe")
    command.add_argument("overrides", metavar="OVERRIDE", nargs="*", help="KEY=VALUE, as Hydra means it")
    command.add_argument(
        "--nodes", type=int, metavar="N", help="default: the recipe's; with --smoke the fewest that do"
    )
    command.add_argument(
        "--gpus-per-node", type=int, metavar="N", help="default: what the partition's nodes have"
    )
    command.add_argument(
        "--partition", metavar="P", help="default: Slurm's; with --smoke the site's for tests"
    )
    command.add_argument("--account", metavar="A", help="default: your default account")
    command.add_argument(
        "--time", required=True, metavar="T", help="limit of each job: MM, HH:MM:SS, D-HH:MM:SS"
    )
    command.add_argument("--qos", metavar="Q")
    command.add_argument("--reservation", metavar="R")
    command.add_argument(
        "--launcher",
        choices=("ray_bare", "ray.sub"),
        default="ray_bare",
        help="ray.sub: NeMo-RL's own, in a container that Slurm's Pyxis starts (default: ray_bare)",
    )
    command.add_argument("--container", metavar="IMAGE", help="for ray.sub; default: your site.toml's")
    command.add_argument(
        "--mounts",
        metavar="SRC:DST,…",
        action="append",
        default=[],
        help="for ray.sub: what the container sees besides checkout and run",
    )
    command.add_argument("--profile", metavar="NAME", help="a profile of your site.toml")
    command.add_argument("--env-file", metavar="FILE", help="NAME=value lines with keys for the driver")
    command.add_argument(
        "--sbatch-arg", metavar="ARG", action="append", default=[], help="one more argument of sbatch"
    )


def _add_kind(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--checkout", metavar="DIR", help="the NeMo-RL checkout; default: $NEMO_RL_ROOT, or the last"
    )
    kind = command.add_mutually_exclusive_group()
    kind.add_argument(
        "--rehearse", action="store_true", help="with stand-in models: proves the way, costs minutes"
    )
    kind.add_argument(
        "--smoke", action="store_true", help="the real thing for 5 steps, in directories of its own"
    )
    command.add_argument(
        "--chain", type=int, default=1, metavar="N", help="up to N jobs, each resumes the last"
    )


def _add_foresight(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--skip-check",
        metavar="ID",
        action="append",
        default=[],
        help="submit although this check fails (C34 …)",
    )
    command.add_argument("--yes", action="store_true", help="submit although the memory may not suffice")


def _submit(options: argparse.Namespace) -> int:
    """Submit a run to Slurm, once: the recipe with NODES and GPUs as Slurm is asked for them."""
    import os

    from launcher.submit.submit import estimate_start, plan_submission, send
    from tui.headless.detect import look
    from tui.headless.runs import store

    known = store()
    proposal = plan_submission(_order(options), look(), known, os.environ)
    _tell(proposal)
    result = as_json(proposal, known.root)
    if options.dry_run:
        result["effective"] = proposal.submission.files["effective.yaml"].decode()
    elif options.test_only:
        forecast = estimate_start(proposal, known, os.environ)
        result |= forecast_json(forecast)
    else:
        run = send(proposal, known, os.environ, confirmed=_confirmed(proposal))
        result["jobs"] = [{"id": job.id, "role": "training", "link": job.link} for job in run.jobs]
    _show(options, result)
    return Exit.FAILED if proposal.blocking else Exit.OK


def _order(options: argparse.Namespace) -> SubmitRequest:
    from pathlib import Path

    from launcher.submit.submit import SubmitRequest

    return SubmitRequest(
        recipe=Path(options.recipe),
        nodes=options.nodes,
        time=options.time,
        overrides=tuple(options.overrides),
        kind="rehearsal" if options.rehearse else "smoke" if options.smoke else "training",
        gpus_per_node=options.gpus_per_node,
        partition=options.partition,
        account=options.account,
        qos=options.qos,
        reservation=options.reservation,
        checkout=options.checkout,
        chain=options.chain,
        profile=options.profile,
        env_file=Path(options.env_file) if options.env_file else None,
        sbatch_args=tuple(options.sbatch_arg),
        skip_checks=tuple(options.skip_check),
        launcher=options.launcher,
        container=options.container,
        mounts=tuple(mount for text in options.mounts for mount in text.split(",")),
        yes=options.yes,
    )


def as_json(proposal: SubmissionPlan, root: str) -> dict[str, Any]:
    """Return what `submit --json` prints, before anything is submitted."""
    from pathlib import Path

    from tui.headless.foresight_run import checks_json, memory_json

    submission, cost = proposal.submission, proposal.cost
    return {
        "schema": 1,
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
        "checks": checks_json(proposal.report),
        "skipped_checks": [item.id for item in submission.spec.skipped_checks],
        "memory": memory_json(proposal.memory) if proposal.memory is not None else None,
        "notes": list(proposal.notes),
    }


def forecast_json(forecast: StartEstimate) -> dict[str, Any]:
    """Return when it would start, and what would start sooner."""
    return {
        "starts": forecast.start,
        "starts_now": forecast.asked.now,
        "sooner": [
            {"time_s": item.time_s, "starts": item.start, "now": item.now} for item in forecast.sooner
        ],
    }


def _tell(proposal: SubmissionPlan) -> None:
    """Say what it costs, and what stands against it."""
    choices, cost = proposal.choices, proposal.cost
    say(cost_line(choices.nodes, choices.gpus_per_node, cost))
    for note in proposal.notes:
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
        say(f"cannot be told: {', '.join(unknown)}; `check` says what is missing")
    for question in proposal.asks:
        say(f"memory: {question}")


def cost_line(nodes: int, gpus_per_node: int, cost: Cost) -> str:
    """Return what a job takes and costs at most."""
    return (
        f"{nodes} node{'s' * (nodes != 1)} x {gpus_per_node} GPUs, at most "
        f"{cost.node_hours:g} node-hours, {cost.gpu_hours:g} GPU-hours"
        + (f", {cost.core_hours:g} core-hours" if cost.core_hours is not None else "")
    )


def _confirmed(proposal: SubmissionPlan) -> bool:
    """Ask where something wants a yes, and someone is there to give it."""
    import sys

    if proposal.order.yes or proposal.blocking or not proposal.asks or not sys.stdin.isatty():
        return proposal.order.yes
    say("Submit all the same? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(options: argparse.Namespace, result: dict[str, Any]) -> None:
    if options.json:
        print_json(result)
        return
    import shlex

    if options.dry_run or options.test_only:
        print(shlex.join(result["plan"]["argv"]))
        for name, value in sorted(result["plan"]["env"].items()):
            print(f"  {name}={value}")
        if result["starts"]:
            _show_start(result)
        return
    for job in result["jobs"]:
        print(f"job {job['id']}")
    print(f"run {result['run']}; `distill-tui watch {result['run']}` follows it")


def _show_start(result: dict[str, Any]) -> None:
    from launcher.clusters.slurm.parse import slurm_time

    print(f"would start {'now' if result['starts_now'] else 'at ' + result['starts']}")
    for item in result["sooner"]:
        print(f"{slurm_time(item['time_s'])} would start {'now' if item['now'] else 'at ' + item['starts']}")
