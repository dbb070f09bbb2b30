"""One machine without a scheduler: a job is a process in a session of its own.

The intent is recorded before the start, with the job's id, which the process carries in its environment. So a
job is found again even when the program was killed between its start and the record of it.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from launcher.errors import LaunchError
from launcher.logs.events import JobChanged, JobState
from launcher.plan import LaunchPlan
from launcher.runs import Job, JobProcess, Run, record_job
from launcher.signals import uninterrupted
from launcher.transports.base import ProcessId, Transport

JOB_ID_VARIABLE = "RAY_BARE_JOB_ID"
ASK_AGAIN_S = 2.0
"""A shell can lose a signal that comes while it parses (bash 5.2); one that is stopping ignores more."""
STOP_WITHIN_S = 40.0
"""`ray_bare.sub` gives the driver its grace, then sweeps what is left; it never needs this long."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """Jobs on the transport's machine."""

    transport: Transport

    def submit(self, run: Run, plan: LaunchPlan) -> Run:
        """Start the plan once; returns the run with its job recorded."""
        job = Job(id=plan.job_id, submitted=datetime.now(UTC))
        with uninterrupted():
            run = record_job(self.transport, run, job)
            process = self.transport.spawn(plan.argv, env=plan.environment, cwd=plan.cwd, output=plan.output)
            return record_job(self.transport, run, job.model_copy(update={"process": _stored(process)}))

    def state(self, run: Run, job: Job) -> JobChanged | None:
        """Return what the process table says of a job; None for one of another machine."""
        process = self._process(run, job)
        if process is None and run.spec.host != self.transport.host:
            return None
        alive = self.transport.alive(process) if process is not None else False
        if alive is None:
            return None
        if alive:
            reason = "stopping" if job.cancel_requested else ""
            return JobChanged(JobState.RUNNING, reason)
        if job.cancel_requested:
            return JobChanged(JobState.CANCELLED, "cancelled by you", job.cancel_requested.timestamp())
        reason = "the launcher is gone and left no last line (killed, or the machine restarted)"
        return JobChanged(JobState.UNKNOWN, reason, over=True)

    def cancel(self, run: Run, job: Job) -> Run:
        """Stop a job and wait until its processes are gone."""
        process = self._process(run, job)
        if process is None or not self.transport.alive(process):
            return run
        with uninterrupted():
            run = record_job(
                self.transport, run, job.model_copy(update={"cancel_requested": datetime.now(UTC)})
            )
            self.transport.signal(process, signal.SIGTERM)
        begun = time.monotonic()
        asked = 1
        while self.transport.alive(process):
            waited = time.monotonic() - begun
            if waited > asked * ASK_AGAIN_S:
                self.transport.signal(process, signal.SIGTERM)
                asked += 1
            if waited > STOP_WITHIN_S:
                raise LaunchError(
                    f"the run did not stop within {STOP_WITHIN_S:.0f} s (process {process.pid})",
                    where=Path(run.directory),
                    fix="Try again; its log says what it is waiting for.",
                )
            time.sleep(0.1)
        return run

    def _process(self, run: Run, job: Job) -> ProcessId | None:
        if job.process is not None:
            return job.process.identity()
        if run.spec.host != self.transport.host:
            return None
        return self.transport.find_process(f"{JOB_ID_VARIABLE}={job.id}")


def _stored(process: ProcessId) -> JobProcess:
    return JobProcess(host=process.host, boot=process.boot, pid=process.pid, started=process.started)
