"""Jobs of an editor on one thread, in the order in which they were asked for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from recipes.errors import ExplainedError

Retry = Callable[[ExplainedError], None]


@dataclass(frozen=True, slots=True)
class _Job:
    run: Callable[[], None]
    retry: Retry | None
    supersedes: bool


class JobThread:
    """Runs jobs; the subclass says what is done while none waits, and with a job that failed."""

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._superseding_put = 0
        self._superseding_taken = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def _put(self, run: Callable[[], None], retry: Retry | None = None, *, supersedes: bool = False) -> None:
        """Have a job done; `supersedes`: what is made of the state before it is of no use any more."""
        self._superseding_put += supersedes
        self._jobs.put(_Job(run, retry, supersedes))

    def _begin(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the jobs that wait."""
        self._jobs.put(None)

    def _wait(self, limit_s: float) -> None:
        self._thread.join(limit_s)

    def _is_superseded(self) -> bool:
        """Return whether a job waits that supersedes the present state."""
        return self._superseding_put > self._superseding_taken

    @property
    def _is_idle(self) -> bool:
        """Whether no job waits."""
        return self._jobs.empty()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._superseding_taken += job.supersedes
            try:
                job.run()
                if self._is_idle:
                    self._catch_up()
            except ExplainedError as error:
                self._failed(error, job.retry)
        self._end()

    def _catch_up(self) -> None:
        """Do what is left while no job waits."""
        raise NotImplementedError

    def _failed(self, error: ExplainedError, retry: Retry | None) -> None:
        """Report a job that failed."""
        raise NotImplementedError

    def _end(self) -> None:
        """Put away what the jobs used."""
        raise NotImplementedError
