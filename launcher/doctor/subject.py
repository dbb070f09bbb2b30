"""The place that the doctor examines: this machine, the job's environment, the checkout, the recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from launcher.transports.base import is_remote

if TYPE_CHECKING:
    from launcher.checkout import NemoCheckout
    from launcher.clusters.inventory import Detection, Partition
    from launcher.doctor.login_node import LoginNode
    from launcher.environment import VariableDecision
    from launcher.sites import Site
    from launcher.storage.decision import RunStorage
    from launcher.storage.quotas import QuotaReader
    from launcher.transports.base import Transport
    from recipes.checks.core import Context
    from recipes.checks.offline import Need
    from recipes.checks.worker_registry import ActorEnvironment
    from recipes.errors import ExplainedError


_SSH_S = 20.0
Requirement = Literal["recipe", "checkout", "slurm"]
"""What a check may need to be there."""


@dataclass(frozen=True, slots=True)
class JobSize:
    """What a run asks Slurm for; None where that is open."""

    nodes: int = 1
    gpus_per_node: int | None = None
    time_s: int | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None


@dataclass(frozen=True)
class Subject:
    """A place that is examined; nothing of it is read before a check asks for it."""

    transport: Transport
    shell: Mapping[str, str]
    """This program's environment."""
    job: Mapping[str, str]
    """The environment that the job would get; secrets are in it, for their names."""
    site: Site
    runs: Path
    """Where runs are kept."""
    size: JobSize = JobSize()
    detection: Detection | None = None
    slurm_problem: ExplainedError | None = None
    """Why there is no detection."""
    decisions: tuple[VariableDecision, ...] = ()
    """Fate of each variable of the shell."""
    checkout: NemoCheckout | None = None
    checkout_problem: ExplainedError | None = None
    context: Context | None = None
    """The recipe with the inputs of its checks; None without a recipe."""
    container: str = ""
    """Image of the job's container; empty where it runs without one."""
    loaded: tuple[str, ...] = ()
    """Modules that are loaded in the shell."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """What was measured on nodes, by node; empty where nothing was."""
    proc: Path = Path("/proc")

    def path(self, text: str) -> Path:
        """Return a path on the machine that is examined."""
        return self.transport.path(text)

    @property
    def is_far(self) -> bool:
        """Whether that is another machine than this program's."""
        return is_remote(self.transport)

    def call_limit(self, seconds: float) -> float:
        """Return the limit of a call that takes so long here; a host's takes round trips besides."""
        return seconds + _SSH_S if self.is_far else seconds

    @cached_property
    def node(self) -> LoginNode:
        """The machine that is examined."""
        from launcher.doctor.login_node import HostLoginNode, ThisLoginNode

        if self.is_far:
            return HostLoginNode(self.transport, self.shell.get("HOME", ""), self.quotas)
        return ThisLoginNode(self.transport, self.proc)

    @cached_property
    def storage(self) -> RunStorage | None:
        """What the run would write, and where; None without a recipe. Asks file systems and commands."""
        from launcher.storage.decision import storage_for

        if self.context is None:
            return None
        recipe, models = self.context.recipe, self.context.inputs.models
        base = self.path(self.checkout.path) if self.checkout is not None else self.runs
        return storage_for(recipe, models, base, self.quotas, self.runs, self.shell, self.site.scratch)

    @property
    def available(self) -> frozenset[Requirement]:
        """What there is for checks that need it."""
        parts: tuple[tuple[Requirement, object], ...] = (
            ("recipe", self.context),
            ("checkout", self.checkout),
            ("slurm", self.detection),
        )
        return frozenset(name for name, part in parts if part is not None)

    @property
    def partition(self) -> Partition | None:
        """The partition of the job; None where Slurm does not list it."""
        if self.detection is None or self.size.partition is None:
            return None
        return self.detection.partition(self.size.partition)

    @property
    def offline(self) -> bool:
        """Whether the job's nodes have no internet, as the site and the job's environment say."""
        return self.site.is_offline(self.size.partition) or self.is_set("HF_HUB_OFFLINE")

    def is_set(self, name: str) -> bool:
        """Return whether a switch is on in the job's environment."""
        return self.job.get(name) not in (None, "", "0")

    @cached_property
    def venv(self) -> Path | None:
        """The Python environment of the driver and of Ray; None without a checkout."""
        from launcher.checkout import VENV, driver_venv

        named = self.job.get(VENV) or self.shell.get(VENV, "")
        if self.checkout is None:
            return self.path(named) if named else None
        return driver_venv(self.transport, self.checkout.path, {VENV: named}, self.shell)

    @cached_property
    def worker_venvs(self) -> Path | None:
        """The directory of the workers' environments (nemo_rl/utils/venvs.py:52)."""
        if named := self.job.get("NEMO_RL_VENV_DIR"):
            return self.path(named)
        return self.path(f"{self.checkout.path}/venvs") if self.checkout is not None else None

    @cached_property
    def worker_needs(self) -> tuple[Need, ...]:
        """The workers' environments that the recipe's workers need."""
        from recipes.checks.offline import worker_environments

        if self.context is None or self.worker_venvs is None:
            return ()
        return tuple(worker_environments(self.context, self.worker_venvs))

    @cached_property
    def actors(self) -> Mapping[str, ActorEnvironment]:
        """The Python environments of the checkout's actors, by their full names."""
        from recipes.checks.checkout import Checkout
        from recipes.checks.worker_registry import actor_environments

        if self.checkout is None:
            return {}
        return actor_environments(Checkout.at(self.path(self.checkout.path)))

    @cached_property
    def file_needs(self) -> tuple[Need, ...]:
        """Models, tokenizers and data sets that the recipe loads."""
        from recipes.checks.offline import needs

        return tuple(needs(self.context)) if self.context is not None else ()

    @cached_property
    def output_directories(self) -> tuple[tuple[str, Path], ...]:
        """The directories that the run writes, each with the name of what it is."""
        from launcher.storage.decision import checkpoint_path

        listed = [("runs", self.runs)]
        base = self.path(self.checkout.path) if self.checkout is not None else self.runs
        path = checkpoint_path(self.context.recipe, base) if self.context is not None else None
        return (*listed, ("checkpoints", path)) if path is not None else tuple(listed)

    @cached_property
    def quotas(self) -> QuotaReader:
        """Asks the quota commands of this machine, each once."""
        from launcher.storage.quotas import QuotaReader, within

        home = self.shell.get("HOME")
        real = within(lambda: self.path(home).resolve()) if home else None
        return QuotaReader(self.transport, real, with_jutil=True, over_ssh=True)

    def program(self, name: str) -> str | None:
        """Return the path of a program of the shell's PATH, else of the checkout's environment."""
        folders = [folder for folder in self.shell.get("PATH", "").split(":") if folder.startswith("/")]
        if self.venv is not None:
            folders.append(str(self.venv / "bin"))
        return self.node.program(name, folders)
