"""Partitions, GPUs, accounts and limits that a cluster offers its user: what `detect` returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

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
    qos: str | None = None
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
        """The GPUs that most of its nodes have; a node with a broken one must not speak for all."""
        return self.mix[0].gpus if self.mix else NO_GPUS

    def admits(self, account: str) -> bool:
        """Return whether the partition lets an account in (associations aside)."""
        return (self.allowed is None or account in self.allowed) and account not in self.denied


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


@dataclass(frozen=True, slots=True)
class Budget:
    """The account of a project's jobs; its name may differ from the project's."""

    project: str
    account: str
    core_h_left: float | None = None
    """Core-hours that remain in the current period; None where unknown."""
    core_h_total: float | None = None


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

    @property
    def budget_problem(self) -> str:
        """Why there are no budgets; empty where there are, and where the site has none."""
        return next((item.what for item in self.problems if item.what.startswith(NO_BUDGETS)), "")

    def partition(self, name: str) -> Partition | None:
        """Return a partition by name."""
        return next((item for item in self.partitions if item.name == name), None)

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
