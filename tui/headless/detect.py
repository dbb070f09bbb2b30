"""`detect`: the Slurm cluster here, and the partitions and accounts that the user may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from launcher.durations import in_words
from tui.headless.output import print_json, say, show

if TYPE_CHECKING:
    import argparse

    from launcher.clusters.inventory import Budget, Detection, Partition


def run(options: argparse.Namespace) -> int:
    """List the partitions with their GPUs and limits, and your accounts."""
    detection = detect_on(options.host, refresh=options.refresh)
    if options.json:
        print_json(_as_json(detection))
        return 0
    for partition in detection.partitions:
        show(_line(detection, partition))
    for account in detection.accounts or ():
        partitions = account.partition or "all partitions"
        show(f"account {account.account:16} {partitions:20} QoS {', '.join(account.qos) or '-'}")
    for budget in detection.budgets or ():
        show(f"budget  {budget.account:16} of project {budget.project}{_left(budget)}")
    for problem in detection.problems:
        say(f"{problem.what}\n  {problem.fix}".rstrip())
    return 0


def detect_on(host: str | None, *, refresh: bool = False) -> Detection:
    """Return the Slurm cluster that this machine or a host belongs to; answers are kept for four hours."""
    from launcher.clusters.registry import detect
    from launcher.paths import cache_root
    from launcher.transports.local import LocalTransport
    from tui.headless.hosts import transport_to

    transport = LocalTransport() if host is None else transport_to(host)
    environment = transport.environment()
    return detect(transport, environment, cache_root(environment), refresh=refresh)


def _as_json(detection: Detection) -> dict[str, Any]:
    """Return what `detect --json` prints."""
    accounts = [
        {"account": item.account, "partition": item.partition, "qos": list(item.qos), "default": item.default}
        for item in detection.accounts or ()
    ]
    budgets = [_budget(item) for item in detection.budgets or ()]
    return {
        "schema": 1,
        "site": detection.site.id,
        "slurm_version": detection.version,
        "cluster": detection.cluster,
        "partitions": [_partition(detection, partition) for partition in detection.partitions],
        "accounts": None if detection.accounts is None else accounts,
        "budgets": None if detection.budgets is None else budgets,
        "problems": [{"what": problem.what, "fix": problem.fix} for problem in detection.problems],
    }


def _budget(budget: Budget) -> dict[str, Any]:
    """Return a budget; with the core-hours that are left where jutil tells them."""
    quota = {"core_h_left": budget.core_h_left, "core_h_total": budget.core_h_total}
    left = quota if budget.core_h_left is not None else {}
    return {"project": budget.project, "account": budget.account, **left}


def _partition(detection: Detection, partition: Partition) -> dict[str, Any]:
    from launcher.clusters.inventory import gpu_memory_gib

    usable = detection.accounts_in(partition)
    return {
        "name": partition.name,
        "default": partition.default,
        "state": partition.state,
        "nodes": partition.nodes,
        "nodes_down": partition.nodes_down,
        "nodes_usable": partition.nodes_usable,
        "gpus_per_node": partition.gpus.count,
        "gpu_type": partition.gpus.type or None,
        "gpu_memory_gib": gpu_memory_gib(partition.gpus.type or "gpu", detection.site.gpu_memory_gib)
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


def _left(budget: Budget) -> str:
    """Return what is left of a budget; empty where unknown."""
    if budget.core_h_left is None:
        return ""
    total = "" if budget.core_h_total is None else f" of {budget.core_h_total:,.0f}"
    return f"  {budget.core_h_left:,.0f}{total} core-hours left"


def _unusable(partition: Partition) -> str:
    """Return how many of a partition's nodes cannot be had, and why; empty where all can, or unknown."""
    down, usable = partition.nodes_down, partition.nodes_usable
    if down is None or usable is None:
        return ""
    reserved = partition.nodes - down - usable
    parts = [f"{down} down or drained"] * bool(down) + [f"{reserved} in maintenance"] * bool(reserved)
    return f"  ({', '.join(parts)}, {usable} usable)" if parts else ""


def _line(detection: Detection, partition: Partition) -> str:
    gpus = partition.gpus
    gpu_text = f"{gpus.count} x {gpus.type or 'GPU'}" if gpus.count else "no GPU"
    limit = "limit unknown" if partition.max_time_s is None else f"up to {in_words(partition.max_time_s)}"
    usable = detection.accounts_in(partition)
    accounts = "accounts unknown" if usable is None else ", ".join(usable) or "none of your accounts"
    mark = "*" if partition.default else " "
    name, unusable = f"{partition.name}{mark}", _unusable(partition)
    size = f"{partition.state:8} {partition.nodes:5} nodes"
    return f"{name:18} {size}  {gpu_text:12} {limit:18} {accounts}{unusable}"
