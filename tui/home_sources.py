"""Runs and jobs that the list shows: of this machine and of hosts, each read on threads of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message_pump import MessagePump

from launcher.overview.arrangement import merged
from launcher.overview.rows import RunRow
from tui.run_list import HomePoller, JobListChanged, JobPoller, RunListChanged

if TYPE_CHECKING:
    from launcher.clusters.job_list import JobListing
    from tui.work_machine import LineState, WorkMachine


@dataclass(slots=True)
class _MachineRows:
    """Rows of one machine, as they were read last."""

    runs: tuple[RunRow, ...] = ()
    problem: str = ""
    listed: bool = False
    listing: JobListing | None = None
    remembered: tuple[RunRow, ...] = ()
    drafts: tuple[RunRow, ...] = ()


class HomeSources:
    """Pollers of the machines, and what they read last."""

    def __init__(
        self,
        machines: Sequence[WorkMachine],
        root: Path,
        target: MessagePump,
        in_front: Callable[[], bool],
        list_s: float,
    ) -> None:
        self._lists = {item.name: HomePoller(root, target, in_front, list_s, item) for item in machines}
        self._jobs = {item.name: JobPoller(root, target, in_front, item) for item in machines}
        self._rows = {item.name: _MachineRows() for item in machines}

    @property
    def here(self) -> HomePoller:
        """The poller of this machine's runs."""
        return self._lists[""]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts whose runs are listed, too."""
        return tuple(name for name in self._lists if name)

    # ------------------------------------------------------------ pollers

    def start_first(self) -> None:
        """Begin with this machine's runs."""
        self.here.start()

    def start_rest(self) -> None:
        """Begin with its jobs, and with the hosts."""
        for name, poller in self._lists.items():
            if name:
                poller.start()
        for jobs in self._jobs.values():
            jobs.start()

    def pause(self) -> None:
        """Ask nothing until `resume`."""
        for poller in self._lists.values():
            poller.pause()
        for jobs in self._jobs.values():
            jobs.pause()

    def resume(self, *, forced: bool = False, refresh: bool = False) -> None:
        """Look at once; `forced`: also at runs that have ended; `refresh`: ask the schedulers now."""
        for poller in self._lists.values():
            poller.resume(forced=forced)
        for jobs in self._jobs.values():
            jobs.resume(refresh=refresh)

    def stop(self) -> None:
        """End the threads."""
        for poller in (*self._lists.values(), *self._jobs.values()):
            poller.stop()

    def use_root(self, root: Path) -> None:
        """List another directory of this machine."""
        self.here.use_root(root)
        self._jobs[""].use_root(root)

    # ------------------------------------------------------------ what was read

    def take_runs(self, event: RunListChanged) -> None:
        """Take the runs of a machine."""
        rows = self._rows[event.host]
        rows.runs, rows.problem, rows.listed = event.rows, event.problem, True

    def take_jobs(self, event: JobListChanged) -> None:
        """Take the jobs of a machine."""
        rows = self._rows[event.host]
        rows.listing, rows.remembered, rows.drafts = event.listing, event.remembered, event.drafts

    @property
    def listed(self) -> bool:
        """Whether this machine's runs were listed, or its directory gave an error."""
        return self._rows[""].listed

    @property
    def problem(self) -> str:
        """Why this machine's runs cannot be listed; empty where they can."""
        return self._rows[""].problem

    @property
    def drafts(self) -> tuple[RunRow, ...]:
        """Drafts, which are kept on this machine."""
        return self._rows[""].drafts

    def listing_of(self, host: str) -> JobListing | None:
        """Return the last answer of a machine's scheduler; None without one."""
        rows = self._rows.get(host)
        return rows.listing if rows is not None else None

    def runs_of(self, host: str) -> tuple[RunRow, ...]:
        """Return the runs of a machine."""
        return self._rows[host].runs

    def run_named(self, directory: str, host: str) -> str:
        """Return the name of a run by its directory; empty where it is not listed."""
        return next((row.name for row in self._rows[host].runs if row.directory == directory), "")

    def merged_rows(self) -> tuple[RunRow, ...]:
        """Return all rows, newest first; what lives on a host that does not answer is marked as of then."""
        here: tuple[RunRow, ...] = ()
        far: list[RunRow] = []
        jobs: list[RunRow] = []
        for name, rows in self._rows.items():
            with_state, others = _with_jobs(rows, name)
            state = self._lists[name].machine.state()
            if state is not None and state.kind in ("lost", "refused"):
                with_state = tuple(_as_of(row, state.last_data) for row in with_state)
                others = tuple(_as_of(row, state.last_data) for row in others)
            if name:
                far += with_state
            else:
                here = with_state
            jobs += others
        return merged(here, (*far, *jobs, *self.drafts))

    def lines(self) -> tuple[LineState, ...]:
        """Return the connections of which there is something to say."""
        states = (poller.machine.state() for poller in self._lists.values())
        return tuple(state for state in states if state is not None and state.kind != "up")

    def host_problems(self) -> tuple[str, ...]:
        """Return why runs of hosts that are connected cannot be listed."""
        troubled = {line.host for line in self.lines()}
        return tuple(
            f"{name}: {rows.problem}"
            for name, rows in self._rows.items()
            if name and rows.problem and name not in troubled
        )


def _with_jobs(rows: _MachineRows, host: str) -> tuple[tuple[RunRow, ...], tuple[RunRow, ...]]:
    if rows.listing is None and not rows.remembered:  # as at the first paint
        return rows.runs, ()
    from launcher.overview.job_rows import with_jobs

    return with_jobs(rows.runs, rows.listing, rows.remembered, host)


def _as_of(row: RunRow, time: float | None) -> RunRow:
    return replace(row, as_of=time) if row.live and time is not None and row.as_of != time else row
