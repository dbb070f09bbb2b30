"""`submit`: a run on a Slurm cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.output import print_json, say

if TYPE_CHECKING:
    from launcher.checkout import Checkout
    from launcher.clusters.slurm.detect import Detection
    from launcher.clusters.slurm.submission import Choices, Submission
    from launcher.runs import Run


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser("submit", help="submit a run to Slurm", description=_submit.__doc__)
    command.add_argument("recipe", metavar="FILE", help="the recipe")
    command.add_argument("overrides", metavar="OVERRIDE", nargs="*", help="KEY=VALUE, as Hydra means it")
    command.add_argument("--nodes", type=int, required=True, metavar="N")
    command.add_argument(
        "--gpus-per-node", type=int, metavar="N", help="default: what the partition's nodes have"
    )
    command.add_argument("--partition", metavar="P", help="default: Slurm's default partition")
    command.add_argument("--account", metavar="A", help="default: your default account")
    command.add_argument(
        "--time", required=True, metavar="T", help="limit of each job: MM, HH:MM:SS, D-HH:MM:SS"
    )
    command.add_argument("--qos", metavar="Q")
    command.add_argument("--reservation", metavar="R")
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
    command.add_argument("--profile", metavar="NAME", help="a profile of your site.toml")
    command.add_argument("--env-file", metavar="FILE", help="NAME=value lines with keys for the driver")
    command.add_argument(
        "--sbatch-arg", metavar="ARG", action="append", default=[], help="one more argument of sbatch"
    )
    only = command.add_mutually_exclusive_group()
    only.add_argument(
        "--test-only", action="store_true", help="ask Slurm when it would start; submits nothing"
    )
    only.add_argument("--dry-run", action="store_true", help="print what would happen; does nothing")
    command.add_argument("--json", action="store_true", help="as one JSON object")
    command.set_defaults(handler=_submit)


def _submit(options: argparse.Namespace) -> int:
    """Submit a run to Slurm, once: the recipe with NODES and GPUs as Slurm is asked for them."""
    import os
    from pathlib import Path

    from launcher.clusters.slurm.submission import Cost, prepare
    from tui.headless.detect import look
    from tui.headless.runs import store

    known = store()
    found = look()
    checkout = None if options.rehearse else _checkout(options)
    choices = _choices(options, found, checkout)
    submission = prepare(
        known.transport, known, os.environ, found.site, Path(options.recipe), options.overrides, choices
    )
    cost = Cost.of(choices)
    say(
        f"{choices.nodes} nodes x {choices.gpus_per_node} GPUs, at most "
        f"{cost.node_hours:g} node-hours, {cost.gpu_hours:g} GPU-hours"
    )
    if found.site.stores_environments:
        say(f"{found.site.name} keeps the environment of jobs; keys are not in it")
    result: dict[str, Any] = {
        "schema": 1,
        "run": submission.spec.id,
        "dir": str(Path(known.root, submission.spec.id)),
        "jobs": [],
        "plan": submission.plans[0].as_json(),
        "cost": {"node_hours": cost.node_hours, "gpu_hours": cost.gpu_hours},
        "starts": None,
    }
    if options.dry_run:
        result["effective"] = submission.files["effective.yaml"].decode()
    elif options.test_only:
        result["starts"] = _foretell(choices)
    else:
        run = _send(submission, checkout)
        result["jobs"] = [{"id": job.id, "role": "training", "link": job.link} for job in run.jobs]
    _show(options, result)
    return Exit.OK


def _choices(options: argparse.Namespace, found: Detection, checkout: Checkout | None) -> Choices:
    import os
    from pathlib import Path

    from launcher.clusters.slurm.client import SlurmClient
    from launcher.clusters.slurm.submission import SECRET_VARIABLES, Choices, read_env_file
    from launcher.clusters.slurm.text import CannotReadError, seconds
    from launcher.errors import InputError
    from launcher.runs import SlurmRequest
    from launcher.transports.local import LocalTransport
    from recipes.inheritance import resolve

    try:
        limit = seconds(options.time)
    except CannotReadError:
        limit = None
    if not limit:
        raise InputError(f"--time '{options.time}' is no time", fix="Write it as MM, HH:MM:SS or D-HH:MM:SS.")
    if options.nodes < 1 or (options.gpus_per_node or 0) < 0 or options.chain < 1:
        raise InputError("--nodes and --chain must be 1 or more, and --gpus-per-node not below 0")
    default = next((item.name for item in found.partitions if item.default), None)
    name = options.partition or default
    if name is None:
        raise InputError(
            "this cluster has no default partition", fix="Give --partition; `detect` lists them."
        )
    partition = found.partition(name)
    gpus = options.gpus_per_node
    if gpus is None and partition is not None:
        gpus = partition.gpus.count
    if gpus is None:
        gpus = resolve(Path(options.recipe), options.overrides).get("cluster.gpus_per_node", 1)
    keys = {name: os.environ[name] for name in SECRET_VARIABLES if os.environ.get(name)}
    if options.env_file:
        keys |= read_env_file(Path(options.env_file).read_text(errors="replace"), Path(options.env_file))
    account = options.account or next((item.account for item in found.accounts or () if item.default), None)
    return Choices(
        kind="rehearsal" if options.rehearse else "smoke" if options.smoke else "training",
        nodes=options.nodes,
        gpus_per_node=gpus,
        request=SlurmRequest(
            partition=name,
            account=account,
            time_s=limit,
            qos=options.qos,
            reservation=options.reservation,
            chain=options.chain,
        ),
        user=SlurmClient(LocalTransport(), os.environ).user,
        profile=options.profile,
        keys=keys,
        sbatch_args=tuple(options.sbatch_arg),
        checkout=checkout,
    )


def _checkout(options: argparse.Namespace) -> Checkout:
    import os

    from launcher.checkout import choose
    from launcher.transports.local import LocalTransport

    return choose(LocalTransport(), options.checkout, os.environ)


def _send(submission: Submission, checkout: Checkout | None) -> Run:
    import os

    from launcher.checkout import remember
    from launcher.watching import cluster_of
    from tui.headless.runs import store

    known = store()
    run = known.create(submission.spec, submission.files)
    for plan in submission.plans:
        run = cluster_of(run, known.transport).submit(run, plan)
    if checkout is not None:
        remember(known.transport, checkout, os.environ)
    return run


def _foretell(choices: Choices) -> str:
    import os

    from launcher.clusters.slurm.cluster import foretell
    from launcher.transports.local import LocalTransport

    return foretell(LocalTransport(), os.environ, choices).start


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
            print(f"would start at {result['starts']}")
        return
    for job in result["jobs"]:
        print(f"job {job['id']}")
    print(f"run {result['run']}; `distill-tui watch {result['run']}` follows it")
