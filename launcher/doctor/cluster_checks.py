"""Checks of Slurm: that it answers, and that partition, account and budget admit the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launcher.clusters.admission import (
    JobAdmission,
    is_misspelt,
    no_account_text,
    not_listed,
    obstacles,
)
from launcher.doctor.verdict import Verdict, counted, failed, passed, unknown, warned
from launcher.errors import UnreachableError
from launcher.request import Cost

if TYPE_CHECKING:
    from launcher.clusters.inventory import Detection
    from launcher.doctor.subject import Subject


def slurm_answers(subject: Subject) -> Verdict:
    """D01: the controller answers, and lists partitions."""
    detection, problem = subject.detection, subject.slurm_problem
    if detection is None:
        if problem is None or isinstance(problem, UnreachableError):
            return unknown(problem.what if problem is not None else "Slurm was not asked", "sinfo")
        return failed("; ".join(filter(None, (problem.what, problem.fix))), "sinfo --version")
    if not detection.partitions:
        return failed(_problems(detection) or "Slurm lists no partition for you", "sinfo")
    partitions = counted(len(detection.partitions), "partition")
    text = f"Slurm {detection.version or 'of an unknown version'}, {partitions}"
    if problems := _problems(detection):
        return warned(f"{text}; {problems}", "distill-tui detect --refresh")
    return passed(text)


def _problems(detection: Detection) -> str:
    """Return what Slurm did not tell; that of budgets is another check's."""
    others = (item for item in detection.problems if item.what != detection.budget_problem)
    return "; ".join(" ".join(filter(None, (item.what, item.fix))) for item in others)


def partition_takes_jobs(subject: Subject) -> Verdict:
    """D02: the partition is there, up, and has the nodes."""
    detection, name, nodes = subject.detection, subject.size.partition, subject.size.nodes
    assert detection is not None
    names = ", ".join(item.name for item in detection.partitions) or "none"
    if name is None:
        return failed(f"no partition is given, and there is no default one (there are {names})", _DETECT)
    partition = detection.partition(name)
    if partition is None:
        judge = failed if is_misspelt(name, detection) else warned
        return judge(not_listed(name, detection), _DETECT)
    size = subject.size
    job = JobAdmission(
        name, nodes, size.time_s, size.account, size.qos, with_gpus=subject.context is not None
    )
    if found := tuple(obstacles(job, detection)):
        return failed("; ".join(found), _DETECT)
    usable = partition.nodes_usable
    if usable is not None and usable < nodes:
        return warned(f"only {usable} of {partition.nodes} nodes of {name} can be used now", _DETECT)
    gpus = f"{partition.gpus.count} x {partition.gpus.type or 'GPU'}" if partition.gpus.count else "no GPU"
    return passed(f"{name}: {partition.nodes} nodes, {gpus}")


_DETECT = "distill-tui detect"


def account_is_usable(subject: Subject) -> Verdict | None:
    """D03: the account may be charged in the partition."""
    detection, partition = subject.detection, subject.partition
    assert detection is not None
    if partition is None:
        return None
    usable = detection.accounts_in(partition)
    account = subject.size.account
    if usable is None:
        return passed("this cluster keeps no accounts") if detection.accounts is None else None
    if not usable:
        text = f"none of your accounts may use {partition.name}"
        if detection.accounts:
            return failed(f"{text}: {no_account_text(partition, detection)}", _DETECT)
        return failed(f"{text}: this may be the wrong login node, or the project has no budget here", _DETECT)
    if account is None:
        names = ", ".join(usable)
        return failed(f"several accounts could be charged, and none is given: {names}", _with(usable[0]))
    if account not in usable:
        return failed(f"{account} may not use {partition.name}; {', '.join(usable)} may", _with(usable[0]))
    return passed(f"{account} may use {partition.name}")


def _with(account: str) -> str:
    return f"distill-tui submit FILE --account {account}"


def budget_suffices(subject: Subject) -> Verdict | None:
    """D04: what is left of the budget covers the most that the job can cost."""
    detection, partition, size = subject.detection, subject.partition, subject.size
    assert detection is not None
    if detection.budgets is None:
        problem = detection.budget_problem
        return unknown(problem, "distill-tui detect --refresh") if problem else None
    budget = next((item for item in detection.budgets if item.account == size.account), None)
    if budget is None or budget.core_h_left is None:
        return unknown(f"jutil does not tell what is left of {size.account or 'the budget'}", _DETECT)
    left = f"{budget.core_h_left:,.0f} core-hours are left of {budget.account}"
    if budget.core_h_left <= 0:
        return warned(f"{left}: jobs run at the lowest priority, or not at all", "jutil user projects")
    cores = partition.cpus.cores if partition is not None else None
    if size.time_s is None or cores is None:
        return passed(left)
    cost = Cost.of(size.nodes, size.gpus_per_node or 0, size.time_s, cores).core_hours or 0.0
    if cost > budget.core_h_left:
        return warned(f"the job may cost {cost:,.0f} core-hours; {left}", "jutil user projects")
    return passed(f"{left}; the job may cost {cost:,.0f}")
