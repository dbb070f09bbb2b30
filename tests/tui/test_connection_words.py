"""Screens and the connection to their host: what they say of it, and what waits for it."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from launcher.errors import ConnectionLostError, InputError
from recipes.errors import ExplainedError
from tui.chart_poller import AGAIN_S, ChartPoller
from tui.opening import OpenedRun, OpeningFailed
from tui.screens.connection_words import Reconnector, connection_part, connections_part
from tui.work_machine import LineState

NOW = 1000.0


class Line:
    """A machine in a state, which counts the uses of its connection."""

    def __init__(self, state: LineState | None, name: str = "far") -> None:
        self._state, self.name = state, name
        self.uses = threading.Semaphore(0)

    def state(self) -> LineState | None:
        return self._state

    def transport(self) -> Any:
        self.uses.release()
        raise ConnectionLostError("far: not connected")


def host_with(line: Line) -> Any:
    return SimpleNamespace(machine=lambda name: line, now=lambda: NOW)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (LineState("far", "up", NOW), None),
        (LineState("far", "connecting"), "  ! connecting to far …"),
        (LineState("far", "lost", NOW - 12, 3.0, "closed"), "  ! reconnecting to far (last data 12s ago)"),
        (LineState("far", "refused", problem="no key"), "  ! not connected to far"),
    ],
)
def test_a_title_says_briefly_how_the_connection_is(state: LineState, words: str | None) -> None:
    line = Line(state)
    part = connection_part(host_with(line), "far")
    assert (part[0] if part is not None else None) == words
    here: Any = Line(None, "")
    assert connections_part(host_with(line), [here, line]) == part  # type: ignore[list-item]
    assert connection_part(host_with(line), "") is None


@pytest.mark.parametrize(
    ("state", "tried"),
    [
        (LineState("far", "lost", NOW), True),
        (LineState("far", "lost", NOW, 3.0), False),
        (LineState("far", "refused"), False),
        (LineState("far", "up", NOW), False),
        (None, False),
    ],
)
def test_a_lost_connection_is_made_again_when_an_attempt_is_due(state: LineState | None, tried: bool) -> None:
    line = Line(state)
    Reconnector(host_with(line), "far").try_now()
    assert line.uses.acquire(timeout=30 if tried else 0.05) is tried


@pytest.mark.parametrize(
    ("error", "patient", "waits"),
    [
        (ConnectionLostError("far: lost"), True, True),
        (ConnectionLostError("far: lost"), False, False),
        (InputError("no such run"), True, False),
    ],
)
def test_charts_wait_for_a_connection_only(error: ExplainedError, patient: bool, waits: bool) -> None:
    def opener() -> OpenedRun:
        raise error

    posted: list[object] = []
    target: Any = SimpleNamespace(post_message=posted.append)
    poller = ChartPoller(opener, target, patient=patient)
    assert poller._poll() == (AGAIN_S if waits else None)
    assert [type(item) for item in posted] == ([] if waits else [OpeningFailed])
