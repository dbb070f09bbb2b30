"""Partitions, GPUs, accounts and limits that a cluster offers its user: what `detect` returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from launcher.sites import Site


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of a node."""

    count: int
    type: str
    """Empty where unknown; several (MIG) are joined with `+`."""


NO_GPUS = Gpus(0, "")


def gpu_memory_gib(kind: str, memory_gib_by_type: Mapping[str, float]) -> float | None:
    """Return a GPU's memory in GiB: from its type's name (MIG), else from the site's table."""
    stated = re.findall(r"(\d+)gb", kind.lower())
    if stated and "+" not in kind:
        return float(stated[-1])
    return memory_gib_by_type.get(kind.lower())


@dataclass(frozen=True, slots=True)
class Mix:
    """How many nodes of a partition have which GPUs."""

    gpus: Gpus
    nodes: int


@dataclass(frozen=True, slots=True)
class Cpus:
    """The processors of a node; None where unknown."""

    cpus: int | None = None
    """CPUs that Slurm allocates: hardware threads, or cores."""
    cores: int | None = None
    """Cores, which sites charge for."""


UNKNOWN_CPUS = Cpus()


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition. None stands for unknown, never for unlimited."""

    name: str
    default: bool
    state: str
    """As Slurm says: up, down, drain or inactive."""
    nodes: int
    mix: tuple[Mix, ...] = ()
    """Most nodes first."""
    max_time_s: int | None = None
    default_time_s: int | None = None
    max_nodes: int | None = None
    min_nodes: int | None = None
    qos: str | None = None
    allowed_qos: tuple[str, ...] | None = None
    """QoS that its jobs may have; None for all."""
    denied_qos: tuple[str, ...] = ()
    allowed: tuple[str, ...] | None = None
    """Accounts that may use it; None for all."""
    denied: tuple[str, ...] = ()
    cpus: Cpus = UNKNOWN_CPUS
    """Those that most of its nodes have."""
    nodes_down: int | None = None
    """Nodes that are down, drained or draining, failing, or do not respond."""
    nodes_usable: int | None = None
    """Nodes that are neither that nor in a maintenance; powered-off ones count, Slurm powers them up."""

    @property
    def gpus(self) -> Gpus:
        """The GPUs that most of its nodes with GPUs have; a node with a broken one must not speak for all."""
        return next((item.gpus for item in self.mix if item.gpus.count), NO_GPUS)

    @property
    def gpu_nodes(self) -> int:
        """The nodes that a job with GPUs can get: those with GPUs; all where Slurm lists none."""
        return sum(item.nodes for item in self.mix if item.gpus.count) or self.nodes

    def with_gpus_of(self, kind: str) -> Partition:
        """Return the partition for a job that asks for a type of GPU; as it is where no node has that."""
        mix = tuple(item for item in self.mix if item.gpus.type.lower() == kind.lower())
        return replace(self, mix=mix) if mix else self

    @property
    def gpu_types(self) -> tuple[str, ...]:
        """The types of GPUs of its nodes, those of most nodes first."""
        return tuple(dict.fromkeys(item.gpus.type for item in self.mix if item.gpus.count))

    def admits(self, account: str) -> bool:
        """Return whether the partition lets an account in (associations aside)."""
        return (self.allowed is None or account in self.allowed) and account not in self.denied

    def admits_qos(self, qos: str) -> bool:
        """Return whether the partition lets jobs of a QoS in."""
        return (self.allowed_qos is None or qos in self.allowed_qos) and qos not in self.denied_qos


@dataclass(frozen=True, slots=True)
class Account:
    """An association: an account that the user may charge, in one partition or in all."""

    account: str
    partition: str | None
    """None: in every partition."""
    qos: tuple[str, ...]
    default: bool = False
    """Whether jobs that name no account are charged to this one."""
    cluster: str = ""
    default_qos: str = field(default="", compare=False)
    """The QoS of its jobs that name none; empty where Slurm does not tell."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The account of a project's jobs; its name may differ from the project's."""

    project: str
    account: str
    core_h_left: float | None = None
    """Core-hours that remain in the current period; None where unknown."""
    core_h_total: float | None = None


