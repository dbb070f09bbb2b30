"""From bytes to lines and segments."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs.lines import LINE_LIMIT, LineSplitter, Segment, segments


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at places (taken modulo the length)."""
    marks = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(marks)]


@given(st.binary(max_size=400).map(lambda data: data.replace(b"a", b"\n")), st.lists(st.integers(0, 400)))
def test_pieces_give_the_lines_that_the_whole_has(data: bytes, places: list[int]) -> None:
    splitter = LineSplitter()
    lines = [line for piece in cut(data, places) for line in splitter.feed(piece)]
    whole = data.split(b"\n")
    assert [line.data for line in lines] == whole[:-1]
    assert [line.number for line in lines] == list(range(1, len(whole)))
    assert [data[line.offset :][: len(line.data)] for line in lines] == whole[:-1]
    assert splitter.offset == len(data)
    pending = splitter.pending()
    assert (pending.data if pending else b"") == whole[-1]


def test_a_line_of_many_megabytes_is_counted_not_kept() -> None:
    splitter = LineSplitter()
    for _ in range(40):
        assert list(splitter.feed(b"x" * 500_000)) == []
    long, short = splitter.feed(b"tail\nnext\n")
    assert (len(long.data), long.number, long.offset) == (LINE_LIMIT, 1, 0)
    assert (short.data, short.number, short.offset) == (b"next", 2, 20_000_005)


def test_a_long_line_in_one_piece_is_cut_too() -> None:
    (line,) = LineSplitter().feed(b"y" * (LINE_LIMIT + 9) + b"\n")
    assert len(line.data) == LINE_LIMIT


def test_a_worker_line_glued_to_an_unfinished_bar() -> None:
    raw = (
        "\rInitializing teacher workers:  25%|██▌       | 1/4 [00:12<00:37]"
        "\x1b[36m(DTensorPolicyWorker[rank=1] pid=24771, ip=10.0.0.2)\x1b[0m Loading"
        "\x1b[32m [repeated 3x across cluster] (Ray deduplicates logs by default.)\x1b[0m"
    ).encode()
    assert segments(raw) == [
        Segment("Initializing teacher workers:  25%|██▌       | 1/4 [00:12<00:37]"),
        Segment("Loading", "DTensorPolicyWorker", 1, 24771, "10.0.0.2", 3),
    ]


def test_prefixes_may_be_nested_and_those_of_ray_have_no_pid() -> None:
    (nested,) = segments(b"(Outer pid=1, ip=10.0.0.1) (EngineCore pid=22) boom")
    assert (nested.text, nested.actor, nested.pid, nested.ip) == ("boom", "EngineCore", 22, "10.0.0.1")
    (raylet,) = segments(b"\x1b[33m(raylet, ip=10.0.0.3)\x1b[0m WARNING: low memory")
    assert (raylet.actor, raylet.pid, raylet.own) == ("raylet", None, False)
    (task,) = segments(b"(pid=77) hello")
    assert (task.actor, task.own) == ("task", False)


def test_a_parenthesis_is_not_a_prefix() -> None:
    (segment,) = segments(b"(see page 4) is text")
    assert segment.text == "(see page 4) is text"


def test_shell_traces_are_known() -> None:
    (traced,) = segments(b"++ echo 'All workers connected!'")
    assert traced.traced
    (plain,) = segments(b"+3 points")
    assert not plain.traced


def test_invalid_utf8_is_replaced() -> None:
    (segment,) = segments(b"loss \xff\xfe 1")
    assert segment.text == "loss \ufffd\ufffd 1"


@pytest.mark.parametrize(
    "prefix", ["", "(W pid=7) ", "[rank3]: ", "7: ", "\x1b[36m(W pid=7, ip=10.0.0.1)\x1b[0m ", "▶ ", "a\r"]
)
def test_a_number_that_is_too_long_is_none_whatever_stands_before_it(prefix: str) -> None:
    for digits in ("9" * 5000, "\u0663" * 5000, "9" * 25):
        for segment in segments(f"{prefix}batch of size {digits}...".encode()):
            assert digits not in segment.text
