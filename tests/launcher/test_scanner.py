"""The scanner finds what reading every line would find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.driver_log import DriverReader
from launcher.logs.events import Event, FindingSeen, Role, Source
from launcher.logs.lines import RawLine
from launcher.logs.scanner import Scanner
from launcher.logs.search import PlainFinder, finder_for
from tests.launcher.test_lines import cut


class Recorder:
    """Records the lines it is given."""

    literals = (b"needle", b"== Step")

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, bytes]] = []
        self.hits: list[set[int]] = []

    def awaited(self, number: int) -> tuple[bytes, ...]:
        return ()

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        self.hits.append(set(hits))
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


class Curious(Recorder):
    """Wants as many lines that hold its text after one with a needle as that has needles."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self._text = text
        self._more = 0

    def awaited(self, number: int) -> tuple[bytes, ...]:
        return (b"never", self._text) if self._more > 0 else ()

    def read(self, line: RawLine, time: float | None, hits: Sequence[int]) -> Iterator[Event]:
        self._more = max(self._more - 1, line.data.count(b"needle"))
        return super().read(line, time, hits)


MORE_LINES = st.lists(
    st.sampled_from([b"", b"no", b"no pid=7", b"needle", b"needle needle x needle", b"y" * 50]), max_size=60
)


@given(
    MORE_LINES,
    st.sampled_from([b"", b"pid=7"]),
    st.lists(st.integers(0, 3000), max_size=6),
    st.integers(1, 80),
    st.integers(1, 300),
)
def test_lines_that_a_reader_wants_besides_are_handed_over_whatever_the_sizes(
    lines: list[bytes], text: bytes, places: list[int], piece: int, batch: int
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    curious = Curious(text)
    scanner = Scanner(curious)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("launcher.logs.scanner.PIECE", piece)
        patch.setattr("launcher.logs.scanner.BATCH", batch)
        for part in cut(data, places):
            list(scanner.feed(part, lambda _: None))
    expected = Curious(text)
    offset = 0
    for number, line in enumerate(lines, 1):
        if b"needle" in line or any(part in line for part in expected.awaited(number)):
            list(expected.read(RawLine(number, offset, line), None, [0] if b"needle" in line else []))
        offset += len(line) + 1
    assert curious.seen == expected.seen
    assert curious.hits == expected.hits
    assert scanner.splitter.lines == len(lines)
    assert scanner.splitter.offset == len(data)


def test_rules_have_literals_that_are_worth_searching_for() -> None:
    for literal in DriverReader("x").literals:
        assert len(literal) >= 6, literal


WORDS = DriverReader("x").literals
PARTS = st.sampled_from([*WORDS, *(word[:-1] for word in WORDS), b" ", b"\r", b"\x00\xff", b"x" * 700])
MANY_LINES = st.lists(st.lists(PARTS, max_size=4).map(b"".join), max_size=40)


@given(MANY_LINES, st.lists(st.integers(0, 20_000), max_size=12), st.integers(0, 70_000))
def test_both_finders_hand_the_same_lines_to_the_reader(
    lines: list[bytes], places: list[int], length: int
) -> None:
    lines.insert(len(lines) // 2, b"y" * length + WORDS[0])
    data = b"\n".join(lines) + b"\n"
    seen = []
    for finder in (finder_for(WORDS), PlainFinder(WORDS)):
        recorder = Recorder()
        scanner = Scanner(recorder, finder)
        for piece in cut(data, places):
            list(scanner.feed(piece, lambda _: None))
        list(scanner.finish(lambda _: None))
        seen.append((recorder.seen, recorder.hits))
    assert seen[0] == seen[1]
    whole = Recorder()
    list(Scanner(whole, PlainFinder(WORDS)).feed(data, lambda _: None))
    assert seen[0] == (whole.seen, whole.hits)
    wanted = [line for line in data.split(b"\n") if any(word in line[:65536] for word in WORDS)]
    assert [line for _, _, line in whole.seen] == [line[:65536] for line in wanted]


def test_a_line_of_many_megabytes_costs_no_memory() -> None:
    recorder = Recorder()
    scanner = Scanner(recorder, PlainFinder(Recorder.literals))
    for _ in range(50):
        list(scanner.feed(b"needle " + b"z" * 1_000_000, lambda _: None))
    list(scanner.feed(b"\nneedle\n", lambda _: None))
    assert [(number, len(line)) for number, _, line in recorder.seen] == [(1, 65536), (2, 6)]


_PROCESSES = ("", "(W pid=7, ip=10.0.0.1) ", "\x1b[36m(W[rank=1] pid=77)\x1b[0m ", "3: ", "(E pid=7) ")
_TEXTS = (
    "/x/y.py:3: UserWarning: failed to load because of:",
    "/x/y.py:3: UserWarning: deprecated",
    "  warnings.warn(message)",
    "OSError: libmpi.so.12: cannot open shared object file: No such file or directory",
    "Traceback (most recent call last):",
    '  File "x.py", line 3, in f',
    "torch.OutOfMemoryError: CUDA out of memory.",
    "KeyError: 'x'",
    "no literal",
    "",
)
_PRINTED = st.lists(st.tuples(st.sampled_from(_PROCESSES), st.sampled_from(_TEXTS)), max_size=40)


@pytest.mark.long
@given(_PRINTED, st.integers(0, 250))
def test_lines_that_are_passed_over_would_have_changed_nothing(
    printed: list[tuple[str, str]], between: int
) -> None:
    middle = len(printed) // 2
    lines = [process + text for process, text in printed]
    lines[middle:middle] = ["(Q pid=9) goes on"] * between
    raw = [line.encode() for line in lines]
    scanned = list(Scanner(DriverReader("x")).feed(b"".join(line + b"\n" for line in raw), lambda _: None))
    reader, offset, read = DriverReader("x"), 0, []
    for number, line in enumerate(raw, 1):
        hits = [index for index, literal in enumerate(reader.literals) if literal in line]
        read += list(reader.read(RawLine(number, offset, line), None, hits))
        offset += len(line) + 1
    assert scanned == read
