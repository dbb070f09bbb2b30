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
from tui.machines import LocalMachine
from tui.work_machine import WorkMachine

if TYPE_CHECKING:
    from launcher.clusters.job_list import JobListing

LIST_S = 3.0
FAR_LIST_S = 5.0
"""Least time between two looks at the runs of a host: two requests each."""
_WHOLE_S = 15.0
"""Seconds between two listings of all runs, unless one came or went."""
_LISTING_S = 0.005
"""The same for each run in the root: one takes 8 µs of CPU."""
_POST_S = 0.5
_FIRST_PAUSE_S = 1.0
"""Seconds until the second look, which also counts sizes on disk."""
_JOBS_S = 15.0
"""Seconds between two looks at the scheduler's answer while it gives none."""
_COUNTED_AT_ONCE = 3


class RunListChanged(Message):
    """The list of a machine's runs changed."""

    def __init__(self, rows: tuple[RunRow, ...], problem: str = "", host: str = "") -> None:
        super().__init__()
        self.rows = rows
        self.problem = problem
        self.host = host
        """Name of the host that has them; empty for this machine."""


class JobListChanged(Message):
    """The scheduler's list of the user's jobs, what is remembered of earlier ones, or drafts changed."""

    def __init__(
        self,
        listing: JobListing | None,
        remembered: tuple[RunRow, ...],
        drafts: tuple[RunRow, ...],
        host: str = "",
    ) -> None:
        super().__init__()
        self.listing = listing
        self.remembered = remembered
        self.drafts = drafts
        self.host = host
        """Name of the host whose scheduler gave the list; empty for this machine."""


class HomePoller(Background):
    """Keeps the list of a machine's runs up to date while it is visible.

    `root` is where this machine's runs are kept; those of a host are where its settings say.
    """

    def __init__(
        self,
        root: Path,
        target: MessagePump,
        in_front: Callable[[], bool] = lambda: True,
        list_s: float = LIST_S,
        machine: WorkMachine | None = None,
    ) -> None:
        super().__init__(self._poll, "runs")
        self.machine = machine or LocalMachine()
        self._list_s = max(list_s, FAR_LIST_S) if self.machine.name else list_s
        self._in_front = in_front
        self._target = target
        self._root = str(root)
        self._lister: RunLister | None = None
        self._posted: tuple[tuple[RunRow, ...], str] | None = None
        self._paused = False
        self._forced = False
        self._began = False
        self._whole_due = 0.0
        """When all runs are listed again; until then only those on the screen and those that live."""
        self.visible: tuple[str, ...] = ()
        """Directories of the rows on the screen, whose size on disk is counted first."""

    def use_root(self, root: Path) -> None:
        """List another directory from the next look on."""
        self._root, self._lister, self._whole_due = str(root), None, 0.0
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
        forced, self._forced = self._forced, False
        if self.machine.name:
            return self._poll_host(forced=forced)
        lister = self._lister  # `use_root` may drop it meanwhile
        if lister is None:
            lister = self._lister = RunLister.of_user(self.machine.transport(), self._root, self._in_front)
            lister.progress = self.alive
        problem = ""
        try:
            self._list(lister, forced=forced)
        except ExplainedError as error:
            problem = clean(error.what)
        self._post_rows(lister, problem)
        if not self._began:  # sizes come after the first paint, which shares the interpreter with this
            self._began = True
            return _FIRST_PAUSE_S
        self._count_sizes(lister)
        return self._list_s

    def _poll_host(self, *, forced: bool) -> float | None:
        """List a host's runs in two requests; its trouble is told by the state of its connection, too."""
        from launcher.runs import store_on

        problem = ""
        try:
            if self._lister is None:
                store = store_on(self.machine.transport())
                self._lister = RunLister.of_host(self.machine.name, store, self._in_front)
            with self._lister.looking():
                self._list(self._lister, forced=forced)
        except ExplainedError as error:
            problem = clean(error.what)
        if self._lister is not None:
            self._post_rows(self._lister, problem)
        elif problem:
            post(self._target, RunListChanged((), problem, self.machine.name))
        state = self.machine.state()
        # What was refused is tried again only when the user asks for it.
        return None if state is not None and state.kind == "refused" else self._list_s

    def _list(self, lister: RunLister, *, forced: bool) -> None:
        now = time.monotonic()
        if forced or self.machine.name or now >= self._whole_due or not lister.look_at(self.visible):
            lister.relist(forced=forced)
            self._whole_due = now + max(_WHOLE_S, _LISTING_S * len(lister.rows()))
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
            post(self._target, RunListChanged(*current, self.machine.name))


class JobPoller(Background):
    """Keeps the user's jobs up to date while the list is visible; a hanging controller holds up only this."""

    def __init__(
        self,
        root: Path,
        target: MessagePump,
        in_front: Callable[[], bool] = lambda: True,
        machine: WorkMachine | None = None,
    ) -> None:
        super().__init__(self._poll, "jobs")
        self.machine = machine or LocalMachine()
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
        from launcher.paths import runs_roots_on

        refresh, self._refresh = self._refresh, False
        on_disk: tuple[tuple[RunRow, ...], tuple[RunRow, ...]] = ((), ())
        if not self.machine.name:
            on_disk = (remembered_jobs(remembered_file()), draft_rows(os.environ))
        self._post_jobs(
            self._listing, *on_disk
        )  # a controller that hangs must not hold up what is on the disk
        try:
            transport = self.machine.transport()
            root = runs_roots_on(transport)[0] if self.machine.name else str(self._root)
            listing = own_jobs(transport, root, transport.environment(), self._interval_s(), refresh=refresh)
        except ExplainedError:  # the file of the last answers cannot be named, or the host is not there
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
            post(self._target, JobListChanged(*current, self.machine.name))

    def _interval_s(self) -> float:
        """Return the seconds between two questions that the site allows; at least 30 for a list."""
        if self._every_s is None:
            from launcher.sites import site_here

            transport = self.machine.transport()
            site = site_here(transport, transport.environment())
            self._every_s = (max(site.front_s, 30.0), max(site.behind_s, 30.0))
        return self._every_s[0 if self._in_front() else 1]
