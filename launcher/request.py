"""A request to run a recipe: as the user makes it, and with every choice made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from launcher.fields import FIELDS
from launcher.sites import Profile, Site

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.environment import JobEnvironment
    from launcher.runs import Launcher, SlurmRequest

PROFILE_ANSWERS = ("partition", "account", "qos", "reservation", "time", "nodes", "gpus_per_node")
"""Fields that a profile answers where the request leaves them open."""
Kind = Literal["rehearsal", "smoke", "training", "doctor"]
"""`doctor`: measurements of nodes, which run no recipe; `submit` has no such kind."""


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """A user's request; None leaves the choice to the cluster and the recipe."""

    recipe: Path
    nodes: int | None
    """None: the recipe's; for a smoke run the fewest on which nothing fails and the memory suffices."""
    time: str | int | None = None
    """Time limit of each job: as typed, or in seconds; None: the profile's."""
    overrides: tuple[str, ...] = ()
    kind: Kind = "training"
    gpus_per_node: int | None = None
    """None: the count that most nodes of the partition have."""
    gpu_memory: int | None = None
    """Memory of one GPU in GiB; None: as the site knows or remembers it."""
    partition: str | None = None
    """None: for a smoke run the site's partition for tests, where it takes the job; else Slurm's default."""
    account: str | None = None
    """None: the default account, else the only one that may use the partition."""
    qos: str | None = None
    reservation: str | None = None
    checkout: str | None = None
    """None: $NEMO_RL_ROOT, else the one used last. Rehearsals need none."""
    driver: str | None = None
    """Script of the checkout that runs the recipe; None: the one that the recipe is for."""
    chain: int = 1
    profile: str | None = None
    env_file: Path | None = None
    sbatch_args: tuple[str, ...] = ()
    skip_checks: tuple[str, ...] = ()
    """Ids of failing checks that must not block."""
    launcher: Launcher = "ray_bare"
    container: str | None = None
    """For `ray.sub`; None: the profile's or the site's."""
    mounts: tuple[str, ...] = ()
    """For `ray.sub`: `/SOURCE:/TARGET[:ro]`."""
    env: tuple[str, ...] = ()
    """Variables for the job besides those passed by default: `NAME` of the shell, or `NAME=VALUE`."""
    no_env: tuple[str, ...] = ()
    """Names of variables that the job must not have."""
    modules: str | None = None
    """Modules that jobs load: names, or `loaded` for the shell's; None: those of the profile or the site."""
    yes: bool = False
    """Whether the user has confirmed a plan's questions."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Further Slurm options by the name of their row in `launcher.fields`."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SubmitRequest:
        """Return the request with the values of fields (names of `launcher.fields`, and of this class).

        A field without an attribute goes into `options`; empty values leave the choice open.
        """
        own = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        further = {row.name: values.get(row.name) for row in FIELDS if row.sbatch and row.name not in own}
        options = {name: str(value) for name, value in further.items() if value not in (None, "")}
        return cls(**{**own, "options": {**own.get("options", {}), **options}})


@dataclass(frozen=True, slots=True)
class JobOptions:
    """A request with every open choice made: what a cluster renders into jobs."""

    request: SubmitRequest
    nodes: int
    gpus_per_node: int
    user: str
    slurm: SlurmRequest | None = None
    """None on a machine without a scheduler."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Secrets; they reach the driver through a file that only the user can read."""
    checkout: NemoCheckout | None = None
    environment: JobEnvironment | None = None
    """None on a machine without a scheduler, whose cluster makes its own."""

    @property
    def worker_nodes(self) -> int:
        """The nodes that work: `RAY_BARE_DEDICATED_HEAD=1` keeps one of them for Ray's head."""
        return self.nodes - 1 if has_dedicated_head(self.environment) else self.nodes

    @property
    def kind(self) -> Kind:
        """The kind of run."""
        return self.request.kind

    @property
    def slurm_request(self) -> SlurmRequest:
        """What Slurm is asked for; only on a Slurm cluster."""
        assert self.slurm is not None
        return self.slurm

    def profile_of(self, site: Site) -> Profile:
        """Return the chosen profile; an empty one where none is chosen."""
        return site.profile(self.request.profile) if self.request.profile is not None else Profile()


def with_profile(request: SubmitRequest, site: Site) -> SubmitRequest:
    """Return a request with its profile's answers where it leaves something open.

    Raises:
        InputError: there is no such profile.
    """
    if request.profile is None:
        return request
    profile = site.profile(request.profile)
    answers = {name: getattr(profile, name) for name in PROFILE_ANSWERS if getattr(request, name) is None}
    return replace(request, **answers)


@dataclass(frozen=True, slots=True)
class Cost:
    """The most that a submission can cost."""

    node_hours: float
    gpu_hours: float
    core_hours: float | None = None
    """Unit that many sites charge; None where the cores of a node are unknown."""

    @classmethod
    def of(cls, nodes: int, gpus_per_node: int, time_s: int, cores: int | None = None) -> Cost:
        """Return the cost of nodes for some seconds; `cores` are those of a node."""
        hours = nodes * time_s / 3600
        core_hours = round(hours * cores, 3) if cores is not None else None
        return cls(round(hours, 3), round(hours * gpus_per_node, 3), core_hours)


def has_dedicated_head(environment: JobEnvironment | None) -> bool:
    """Return whether a job keeps a node for Ray's head, without GPUs for the driver."""
    return environment is not None and environment.variables.get("RAY_BARE_DEDICATED_HEAD") == "1"
