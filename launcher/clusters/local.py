"""One machine without a scheduler: a job is a process in a session of its own.

The intent is recorded before the start, with the job's id, which the process carries in its environment. So a
job is found again even when the program was killed between its start and the record of it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from launcher.checkout import check_venv
from launcher.clusters.base import RenderedJobs, RunLayout
from launcher.clusters.inventory import Partition
from launcher.errors import LaunchError, TransportError
from launcher.fields import FIELDS, Field
from launcher.job_records import (
    StopRequestedError,
    is_stopped_since,
    record_intent,
    record_job,
    refreshed,
    request_stop,
)
from launcher.logs.events import JobChanged, JobState
from launcher.plan import LaunchPlan, passed_on
from launcher.runs import RUN_FILES, Job, JobProcess, Run
from launcher.scripts import script_files
from launcher.signals import uninterrupted
from launcher.transports.base import ProcessId, Transport

JOB_ID_VARIABLE = "RAY_BARE_JOB_ID"
PORT_VARIABLES = ("RAY_PORT", "RAY_DASHBOARD_PORT")
LAUNCHER_VARIABLES = (*PORT_VARIABLES, "RAY_TMPDIR", "RAY_BARE_OBJECT_STORE_MEMORY")
ASK_AGAIN_S = 2.0
"""Interval of repeated signals: a shell can lose one while it parses (bash 5.2)."""
START_WITHIN_S = 5.0
"""Longest wait for the process of a job that is being started."""
RECENT_S = 60.0
"""Age of a job that may still be being started."""
STOP_WITHIN_S = 40.0
"""`ray_bare.sub` gives the driver its grace, then sweeps what is left; it never needs this long."""


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """Jobs on the transport's machine."""

    transport: Transport
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields that need no scheduler."""
        return tuple(row for row in FIELDS if not row.scheduler)

    def hints(self, layout: RunLayout, partition: Partition | None) -> tuple[str, ...]:
        """Return nothing: a rehearsal on this machine has been checked against it."""
        del layout, partition
        return ()

    def plan(self, layout: RunLayout) -> RenderedJobs:
        """Render a run into one process of the packaged launcher.

        Raises:
            TransportError: there is no Python environment with Ray.
        """
        venv = Path(self.environment.get("RAY_BARE_VENV") or sys.prefix)
        check_venv(self.transport, venv)
        job_id = f"local-{secrets.token_hex(3)}"
        scripts = script_files()
        plan = LaunchPlan(
            job_id=job_id,
            argv=("bash", str(layout.directory / "ray_bare.sub")),
            cwd=str(layout.directory),
            environment=self._job_environment(layout.directory, job_id, venv),
            files=(*RUN_FILES, *scripts),
            output=str(layout.directory / "logs" / f"slurm-{job_id}.out"),
        )
        return RenderedJobs(scripts, (plan,))

    def _job_environment(self, directory: Path, job_id: str, venv: Path) -> dict[str, str]:
        command = shlex.join([str(venv / "bin" / "python"), "rehearsal.py", "--config", "effective.yaml"])
        launcher_variables = {
            name: value for name in LAUNCHER_VARIABLES if (value := self.environment.get(name))
        }
        return {
            **passed_on(self.environment),
            **launcher_variables,
            "BASE_LOG_DIR": str(directory / "logs"),
            "COMMAND": command,
            "NEMO_RL_ROOT": str(directory),
            "RAY_BARE_VENV": str(venv),
            # Nine processes fewer, and a start some seconds quicker; nothing here asks the dashboard.
            "RAY_BARE_DASHBOARD": "0",
            JOB_ID_VARIABLE: job_id,
        }

    def submit(self, run: Run, plan: LaunchPlan) -> Run:
        """Start the plan once; returns the run with its job recorded.

        Raises:
            StopRequestedError: the run was cancelled meanwhile; its process has ended.
        """
        job, before = Job(id=plan.job_id, submitted=datetime.now(UTC)), run
        with uninterrupted():
            run = record_intent(self.transport, run, job)
            process = self.transport.spawn(plan.argv, env=plan.environment, cwd=plan.cwd, output=plan.output)
            job = job.model_copy(update={"process": _stored(process)})
            run = record_job(self.transport, run, job)
        if is_stopped_since(run.cancel_requested, before):
            self.cancel(run, job)
            raise StopRequestedError(
                f"{run.spec.id} was cancelled while it was being started", where=Path(run.directory)
            )
        return run

    def state(self, run: Run, job: Job) -> JobChanged | None:
        """Return a job's state from the process table; None for a job of another machine."""
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
        reason = "the launcher is gone; its log has no last line (killed, or the machine restarted)"
        return JobChanged(JobState.UNKNOWN, reason, over=True)

    def cancel(self, run: Run, job: Job) -> Run:
        """Stop a job and wait until its processes are gone.

        Raises:
            LaunchError: it did not stop in time, runs on another machine, or its process is not the job's.
        """
        # A full disk must not keep a job running: what cannot be recorded is stopped all the same.
        with contextlib.suppress(TransportError):
            run = request_stop(self.transport, run)
        process = self._process_to_stop(run, job)
        if process is None:
            return run
        with uninterrupted():
            with contextlib.suppress(TransportError):
                stopped = {"cancel_requested": datetime.now(UTC)}
                run = record_job(self.transport, run, job.model_copy(update=stopped))
            self.transport.signal(process, signal.SIGTERM)
        begun = time.monotonic()
        signals_sent = 1
        while self.transport.alive(process):
            waited = time.monotonic() - begun
            if waited > signals_sent * ASK_AGAIN_S:
                self.transport.signal(process, signal.SIGTERM)
                signals_sent += 1
            if waited > STOP_WITHIN_S:
                raise LaunchError(
                    f"the run did not stop within {STOP_WITHIN_S:.0f} s (process {process.pid})",
                    where=Path(run.directory),
                    fix="Try again; its log shows what it is waiting for.",
                )
            time.sleep(0.1)
        return run

    def _process_to_stop(self, run: Run, job: Job) -> ProcessId | None:
        """Return the job's process, verified with /proc; None where it has ended.

        Raises:
            LaunchError: it runs on another machine, or the recorded process is not the job's.
        """
        host = job.process.host if job.process is not None else run.spec.host
        if host != self.transport.host:
            raise LaunchError(
                f"not stopped: {run.spec.id} runs on {host}, and this is {self.transport.host}",
                where=Path(run.directory),
                fix=f"`cancel {run.spec.id}` on {host} stops it.",
            )
        begun = time.monotonic()
        process = self._process(run, job)
        # Between the intent and the record of the process, which takes milliseconds, there may be none yet.
        while process is None and time.monotonic() - begun < START_WITHIN_S and _is_recent(job):
            time.sleep(0.05)
            latest = refreshed(self.transport, run)
            job = next((item for item in latest.jobs if item.id == job.id), job)
            process = self._process(run, job)
        if process is None or not self.transport.alive(process):
            return None
        if not self.transport.was_started_with(process, f"{JOB_ID_VARIABLE}={job.id}"):
            raise LaunchError(
                f"process {process.pid} was left alone: it is not {job.id} of this run",
                where=Path(run.directory),
                fix="The run's jobs.json was changed; nothing was stopped.",
            )
        return process

    def _process(self, run: Run, job: Job) -> ProcessId | None:
        if job.process is not None:
            return job.process.identity()
        if run.spec.host != self.transport.host:
            return None
        return self.transport.find_process(f"{JOB_ID_VARIABLE}={job.id}")


def _is_recent(job: Job) -> bool:
    return abs((datetime.now(UTC) - job.submitted).total_seconds()) < RECENT_S


def _stored(process: ProcessId) -> JobProcess:
    return JobProcess(host=process.host, boot=process.boot, pid=process.pid, started=process.started)
