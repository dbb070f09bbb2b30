"""Counting newlines the quick way gives what counting them the plain way gives."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.logs import newlines
from launcher.logs.newlines import NewlineCounter


@given(
    pieces=st.lists(st.sampled_from([b"\n", b"x" * 700, b"\r\n", b"\n" * 900]), max_size=30),
    start=st.integers(0, 9000),
)
def test_both_ways_agree(pieces: list[bytes], start: int) -> None:
    data = b"".join(pieces)
    start = min(start, len(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newlines, "PAYS", -1)
        quick = NewlineCounter().count(data, start, len(data))
    assert quick == data.count(b"\n", start)


def test_without_numpy_it_counts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newlines, "PAYS", -1)
    monkeypatch.setitem(sys.modules, "numpy", None)
    data = b"line\n" * 5000
    assert NewlineCounter().count(data, 0, len(data)) == 5000
