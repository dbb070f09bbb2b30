"""Slurm as a cluster: jobs are submitted once, followed with one question for all runs, and stopped.

Before sbatch runs, the job is recorded with a token that it carries in its comment. Whatever becomes of the
answer (a time-out, a killed client, a controller that restarts), the token is looked up, nothing sent twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from launcher.clusters.base import RenderedJobs, RunLayout
from launcher.clusters.inventory import Partition
from launcher.clusters.slurm.client import (
    QUERY_TIMEOUT_S,
    SUBMIT_TIMEOUT_S,
    SlurmClient,
    conf,
)
from launcher.clusters.slurm.containers import container_hints
from launcher.clusters.slurm.job_status import job_status, refused
from launcher.clusters.slurm.jobs import JobRecord
from launcher.clusters.slurm.messages import busy, failure, gave_up, read_job_id, read_test_only
from launcher.clusters.slurm.parse import ParseError
from launcher.clusters.slurm.queue import Queue, Snapshot
from launcher.clusters.slurm.render import (
    again,
    render,
    render_script,
    sbatch_options,
    script_for_test_only,
)
from launcher.clusters.slurm.stopping import Stopping, scancel_command, settle_intents
from launcher.errors import RefusedError, TransportError, UnclearError, UnreachableError
from launcher.fields import FIELDS, Field
from launcher.job_records import StopRequestedError, is_stopped_since, record_intent, record_job
from launcher.logs.events import JobChanged
from launcher.plan import LaunchPlan, passed_on
from launcher.request import JobOptions
from launcher.runs import SUMMARY, Job, Run, RunStore
from launcher.signals import uninterrupted
from launcher.sites import Site
from launcher.transports.base import Completed, Transport

LOOKED_UP_WITHIN_S = 45.0
"""How long an unclear submission is looked up before it is reported as unclear."""


@dataclass(frozen=True, slots=True)
class SlurmCluster:
    """The jobs of a user on a Slurm cluster."""

    transport: Transport
    root: str
    """Where runs are kept."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    every_s: float = 30.0
    """Seconds between two questions to the controller."""
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = lambda _: None
    """Gets what a long wait waits for, as lines of text."""

    @property
    def client(self) -> SlurmClient:
        """Slurm's commands."""
        return SlurmClient(self.transport, self.environment)

    @property
    def queue(self) -> Queue:
        """The user's jobs in Slurm."""
        return Queue(self.client, self.root, self.every_s)

    # ------------------------------------------------------------ planning

    def plan(self, layout: RunLayout) -> RenderedJobs:
        """Render a run into jobs; writes and submits nothing.

        Raises:
            InputError: there is no such profile, or no such container.
            TransportError: there is no Python environment with Ray.
        """
        return render(self.transport, self.environment, layout)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields: a scheduler has every one of them."""
        return FIELDS

    def hints(self, layout: RunLayout, partition: Partition | None) -> tuple[str, ...]:
        """Return hints about a run: NeMo-RL's own launcher has further limits."""
        if layout.options.request.launcher != "ray.sub" or layout.options.kind == "rehearsal":
            return ()
        return container_hints(layout, partition)

    def estimate_start(self, options: JobOptions) -> str:
        """Ask Slurm when such a job would start: local time, `YYYY-MM-DDTHH:MM:SS`; nothing is submitted.

        Raises:
            RefusedError: Slurm would refuse.
            UnreachableError: it gave no answer.
        """
        argv = sbatch_options(options, "distill-tui", "test")
        done = self.transport.run(
            ["sbatch", "--test-only", *argv, *options.request.sbatch_args, str(script_for_test_only())],
            env={**passed_on(self.environment), **conf(self.environment)},
            timeout_s=QUERY_TIMEOUT_S,
        )
        if done.code:
            raise failure("sbatch --test-only", done.code, done.stderr)
        return read_test_only(done.stderr).start

    def plan_script(
        self, options: JobOptions, site: Site, identity: str, directory: Path, script: str
    ) -> RenderedJobs:
        """Return a job that runs a script of a run's directory instead of the launcher."""
        return render_script(self.environment, options, site, identity, directory, script)

    def plan_again(self, plan: LaunchPlan, time_s: int | None) -> LaunchPlan:
        """Return the plan of one more job of a run, from that of its first; `time_s`: another time limit.

        It waits for other jobs of its name, so that two of them never write the same checkpoints.
        """
        return again(plan, time_s)

    # ------------------------------------------------------------ submitting

    def submit(self, run: Run, plan: LaunchPlan) -> Run:
        """Submit a plan once; returns the run with its job recorded.

        Raises:
            RefusedError: Slurm refused; the run records that.
            StopRequestedError: the run was cancelled meanwhile; no job of this submission goes on.
            UnreachableError: it is not clear whether Slurm accepted the job; watching the run resolves it.
        """
        job = Job(id=plan.job_id, token=plan.job_id, submitted=datetime.now(UTC), link=len(run.jobs) + 1)
        before = run
        with uninterrupted():
            run = record_intent(self.transport, run, job)
            done = self._sbatch(plan)
            if done is not None and done.code == 0:
                try:
                    return self._adopt(before, job, read_job_id(done.stdout))
                except ParseError:
                    done = None
        error = failure("sbatch", done.code, done.stderr) if done is not None else None
        if isinstance(error, RefusedError) and error.fix:
            return self._refuse(run, job, error)
        record, answered = self._look_up(job.token)
        if record is not None:
            return self._adopt(before, job, record.id)
        if done is not None and answered and gave_up(done.stderr):
            return self._refuse(run, job, busy(done.stderr))
        if isinstance(error, RefusedError):
            return self._refuse(run, job, error)
        detail = error.what if error is not None else "sbatch gave no clear answer"
        raise UnreachableError(
            f"it is not clear whether Slurm accepted the job: {detail}",
            where=Path(run.directory),
            fix=f"Do not submit again: `distill-tui watch {run.spec.id}` shows whether it runs.",
        )

    def _sbatch(self, plan: LaunchPlan) -> Completed | None:
        try:
            return self.transport.run(
                plan.argv, env=plan.environment, cwd=plan.cwd, timeout_s=SUBMIT_TIMEOUT_S
            )
        except TransportError as error:
            if "did not end" in error.what or isinstance(error, UnclearError):
                return None
            raise

    def _adopt(self, before: Run, job: Job, identity: str) -> Run:
        """Record a job's number; stop the job if the run was cancelled while it was submitted.

        Raises:
            StopRequestedError: it was.
        """
        job = job.model_copy(update={"id": identity})
        run = record_job(self.transport, before, job)
        if not is_stopped_since(run.cancel_requested, before):
            return run
        done = self.client.run(scancel_command([identity]))
        if done.code:
            raise failure("scancel", done.code, done.stderr)
        record_job(self.transport, run, job.model_copy(update={"cancel_requested": run.cancel_requested}))
        raise StopRequestedError(
            f"{run.spec.id} was cancelled while it was being submitted: job {identity} got scancel",
            where=Path(run.directory),
            fix="`watch` shows when it has ended; `resume` continues the run.",
        )

    def _refuse(self, run: Run, job: Job, error: RefusedError) -> Run:
        record_job(self.transport, run, job.model_copy(update={"refused": error.what}))
        raise RefusedError(error.what, where=Path(run.directory), fix=error.fix)

    def _look_up(self, token: str) -> tuple[JobRecord | None, bool]:
        """Look up a job by its token until Slurm has answered twice without it, or time is over.

        Returns:
            The job, and whether Slurm has answered.
        """
        begun, negative_answers = time.monotonic(), 0
        while negative_answers < 2 and time.monotonic() - begun < LOOKED_UP_WITHIN_S:
            answer = self.queue.ask()
            if answer.failures == 0:
                record = answer.with_token(token)
                if record is not None:
                    return record, True
                negative_answers += 1
            self.sleep(3)
        return None, negative_answers == 2

    # ------------------------------------------------------------ following

    def state(self, run: Run, job: Job) -> JobChanged | None:
        """Return the state of a run's jobs: of the running one, else the pending one, else the last."""
        del job  # the links of a chain are one run
        latest = max((item.submitted.timestamp() for item in run.jobs), default=0.0)
        snapshot = self.queue.latest(since=latest)
        run = settle_intents(self.transport, run, snapshot)
        open_jobs = [item for item in run.jobs if not item.refused]
        if not open_jobs:
            return refused(run.job) if run.job is not None else None
        if snapshot.failures == 0 and any(snapshot.needs_accounting(item.id) for item in open_jobs):
            snapshot = self.queue.ask_sacct(snapshot, lambda: self._unresolved(run, snapshot))
            run = settle_intents(self.transport, run, snapshot)
            open_jobs = [item for item in run.jobs if not item.refused]
        status = job_status([(item, snapshot.job(item.id)) for item in open_jobs], snapshot)
        snapshot = self.queue.ask_lost_nodes(snapshot, status)
        return replace(status, lost_nodes=snapshot.lost_nodes.get(status.job, ()))

    def _unresolved(self, run: Run, snapshot: Snapshot) -> dict[str, float]:
        """Return jobs of all runs of which accounting may know more than squeue; id -> time of submission."""
        store = RunStore(self.transport, self.root)
        runs = [item for item in store.list() if isinstance(item, Run) and item.spec.cluster == "slurm"]
        submitted = {}
        for item in (run, *runs):
            if self.transport.stat(str(Path(item.directory, SUMMARY))) is not None and item is not run:
                continue
            for job in item.jobs:
                if not job.refused and snapshot.needs_accounting(job.id):
                    submitted[job.id] = job.submitted.timestamp()
        return submitted

    # ------------------------------------------------------------ stopping

    def cancel(self, run: Run, job: Job) -> Run:
        """Stop all jobs of a run and wait until they have left the nodes.

        Raises:
            UnreachableError: Slurm gave no answer; the jobs may still run.
            LaunchError: they did not end in time.
        """
        del job
        return Stopping(self.transport, self.queue, run, self.sleep, time.monotonic, self.say).stop()
