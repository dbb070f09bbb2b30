"""Layouts of log panes: which panes there are, which logs they show by default, and their rectangles.

Pure: cells in, cells out. `PaneLayout` is what the user chooses, `shape_of` how many panes stand in each row,
`rectangles` where they are, `resized` what moving a border does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

from launcher.logs.events import Role
from tui.commands import PANE_LAYOUTS
from tui.run_view import LogRef


class PaneLayout(StrEnum):
    """Arrangement of the log panes; the value is its name in the settings."""

    ONE = "one"
    STACKED = "stacked"
    SIDE = "side"
    GRID = "grid"
    MERGED = "merged"


LAYOUT_TITLES = {layout: PANE_LAYOUTS[layout.value] for layout in PaneLayout}
STACKED_FROM = 120
"""Width from which on the driver's log stands over head and worker, unless another layout was chosen."""
MIN_ROWS, MIN_COLUMNS = 4, 24
"""Size below which a pane is not worth its title."""
PANE_LIMIT = 9
_GAP = 1
"""Columns between panes side by side: the line between them."""

_DRIVER = (Role.DRIVER, Role.SLURM, Role.HEAD, Role.WORKER, Role.COMPANION)
_HEAD = (Role.HEAD, Role.SLURM, Role.COMPANION, Role.WORKER)
_WORKER = (Role.WORKER, Role.SLURM, Role.HEAD, Role.COMPANION)
_SLOTS = {
    PaneLayout.ONE: (_DRIVER,),
    PaneLayout.STACKED: (_DRIVER, _HEAD, _WORKER),
    PaneLayout.SIDE: (_DRIVER, _WORKER),
    PaneLayout.GRID: (_DRIVER, *((*roles, Role.DRIVER) for roles in (_HEAD, _WORKER, _WORKER))),
    PaneLayout.MERGED: (_DRIVER,),
}
"""Roles that each pane shows until another log is chosen for it, best first."""


class Rectangle(NamedTuple):
    """A pane's place, in cells."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the rows in the height, and of the panes of each row in its width; each sums up to 1."""

    rows: tuple[float, ...]
    columns: tuple[tuple[float, ...], ...]


def default_layout(width: int) -> PaneLayout:
    """Return the layout for a screen of `width` columns until the user chooses one."""
    return PaneLayout.STACKED if width >= STACKED_FROM else PaneLayout.ONE


def default_logs(
    layout: PaneLayout, logs: Sequence[LogRef], chosen: Sequence[LogRef | None] = (), *, first: frozenset[str]
) -> list[LogRef]:
    """Return the log of each pane: the chosen ones, else by the roles of the layout, none twice.

    Panes for which there is no log are left out. `first`: paths of the logs that stand before others of their
    role: those with a failure.
    """
    if layout is PaneLayout.GRID and any(chosen):
        return [log for log in chosen if log is not None]
    slots = [*_SLOTS[layout], *[_WORKER] * (len(chosen) - len(_SLOTS[layout]))]
    picks: list[LogRef | None] = [*chosen, *[None] * (len(slots) - len(chosen))]
    taken = {log.path for log in picks if log is not None}
    for index, roles in enumerate(slots):
        if picks[index] is None:
            free = [log for log in logs if log.role in roles and log.path not in taken]
            free.sort(key=lambda log, roles=roles: (roles.index(log.role), log.path not in first))  # type: ignore[misc]
            if free:
                picks[index] = free[0]
                taken.add(free[0].path)
    return [log for log in picks if log is not None]


