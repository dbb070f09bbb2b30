"""The scanner finds what reading every line would find."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, FindingSeen, Role, Source
from launcher.logs.lines import RawLine
from launcher.logs.scanner import Scanner
from tests.launcher.test_lines import cut


class Recorder:
    """Records the lines it is given."""

    literals = (b"needle", b"== Step")
    wants_all = False

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, bytes]] = []

    def read(self, line: RawLine, time: float | None) -> Iterator[Event]:
        self.seen.append((line.number, line.offset, line.data))
        yield FindingSeen("x", "x", "fatal", "x", Source("log", Role.DRIVER, line.number), time=time)


LINES = st.lists(
    st.sampled_from(
        [b"", b"plain", b"a needle here", b"needle", b"== Step 1", b"need", b"le", b"x" * 90, b"\rneedle"]
    ),
    max_size=30,
)


@given(LINES, st.booleans(), st.lists(st.integers(0, 3000), max_size=12))
def test_any_cutting_finds_every_line_with_a_literal(
    lines: list[bytes], ends: bool, places: list[int]
) -> None:
    data = b"\n".join(lines) + (b"\n" if ends else b"")
    recorder = Recorder()
    scanner = Scanner(recorder)
    events = [
        event for piece in cut(data, places) for event in scanner.feed(piece, lambda offset: float(offset))
    ]
    events += scanner.finish(lambda offset: float(offset))
    expected = []
    offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        if any(literal in line for literal in Recorder.literals):
            expected.append((number, offset, line))
        offset += len(line) + 1
    assert recorder.seen == expected
    assert len(events) == len(expected)
    assert scanner.splitter.lines == data.count(b"\n")


def test_rules_have_literals_that_are_worth_searching_for() -> None:
    for literal in DriverReader("x").literals:
        assert len(literal) >= 6, literal
