"""Prefixes that carriers of a log put before its lines, made up for tests."""

from __future__ import annotations

import random
from collections.abc import Callable

Carrier = Callable[[str, int], str]
"""Line and its number -> the line with a prefix."""


def _docker(line: str, number: int) -> str:
    return f"2025-07-03T14:{number // 60 % 60:02}:{number % 60:02}.565839352Z {line}"


def _cri(line: str, number: int) -> str:
    return f"2025-07-03T14:{number // 60 % 60:02}:{number % 60:02}.5658+02:00 stderr F {line}"


def _journal(line: str, number: int) -> str:
    return f"Jul  3 14:{number // 60 % 60:02}:{number % 60:02} jwb0007 train[4021]: {line}"


def _journal_iso(line: str, number: int) -> str:
    return f"2025-07-03T14:{number // 60 % 60:02}:{number % 60:02}+0200 jwb0007 train[4021]: {line}"


def _ts(line: str, number: int) -> str:
    return f"[2025-07-03 14:{number // 60 % 60:02}:{number % 60:02}] {line}"


CARRIERS: dict[str, Carrier] = {
    "docker": _docker,
    "cri": _cri,
    "journal": _journal,
    "journal-iso": _journal_iso,
    "ts": _ts,
    "kubectl": lambda line, _: f"[pod/trainer-0/pytorch] {line}",
    "compose": lambda line, _: f"trainer-1  | {line}",
    "label": lambda line, _: f"0: {line}",
    "wide label": lambda line, _: f"  3: {line}",
    "mpirun": lambda line, _: f"[1,0]<stderr>:{line}",
    "prterun": lambda line, _: f"[prterun-jwb7-11@1,0]<stdout>: {line}",
    "torchrun": lambda line, _: f"[default0]:{line}",
    "host": lambda line, _: f"jwb0007: {line}",
    "address": lambda line, _: f"10.9.0.4: {line}",
}


def stacked(names: list[str]) -> Carrier:
    """Return the prefix of several carriers, the first one outermost."""

    def carry(line: str, number: int) -> str:
        for name in reversed(names):
            line = CARRIERS[name](line, number)
        return line

    return carry


def some_carrier(rng: random.Random) -> Carrier:
    """Return a stack of none to three carriers."""
    return stacked(rng.sample(sorted(CARRIERS), rng.choice((0, 0, 1, 1, 2, 3))))