def shape_of(layout: PaneLayout, count: int) -> tuple[int, ...]:
    """Return the number of panes in each row, for `count` panes."""
    if count <= 1 or layout in (PaneLayout.ONE, PaneLayout.MERGED):
        return (1,)
    if layout is PaneLayout.SIDE:
        return (count,)
    if layout is PaneLayout.STACKED:
        return (1, count - 1)
    rows = round(count**0.5)
    return tuple(count // rows + (1 if row >= rows - count % rows else 0) for row in range(rows))


def fits(shape: Sequence[int], width: int, height: int) -> bool:
    """Return whether every pane gets at least its smallest size."""
    return height >= MIN_ROWS * len(shape) and width >= max(shape) * (MIN_COLUMNS + _GAP) - _GAP


def even(shape: Sequence[int]) -> Shares:
    """Return equal shares; the first row of several has a little more: the driver's log."""
    rows = [1.0] * len(shape)
    if len(shape) == 2 and shape[0] < shape[1]:
        rows[0] = 1.25
    return Shares(tuple(share / sum(rows) for share in rows), tuple((1 / count,) * count for count in shape))


def rectangles(shape: Sequence[int], shares: Shares, width: int, height: int) -> list[Rectangle]:
    """Return the panes' rectangles: they fill the area, with a gap between those side by side."""
    if (len(shares.rows), *map(len, shares.columns)) != (len(shape), *shape):
        shares = even(shape)
    result = []
    for (top, rows), count, columns in zip(
        _pieces(shares.rows, height, MIN_ROWS), shape, shares.columns, strict=True
    ):
        room = width - _GAP * (count - 1)
        for index, (left, cells) in enumerate(_pieces(columns, room, MIN_COLUMNS)):
            result.append(Rectangle(left + index * _GAP, top, cells, rows))
    return result


def _pieces(shares: Sequence[float], length: int, least: int) -> list[tuple[int, int]]:
    """Return start and length of each share; none below `least` where there is room for that."""
    least = min(least, max(length // len(shares), 0))
    edges = [0, *(round(length * edge) for edge in accumulate(shares[:-1])), length]
    for index in range(1, len(shares)):
        edges[index] = max(edges[index], edges[index - 1] + least)
    for index in range(len(shares) - 1, 0, -1):
        edges[index] = min(edges[index], edges[index + 1] - least)
    return [(edges[index], edges[index + 1] - edges[index]) for index in range(len(shares))]


def row_of(shape: Sequence[int], pane: int) -> tuple[int, int]:
    """Return row and column of a pane."""
    for row, count in enumerate(shape):
        if pane < count:
            return row, pane
        pane -= count
    return len(shape) - 1, 0


def resized(
    shape: Sequence[int], shares: Shares, pane: int, wider: float = 0.0, taller: float = 0.0
) -> Shares:
    """Return the shares after a pane grew by parts of the whole width and height (negative: shrank).

    Its neighbour gives or takes what it gains or loses: the next one, for the last pane the one before.
    """
    if (len(shares.rows), *map(len, shares.columns)) != (len(shape), *shape):
        shares = even(shape)
    row, column = row_of(shape, pane)
    columns = list(shares.columns)
    columns[row] = _moved(columns[row], column, wider)
    return replace(shares, rows=_moved(shares.rows, row, taller), columns=tuple(columns))


def _moved(shares: tuple[float, ...], index: int, gain: float) -> tuple[float, ...]:
    if len(shares) < 2 or not gain:
        return shares
    neighbour = index + 1 if index + 1 < len(shares) else index - 1
    least = 0.1
    gain = min(max(gain, least - shares[index]), shares[neighbour] - least)
    changed = list(shares)
    changed[index] += gain
    changed[neighbour] -= gain
    return tuple(changed)


@dataclass(frozen=True, slots=True)
class Border:
    """A border that the mouse can move: below a row, or right of a pane."""

    pane: int
    """The pane that grows when the border moves down or right."""
    vertical: bool
    """Whether it is a vertical line."""


def border_at(shape: Sequence[int], places: Sequence[Rectangle], x: int, y: int) -> Border | None:
    """Return the border at a cell: the gap between panes, or the title of a pane below another one."""
    for pane, place in enumerate(places):
        row, column = row_of(shape, pane)
        inside = place.y <= y < place.y + place.height
        if inside and column + 1 < shape[row] and x == place.x + place.width:
            return Border(pane, vertical=True)
        if row and y == place.y and place.x <= x < place.x + place.width:
            return Border(sum(shape[: row - 1]), vertical=False)
    return None


def shares_text(layout: PaneLayout, shares: Shares) -> str:
    """Return the shares of a layout for the settings: `stacked 0.5556,0.4444 1 0.5,0.5`."""
    groups = (shares.rows, *shares.columns)
    return " ".join([layout.value, *(",".join(f"{share:.4g}" for share in group) for group in groups)])


def parse_shares(text: str) -> tuple[PaneLayout, Shares] | None:
    """Parse what `shares_text` returned; None for anything else."""
    try:
        name, *groups = text.split()
        rows, *columns = [tuple(float(share) for share in group.split(",")) for group in groups]
        layout = PaneLayout(name)
    except ValueError:
        return None
    if len(columns) != len(rows) or not all(
        share > 0 and abs(sum(group) - 1) < 0.05 for group in (rows, *columns) for share in group
    ):
        return None
    return layout, Shares(rows, tuple(columns))
