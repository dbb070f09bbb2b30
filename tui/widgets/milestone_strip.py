"""Milestones as a few words: for layouts without room for the timeline."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content

from tui.formatting import clock_time
from tui.run_view import RunView


def milestone_strip(view: RunView, room: int) -> Content:
    """Return a mark for each milestone and the last one reached with its time; less where room is short."""
    reached = [entry for entry in view.timeline if entry.reached]
    if not view.timeline:
        return Content("")
    marks: list[tuple[str, str]] = []
    for entry in view.timeline:
        if entry.reached:
            marks.append(("✓", "$text-success"))
        else:
            marks.append(("◌", "$text-warning bold") if entry.awaited else ("·", "dim"))
    count = f"{len(reached)}/{len(view.timeline)} "
    words = [(f" {reached[-1].title}", "")] if reached else []
    if reached and reached[-1].time is not None:
        words.append((f" {clock_time(reached[-1].time)}", "dim"))
    variants = [[*marks, *words], [*marks, *words[:1]], marks, [(count, "dim")]]
    for parts in variants:
        if sum(cell_len(text) for text, _ in parts) <= room:
            return Content.assemble(*parts)
    return Content("")
