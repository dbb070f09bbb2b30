"""The state of a run whose jobs Slurm has: what Slurm says goes before what an earlier job's logs say."""

from __future__ import annotations

import re

from launcher.logs.events import JobState
from launcher.logs.state import INTERRUPTED, RunState

_JOB_DIRECTORY = re.compile(r"(?:^|/)(\d+)(?:-(\d+))?-logs/")


class SlurmRunState(RunState):
    """A run of several jobs, or of one that was requeued: the end of one is not the end of the run."""

    __slots__ = ()

    @property
    def _verdict(self) -> tuple[JobState, str]:
        job, ended = self.job, self.driver_ended or self.launcher_ended
        if job is None or ended is None:
            return super()._verdict
        alive = job.state in (JobState.STARTING, JobState.RUNNING)
        if job.state is JobState.QUEUED or (alive and self._attempt(ended.source.log) < self._latest()):
            return self._live_state()
        if job.state is JobState.FAILED and ended.code in INTERRUPTED:
            return job.state, job.reason
        return super()._verdict

    def _latest(self) -> tuple[int, int]:
        return max((self._attempt(name) for name in self.logs), default=(0, 0))

    @staticmethod
    def _attempt(log: str) -> tuple[int, int]:
        """Return the job and the number of its requeue that a log belongs to, by its directory's name."""
        match = _JOB_DIRECTORY.search(log)
        return (int(match[1]), int(match[2] or 0)) if match is not None else (0, 0)
