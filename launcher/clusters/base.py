"""A cluster: it renders a run into jobs, takes them, reports on them and stops them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from launcher.logs.events import JobChanged
from launcher.plan import LaunchPlan
from launcher.runs import Job, Run

if TYPE_CHECKING:
    from launcher.clusters.inventory import Partition
    from launcher.fields import Field
    from launcher.request import JobOptions
    from launcher.sites import Site
    from recipes.inheritance import EffectiveRecipe


@dataclass(frozen=True, slots=True)
class RunLayout:
    """A run that is to be rendered into jobs; nothing of it is written yet."""

    id: str
    directory: Path
    recipe: EffectiveRecipe
    """With all overrides of the submission."""
    options: JobOptions
    site: Site


@dataclass(frozen=True, slots=True)
class RenderedJobs:
    """A run as files and launch plans."""

    files: Mapping[str, bytes]
    """Scripts and keys of the run's directory."""
    plans: tuple[LaunchPlan, ...]
    """One for each link of a chain."""


class Cluster(Protocol):
    """Renders and takes jobs. Every method raises `TransportError` when the machine cannot be reached."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a request that this kind of cluster has."""
        ...

    def plan(self, layout: RunLayout) -> RenderedJobs:
        """Render a run into jobs; writes and submits nothing."""
        ...

    def hints(self, layout: RunLayout, partition: Partition | None) -> tuple[str, ...]:
        """Return hints about a run on this kind of cluster."""
        ...

    def submit(self, run: Run, plan: LaunchPlan) -> Run:
        """Start the plan once; returns the run with its job recorded."""
        ...

    def state(self, run: Run, job: Job) -> JobChanged | None:
        """Return the cluster's state of a job; None where it cannot know (another machine's job)."""
        ...

    def cancel(self, run: Run, job: Job) -> Run:
        """Ask a job to stop, wait until it has, and record the request."""
        ...


class Scheduler(Cluster, Protocol):
    """A cluster with a queue."""

    def estimate_start(self, options: JobOptions) -> str:
        """Return when such a job would start: local time, `YYYY-MM-DDTHH:MM:SS`; nothing is submitted."""
        ...

    def plan_script(
        self, options: JobOptions, site: Site, identity: str, directory: Path, script: str
    ) -> RenderedJobs:
        """Return a job that runs a script of a run's directory instead of the launcher."""
        ...

    def plan_again(self, plan: LaunchPlan, time_s: int | None) -> LaunchPlan:
        """Return the plan of one more job of a run, from that of its first; `time_s`: another time limit."""
        ...
