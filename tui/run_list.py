"""Polling for the list of runs: one thread reads the runs, another one asks the scheduler."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.overview.lister import RunLister
from launcher.overview.rows import RunRow
from launcher.text import clean
from recipes.errors import ExplainedError
from tui.background import Background, post
from tui.opening import local

if TYPE_CHECKING:
    from launcher.clusters.job_list import JobListing

LIST_S = 3.0
_LISTING_S = 0.005
"""Seconds between two listings for each run in the root: one takes 8 µs of CPU."""
_POST_S = 0.5
_JOBS_S = 15.0
"""Seconds between two looks at the scheduler's answer while it gives none."""
_COUNTED_AT_ONCE = 3


class RunListChanged(Message):
    """The list of runs changed."""

    def __init__(self, rows: tuple[RunRow, ...], problem: str = "") -> None:
        super().__init__()
        self.rows = rows
        self.problem = problem


class JobListChanged(Message):
    """The scheduler's list of the user's jobs, what is remembered of earlier ones, or drafts changed."""

    def __init__(
        self, listing: JobListing | None, remembered: tuple[RunRow, ...], drafts: tuple[RunRow, ...]
    ) -> None:
        super().__init__()
        self.listing = listing
        self.remembered = remembered
        self.drafts = drafts


class HomePoller(Background):
    """Keeps the list of runs up to date while it is visible."""

    def __init__(
        self,
        root: Path,
        target: MessagePump,
        in_front: Callable[[], bool] = lambda: True,
        list_s: float = LIST_S,
    ) -> None:
        super().__init__(self._poll, "runs")
        self._list_s = list_s
        self._in_front = in_front
        self._target = target
        self._root = str(root)
        self._lister: RunLister | None = None
        self._posted: tuple[tuple[RunRow, ...], str] | None = None
        self._paused = False
        self._forced = False
        self.visible: tuple[str, ...] = ()
        """Directories of the rows on the screen, whose size on disk is counted first."""

    def use_root(self, root: Path) -> None:
        """List another directory from the next look on."""
        self._root, self._lister = str(root), None
        self.wake()

    def pause(self) -> None:
        """Stop polling until `resume`."""
        self._paused = True

    def resume(self, *, forced: bool = False) -> None:
        """Poll at once; `forced`: also the runs that have ended."""
        self._paused = False
        self._forced = self._forced or forced
        self.wake()

    def _poll(self) -> float | None:
        if self._paused:
            if self._lister is not None:
                self._lister.save(now=True)
            return None
        lister = self._lister  # `use_root` may drop it meanwhile
        if lister is None:
            lister = self._lister = RunLister.of_user(local(), self._root, self._in_front)
        forced, self._forced = self._forced, False
        problem = ""
        try:
            self._list(lister, forced=forced)
        except ExplainedError as error:
            problem = clean(error.what)
        self._post_rows(lister, problem)
        self._count_sizes(lister)
        return max(self._list_s, _LISTING_S * len(lister.rows()))

    def _list(self, lister: RunLister, *, forced: bool) -> None:
        lister.relist(forced=forced)
        self._post_rows(lister)
        posted = time.monotonic()
        while not self.stopped and lister.poll_next():
            self.alive()
            if time.monotonic() - posted > _POST_S:
                self._post_rows(lister)
                posted = time.monotonic()
        lister.save()

    def _count_sizes(self, lister: RunLister) -> None:
        counted = 0
        while counted < _COUNTED_AT_ONCE and not self.stopped and lister.count_one(self.visible):
            self.alive()
            counted += 1
        if counted:
            self._post_rows(lister)

    def _post_rows(self, lister: RunLister, problem: str = "") -> None:
        current = (lister.rows(), problem)
        if current != self._posted:
            self._posted = current
            post(self._target, RunListChanged(*current))


class JobPoller(Background):
    """Keeps the user's jobs up to date while the list is visible; a hanging controller holds up only this."""

    def __init__(self, root: Path, target: MessagePump, in_front: Callable[[], bool] = lambda: True) -> None:
        super().__init__(self._poll, "jobs")
        self._root = root
        self._target = target
        self._in_front = in_front
        self._paused = False
        self._refresh = False
        self._every_s: tuple[float, float] | None = None
        self._listing: JobListing | None = None
        self._posted: tuple[JobListing | None, tuple[RunRow, ...], tuple[RunRow, ...]] = (None, (), ())

    def use_root(self, root: Path) -> None:
        """List another directory's jobs from the next look on."""
        self._root = root
        self.wake()

    def pause(self) -> None:
        """Ask nothing until `resume`."""
        self._paused = True

    def resume(self, *, refresh: bool = False) -> None:
        """Look at once; `refresh`: ask the scheduler now."""
        self._paused = False
        self._refresh = self._refresh or refresh
        self.wake()

    def _poll(self) -> float | None:
        if self._paused:
            return None
        from launcher.clusters.registry import own_jobs
        from launcher.overview.draft_rows import draft_rows
        from launcher.overview.job_rows import remembered_file, remembered_jobs

        refresh, self._refresh = self._refresh, False
        on_disk = (remembered_jobs(remembered_file()), draft_rows(os.environ))
        self._post_jobs(
            self._listing, *on_disk
        )  # a controller that hangs must not hold up what is on the disk
        try:
            listing = own_jobs(local(), str(self._root), os.environ, self._interval_s(), refresh=refresh)
        except ExplainedError:  # the file of the last answers cannot be named: the runs are listed without
            listing = None
        self._listing = listing
        self._post_jobs(listing, *on_disk)
        return self._pause_s(listing)

    def _pause_s(self, listing: JobListing | None) -> float:
        """Return the seconds until the next look: when a question is due. Reading 300 jobs takes 20 ms."""
        if listing is None:
            return 4 * _JOBS_S
        if listing.problem:
            return _JOBS_S
        left = self._interval_s() - (time.time() - listing.asked)
        return min(max(left, 1.0), 2 * _JOBS_S)

    def _post_jobs(
        self, listing: JobListing | None, remembered: tuple[RunRow, ...], drafts: tuple[RunRow, ...]
    ) -> None:
        """Post what is known now, if it is news."""
        current = (listing, remembered, drafts)
        if current != self._posted:
            self._posted = current
            post(self._target, JobListChanged(*current))

    def _interval_s(self) -> float:
        """Return the seconds between two questions that the site allows; at least 30 for a list."""
        if self._every_s is None:
            from launcher.sites import site_here

            site = site_here(local(), os.environ)
            self._every_s = (max(site.front_s, 30.0), max(site.behind_s, 30.0))
        return self._every_s[0 if self._in_front() else 1]
