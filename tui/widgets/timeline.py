"""Timeline: the milestones of a run, one on each line."""

from __future__ import annotations

from rich.cells import set_cell_size
from textual.content import Content
from textual.events import Click
from textual.message import Message

from launcher.logs.events import JobState
from tui.formatting import GLYPHS, STYLES, clock_time, duration
from tui.run_view import RunView, TimelineEntry
from tui.widgets.styled_lines import StyledLines

_TITLE, _TIME, _TOOK = 24, 9, 8
WIDTH = 2 + _TITLE + _TIME + _TOOK + 1


class Timeline(StyledLines):
    """Reached milestones with time and duration, the awaited one with the time spent waiting."""

    class MilestoneClicked(Message):
        """A milestone was clicked."""

        def __init__(self, entry: TimelineEntry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self) -> None:
        super().__init__()
        self._entries: tuple[TimelineEntry, ...] = ()

    def show(self, view: RunView, now: float) -> None:
        """Show a view at the time `now`."""
        self._entries = tuple(view.timeline)
        self.set_lines(timeline_lines(view, now))

    def on_click(self, event: Click) -> None:
        """Report the milestone under the pointer."""
        if 0 <= event.y < len(self._entries):
            self.post_message(self.MilestoneClicked(self._entries[event.y]))


def timeline_lines(view: RunView, now: float) -> list[Content]:
    """Return a line for each milestone."""
    last = max((index for index, entry in enumerate(view.timeline) if entry.reached), default=-1)
    return [
        _line(view, entry, now, first_missed=index == last + 1) for index, entry in enumerate(view.timeline)
    ]


def current_line(view: RunView) -> int:
    """Return the line of the awaited milestone, else of the last one reached."""
    lines = [index for index, entry in enumerate(view.timeline) if entry.reached or entry.awaited]
    return max(lines, default=0)


def _line(view: RunView, entry: TimelineEntry, now: float, *, first_missed: bool) -> Content:
    if entry.reached:
        when = clock_time(entry.time) if entry.time is not None else "reached"
        took = f"+{duration(entry.duration, tenths=False)}" if entry.duration is not None else ""
        return _row("✓", entry.title, when, took, "$text-success", "", "dim")
    if entry.awaited:
        waited = ""
        if view.since is not None and not view.reading:
            waited = duration(now - view.since, tenths=False)
        return _row("◌", entry.title, "awaited", waited, "$text-warning", "bold", "")
    if first_missed and view.state in (JobState.FAILED, JobState.CANCELLED, JobState.STOPPED):
        glyph, style = GLYPHS[view.state], STYLES[view.state]
        return _row(glyph, entry.title, "not", "reached", style, "", "")
    return _row("·", entry.title, "", "", "dim", "dim", "")


def _row(
    glyph: str, title: str, when: str, took: str, glyph_style: str, title_style: str, rest: str
) -> Content:
    return Content.assemble(
        (f"{glyph} ", glyph_style),
        (set_cell_size(title, _TITLE), title_style),
        (f"{when:>{_TIME}}", rest),
        (f"{took:>{_TOOK}}", rest),
    )
