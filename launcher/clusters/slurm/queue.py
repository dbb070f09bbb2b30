"""One question to Slurm for all runs: what squeue last said, kept beside the runs for every window to read.

However many runs are watched in however many windows: squeue is asked once an interval, sacct at most once
a minute, only for jobs that left the queue. A controller that does not answer is asked less and less often.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.jobs import (
    QUEUE_FORMAT,
    SACCT_COLUMNS,
    SACCT_FORMAT,
    JobRecord,
    read_queue,
)
from launcher.errors import RefusedError, TransportError

FILE = ".slurm-queue.json"
BACK_OFF_MAX_S = 300.0
SACCT_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What Slurm last said."""

    asked: float = 0.0
    """When squeue was last asked with success, in seconds since the epoch; taken before it was."""
    tried: float = 0.0
    failures: int = 0
    problem: str = ""
    """Why it gave no answer the last time; empty when it did."""
    jobs: Mapping[str, JobRecord] = field(default_factory=dict)
    """What squeue listed."""
    ended: Mapping[str, JobRecord] = field(default_factory=dict)
    """What sacct said of jobs that had left the queue."""
    sacct_asked: float = 0.0
    missed: Mapping[str, float] = field(default_factory=dict)
    """When accounting, too, first did not know how a job ended that squeue does not list."""
    sacct_problem: str = ""
    """Why accounting gave no answer the last time; empty when it did."""

    def job(self, identity: str) -> JobRecord | None:
        """Return a job by id; of one that is over, what accounting says, which knows the exit code."""
        listed, ended = self.jobs.get(identity), self.ended.get(identity)
        if listed is not None and ended is not None and listed.over and ended.over:
            return ended
        return listed or ended

    def untold(self, identity: str) -> bool:
        """Tell whether accounting may still know more of a job: it left the queue, or is over in it."""
        record = self.job(identity)
        return record is None or (record.over and not record.exit_code)

    def with_token(self, token: str) -> JobRecord | None:
        """Return the job that carries a token in its comment or command line."""
        for job in (*self.jobs.values(), *self.ended.values()):
            if token in job.comment:
                return job
        return None


@dataclass(frozen=True, slots=True)
class Queue:
    """The user's jobs."""

    client: SlurmClient
    root: str
    """Where runs are kept."""
    every_s: float = 30.0

    @property
    def path(self) -> str:
        """The file that holds the last answer."""
        return str(Path(self.root, FILE))

    def look(self, *, since: float = 0.0) -> Snapshot:
        """Return what Slurm says: the last answer while it is fresh and not older than `since`."""
        known = self._load()
        now = self.client.now()
        wait = min(self.every_s * 2**known.failures, max(BACK_OFF_MAX_S, self.every_s))
        if now - known.tried < wait and not (known.failures == 0 and known.asked < since):
            return known
        return self.ask(known)

    def ask(self, known: Snapshot | None = None) -> Snapshot:
        """Ask squeue now."""
        known = known or self._load()
        begun = self.client.now()
        # So that other windows do not ask in the meantime; a stopped controller blocks for 9 s.
        self._save(replace(known, tried=begun))
        try:
            text = self.client.ask(["squeue", "-h", "-t", "all", "-u", self.client.user, "-o", QUEUE_FORMAT])
            listed, table = read_queue(text)
        except (TransportError, RefusedError) as error:
            fresh = replace(known, tried=begun, failures=known.failures + 1, problem=error.what)
        else:
            unread = f"cannot read this line of squeue: '{table.unread[0]}'" if table.unread else ""
            jobs = {job.id: job for job in listed}
            fresh = replace(known, asked=begun, tried=begun, failures=0, problem=unread, jobs=jobs)
        self._save(fresh)
        return fresh

    def ask_sacct(self, known: Snapshot, missing: Callable[[], Mapping[str, float]]) -> Snapshot:
        """Ask sacct for jobs that are over or not listed (id -> time of submission), if it is time to.

        Of an id that is a token, the job that carries it is looked for among all since the submission.
        """
        begun = self.client.now()
        if begun - known.sacct_asked < SACCT_EVERY_S:
            return known
        wanted = missing()
        if not wanted:
            return known
        known = replace(known, sacct_asked=begun)
        self._save(known)
        try:
            found = self._sacct(wanted, begun)
        except (TransportError, RefusedError) as error:
            fresh = replace(known, sacct_problem=error.what)
        else:
            ended = {**known.ended, **found}
            missed = {
                name: known.missed.get(name, begun)
                for name in wanted
                if name not in known.jobs and (name not in ended or not ended[name].over)
            }
            fresh = replace(known, ended=ended, missed=missed, sacct_problem="")
        self._save(fresh)
        return fresh

    def _sacct(self, wanted: Mapping[str, float], now: float) -> dict[str, JobRecord]:
        argv = ["sacct", "-X", "-n", "-P", f"--format={SACCT_FORMAT}"]
        ids = [identity for identity in wanted if identity.isdecimal()]
        tokens = [identity for identity in wanted if not identity.isdecimal()]
        found: list[JobRecord] = []
        if ids:
            found += read_queue(self.client.ask([*argv, "-j", ",".join(ids)]), SACCT_COLUMNS)[0]
        if tokens:
            age = int(now - min(wanted[token] for token in tokens)) + 60
            since = f"now-{max(age // 60, 1) + 1}minutes"
            text = self.client.ask([*argv, "-u", self.client.user, "-S", since])
            listed = read_queue(text, SACCT_COLUMNS)[0]
            found += [job for job in listed if any(token in job.comment for token in tokens)]
        return {job.id: job for job in found if job.state}

    def _load(self) -> Snapshot:
        transport = self.client.transport
        try:
            if transport.stat(self.path) is None:
                return Snapshot()
            value: dict[str, Any] = json.loads(transport.read(self.path))
            if value.pop("schema") != 1:
                return Snapshot()
            for name in ("jobs", "ended"):
                value[name] = {job["id"]: JobRecord(**job) for job in value[name]}
            return Snapshot(**value)
        except (TransportError, ValueError, KeyError, TypeError):
            return Snapshot()

    def _save(self, snapshot: Snapshot) -> None:
        value = {
            **{name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__},
            "schema": 1,
            "jobs": [asdict(job) for job in snapshot.jobs.values()],
            "ended": [asdict(job) for job in snapshot.ended.values()],
        }
        try:
            self.client.transport.write_atomic(self.path, json.dumps(value).encode(), 0o600)
        except TransportError:
            return  # runs of others, read-only: asked anew each time
