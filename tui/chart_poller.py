"""Reading of a run's series for charts, on a thread: what is there is shown while the rest is read."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import ConnectionLostError
from recipes.errors import ExplainedError
from tui.background import Background, post
from tui.opening import Opener, OpeningFailed

if TYPE_CHECKING:
    from launcher.logs.gpu_samples import NodeSamples
    from launcher.overview.run_series import RunSeries
    from launcher.overview.series import Series

POLL_S = 10.0
AGAIN_S = 3.0
"""Pause before a host whose connection is lost is asked again."""
_FIRST_BYTES = 1024 * 1024
_FIRST_S, _MOST_S = 0.25, 4.0
"""Seconds until the first and between later pictures of what is still being read."""


@dataclass(frozen=True, slots=True)
class ChartedRun:
    """What charts say of their run beside its series."""

    title: str = ""
    activity: str = ""
    """What a run that lives does now: `generation of step 12`; empty where unknown."""
    estimated_gib: float | None = None
    """What the largest phase was estimated to need on a GPU."""


class SeriesRead(Message):
    """More of a run's series is read."""

    def __init__(
        self, series: tuple[Series, ...], gpus: tuple[NodeSamples, ...], *, reading: bool, run: ChartedRun
    ) -> None:
        super().__init__()
        self.series = series
        self.gpus = gpus
        self.reading = reading
        """Whether there is more."""
        self.run = run


class ChartPoller(Background):
    """Reads the series of one run; again while it lives.

    `patient`: a connection that is lost is waited for.
    """

    def __init__(self, opener: Opener, target: MessagePump, *, patient: bool = False) -> None:
        super().__init__(self._poll, "charts")
        self._patient = patient
        self._opener = opener
        self._target = target
        self._reader: RunSeries | None = None
        self._run = ChartedRun()

    def _poll(self) -> float | None:
        try:
            return self._read()
        except ExplainedError as error:
            if self._patient and isinstance(error, ConnectionLostError):
                self._reader = None  # it may have been interrupted in the middle of a file
                return AGAIN_S
            post(self._target, OpeningFailed(error))
            return None

    def _read(self) -> float | None:
        from launcher.overview.run_series import RunSeries

        if self._reader is None:
            opened = self._opener()
            estimated_gib = opened.run.spec.estimated_gib if opened.run is not None else None
            self._run = ChartedRun(opened.summary.title, estimated_gib=estimated_gib)
            opened.watch.with_trackers = False  # all of TensorBoard's scalars are read as series
            self._reader = RunSeries(opened.transport, opened.watch)
            self._read_first(self._reader, opened.run.directory if opened.run is not None else "")
        reader = self._reader
        reader.watch.catch_up()
        reader.find()
        posted, pause = time.monotonic(), _FIRST_S
        while not self.stopped and reader.read():
            self.alive()
            if time.monotonic() - posted >= pause:
                self._post(reader, reading=True)
                posted, pause = time.monotonic(), min(2 * pause, _MOST_S)
        self._post(reader, reading=False)
        return None if reader.watch.state.settled else POLL_S

    def _read_first(self, reader: RunSeries, directory: str) -> None:
        """Show the beginning of what lies beside the logs, before the logs are read.

        The first log makes the catalogue of failures ready, which takes 0.3 s.
        """
        if not directory or not reader.find((f"{directory}/output/logs",)):
            reader.watch.find_logs()
            reader.find()
        if reader.read(_FIRST_BYTES):
            self._post(reader, reading=True)

    def _post(self, reader: RunSeries, *, reading: bool) -> None:
        if not self.stopped:
            state = reader.watch.state
            activity = state.phase.in_words() if state.phase is not None and not state.state.ended else ""
            run = replace(self._run, activity=activity)
            post(self._target, SeriesRead(reader.series(), reader.gpus(), reading=reading, run=run))
