"""Layouts of log panes: which logs stand where, and what moving a border does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.events import Role
from launcher.settings import LAYOUTS
from tui.logview.layouts import (
    MIN_COLUMNS,
    MIN_ROWS,
    Border,
    PaneLayout,
    border_at,
    default_layout,
    default_logs,
    even,
    fits,
    parse_shares,
    rectangles,
    resized,
    shape_of,
    shares_text,
)
from tui.logview.log_choice import LogChoice
from tui.run_view import LogRef

DRIVER = LogRef("ray-driver.log", "/l/ray-driver.log", Role.DRIVER)
HEAD = LogRef("ray-head.log", "/l/ray-head.log", Role.HEAD)
LAUNCHER = LogRef("launcher.log", "/l/launcher.log", Role.SLURM)
WORKERS = tuple(
    LogRef(f"ray-worker-{number}.log", f"/l/ray-worker-{number}.log", Role.WORKER) for number in range(1, 9)
)
ALL = (DRIVER, HEAD, *WORKERS, LAUNCHER)
LAYOUT = st.sampled_from(list(PaneLayout))


def shown(layout: PaneLayout, logs: tuple[LogRef, ...], *chosen: LogRef | None, first: str = "") -> list[str]:
    found = default_logs(layout, logs, chosen, first=frozenset([first]))
    return [log.name.removeprefix("ray-").removesuffix(".log") for log in found]


def test_the_settings_know_the_layouts() -> None:
    assert tuple(layout.value for layout in PaneLayout) == LAYOUTS


def test_which_logs_stand_in_the_panes() -> None:
    assert shown(PaneLayout.ONE, ALL) == ["driver"]
    assert shown(PaneLayout.STACKED, ALL) == ["driver", "head", "worker-1"]
    assert shown(PaneLayout.STACKED, ALL, first="/l/ray-worker-7.log") == ["driver", "head", "worker-7"]
    assert shown(PaneLayout.STACKED, ALL, None, None, WORKERS[4]) == ["driver", "head", "worker-5"]
    assert shown(PaneLayout.SIDE, ALL) == ["driver", "worker-1"]
    second = LogRef("2/ray-driver.log", "/l/2/ray-driver.log", Role.DRIVER)
    assert shown(PaneLayout.GRID, (DRIVER, second)) == ["driver", "2/ray-driver"]
    assert shown(PaneLayout.GRID, (DRIVER, second, *ALL[1:])) == ["driver", "head", "worker-1", "worker-2"]
    assert shown(PaneLayout.GRID, ALL) == ["driver", "head", "worker-1", "worker-2"]
    assert shown(PaneLayout.GRID, ALL, WORKERS[2], WORKERS[6]) == ["worker-3", "worker-7"]


def test_logs_that_are_not_there_yet_or_never_come() -> None:
    assert shown(PaneLayout.STACKED, (LAUNCHER, HEAD)) == ["launcher", "head"]
    assert shown(PaneLayout.STACKED, (LAUNCHER,)) == ["launcher"]
    assert shown(PaneLayout.GRID, ()) == []
    alone = LogRef("slurm-41.out", "/l/slurm-41.out", Role.SLURM)
    assert shape_of(PaneLayout.STACKED, len(shown(PaneLayout.STACKED, (alone,)))) == (1,)


def test_the_width_suggests_the_layout() -> None:
    assert [default_layout(width) for width in (80, 119, 120, 200)] == [
        PaneLayout.ONE, PaneLayout.ONE, PaneLayout.STACKED, PaneLayout.STACKED,
    ]  # fmt: skip
    assert fits((1, 2), 80, 16)
    assert not fits((1, 2), 80, 7)
    assert not fits((3,), 70, 20)


@given(layout=LAYOUT, count=st.integers(1, 9), width=st.integers(1, 250), height=st.integers(1, 80))
def test_panes_fill_the_area_and_do_not_overlap(
    layout: PaneLayout, count: int, width: int, height: int
) -> None:
    shape = shape_of(layout, count)
    if layout not in (PaneLayout.ONE, PaneLayout.MERGED):
        assert sum(shape) == count
    if not fits(shape, width, height):
        return
    places = rectangles(shape, even(shape), width, height)
    cells = {
        (x, y)
        for place in places
        for x in range(place.x, place.x + place.width)
        for y in range(place.y, place.y + place.height)
    }
    gaps = sum(place.height for place in places if place.x)
    assert len(cells) == sum(place.width * place.height for place in places) == width * height - gaps
    assert all(place.width >= MIN_COLUMNS and place.height >= MIN_ROWS for place in places)


@given(
    layout=LAYOUT,
    count=st.integers(2, 9),
    moves=st.lists(st.tuples(st.integers(0, 8), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)), max_size=8),
)
def test_any_moves_of_borders_keep_every_pane(
    layout: PaneLayout, count: int, moves: list[tuple[int, float, float]]
) -> None:
    shape = shape_of(layout, count)
    shares = even(shape)
    for pane, wider, taller in moves:
        shares = resized(shape, shares, pane % sum(shape), wider, taller)
    assert abs(sum(shares.rows) - 1) < 1e-6
    assert all(abs(sum(columns) - 1) < 1e-6 for columns in shares.columns)
    places = rectangles(shape, shares, 250, 80)
    assert all(place.width >= MIN_COLUMNS and place.height >= MIN_ROWS for place in places)
    kept = parse_shares(shares_text(layout, shares))
    assert kept is not None
    assert kept[0] is layout
    for again, place in zip(rectangles(shape, kept[1], 250, 80), places, strict=True):
        # An edge that lies in the middle of a cell may be rounded to either side.
        assert all(abs(new - old) <= 1 for new, old in zip(again, place, strict=True))


def test_a_pane_grows_at_the_cost_of_its_neighbour() -> None:
    shape = (1, 2)
    before = rectangles(shape, even(shape), 121, 40)
    after = rectangles(shape, resized(shape, even(shape), 1, wider=0.1, taller=0.1), 121, 40)
    assert after[1].width - before[1].width == 12
    assert after[2].width - before[2].width == -12
    assert after[1].height - before[1].height == 4
    assert after[0].height - before[0].height == -4


def test_sizes_from_elsewhere_are_ignored() -> None:
    for text in (
        "",
        "stacked",
        "nothing 1 1",
        "stacked x,y 1 1",
        "stacked 0.5,0.5 1",
        "stacked 2 1",
        "one -1 1",
    ):
        assert parse_shares(text) is None


def test_borders_for_the_mouse() -> None:
    shape = (1, 2)
    places = rectangles(shape, even(shape), 121, 40)
    split = places[1].y
    assert border_at(shape, places, 10, split) == Border(0, vertical=False)
    assert border_at(shape, places, places[1].width, split + 3) == Border(1, vertical=True)
    assert border_at(shape, places, 10, 3) is None
    assert border_at(shape, places, 10, 0) is None


def test_what_is_known_of_a_log_stays_when_its_first_lines_are_gone() -> None:
    choice = LogChoice()
    assert choice.set_logs(ALL, frozenset())
    assert choice.set_places({HEAD.path: ("jwb0001", ""), WORKERS[0].path: ("jwb0002", "ranks 4-7")})
    assert not choice.set_places({HEAD.path: ("", ""), WORKERS[0].path: ("", "ranks 4-7")})
    assert choice.set_places({HEAD.path: ("", "ranks 0-3")})
    listed = {log.path: (log.node, log.ranks) for log in choice.logs if log.node}
    assert listed == {HEAD.path: ("jwb0001", "ranks 0-3"), WORKERS[0].path: ("jwb0002", "ranks 4-7")}
    assert not choice.set_logs(ALL, frozenset())
    assert choice.set_logs(ALL, frozenset([WORKERS[2].path]))
    stacked = choice.of_layout(PaneLayout.STACKED)
    assert [log.path for log in stacked] == [DRIVER.path, HEAD.path, WORKERS[2].path]
    choice.put(PaneLayout.STACKED, WORKERS[0], 2, ())
    assert choice.of_layout(PaneLayout.STACKED)[2].node == "jwb0002"
    choice.put_grid(WORKERS)
    assert len(choice.of_layout(PaneLayout.GRID)) == len(WORKERS)
