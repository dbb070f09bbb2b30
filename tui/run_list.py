"""The list of runs: a thread looks at the runs root and at the runs that live, and sends what changed."""

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
from tui.opening import about, local

if TYPE_CHECKING:  # imported by the functions, on the thread, after the first paint
    from launcher.monitor.watch import Watch
    from launcher.runs import Damaged, Run
    from launcher.transports.base import Transport

LIST_S = 3.0
UNKNOWN_S = 30.0
"""How often a run is looked at of which nothing says whether it lives."""
_LOSSES_KEPT = 64


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as the list shows it."""

    id: str
    name: str
    directory: str
    state: JobState | None = None
    """None while its logs are being read, and for a damaged one."""
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
class _Known:
    """A run of the list, and its watch while it lives."""

    run: Run
    row: RunRow
    watch: Watch | None = None
    due: float = 0.0
    """When it is looked at next (monotonic clock); infinity once it has ended."""


@dataclass(slots=True)
class RunLister:
    """Lists the runs of a root; reads the logs of those that live, and the summaries of the others."""

    transport: Transport
    root: str
    now: Callable[[], float] = time.monotonic
    in_front: Callable[[], bool] = lambda: True
    """Whether someone looks at the list."""
    _known: dict[str, _Known] = field(default_factory=dict)
    _order: list[str | RunRow] = field(default_factory=list)
    _seen: tuple[float, int] | None = None

    def relist(self, *, forced: bool = False) -> None:
        """List the root's directories again if that changed."""
        from launcher.runs import Damaged, user_store

        entry = self.transport.stat(self.root)
        seen = (entry.mtime, entry.inode) if entry is not None else None
        if not forced and seen == self._seen and self._order:
            return
        order: list[str | RunRow] = []
        for item in user_store(self.transport, Path(self.root)).list():
            if isinstance(item, Damaged):
                order.append(damaged_row(item))
                continue
            known = self._known.get(item.directory)
            if known is None or forced:
                self._known[item.directory] = _Known(item, known.row if known else starting_row(item))
            order.append(item.directory)
        self._order, self._seen = order, seen

    def look(self) -> bool:
        """Look at the next run that is due; False when none is."""
        for item in self._order:
            known = self._known[item] if isinstance(item, str) else None
            if known is not None and known.due <= self.now():
                self._refresh(known)
                return True
        return False

    def rows(self) -> tuple[RunRow, ...]:
        """Return the list, newest first."""
        return tuple(self._known[item].row if isinstance(item, str) else item for item in self._order)

    def _refresh(self, known: _Known) -> None:
        from launcher.monitor.watch_run import summarise, watch_run
        from launcher.runs import load_summary

        try:
            summary = load_summary(self.transport, known.run) if known.watch is None else None
            if summary is None:
                watch = known.watch = known.watch or watch_run(self.transport, known.run)
                watch.in_front = self.in_front()
                watch.catch_up()
                summary = summarise(self.transport, known.run, watch)
        except ExplainedError as error:  # its files are damaged, or gone, since it was listed
            known.row = replace(known.row, state=None, damaged=clean(error.what))
            known.due = self.now() + UNKNOWN_S
            return
        known.row = filled_row(known.row, summary)
        settled = known.watch is None or known.watch.state.settled
        known.due = self.now() + _pause(known.row, settled=settled)


def _pause(row: RunRow, *, settled: bool) -> float:
    if row.state is None or row.state is JobState.UNKNOWN or (row.state.ended and not settled):
        return UNKNOWN_S
    return float("inf") if row.state.ended else LIST_S


def starting_row(run: Run) -> RunRow:
    """Return a run's row before its state is known."""
    told = about(run)
    return RunRow(
        clean(run.spec.id),
        clean(run.spec.name),
        run.directory,
        started=told.started,
        max_steps=run.spec.max_steps,
        detail=f"{told.detail} · {clean(run.spec.recipe.source)}",
    )


def damaged_row(item: Damaged) -> RunRow:
    """Return the row of a directory that cannot be read as a run."""
    name = clean(Path(item.directory).name)
    return RunRow(name, name, item.directory, damaged=clean(item.problem))


def filled_row(row: RunRow, summary: Mapping[str, Any]) -> RunRow:
    """Return the row with what a run's summary tells; a summary is a file that anybody may have edited."""
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
        step=_whole(metrics.get("step")) or 0,
        max_steps=_whole(metrics.get("max_steps")) or row.max_steps,
        checkpoint=max(
            (step for step in _list(metrics, "checkpoints") if isinstance(step, int)), default=None
        ),
        losses=_thinned(losses),
        ended=_number(summary.get("ended")),
    )


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return value if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, float | int) else None


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    """Keep at most so many values as a row can show, the last one always."""
    if len(values) <= _LOSSES_KEPT:
        return tuple(values)
    step = len(values) / _LOSSES_KEPT
    return (*(values[int((place + 1) * step) - 1] for place in range(_LOSSES_KEPT - 1)), values[-1])


class HomePoller(Background):
    """Keeps the list of runs; looks only while the list is to be seen."""

    def __init__(self, root: Path, target: MessagePump, in_front: Callable[[], bool] = lambda: True) -> None:
        super().__init__(self._look, "runs")
        self._in_front = in_front
        self._target = target
        self._root = str(root)
        self._lister: RunLister | None = None
        self._said: tuple[tuple[RunRow, ...], str] | None = None
        self._paused = False
        self._forced = False

    def use_root(self, root: Path) -> None:
        """List another directory from the next look on."""
        self._root, self._lister = str(root), None
        self.wake()

    def pause(self) -> None:
        """Look no more until `resume`."""
        self._paused = True

    def resume(self, *, again: bool = False) -> None:
        """Look now; `again`: also at what has ended."""
        self._paused = False
        self._forced = self._forced or again
        self.wake()

    def _look(self) -> float | None:
        if self._paused:
            return None
        if self._lister is None:
            self._lister = RunLister(local(), self._root, in_front=self._in_front)
        forced, self._forced = self._forced, False
        problem = ""
        try:
            self._list(self._lister, forced=forced)
        except ExplainedError as error:
            problem = clean(error.what)
        self._say(self._lister, problem)
        return LIST_S

    def _list(self, lister: RunLister, *, forced: bool) -> None:
        lister.relist(forced=forced)
        self._say(lister)
        told = time.monotonic()
        while not self.stopped and lister.look():
            self.alive()
            if time.monotonic() - told > 0.2:
                self._say(lister)
                told = time.monotonic()

    def _say(self, lister: RunLister, problem: str = "") -> None:
        now = (lister.rows(), problem)
        if now != self._said:
            self._said = now
            post(self._target, RunListChanged(*now))
