"""`detect`: what Slurm there is, and what of it one may use."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tui.headless.output import duration, print_json, say

if TYPE_CHECKING:
    from launcher.clusters.slurm.detect import Detection
    from launcher.clusters.slurm.partitions import Partition


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser(
        "detect", help="what Slurm there is here, and what of it you may use", description=_detect.__doc__
    )
    command.add_argument("--json", action="store_true", help="as one JSON object")
    command.add_argument("--refresh", action="store_true", help="ask again; answers are kept for four hours")
    command.set_defaults(handler=_detect)


def _detect(options: argparse.Namespace) -> int:
    """List the partitions with their GPUs and limits, and your accounts."""
    found = look(refresh=options.refresh)
    if options.json:
        print_json(as_json(found))
        return 0
    for partition in found.partitions:
        print(_line(found, partition))
    for account in found.accounts or ():
        where = account.partition or "all partitions"
        print(f"account {account.account:16} {where:20} QoS {', '.join(account.qos) or '-'}")
    for budget in found.budgets or ():
        print(f"budget  {budget.account:16} of project {budget.project}")
    for problem in found.problems:
        say(f"{problem.what}\n  {problem.fix}".rstrip())
    return 0


def look(*, refresh: bool = False) -> Detection:
    """Return what there is on this machine."""
    import os

    from launcher.clusters.slurm.detect import detect
    from launcher.paths import cache_root
    from launcher.transports.local import LocalTransport

    return detect(LocalTransport(), os.environ, cache_root(), refresh=refresh)


def as_json(found: Detection) -> dict[str, Any]:
    """Return what `detect --json` prints."""
    accounts = [
        {"account": item.account, "partition": item.partition, "qos": list(item.qos), "default": item.default}
        for item in found.accounts or ()
    ]
    return {
        "schema": 1,
        "site": found.site.id,
        "slurm_version": found.version,
        "cluster": found.cluster,
        "partitions": [_partition(found, partition) for partition in found.partitions],
        "accounts": accounts,
        "budgets": [{"project": item.project, "account": item.account} for item in found.budgets]
        if found.budgets is not None
        else None,
        "problems": [{"what": problem.what, "fix": problem.fix} for problem in found.problems],
    }


def _partition(found: Detection, partition: Partition) -> dict[str, Any]:
    from launcher.clusters.slurm.gres import gpu_memory_gib

    usable = found.accounts_in(partition)
    return {
        "name": partition.name,
        "default": partition.default,
        "state": partition.state,
        "nodes": partition.nodes,
        "gpus_per_node": partition.gpus.count,
        "gpu_type": partition.gpus.type or None,
        "gpu_memory_gib": gpu_memory_gib(partition.gpus.type or "gpu", found.site.gpu_memory_gib)
        if partition.gpus.count
        else None,
        "cpus_per_node": partition.cpus.cpus,
        "cores_per_node": partition.cpus.cores,
        "gpu_mix": [
            {"count": mix.gpus.count, "type": mix.gpus.type or None, "nodes": mix.nodes}
            for mix in partition.mix
        ],
        "max_time_s": partition.max_time_s,
        "default_time_s": partition.default_time_s,
        "max_nodes": partition.max_nodes,
        "qos": partition.qos,
        "accounts": None if usable is None else list(usable),
    }


def _line(found: Detection, partition: Partition) -> str:
    gpus = partition.gpus
    has = f"{gpus.count} x {gpus.type or 'GPU'}" if gpus.count else "no GPU"
    limit = "limit unknown" if partition.max_time_s is None else f"up to {duration(partition.max_time_s)}"
    usable = found.accounts_in(partition)
    whose = "accounts unknown" if usable is None else ", ".join(usable) or "none of your accounts"
    mark = "*" if partition.default else " "
    name = f"{partition.name}{mark}"
    return f"{name:18} {partition.state:8} {partition.nodes:5} nodes  {has:12} {limit:18} {whose}"
