"""Answers of Slurm's commands, and the detection that they make. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from launcher.clusters.inventory import (
    NO_DEFAULTS,
    Account,
    Budget,
    Detection,
    DetectionProblem,
    Partition,
    SubmissionDefaults,
)
from launcher.clusters.slurm.accounts import read_accounts
from launcher.clusters.slurm.budgets import read_budgets, with_quotas
from launcher.clusters.slurm.parse import ParseError, unread_text
from launcher.clusters.slurm.partitions import (
    Qos,
    merge,
    read_partition_records,
    read_qos,
    read_sinfo,
    with_qos_limits,
)
from launcher.sites import Site

_LINES_SHOWN = 5
"""Lines of an answer that cannot be read: one may have 300,000."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answers:
    """Output of the commands; None where one failed, with the reason in `problems`."""

    version: str | None = None
    sinfo: str | None = None
    partitions: str | None = None
    accounts: str | None = None
    qos: str | None = None
    cluster: str | None = None
    budgets: str | None = None
    quotas: Mapping[str, str] = field(default_factory=dict)
    """Output of `jutil project cpuquota` by project."""
    accounting: bool = True
    """False where the cluster keeps no accounts."""
    problems: tuple[DetectionProblem, ...] = ()


def interpret(
    site: Site, answers: Answers, user: str, defaults: SubmissionDefaults = NO_DEFAULTS
) -> Detection:
    """Parse the answers; one that cannot be parsed is a problem of the detection, and costs no other.

    `defaults` are the shell's own answers for a submission.
    """
    problems = list(answers.problems)
    qos = _parsed(lambda: read_qos(answers.qos or ""), problems) or {}
    partitions = _partitions(answers, qos, problems)
    accounts = _accounts(answers, problems)
    budgets: tuple[Budget, ...] | None = None
    if answers.budgets is not None:
        text = answers.budgets
        budgets = _parsed(lambda: with_quotas(read_budgets(text), answers.quotas), problems)
    cluster = _cluster_name(answers, accounts or [])
    if accounts is not None and cluster is not None:
        accounts = [item for item in accounts if item.cluster in ("", cluster)]
    detection = Detection(
        site,
        answers.version,
        cluster,
        tuple(partitions),
        None if accounts is None else tuple(accounts),
        budgets,
        defaults=defaults,
        qos={name: item.limits for name, item in qos.items()},
    )
    problems += _explanations(detection, answers, user)
    return replace(detection, problems=tuple(dict.fromkeys(problems)))


def _parsed(read: Callable[[], Result], problems: list[DetectionProblem]) -> Result | None:
    """Return what an answer says; None, and a problem, where it cannot be read."""
    try:
        return read()
    except ParseError as error:
        problems.append(DetectionProblem(error.what))
        return None


def _partitions(
    answers: Answers, qos: Mapping[str, Qos], problems: list[DetectionProblem]
) -> list[Partition]:
    """Return the partitions of sinfo, with what scontrol and the QoS add as far as it can be read."""
    read = _parsed(lambda: read_sinfo(answers.sinfo or ""), problems)
    if read is None:
        return []
    rows, table = read
    problems += _unread("sinfo", table.unread)
    records = _parsed(lambda: read_partition_records(answers.partitions or ""), problems) or []
    merged = _parsed(lambda: merge(rows, records), problems) or merge(rows, ())
    return [with_qos_limits(partition, qos) for partition in merged]


def _accounts(answers: Answers, problems: list[DetectionProblem]) -> list[Account] | None:
    if answers.accounts is None:
        return None
    text = answers.accounts
    read = _parsed(lambda: read_accounts(text), problems)
    if read is None:
        return None
    problems += _unread("sacctmgr", read[1].unread)
    return read[0]


def _unread(command: str, lines: Sequence[str]) -> list[DetectionProblem]:
    """Return the first lines of an answer that are no rows, and how many more there are."""
    problems = [DetectionProblem(unread_text(command, line)) for line in lines[:_LINES_SHOWN]]
    more = len(lines) - _LINES_SHOWN
    return [*problems, *[DetectionProblem(f"cannot read {more:,} more lines of {command}")] * (more > 0)]


def _explanations(detection: Detection, answers: Answers, user: str) -> list[DetectionProblem]:
    """Return explanations of empty or incomplete answers."""
    problems = []
    if answers.sinfo is not None and not detection.partitions:
        problems.append(
            DetectionProblem(
                "Slurm lists no partition for you",
                "This may be the wrong login node: some sites have one per part of the machine.",
            )
        )
    if not answers.accounting:
        problems.append(
            DetectionProblem(
                "this cluster keeps no accounts (accounting is off)", "Submit without --account."
            )
        )
    if detection.accounts == ():
        names = ", ".join(dict.fromkeys(budget.account for budget in detection.budgets or ()))
        problems.append(
            DetectionProblem(
                f"user {user} has no account on this cluster"
                + f" (jutil lists the budgets {names})" * bool(names),
                "This may be the wrong machine or login node, or the project has no budget here.",
            )
        )
    problems += [
        DetectionProblem(
            f"the limits of partition {item.name} are unknown: its QoS {item.qos} cannot be read",
            "`submit --test-only` asks Slurm whether it would accept a job.",
        )
        for item in detection.partitions
        if item.qos is not None and item.qos not in detection.qos
    ]
    return problems


def _cluster_name(answers: Answers, accounts: list[Account]) -> str | None:
    for line in (answers.cluster or "").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "ClusterName":
            return value.strip()
    names = {item.cluster for item in accounts}
    return names.pop() if len(names) == 1 else None
