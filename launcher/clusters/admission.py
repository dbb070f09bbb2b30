"""Reasons why a cluster may not take a job, from what it offers its user. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from launcher.clusters.inventory import NO_LIMITS, Detection, Partition
from launcher.durations import format_time_limit
from launcher.text import did_you_mean

_MOST = 5
"""Accounts of a partition that are named; some sites list hundreds."""


@dataclass(frozen=True, slots=True)
class JobAdmission:
    """What a job asks for, where the cluster has limits; None where that is open."""

    partition: str
    nodes: int
    time_s: int | None = None
    account: str | None = None
    qos: str | None = None
    with_gpus: bool = True


def obstacles(job: JobAdmission, detection: Detection) -> Iterator[str]:
    """Yield why a job's partition or QoS would not take it; nothing where the partition is not listed."""
    partition = detection.partition(job.partition)
    if partition is None:
        return
    if partition.state.lower() != "up":
        yield f"{partition.name} is {partition.state}"
    yield from _nodes(job, partition)
    yield from _time(job, partition.name, partition.max_time_s)
    if job.with_gpus and not partition.gpus.count and detection.lists_gpus:
        names = ", ".join(detection.gpu_partitions)
        yield f"the nodes of {partition.name} have no GPUs; those of {names} have"
    yield from _qos(job, partition, detection)


def not_listed(name: str, detection: Detection) -> str:
    """Return what is to be said of a partition that Slurm does not list; empty where it does."""
    if detection.partition(name) is not None or not detection.partitions:
        return ""
    names = [item.name for item in detection.partitions]
    if guess := did_you_mean(name, names):
        return f"there is no partition {name}{guess} (there are {', '.join(names)})"
    return (
        f"Slurm lists no partition {name} for you (there are {', '.join(names)}); hidden ones are not listed"
    )


def no_account_text(partition: Partition, detection: Detection) -> str:
    """Return why none of the user's accounts may be charged in a partition, and where some may."""
    others = ", ".join(item.name for item in detection.partitions if detection.accounts_in(item))
    elsewhere = f"; partitions that take yours: {others}" if others else ""
    if partition.allowed is not None:
        return f"{partition.name} takes jobs of {', '.join(partition.allowed[:_MOST])} only{elsewhere}"
    return f"none of your accounts may use {partition.name}{elsewhere}"


def is_misspelt(name: str, detection: Detection) -> bool:
    """Return whether a partition that is not listed has nearly the name of one that is."""
    return bool(did_you_mean(name, [item.name for item in detection.partitions]))


def _time(job: JobAdmission, giver: str, limit_s: int | None) -> Iterator[str]:
    if job.time_s is not None and limit_s is not None and job.time_s > limit_s:
        asked, given = format_time_limit(job.time_s), format_time_limit(limit_s)
        yield f"{asked} are asked for, {giver} gives a job {given}"


def _nodes(job: JobAdmission, partition: Partition) -> Iterator[str]:
    name, nodes = partition.name, job.nodes
    there = partition.gpu_nodes if job.with_gpus else partition.nodes
    if partition.max_nodes is not None and nodes > partition.max_nodes:
        yield f"{_nodes_text(nodes)} asked for, {name} gives a job {partition.max_nodes}"
    elif nodes > there:
        with_gpus = " with GPUs" * (there < partition.nodes)
        yield f"{_nodes_text(nodes)} asked for, {name} has {there}{with_gpus}"
    if partition.min_nodes is not None and nodes < partition.min_nodes:
        yield f"{_nodes_text(nodes)} asked for, {name} takes jobs of {partition.min_nodes} and more"


def _qos(job: JobAdmission, partition: Partition, detection: Detection) -> Iterator[str]:
    choices = detection.qos_choices(partition, job.account)
    if job.qos is None:
        if choices:
            names = ", ".join(choices)
            yield f"{partition.name} takes none of your default QoS: --qos must name one of {names}"
        return
    if not partition.admits_qos(job.qos):
        own = ", ".join(choices or partition.allowed_qos or ())
        yield f"{partition.name} does not take the QoS {job.qos}" + (f"; it takes {own}" if own else "")
    limits = detection.qos.get(job.qos, NO_LIMITS)
    yield from _time(job, f"the QoS {job.qos}", limits.max_time_s)
    most, least = limits.nodes_of(partition), limits.least_nodes_of(partition)
    if most is not None and job.nodes > most:
        yield f"{_nodes_text(job.nodes)} asked for, the QoS {job.qos} gives a job {most}"
    if least is not None and job.nodes < least:
        yield f"{_nodes_text(job.nodes)} asked for, the QoS {job.qos} takes jobs of {least} and more"


def _nodes_text(nodes: int) -> str:
    return f"{nodes} node{'s are' if nodes != 1 else ' is'}"
