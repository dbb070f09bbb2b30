"""The user's jobs, from one query for all runs; the answer is a file that every window reads.

Whatever the number of watched runs and windows, squeue runs once an interval, and sacct at most once a
minute, only for jobs that left the queue. A controller that does not answer is queried less and less often.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from launcher.clusters.shell_defaults import named_cluster
from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.jobs import (
    QUEUE_FORMAT,
    RECENT_COLUMNS,
    SACCT_COLUMNS,
    SACCT_FORMAT,
    JobRecord,
    read_queue,
)
from launcher.clusters.slurm.lost_nodes import ask_lost_nodes, may_have_lost_nodes
from launcher.clusters.slurm.maintenance import EVERY_S, Maintenance, ask_maintenance
from launcher.clusters.slurm.messages import is_accounting_off
from launcher.clusters.slurm.parse import unread_text
from launcher.clusters.slurm.reasons import is_maintenance
from launcher.errors import InputError, RefusedError, TransportError
from launcher.logs.events import JobChanged, LostNode
from launcher.stored import read_stored
from recipes.cache_root import cache_root

DIRECTORY = "slurm-queue"
"""Directory of the last answers, in the user's directory of cached data."""
BACK_OFF_MAX_S = 300.0
SACCT_EVERY_S = 60.0
RECENT_EVERY_S = 900.0
"""Seconds between two questions to accounting for all jobs that ended within the last day."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Slurm's last answers."""

    asked: float = 0.0
    """Time of the last successful squeue, in seconds since the epoch, taken before it ran."""
    tried: float = 0.0
    failures: int = 0
    problem: str = ""
    """Error of the last squeue; empty without one."""
    jobs: Mapping[str, JobRecord] = field(default_factory=dict)
    """Jobs of squeue, by id."""
    ended: Mapping[str, JobRecord] = field(default_factory=dict)
    """Jobs of sacct, by id."""
    sacct_asked: float = 0.0
    missed: Mapping[str, float] = field(default_factory=dict)
    """Jobs without a record in squeue and sacct: time at which that was first so, by id."""
    sacct_problem: str = ""
    """Error of the last sacct; empty without one."""
    accounting: bool = True
    """Whether the cluster keeps accounts; where it does not, a job that left the queue has no record."""
    maintenance: Mapping[str, Maintenance] = field(default_factory=dict)
    """Maintenance that waiting jobs wait for, by id."""
    maintenance_asked: float = 0.0
    lost_nodes: Mapping[str, tuple[LostNode, ...]] = field(default_factory=dict)
    """Nodes that went down under failed jobs, by the jobs' ids; a job that was not asked about has none."""
    recent: Mapping[str, JobRecord] = field(default_factory=dict)
    """Jobs of the last day by accounting, by id."""
    recent_asked: float = 0.0

    def job(self, identity: str) -> JobRecord | None:
        """Return a job by id; for one that is over, accounting's record, which has the exit code."""
        listed, ended = self.jobs.get(identity), self.ended.get(identity)
        if listed is not None and ended is not None and listed.over and ended.over:
            return ended
        return listed or ended

    def needs_accounting(self, identity: str) -> bool:
        """Return whether accounting may know more: the job left the queue, or is over in it."""
        record = self.job(identity)
        return record is None or (record.over and not record.exit_code)

    def with_token(self, token: str) -> JobRecord | None:
        """Return the job that carries a token in its comment or command line."""
        for job in (*self.jobs.values(), *self.ended.values()):
            if has_token(job, token):
                return job
        return None


def has_token(job: JobRecord, token: str) -> bool:
    """Return whether a job carries a whole token in its comment or command line."""
    return bool(token) and re.search(rf"(?<![\w-]){re.escape(token)}(?![\w-])", job.comment) is not None


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    """Return the writer of answers; making it takes longer than writing 300 jobs."""
    return TypeAdapter(Snapshot)


