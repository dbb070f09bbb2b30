"""A line's text and its colours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.logview.line import display_text, line_of

PIECE = st.sampled_from(
    [
        b"text", b"\t", b" ", b"\r", b"\x1b[31m", b"\x1b[1;38;5;196m", b"\x1b[0m", b"\x1b[38;2;1;2;3m",
        b"\x1b]0;title\x07", b"\x1b]8;;http://x\x1b\\", b"\x1b", b"\x1b[", b"\x1b[K", b"\x9b31m",
        "ü日".encode(), b"\xff", b"\x00",
    ]
)  # fmt: skip


@given(st.lists(PIECE, max_size=12).map(b"".join))
def test_the_text_is_the_same_with_colours_as_without(raw: bytes) -> None:
    line = line_of(raw)
    assert line.text == display_text(raw)
    end = 0
    for paint in line.spans:
        assert end <= paint.start < paint.stop <= len(line.text)
        end = paint.stop


@given(st.binary(max_size=80))
def test_nor_does_any_other_line_differ(raw: bytes) -> None:
    assert line_of(b"\x1b[1m" + raw).text == display_text(b"\x1b[1m" + raw)


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b"\x1b[31mred\x1b[0m plain", [("red", "color(1)")]),
        (b"a\x1b[1;32mbold\x1b[22m green", [("bold", "bold color(2)"), (" green", "color(2)")]),
        (b"\x1b[38;5;196mx\x1b[39my", [("x", "color(196)")]),
        (b"\x1b[38;2;10;20;30mx", [("x", "#0a141e")]),
        (b"\x1b[91;44mx", [("x", "color(9) on color(4)")]),
        (b"bar 1%\r\x1b[33mbar 2%", [("bar 2%", "color(3)")]),
        (b"\x1b[33mbar 1%\rbar 2%\x1b[0m", [("bar 2%", "color(3)")]),
        (b"\x1b[5;8mhidden, blinking", []),
        (b"\x1b[30mblack", [("black", "color(8)")]),
        (b"\x1b[31;41mred on red", [("red on red", "color(1)")]),
        (b"\x1b[38;5mcut short \x1b[38;2;9m and again", []),
    ],
)
def test_colours_are_kept_where_something_can_be_read(raw: bytes, wanted: list[tuple[str, str]]) -> None:
    line = line_of(raw)
    assert [(line.text[p.start : p.stop], str(p.style)) for p in line.spans if p.style] == wanted
