"""All jobs of the user on a cluster, whoever submitted them: what a list of jobs needs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from launcher.logs.events import JobChanged


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job of the user."""

    id: str
    name: str
    status: JobChanged
    partition: str = ""
    nodes: int | None = None
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    """End of its time limit while it lives."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class JobListing:
    """The user's jobs by the last answer of the scheduler."""

    jobs: tuple[ListedJob, ...] = ()
    asked: float = 0.0
    """Time of the last answer, in seconds since the epoch; 0 without one."""
    problem: str = ""
    """Why the last question had no answer; empty where it had one."""
    accounting_problem: str = ""
    """Why accounting had no answer; empty where it had one, and where the cluster keeps no accounts."""
