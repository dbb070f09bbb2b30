"""Filtered lines of a log: against a plain filter, for any content and growth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.transports.local import LocalTransport
from tests.tui.test_logtext import SHORT, counted, find, log_text, small_blocks, texts
from tui.logview import filter as logfilter
from tui.logview import line_index as logtext
from tui.logview.filter import FilteredText
from tui.logview.line import display_text
from tui.logview.match import LineFilterTerm, Not, Pattern, TextQuery
from tui.logview.source import FileSource

__all__ = ["small_blocks"]
FILTERS: list[tuple[LineFilterTerm, ...]] = [
    (TextQuery("needle"),),
    (Pattern("x{3}|ä"),),
    (Not(TextQuery("x")),),
    (Not(TextQuery("needle")), Pattern(".")),
]


def filtered(path: Path, terms: tuple[LineFilterTerm, ...]) -> FilteredText:
    return FilteredText(FileSource(LocalTransport(), str(path)), terms)


def expected_of(data: bytes, terms: tuple[LineFilterTerm, ...]) -> list[str]:
    lines = data.split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    return [display_text(raw) for raw in lines if all(term.matches(raw, display_text(raw)) for term in terms)]


@pytest.mark.usefixtures("small_blocks")
@given(
    data=SHORT,
    cuts=st.lists(st.integers(0, 900), max_size=3),
    terms=st.sampled_from(FILTERS),
    first=st.integers(0, 30),
    kept=st.sampled_from([3, 65_536]),
)
def test_any_window_of_a_growing_log(
    tmp_path_factory: pytest.TempPathFactory,
    data: bytes,
    cuts: list[int],
    terms: tuple[LineFilterTerm, ...],
    first: int,
    kept: int,
) -> None:
    path = tmp_path_factory.getbasetemp() / "log"
    path.write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logfilter, "CACHED_OFFSETS", kept)
        text = filtered(path, terms)
        expected: list[str] = []
        for end in [*sorted(cuts), len(data)]:
            path.write_bytes(data[:end])
            extent = text.refresh()
            while extent.behind:
                extent = text.refresh()
            expected = expected_of(data[:end], terms)
            assert texts(text, 0, 1000) == expected[len(expected) - extent.lines :]
        extent = counted(text, 64)
        assert extent.lines == len(expected)
        assert texts(text, first, 5) == expected[first : first + 5]


@pytest.mark.usefixtures("small_blocks")
@given(data=SHORT, terms=st.sampled_from(FILTERS), line=st.integers(0, 40), backwards=st.booleans())
def test_search_and_places_within_a_filter(
    tmp_path_factory: pytest.TempPathFactory,
    data: bytes,
    terms: tuple[LineFilterTerm, ...],
    line: int,
    backwards: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / "log"
    path.write_bytes(data)
    text = filtered(path, terms)
    counted(text, 64)
    expected = expected_of(data, terms)
    matches = [place for place, shown_line in enumerate(expected) if "b" in shown_line.lower()]
    near = [place for place in matches if (place <= line if backwards else place >= line)]
    wanted = (near[-1:] or matches[-1:]) if backwards else (near[:1] or matches[:1])
    assert find(text, TextQuery("b"), line, backwards=backwards)[0] == next(iter(wanted), None)
    for place, shown_line in enumerate(text.window(0, 1000)):
        assert text.line_at(shown_line.offset) == place


@pytest.mark.usefixtures("small_blocks")
def test_the_end_is_there_first_and_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(100)))
    text = filtered(path, (Pattern("[05]$"),))
    extent = text.refresh()
    while not extent.lines:
        extent = text.count(64)
    assert texts(text, 0, 99)[-1] == "line 95"
    assert text.line_at(0) is None
    before, held = extent, texts(text, 0, 1)
    while not extent.counted:
        extent = text.count(64)
        assert texts(text, extent.shift - before.shift, 1) == held
    assert extent.lines == 20


def test_truncation_begins_anew_and_great_growth_is_taken_in_bit_by_bit(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one\ntwo\n")
    text = filtered(path, (TextQuery("o"),))
    first = text.refresh()
    assert (first.lines, first.generation) == (2, 0)
    os.truncate(path, 4)
    assert (text.refresh().lines, text.refresh().generation) == (1, 1)
    os.truncate(path, 12 << 20)  # zeros, without a newline
    with path.open("ab") as file:
        file.write(b"\nmore\n")
    extent = text.refresh()
    assert extent.behind > 0
    while extent.behind:
        extent = text.refresh()
    assert texts(text, 0, 9) == ["one", "more"]


def test_a_plain_log_s_great_growth_is_taken_in_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logtext, "GROWTH", 2 << 20)
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    text = log_text(path)
    text.refresh()
    os.truncate(path, 8 << 20)
    extent = text.refresh()
    assert extent.behind > 0
    while extent.behind:
        extent = text.refresh()
    assert (extent.lines, extent.bytes) == (2, 8 << 20)
    assert texts(text, 0, 1) == ["one"]
