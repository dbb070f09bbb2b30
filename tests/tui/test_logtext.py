"""Reading a log's lines without keeping them: against a plain split, for any content and growth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.transports.local import LocalTransport
from tui.logview import filter as logfilter
from tui.logview import line_index as logtext
from tui.logview.line import display_text
from tui.logview.line_index import Extent, LineSource, LogText
from tui.logview.match import Query, TextQuery
from tui.logview.source import FileSource
from tui.logview.stride_search import StrideSearch

LINE = st.one_of(
    st.binary(max_size=12).map(lambda data: data.replace(b"\n", b"")),
    st.integers(0, 90).map(lambda count: b"x" * count),
    st.sampled_from([b"", b"needle", b"a \x1b[31mNee\x1b[0mdle b", b"bar 1%\rbar 2%\r", "größe Ä".encode()]),
)


def content(line: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    lines = st.lists(line, max_size=60)
    return st.builds(lambda lines, end: b"\n".join(lines) + end, lines, st.sampled_from([b"", b"\n"]))


CONTENT = content(LINE)
SHORT = content(LINE.map(lambda line: line[:60]))
"""No line fills the tail: of such a line the tail shows the end."""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shrink every size, so that small content crosses all borders."""
    sizes = {"BLOCK": 16, "TAIL": 64, "LINE_SHOWN": 512, "STRIDE_BLOCKS": 4, "STRIDE": 64}
    for name, value in sizes.items():
        for module in (logtext, logfilter):
            monkeypatch.setattr(module, name, value, raising=False)


def lines_of(data: bytes) -> list[str]:
    """Return what is to be shown, the plain way."""
    lines = data.split(b"\n")
    return [display_text(line) for line in (lines if lines[-1] else lines[:-1])]


def log_text(path: Path, transport: LocalTransport | None = None) -> LogText:
    return LogText(FileSource(transport or LocalTransport(), str(path)))


def texts(text: LineSource, first: int, count: int) -> list[str]:
    return [line.text for line in text.window(first, count)]


def find(text: LineSource, sought: Query, line: int, *, backwards: bool) -> tuple[int | None, bool]:
    """Search to the end; returns the line, and whether it was found from the other end on."""
    seek = StrideSearch(text, sought, line, backwards=backwards)
    while not seek.step():
        assert seek.progress <= 1
    return seek.match, seek.wrapped and seek.match is not None


def counted(text: LineSource, budget: int = 50) -> Extent:
    extent = text.refresh()
    while not extent.counted:
        extent = text.count(budget)
    return extent


@pytest.mark.usefixtures("small_blocks")
@given(data=CONTENT, first=st.integers(0, 70), count=st.integers(0, 30))
def test_any_window_of_any_log(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, first: int, count: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "log"
    path.write_bytes(data)
    text = log_text(path)
    extent = counted(text)
    expected = lines_of(data)
    assert extent.lines == len(expected)
    assert texts(text, first, count) == expected[first : first + count]


@pytest.mark.usefixtures("small_blocks")
@given(data=SHORT, cuts=st.lists(st.integers(0, 400), max_size=5))
def test_a_growing_log_and_its_tail(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "log"
    path.write_bytes(b"")
    text = log_text(path)
    for end in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:end])
        extent = text.refresh()
        expected = lines_of(data[:end])
        tail = texts(text, max(extent.lines - 3, 0), 3)
        assert tail == expected[len(expected) - len(tail) :]
        assert len(tail) == min(3, extent.lines)
    extent = counted(text)
    assert texts(text, 0, 100) == lines_of(data)


@pytest.mark.usefixtures("small_blocks")
@given(
    data=CONTENT,
    start=st.integers(0, 70),
    backwards=st.booleans(),
    word=st.sampled_from(["needle", "Ä", "x" * 20]),
)
def test_search_finds_what_is_shown(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, backwards: bool, word: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "log"
    path.write_bytes(data)
    text = log_text(path)
    counted(text)
    matches = [place for place, line in enumerate(lines_of(data)) if word.lower() in line.lower()]
    before = [place for place in matches if place <= start]
    after = [place for place in matches if place >= start]
    near, other = (before[-1:], matches[-1:]) if backwards else (after[:1], matches[:1])
    found, wrapped = find(text, TextQuery(word), start, backwards=backwards)
    assert found == next(iter([*near, *other]), None)
    assert wrapped == (bool(matches) and not near)


@pytest.mark.usefixtures("small_blocks")
def test_the_tail_keeps_its_place_when_the_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(100)))
    text = log_text(path)
    extent = text.refresh()
    assert not extent.counted
    assert extent.lines < 10
    last = texts(text, extent.lines - 1, 5)
    assert last == ["line 99"]
    extent = counted(text)
    assert extent.lines == 100
    assert texts(text, extent.shift, 1) == lines_of(path.read_bytes())[extent.shift : extent.shift + 1]


def test_truncation_and_replacement_begin_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = log_text(path)
    assert text.refresh().problem
    path.write_text("one\ntwo\n")
    first = text.refresh()
    os.truncate(path, 4)
    second = text.refresh()
    assert (second.lines, second.generation) == (1, first.generation + 1)
    (tmp_path / "new").write_text("uno\ndos\ntres\n")
    (tmp_path / "new").replace(path)
    third = text.refresh()
    assert (third.lines, third.generation) == (3, second.generation + 1)
    assert texts(text, 0, 9) == ["uno", "dos", "tres"]


def test_a_line_of_many_megabytes_is_told_and_a_long_bar_shows_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(
        b"before\n" + b"y" * 3_000_000 + b"\n" + b"".join(b"bar %d%%\r" % n for n in range(90000))
    )
    text = log_text(path)
    counted(text, 10**9)
    before, long, bar = texts(text, 0, 5)
    assert before == "before"
    assert long.endswith("… (3,000,000 bytes)")
    assert len(long) < 20_000
    assert bar == "bar 89999%"


def test_a_gigabyte_opens_at_its_tail(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.truncate(1_000_000_000)  # zeros: no disk is used, and no line ends in them
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b"the last lines\n" * 50_000)
    reads: list[int] = []

    class Counting(LocalTransport):
        def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
            reads.append(size)
            return super().read(path, offset, size)

    text = log_text(path, Counting())
    extent = text.refresh()
    assert texts(text, extent.lines - 40, 40) == ["the last lines"] * 40
    assert sum(reads) < 1_000_000
