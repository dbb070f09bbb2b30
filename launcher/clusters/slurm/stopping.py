"""Stopping a run's jobs: each is verified with Slurm first, and the run has stopped when Slurm says so.

A submission under way has an intent in the run's record: it is waited for, because its job would go on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from launcher.clusters.slurm.client import SUBMIT_TIMEOUT_S
from launcher.clusters.slurm.job_status import SETTLED_S
from launcher.clusters.slurm.jobs import JobRecord
from launcher.clusters.slurm.messages import failure
from launcher.clusters.slurm.queue import Queue, Snapshot, has_token
from launcher.errors import LaunchError, TransportError, UnreachableError
from launcher.job_records import record_job, refreshed, request_stop
from launcher.run_reference import is_job_id
from launcher.runs import Job, Run
from launcher.signals import uninterrupted
from launcher.transports.base import Transport

STOP_WITHIN_S = 90.0
"""KillWait is 30 s at most sites; an epilog takes longer."""
_ASK_EVERY_S = 2.0


def is_intent(job: Job) -> bool:
    """Return whether it is not yet clear if Slurm accepted a job."""
    return bool(job.token) and job.id == job.token and not job.refused


def settle_intents(transport: Transport, run: Run, snapshot: Snapshot) -> Run:
    """Set the job number of submissions without a clear answer, by their token."""
    for job in run.jobs:
        record = snapshot.with_token(job.token) if is_intent(job) else None
        if record is not None and is_job_id(record.id):
            run = record_job(transport, run, job.model_copy(update={"id": record.id}))
    return run


def scancel_command(ids: list[str]) -> list[str]:
    """Return the command that ends jobs; `--` keeps an id from being read as an option.

    Raises:
        LaunchError: one is not a job's id.
    """
    for identity in ids:
        if not is_job_id(identity):
            raise LaunchError(f"invalid job id: '{identity}' (expected digits, as in 4711 or 4711_2)")
    return ["scancel", "--", *ids]


@dataclass
class Stopping:
    """One order to stop a run, followed until Slurm lists none of its jobs."""

    transport: Transport
    queue: Queue
    run: Run
    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    say: Callable[[str], None]
    _signalled: dict[str, Job] = field(default_factory=dict)
    _questions: int = 0

    def stop(self) -> Run:
        """Stop all jobs and wait until they have left the nodes.

        Raises:
            UnreachableError: Slurm gave no answer, or it is not clear what it accepted; jobs may still run.
            LaunchError: they did not end in time, or Slurm's job of that number is not the run's.
        """
        # A full disk must not keep a job running: what cannot be recorded is stopped all the same.
        with contextlib.suppress(TransportError):
            self.run = request_stop(self.transport, self.run)
        begun = self.monotonic()
        while True:
            snapshot = self.queue.ask()
            self.run = self._recorded(snapshot)
            live = [job for job in self._open_jobs() if self._is_live(job, snapshot)]
            fresh = [job for job in live if job.id not in self._signalled]
            if snapshot.failures == 0 and fresh:
                self._scancel(fresh)
                continue
            intents = [job for job in self.run.jobs if is_intent(job) and not _is_void(job, snapshot)]
            # A line of squeue that cannot be read may be the job's.
            if snapshot.failures == 0 and not snapshot.problem and not live and not intents:
                self._require_own(snapshot)
                return self.run
            if self.monotonic() - begun > STOP_WITHIN_S:
                raise self._unfinished(snapshot, intents)
            self._report(snapshot, intents)
            self.sleep(_ASK_EVERY_S)

    def _recorded(self, snapshot: Snapshot) -> Run:
        """Return the run as others may have changed it, with the numbers that Slurm's answer makes clear."""
        try:
            return settle_intents(self.transport, refreshed(self.transport, self.run), snapshot)
        except TransportError:
            return self.run

    def _open_jobs(self) -> list[Job]:
        return [job for job in self.run.jobs if not job.refused and not is_intent(job)]

    def _is_live(self, job: Job, snapshot: Snapshot) -> bool:
        record = snapshot.jobs.get(job.id)
        return record is not None and not record.over and is_own(job, record)

    def _scancel(self, jobs: list[Job]) -> None:
        with uninterrupted():
            done = self.queue.client.run(scancel_command([job.id for job in jobs]))
            # 8 and 140: no answer from the controller. Jobs that are over are passed over in silence.
            if done.code:
                raise failure("scancel", done.code, done.stderr)
            for job in jobs:
                self._signalled[job.id] = job
                stopped = job.model_copy(update={"cancel_requested": datetime.now(UTC)})
                with contextlib.suppress(TransportError):
                    self.run = record_job(self.transport, self.run, stopped)

    def _require_own(self, snapshot: Snapshot) -> None:
        """Refuse to call a run stopped where Slurm has another job by a number of its record."""
        others = [
            job.id
            for job in self._open_jobs()
            if (record := snapshot.jobs.get(job.id)) and not record.over and not is_own(job, record)
        ]
        if others:
            raise LaunchError(
                f"job {', '.join(others)} was left alone: its comment does not have this run's token",
                where=Path(self.run.directory),
                fix="Slurm gave its number to another job, or jobs.json was changed; see `squeue --me`.",
            )

    def _unfinished(self, snapshot: Snapshot, intents: list[Job]) -> LaunchError | UnreachableError:
        where, again = Path(self.run.directory), f"`distill-tui cancel {self.run.spec.id}` asks again"
        ids = ", ".join(job.id for job in self._open_jobs())
        if snapshot.failures or snapshot.problem:
            order = (
                f"job {', '.join(self._signalled)} got scancel" if self._signalled else "no job got scancel"
            )
            return UnreachableError(
                f"not known to have stopped: Slurm gave no clear answer for {STOP_WITHIN_S:.0f} s"
                f" ({snapshot.problem}); {order}",
                where=where,
                fix=f"Jobs may still run. {again}.",
            )
        if intents:
            return UnreachableError(
                f"not known to have stopped: it is not clear yet whether Slurm accepted {len(intents)} job"
                f"{'s' * (len(intents) > 1)}",
                where=where,
                fix=f"It would start later. {again}.",
            )
        return LaunchError(
            f"job {ids} did not end within {STOP_WITHIN_S:.0f} s of scancel",
            where=where,
            fix="Slurm is still stopping it; `squeue --me` lists it until it is gone.",
        )

    def _report(self, snapshot: Snapshot, intents: list[Job]) -> None:
        self._questions += 1
        if snapshot.problem:
            self.say(
                f"no clear answer from Slurm ({snapshot.problem}); question {self._questions}, asking again …"
            )
        elif intents and self._questions % 5 == 1:
            self.say("a submission of this run is under way; waiting for Slurm's answer to it …")


def is_own(job: Job, record: JobRecord) -> bool:
    """Return whether Slurm's job is the one that a run recorded: it carries the token."""
    return has_token(record, job.token)


def _is_void(intent: Job, snapshot: Snapshot) -> bool:
    """Return whether a job that Slurm does not list can no longer appear: its sbatch has ended long ago."""
    since_s = snapshot.asked - intent.submitted.timestamp()
    return snapshot.failures == 0 and since_s > SUBMIT_TIMEOUT_S + SETTLED_S
