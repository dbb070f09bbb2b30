"""The list of runs, kept by a thread that polls the runs root and the active runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.logs.events import JobState
from launcher.text import clean
from recipes.errors import ExplainedError
from tui.background import Background, post
from tui.opening import local, summary_of

if TYPE_CHECKING:  # imported by the functions, on the thread, after the first paint
    from launcher.monitor.watch import Watch
    from launcher.runs import Damaged, Run
    from launcher.transports.base import Transport

LIST_S = 3.0
UNKNOWN_S = 30.0
"""Polling interval of a run with an unknown state."""
_MAX_LOSSES = 64


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in the list."""

    id: str
    name: str
    directory: str
    state: JobState | None = None
    """None while its logs are being read, and for a damaged run."""
    damaged: str = ""
    reason: str = ""
    step: int = 0
    max_steps: int | None = None
    checkpoint: int | None = None
    losses: tuple[float, ...] = ()
    started: float | None = None
    ended: float | None = None
    detail: str = ""


class RunListChanged(Message):
    """The list of runs changed."""

    def __init__(self, rows: tuple[RunRow, ...], problem: str = "") -> None:
        super().__init__()
        self.rows = rows
        self.problem = problem


@dataclass(slots=True)
class _Entry:
    """A run of the list, and its watch while it is active."""

    run: Run
    row: RunRow
    watch: Watch | None = None
    due: float = 0.0
    """Time of the next poll (monotonic clock); infinity once it has ended."""


@dataclass(slots=True)
class RunLister:
    """Lists the runs of a root; reads the logs of active runs, and the summaries of the others."""

    transport: Transport
    root: str
    now: Callable[[], float] = time.monotonic
    in_front: Callable[[], bool] = lambda: True
    """Whether the terminal has the focus."""
    list_s: float = LIST_S
    """Seconds between two looks at an active run."""
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _order: list[str | RunRow] = field(default_factory=list)
    _root_version: tuple[float, int] | None = None
    """Time of change and inode of the root when it was listed."""

    def relist(self, *, forced: bool = False) -> None:
        """List the root's directories again if it has changed."""
        from launcher.runs import Damaged, user_store

        stat = self.transport.stat(self.root)
        version = (stat.mtime, stat.inode) if stat is not None else None
        if not forced and version == self._root_version and self._order:
            return
        order: list[str | RunRow] = []
        for item in user_store(self.transport, Path(self.root)).list():
            if isinstance(item, Damaged):
                order.append(damaged_row(item))
                continue
            entry = self._entries.get(item.directory)
            if entry is None or forced:
                self._entries[item.directory] = _Entry(item, entry.row if entry else starting_row(item))
            order.append(item.directory)
        self._order, self._root_version = order, version

    def poll_next(self) -> bool:
        """Poll the next run that is due; False when none is."""
        for item in self._order:
            entry = self._entries[item] if isinstance(item, str) else None
            if entry is not None and entry.due <= self.now():
                self._poll(entry)
                return True
        return False

    def rows(self) -> tuple[RunRow, ...]:
        """Return the list, newest first."""
        return tuple(self._entries[item].row if isinstance(item, str) else item for item in self._order)

    def _poll(self, entry: _Entry) -> None:
        from launcher.monitor.watch_run import summarise, watch_run
        from launcher.runs import load_summary

        try:
            summary = load_summary(self.transport, entry.run) if entry.watch is None else None
            if summary is None:
                watch = entry.watch = entry.watch or watch_run(self.transport, entry.run)
                watch.in_front = self.in_front()
                watch.catch_up()
                summary = summarise(self.transport, entry.run, watch)
        except ExplainedError as error:  # its files are damaged, or gone, since it was listed
            entry.row = replace(entry.row, state=None, damaged=clean(error.what))
            entry.due = self.now() + UNKNOWN_S
            return
        entry.row = filled_row(entry.row, summary)
        settled = entry.watch is None or entry.watch.state.settled
        entry.due = self.now() + self._pause(entry.row, settled=settled)

    def _pause(self, row: RunRow, *, settled: bool) -> float:
        if row.state is None or row.state is JobState.UNKNOWN or (row.state.ended and not settled):
            return UNKNOWN_S
        return float("inf") if row.state.ended else self.list_s


def starting_row(run: Run) -> RunRow:
    """Return a run's row before its state is known."""
    summary = summary_of(run)
    return RunRow(
        clean(run.spec.id),
        clean(run.spec.name),
        run.directory,
        started=summary.started,
        max_steps=run.spec.max_steps,
        detail=f"{summary.detail} · {clean(run.spec.recipe.source)}",
    )


def damaged_row(item: Damaged) -> RunRow:
    """Return the row of a directory that cannot be read as a run."""
    name = clean(Path(item.directory).name)
    return RunRow(name, name, item.directory, damaged=clean(item.problem))


def filled_row(row: RunRow, summary: Mapping[str, Any]) -> RunRow:
    """Return the row updated from a run's summary, a file that may have been edited."""
    metrics = summary.get("metrics")
    metrics = metrics if isinstance(metrics, dict) else {}
    losses = [value if isinstance(value, float | int) else float("nan") for value in _list(metrics, "loss")]
    try:
        state = JobState(summary.get("state", ""))
    except ValueError:
        state = JobState.UNKNOWN
    return replace(
        row,
        state=state,
        damaged="",
        reason=clean(str(summary.get("reason") or "")),
        step=_integer(metrics.get("step")) or 0,
        max_steps=_integer(metrics.get("max_steps")) or row.max_steps,
        checkpoint=max(
            (step for step in _list(metrics, "checkpoints") if isinstance(step, int)), default=None
        ),
        losses=_thinned(losses),
        ended=_number(summary.get("ended")),
    )


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return value if isinstance(value, list) else []


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, float | int) else None


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    """Keep as many values as a row can show; always the last one."""
    if len(values) <= _MAX_LOSSES:
        return tuple(values)
    step = len(values) / _MAX_LOSSES
    return (*(values[int((index + 1) * step) - 1] for index in range(_MAX_LOSSES - 1)), values[-1])


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
            return None
        if self._lister is None:
            self._lister = RunLister(local(), self._root, in_front=self._in_front, list_s=self._list_s)
        forced, self._forced = self._forced, False
        problem = ""
        try:
            self._list(self._lister, forced=forced)
        except ExplainedError as error:
            problem = clean(error.what)
        self._post_rows(self._lister, problem)
        return self._list_s

    def _list(self, lister: RunLister, *, forced: bool) -> None:
        lister.relist(forced=forced)
        self._post_rows(lister)
        posted = time.monotonic()
        while not self.stopped and lister.poll_next():
            self.alive()
            if time.monotonic() - posted > 0.2:
                self._post_rows(lister)
                posted = time.monotonic()

    def _post_rows(self, lister: RunLister, problem: str = "") -> None:
        current = (lister.rows(), problem)
        if current != self._posted:
            self._posted = current
            post(self._target, RunListChanged(*current))
