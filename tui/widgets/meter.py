"""Meter: how much of a limit is used, as a line that reads without colour."""

from __future__ import annotations

from textual.content import Content

from tui.theme import FAILURE, OK, StyledGlyph

_USED, _FREE, _HALF = "━", "─", "╸"


def meter(used: float, limit: float, width: int) -> Content:
    """Return a bar of `width` cells: heavy for what is used, light for what is free.

    More than the limit fills the bar; its end is then an arrow.
    """
    share = used / limit if limit > 0 else 1.0
    mark = mark_of(used, limit)
    if share > 1:
        return Content.assemble((_USED * (width - 1) + "▶", mark.style))
    halves = round(max(share, 0.0) * width * 2)
    full, half = divmod(halves, 2)
    filled = _USED * full + (_HALF if half else "")
    return Content.assemble((filled, mark.style), (_FREE * (width - len(filled)), "$foreground 30%"))


def mark_of(used: float, limit: float) -> StyledGlyph:
    """Return the mark of a use: whether it is within the limit."""
    return OK if used <= limit else FAILURE
