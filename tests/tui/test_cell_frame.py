"""The output that is sent has the effect of the output that Textual paints, and is shorter."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui.emulator import Emulator
from tui.cell_frame import CellFrame
from tui.output_meter import OutputMeter
from tui.terminal_driver import erases_in_colour

WIDTH, HEIGHT = 24, 8
LOOKS = ("", "1", "38;2;1;2;3;48;2;4;5;6", "48;2;4;5;6", "1;4;31", "7", "38;5;12;48;5;3")


def segment(text: str, look: str) -> str:
    return f"\x1b[{look}m{text}\x1b[0m" if look else text


def row_of(text: str, width: int = WIDTH) -> str:
    """Cut or fill a text to exactly a width, as a strip is."""
    cut = ""
    for character in text.lstrip("\u0301"):
        if cell_len(cut + character) > width:
            break
        cut += character
    return cut + " " * (width - cell_len(cut))


def painted(rows: dict[int, list[tuple[str, str]]], left: int = 0) -> str:
    """Return the output that Textual writes for rows of segments."""
    parts = [
        f"\x1b[{index + 1};{left + 1}H" + "".join(segment(text, look) for text, look in row)
        for index, row in sorted(rows.items())
    ]
    return "\n".join(parts) + "\x1b[1;1H"


def check(frames: list[str], width: int = WIDTH, height: int = HEIGHT, *, bce: bool = True) -> list[int]:
    """Paint frames both ways, compare after each; return the bytes sent for each."""
    frame = CellFrame(erases_in_colour=bce)
    frame.resize(width, height)
    plain = Emulator(width, height, erases_in_colour=bce)
    reduced = Emulator(width, height, erases_in_colour=bce)
    sizes = []
    for data in frames:
        output = frame.reduce(data)
        plain.feed(data)
        reduced.feed(output)
        assert reduced.shown == plain.shown
        sizes.append(len(output.encode()))
    return sizes


def random_frames(chance: Random) -> list[str]:
    """Full frames first, then changes, moves up and down, and parts of rows."""
    lines = ["".join(chance.choices("ab  1日é语\u0301", k=chance.randint(0, WIDTH))) for _ in range(30)]
    look = chance.choice(LOOKS)
    frames = []
    top = 0
    for number in range(chance.randint(2, 8)):
        top = max(min(top + chance.randint(-3, 3), len(lines) - HEIGHT), 0)
        rows = {}
        for index in range(HEIGHT):
            text = row_of(lines[top + index])
            head = "".join(item for item in text[: chance.randint(0, 3)] if cell_len(item) == 1)
            rest = (row_of(text[len(head) :], WIDTH - len(head)), look)
            rows[index] = [(head, chance.choice(LOOKS)), rest]
        if number and chance.random() < 0.5:
            rows = {index: row for index, row in rows.items() if chance.random() < 0.7} or rows
        frames.append(painted(rows))
    return frames


@given(seed=st.integers(0, 2**32), bce=st.booleans())
def test_the_screen_is_the_same(seed: int, bce: bool) -> None:
    check(random_frames(Random(seed)), bce=bce)


def log_frame(first: int, width: int, height: int) -> str:
    """Return a frame of a status line, and log lines with a scroll bar."""
    rows = {0: [(f" step {first}".ljust(width), "48;2;27;31;38")]}
    for index in range(1, height):
        number = first + index
        text = f"(Policy[rank={number % 8}] pid={700 + number % 8}) value {number * 7919 % 10007} at {number}"
        rows[index] = [
            (text[: width - 1].ljust(width - 1), "38;2;220;223;228;48;2;20;23;28"),
            ("▕", "38;2;1;1;1"),
        ]
    return painted(rows)


@pytest.mark.parametrize(
    "text", ["⏱\ufe0f  Timing:", "▶\ufe0f go", "👩\u200d💻 ok", "📊\ufe0f Results", "a\ufe0f b"]
)
@pytest.mark.parametrize("left", ["", "before "])
def test_what_follows_an_emoji_is_in_its_column(text: str, left: str) -> None:
    """Terminals disagree on the width of emoji with selectors; Textual lays out by Rich's widths."""
    screen = Emulator(WIDTH, HEIGHT, erases_in_colour=True)
    frame = CellFrame()
    frame.resize(WIDTH, HEIGHT)
    for end in ("│end", "│two"):
        width = cell_len(left + text)
        row = left + text + " " * (WIDTH - width - 4) + end
        assert cell_len(row) == WIDTH
        output = frame.reduce(painted({index: [(row, "")] for index in range(HEIGHT)}))
        assert "\ufe0f" not in output
        assert "\u200d" not in output
        screen.feed(output)
        for cells in screen.cells:
            assert "".join(character for character, _ in cells[WIDTH - 4 :]) == end
            word = text.rpartition(" ")[2]
            at = width - len(word)
            assert "".join(character for character, _ in cells[at : at + len(word)]) == word


@pytest.mark.parametrize("bce", [True, False])
def test_a_line_that_comes_costs_about_a_line(bce: bool) -> None:
    sizes = check([log_frame(first, 80, 24) for first in (0, 1, 2, 2, 12)], 80, 24, bce=bce)
    assert sizes[1] < 250
    assert sizes[2] < 250
    assert sizes[3] == 0
    assert sizes[4] < 10 * 130


def test_lines_go_down_when_one_scrolls_up() -> None:
    sizes = check([log_frame(first, 80, 24) for first in (9, 8, 6)], 80, 24)
    assert max(sizes[1:]) < 400


def test_what_is_not_painting_passes_and_what_may_change_cells_is_forgotten() -> None:
    frame = CellFrame()
    frame.resize(10, 2)
    first = frame.reduce(painted({0: [("0123456789", "")]}))
    assert "0123456789" in first
    assert frame.reduce(painted({0: [("0123456789", "")]})) == ""
    for harmless in ("\x1b[?2026h", "\x07", "\x1b]52;c;eA==\x07", "\x1b[?25l", "\x1b[>1u", "\x1b[?2026$p"):
        assert frame.reduce(harmless) == harmless
        assert frame.reduce(painted({0: [("0123456789", "")]})) == ""
    for other in ("\x1b[?1049h", "\x1b[2J", "text", "\x1b[3;1Hbelow the screen", "\x1b[1;5Hbeyond the edge"):
        assert frame.reduce(other).endswith(other)
        assert "0123456789" in frame.reduce(painted({0: [("0123456789", "")]}))


def _while_writing(meter: OutputMeter, now: list[float]) -> bool:
    """Return whether a terminal counts as slow while it makes a write wait."""
    meter.begin()
    now[0] += 0.4
    slow = meter.slow
    meter.end(10)
    return slow


def test_a_terminal_s_speed() -> None:
    now = [100.0]
    meter = OutputMeter(lambda: now[0])
    for _ in range(10):
        meter.begin()
        now[0] += 0.001
        meter.end(1000)
    assert meter.total == 10_000
    assert meter.bytes_per_s == 1000
    assert [_while_writing(meter, now), meter.slow] == [True, False]
    for _ in range(5):
        meter.begin()
        now[0] += 0.5
        meter.end(1000)
    states = [meter.slow]
    now[0] += 20
    assert [*states, meter.slow] == [True, False]
    assert meter.bytes_per_s == 0


def test_which_terminals_erase_in_colour() -> None:
    assert erases_in_colour({"TERM": "xterm-256color"})
    assert erases_in_colour({"TERM": "screen-256color", "TMUX": "/tmp/tmux"})
    assert not erases_in_colour({"TERM": "screen-256color"})
    assert not erases_in_colour({})