@dataclass(frozen=True, slots=True)
class Queue:
    """The user's jobs."""

    client: SlurmClient
    root: str
    """Where runs are kept."""
    every_s: float = 30.0

    @property
    def path(self) -> str:
        """The file that holds the last answer: in the user's own cache, one for each runs root."""
        root = self.client.transport.stat(self.root)
        name = f"{self.client.transport.real_path(self.root)}:{root.inode if root is not None else 0}"
        if cluster := named_cluster(self.client.environment):
            name = f"{name}:{cluster}"
        file = f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}.json"
        return str(cache_root(self.client.environment) / DIRECTORY / file)

    def latest(self, *, since: float = 0.0) -> Snapshot:
        """Return the last answer while it is fresh and not older than `since`, else a new one."""
        previous = self._load()
        now = self.client.now()
        wait = min(self.every_s * 2 ** min(previous.failures, 10), max(BACK_OFF_MAX_S, self.every_s))
        # A clock that was set back must not stop the questions.
        if 0 <= now - previous.tried < wait and not (previous.failures == 0 and previous.asked < since):
            return previous
        return self.ask(previous)

    def ask(self, previous: Snapshot | None = None) -> Snapshot:
        """Run squeue now."""
        previous = previous or self._load()
        begun = self.client.now()
        # So that other windows do not ask in the meantime; a stopped controller blocks for 9 s.
        self._save(replace(previous, tried=begun))
        try:
            text = self.client.ask(["squeue", "-h", "-t", "all", "-u", self.client.user, "-o", QUEUE_FORMAT])
            listed, table = read_queue(text)
        except (TransportError, RefusedError) as error:
            current = replace(previous, tried=begun, failures=previous.failures + 1, problem=error.what)
        else:
            unread = unread_text("squeue", table.unread[0]) if table.unread else ""
            jobs = {job.id: job for job in listed}
            current = replace(previous, asked=begun, tried=begun, failures=0, problem=unread, jobs=jobs)
            current = self._with_maintenance(current)
        self._save(current)
        return current

    def _with_maintenance(self, current: Snapshot) -> Snapshot:
        """Ask for the maintenance that jobs wait for, if one does and the interval is over."""
        waiting = [
            job.id for job in current.jobs.values() if job.state == "PENDING" and is_maintenance(job.reason)
        ]
        if not waiting or current.asked - current.maintenance_asked < EVERY_S:
            return current
        maintenance = ask_maintenance(self.client, waiting, current.asked)
        return replace(current, maintenance=maintenance, maintenance_asked=current.asked)

    def ask_sacct(self, previous: Snapshot, unresolved: Callable[[], Mapping[str, float]]) -> Snapshot:
        """Run sacct for jobs that are over or not listed (id -> time of submission), if its interval is over.

        Of an id that is a token, the job that carries it is looked for among all since the submission.
        """
        begun = self.client.now()
        if 0 <= begun - previous.sacct_asked < SACCT_EVERY_S:
            return previous
        submitted = unresolved()
        if not submitted:
            return previous
        previous = replace(previous, sacct_asked=begun)
        self._save(previous)
        try:
            records = self._sacct(submitted, begun)
        except (TransportError, RefusedError) as error:
            off = is_accounting_off(error.what)
            current = replace(previous, sacct_problem="" if off else error.what, accounting=not off)
        else:
            ended = {**previous.ended, **records}
            missed = {
                name: previous.missed.get(name, begun)
                for name in submitted
                if name not in previous.jobs and (name not in ended or not ended[name].over)
            }
            current = replace(previous, ended=ended, missed=missed, sacct_problem="", accounting=True)
        self._save(current)
        return current

    def ask_recent(self, previous: Snapshot) -> Snapshot:
        """Ask accounting for all jobs of the last day, if there is accounting and its interval is over."""
        begun = self.client.now()
        if not previous.accounting or 0 <= begun - previous.recent_asked < RECENT_EVERY_S:
            return previous
        previous = replace(previous, recent_asked=begun)
        self._save(previous)
        argv = ["sacct", "-X", "-n", "-P", "-u", self.client.user, "-S", "now-1days"]
        try:
            text = self.client.ask([*argv, f"--format={','.join(RECENT_COLUMNS)}"])
            records = read_queue(text, RECENT_COLUMNS)[0]
        except (TransportError, RefusedError) as error:
            off = is_accounting_off(error.what)
            current = replace(previous, sacct_problem="" if off else error.what, accounting=not off)
        else:
            current = replace(previous, recent={job.id: job for job in records if job.state})
        self._save(current)
        return current

    def ask_lost_nodes(self, previous: Snapshot, change: JobChanged) -> Snapshot:
        """Ask for the nodes that went down under a failed job; once, when its end is known."""
        is_final = bool(change.exit_code) or not previous.accounting
        if change.job in previous.lost_nodes or not is_final or not may_have_lost_nodes(change):
            return previous
        lost = ask_lost_nodes(self.client, change)
        if lost is None:
            return previous
        current = replace(previous, lost_nodes={**previous.lost_nodes, change.job: lost})
        self._save(current)
        return current

    def _sacct(self, submitted: Mapping[str, float], now: float) -> dict[str, JobRecord]:
        argv = ["sacct", "-X", "-n", "-P", f"--format={SACCT_FORMAT}"]
        ids = [identity for identity in submitted if identity.isdecimal()]
        tokens = [identity for identity in submitted if not identity.isdecimal()]
        records: list[JobRecord] = []
        if ids:
            records += read_queue(self.client.ask([*argv, "-j", ",".join(ids)]), SACCT_COLUMNS)[0]
        if tokens:
            age = int(now - min(submitted[token] for token in tokens)) + 60
            since = f"now-{max(age // 60, 1) + 1}minutes"
            text = self.client.ask([*argv, "-u", self.client.user, "-S", since])
            listed = read_queue(text, SACCT_COLUMNS)[0]
            records += [job for job in listed if any(has_token(job, token) for token in tokens)]
        return {job.id: job for job in records if job.state}

    def _load(self) -> Snapshot:
        """Return the last answer; an empty one where the file is not the user's own, or is damaged."""
        transport = self.client.transport
        try:
            owner = transport.ownership(self.path)
            if owner is None or not owner.is_own or owner.writable_by:
                return Snapshot()
            return read_stored(transport, Path(self.path), Snapshot)
        except (InputError, TransportError):
            return Snapshot()

    def _save(self, snapshot: Snapshot) -> None:
        try:
            self.client.transport.write_atomic(self.path, _adapter().dump_json(snapshot), 0o600)
        except TransportError:
            return  # a full or read-only home directory: asked anew each time
