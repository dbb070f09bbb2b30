"""Measures of an attempt: they are of the command, not of the tests that ran before it."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.attempts import MEMORY_MIB, Attempt, run_attempts


def test_peak_of_a_batch_is_its_own(tmp_path: Path) -> None:
    ballast = bytearray((MEMORY_MIB + 50) << 20)  # as a process that has run thousands of tests
    attempt = Attempt("measure", "own peak", ("recipe", "show", "r.yaml"), {"r.yaml": b"a: 1\n"})
    [(_, _, outcome, peak_mib)] = run_attempts([attempt], tmp_path)
    assert len(ballast) >> 20 > MEMORY_MIB
    assert (outcome.code, outcome.fault) == (0, "")
    assert 5 < peak_mib < MEMORY_MIB
