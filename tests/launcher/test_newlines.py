"""Counting newlines the quick way gives what counting them the plain way gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs import lines
from launcher.logs.lines import count_newlines


@given(
    pieces=st.lists(st.sampled_from([b"\n", b"x" * 700, b"\r\n", b"\n" * 900]), max_size=30),
    start=st.integers(0, 9000),
    quick=st.booleans(),
)
def test_both_ways_agree(pieces: list[bytes], start: int, quick: bool) -> None:
    data = b"".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_COUNT_IS_FAST", quick)
        assert count_newlines(data, min(start, len(data)), len(data)) == data.count(b"\n", start)