@dataclass(frozen=True, slots=True)
class QosLimits:
    """What a QoS gives one job, or all jobs of a user; None where it sets no limit."""

    max_time_s: int | None = None
    max_nodes: int | None = None
    max_gpus: int | None = None
    max_cpus: int | None = None
    min_nodes: int | None = None
    min_gpus: int | None = None

    def nodes_of(self, partition: Partition) -> int | None:
        """Return the most whole nodes of a partition that it gives a job; None for no limit."""
        sizes = (
            (self.max_nodes, 1),
            (self.max_gpus, partition.gpus.count),
            (self.max_cpus, partition.cpus.cpus),
        )
        return min(
            (max(limit // size, 1) for limit, size in sizes if limit is not None and size), default=None
        )

    def least_nodes_of(self, partition: Partition) -> int | None:
        """Return the fewest whole nodes of a partition that a job of it has; None for no limit."""
        sizes = ((self.min_nodes, 1), (self.min_gpus, partition.gpus.count))
        return max((-(-limit // size) for limit, size in sizes if limit and size), default=None)


NO_LIMITS = QosLimits()


@dataclass(frozen=True, slots=True)
class SubmissionDefaults:
    """Answers of the user's shell for every submission (SBATCH_ACCOUNT and its like); None: no answer."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    time: str | None = None
    """Time limit as Slurm takes it."""
    cluster: str | None = None
    """One of several clusters under one accounting; None: that of the login node."""


NO_DEFAULTS = SubmissionDefaults()

NO_BUDGETS = "jutil gave no answer"
"""How the problem begins that budgets could not be detected; the scheduler has answered all the same."""


@dataclass(frozen=True, slots=True)
class DetectionProblem:
    """Something that could not be detected, or looks wrong; with a fix."""

    what: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Detection:
    """The cluster as detected: partitions, accounts, budgets, and what could not be detected."""

    site: Site
    version: str | None
    cluster: str | None
    partitions: tuple[Partition, ...] = ()
    accounts: tuple[Account, ...] | None = None
    """None where accounting gave no answer, and where the cluster keeps none."""
    budgets: tuple[Budget, ...] | None = None
    """None where the site has no `jutil`."""
    problems: tuple[DetectionProblem, ...] = ()
    defaults: SubmissionDefaults = NO_DEFAULTS
    qos: Mapping[str, QosLimits] = field(default_factory=dict)
    """Limits by QoS; empty where they are unknown."""

    @property
    def budget_problem(self) -> str:
        """Why there are no budgets; empty where there are, and where the site has none."""
        return next((item.what for item in self.problems if item.what.startswith(NO_BUDGETS)), "")

    @property
    def lists_gpus(self) -> bool:
        """Whether Slurm lists GPUs at all: at sites without GRES it knows of none, and gives whole nodes."""
        return bool(self.gpu_partitions)

    @property
    def gpu_partitions(self) -> tuple[str, ...]:
        """Names of the partitions whose nodes have GPUs."""
        return tuple(item.name for item in self.partitions if item.gpus.count)

    def partition(self, name: str) -> Partition | None:
        """Return a partition by name."""
        return next((item for item in self.partitions if item.name == name), None)

    @property
    def default_partition(self) -> str | None:
        """The name of the partition of submissions that name none: the shell's, else Slurm's."""
        return self.defaults.partition or next((item.name for item in self.partitions if item.default), None)

    def account_for(self, partition: Partition | None) -> str | None:
        """Return the account of a submission that names none: the shell's, the only usable, the default one.

        One of the shell that may not be charged in the partition counts only where no other may.
        """
        usable = self.accounts_in(partition) if partition is not None else None
        own = self.defaults.account
        if own is not None and (not usable or own in usable):
            return own
        if usable is not None and len(usable) == 1:
            return usable[0]
        return next((item.account for item in self.accounts or () if item.default), None)

    def qos_choices(self, partition: Partition, account: str | None) -> tuple[str, ...]:
        """Return the QoS of which a job must name one; none where the default one is admitted, or unknown."""
        if partition.allowed_qos is None and not partition.denied_qos:
            return ()
        rows = [
            item
            for item in self.accounts or ()
            if item.partition in (None, partition.name) and account in (None, item.account)
        ]
        if any(partition.admits_qos(item.default_qos) for item in rows if item.default_qos):
            return ()
        names = dict.fromkeys(name for item in rows for name in item.qos)
        return tuple(name for name in names or partition.allowed_qos or () if partition.admits_qos(name))

    def accounts_in(self, partition: Partition) -> tuple[str, ...] | None:
        """Return the user's accounts that may be charged in a partition; None where that is unknown."""
        if self.accounts is None:
            return partition.allowed
        names = (
            item.account
            for item in self.accounts
            if item.partition in (None, partition.name) and partition.admits(item.account)
        )
        return tuple(dict.fromkeys(names))
