"""The milestones of a run, one a line."""

from __future__ import annotations

from rich.cells import set_cell_size
from textual.content import Content

from launcher.logs.events import JobState
from tui.formatting import clock_time, ticking
from tui.run_view import RunView, TimelineEntry
from tui.widgets.styled_lines import StyledLines

_TITLE, _TIME, _TOOK = 24, 9, 8
WIDTH = 2 + _TITLE + _TIME + _TOOK + 1


class Timeline(StyledLines):
    """Reached milestones with time and duration, the awaited one with its running time."""

    def show(self, view: RunView, now: float) -> None:
        """Show a view as it is now."""
        self.say(timeline_lines(view, now))


def timeline_lines(view: RunView, now: float) -> list[Content]:
    """Return a line for each milestone."""
    last = max((place for place, mark in enumerate(view.marks) if mark.reached), default=-1)
    return [_line(view, mark, now, broke_off=place == last + 1) for place, mark in enumerate(view.marks)]


def current_line(view: RunView) -> int:
    """Return the line that matters most now: what is awaited, else the last one reached."""
    places = [place for place, mark in enumerate(view.marks) if mark.reached or mark.awaited]
    return max(places, default=0)


def _line(view: RunView, mark: TimelineEntry, now: float, *, broke_off: bool) -> Content:
    if mark.reached:
        when = clock_time(mark.time) if mark.time is not None else "reached"
        took = f"+{ticking(mark.took)}" if mark.took is not None else ""
        return _row("✓", mark.title, when, took, "$text-success", "", "dim")
    if mark.awaited:
        waited = ticking(now - view.since) if view.since is not None and not view.reading else ""
        return _row("◌", mark.title, "awaited", waited, "$text-warning", "bold", "")
    if broke_off and view.state in (JobState.FAILED, JobState.CANCELLED):
        failed = view.state is JobState.FAILED
        glyph, style = ("✗", "$text-error") if failed else ("⊘", "$text-warning")
        return _row(glyph, mark.title, "not", "reached", style, "", "")
    return _row("·", mark.title, "", "", "dim", "dim", "")


def _row(
    glyph: str, title: str, when: str, took: str, glyph_style: str, title_style: str, rest: str
) -> Content:
    return Content.assemble(
        (f"{glyph} ", glyph_style),
        (set_cell_size(title, _TITLE), title_style),
        (f"{when:>{_TIME}}", rest),
        (f"{took:>{_TOOK}}", rest),
    )
