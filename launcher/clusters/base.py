"""What a cluster does: take a job, say how it is, stop it."""

from __future__ import annotations

from typing import Protocol

from launcher.logs.events import JobChanged
from launcher.plan import LaunchPlan
from launcher.runs import Job, Run


class Cluster(Protocol):
    """Takes jobs. Every method raises `TransportError` when the machine cannot be reached."""

    def submit(self, run: Run, plan: LaunchPlan) -> Run:
        """Start the plan once; returns the run with its job recorded."""
        ...

    def state(self, run: Run, job: Job) -> JobChanged | None:
        """Return what the cluster knows of a job; None where it cannot know (another machine's job)."""
        ...

    def cancel(self, run: Run, job: Job) -> Run:
        """Ask a job to stop, wait until it has, and record that it was asked."""
        ...
