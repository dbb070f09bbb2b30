"""Warnings of Python are read when something near follows them, and quote no failure."""

from __future__ import annotations

import pytest

from launcher.logs.events import Role
from launcher.logs.search import anchors_of
from tests.launcher.test_diagnosis import state_of

WARNING = "/v/x.py:12: UserWarning: the cache could not be used"
QUOTED = "  raise RuntimeError('no CUDA-capable device is detected')"
FAILURE = "RuntimeError: CUDA error: no CUDA-capable device is detected"
STEP = "(W pid=9) [Rank 0] a shard of the state was read"


def ids(*lines: str) -> list[str]:
    state = state_of(("x.log", Role.DRIVER, "".join(f"{line}\n" for line in lines).encode()))
    return [item.id for item in state.findings if item.severity == "fatal"]


@pytest.mark.parametrize("between", [0, 1, 3])
def test_the_source_line_below_a_warning_is_quoted(between: int) -> None:
    assert ids(WARNING, *[STEP] * between, QUOTED) == []


@pytest.mark.parametrize("between", [0, 1, 3, 9])
def test_a_failure_below_a_warning_is_one(between: int) -> None:
    assert ids(WARNING, *[STEP] * between, FAILURE) == ["gpu-none"]


def test_a_warning_of_several_lines_quotes_what_a_library_overcame() -> None:
    assert ids("/v/x.py:12: UserWarning: could not use the GPU:", FAILURE, "  warn(x)") == []


def test_anchors_are_beginnings_of_their_literals() -> None:
    literals = (b"CUDA error: out of memory", b"CUDA error: the launch", b"short1", b"policy_training: ")
    anchors = anchors_of(literals)
    assert sorted(index for anchor in anchors for index, _ in anchor.literals) == [0, 1, 2, 3]
    assert all(literal.startswith(anchor.text) for anchor in anchors for _, literal in anchor.literals)
    assert {len(anchor.literals) for anchor in anchors} == {1, 2}
    usual = next(anchor for anchor in anchors if anchor.literals[0][0] == 3)
    assert usual.text == b"policy_training:" or usual.text == literals[3]
