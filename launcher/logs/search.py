"""Search of a chunk for many literals: all at once by hyperscan, one by one where it is not installed.

Measured over a log like a driver's with 214 literals, in MB per CPU second on one core: hyperscan 1,235,
ahocorasick-rs 347 (ripgrep 345), `bytes.find` for each 12. Both finders hit the same lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from heapq import merge
from importlib import import_module
from itertools import pairwise
from os.path import commonprefix
from threading import Lock
from typing import NamedTuple, Protocol


class Finder(Protocol):
    """Finder of literals in bytes."""

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield, in order, positions and the indices of the literals that are there.

        Every line that holds a literal has a hit for it; which of its bytes that is depends on the finder.
        """
        ...


class PlainFinder:
    """Finder that searches for one literal after the other; needs nothing but Python."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self._literals = tuple(literals)

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the positions where a literal begins."""
        present = ((index, literal) for index, literal in enumerate(self._literals) if literal in data)
        return merge(*(_occurrences(data, index, literal) for index, literal in present))


def _occurrences(data: bytes, index: int, literal: bytes) -> Iterator[tuple[int, int]]:
    position = data.find(literal)
    while position >= 0:
        yield position, index
        position = data.find(literal, position + len(literal))


class HyperscanFinder:
    """Finder that searches for all literals at once, by their anchors."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        library = import_module("hyperscan")  # ships no types
        self._anchors = anchors_of(literals)
        self._whole = tuple(anchor.whole for anchor in self._anchors)
        self._database = library.Database()
        self._database.compile(
            expressions=[re.escape(anchor.text) for anchor in self._anchors],
            ids=list(range(len(self._anchors))),
            elements=len(self._anchors),
            flags=[0] * len(self._anchors),
        )
        self._scan: Callable[..., None] = self._database.scan
        # A database has one scratch space: two threads in it at once are an error.
        self._scratch_lock = Lock()

    def hits(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the positions where a literal's anchor ends (its last byte)."""
        hits: list[tuple[int, int]] = []
        anchors, whole = self._anchors, self._whole

        def note(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            if (only := whole[number]) >= 0:
                hits.append((end - 1, only))
                return
            text, literals = anchors[number]
            start = end - len(text)
            for index, literal in literals:
                if data.startswith(literal, start):
                    hits.append((end - 1, index))

        with self._scratch_lock:
            self._scan(data, match_event_handler=note)
        return iter(hits)


class SearchAnchor(NamedTuple):
    """Beginning of one or several literals, which is searched for in their place."""

    text: bytes
    literals: tuple[tuple[int, bytes], ...]
    """Index and text of each literal that begins with it."""

    @property
    def whole(self) -> int:
        """Index of the literal that the anchor is all of; -1 where it is a part, or there are several."""
        index, text = self.literals[0]
        return index if len(self.literals) == 1 and text == self.text else -1


_SHORTEST_ANCHOR = 8
_CUT = 16
"""Bytes that are cut off at most."""
_USUAL_TEXT = b"""
(DTensorPolicyWorkerV2[rank=0] pid=1234, ip=10.0.0.12) GPU Memory before refit: 12.34GB used, in 0.12s
(VllmGenerationWorker pid=1234) INFO 11-28 02:14:50 [loggers.py:123] Engine 000: prompt throughput: 100.0
Processed prompts:  50%|#####     | 256/512 [00:12<00:12, 20.12it/s, speed input: 123.45 toks/s, output: 9]
Some of the workers have loaded and connected, with the error rate that was expected for each of the others.
The answer to the question is that there are more of them in this number, and so on; therefore we have it.
  \xe2\x80\xa2 policy_training/submit_training_futures: 1.88s (0.0%)
  \xe2\x80\xa2 generation/prepare_for_generation: 0.5s (1.2%)
jwb1874:4746:4746 [0] NCCL INFO Channel 02/0 : 3[3] -> 2[2] via P2P
"""
"""Text like most of a run's logs, to choose anchors that are not in it and whose ends are rare there.

hyperscan samples pairs among the last eight bytes of its texts at every fourth place, and looks closer
where they fit one of them. Literals over a driver's log, in MB per CPU second: 254 as they are 1,600, 495
as they are 1,200, by 415 anchors 1,650.
"""
_PAIRS = Counter(pairwise(_USUAL_TEXT))
_RARE = 0.002
"""Frequency of any pair at least, as a part of all."""


def anchors_of(literals: Sequence[bytes]) -> tuple[SearchAnchor, ...]:
    """Return anchors for literals; those with the same first bytes share one."""
    groups: dict[bytes, list[tuple[int, bytes]]] = {}
    for index, literal in enumerate(literals):
        groups.setdefault(literal[:_SHORTEST_ANCHOR], []).append((index, literal))
    return tuple(
        SearchAnchor(_with_rare_end(commonprefix([text for _, text in group])), tuple(group))  # noqa: RUF071
        for group in groups.values()
    )


@cache
def _with_rare_end(text: bytes) -> bytes:
    """Return the beginning of a text that is not usual and whose end is the rarest; the longest of equals."""
    shortest = max(min(len(text), _SHORTEST_ANCHOR), len(text) - _CUT)
    may_be_usual = text[:shortest] in _USUAL_TEXT
    frequencies = _end_frequencies(text)
    return min(
        (text[:stop] for stop in range(len(text), shortest - 1, -1)),
        key=lambda part: (may_be_usual and part in _USUAL_TEXT, frequencies[len(part)]),
    )


def _end_frequencies(text: bytes) -> list[float]:
    """Return, for each length of a text's beginning, the share of places at which two sampled pairs fit."""
    pairs = [_RARE + 0.05] * 2
    pairs += [_RARE + _PAIRS[pair] / len(_USUAL_TEXT) for pair in pairwise(text)]
    return [
        sum(pairs[max(stop - place, 0)] * pairs[max(stop - place - 4, 0)] for place in range(4))
        for stop in range(len(text) + 1)
    ]


@cache
def finder_for(literals: tuple[bytes, ...]) -> Finder:
    """Return the fastest finder available here; readers with the same literals share one."""
    try:
        return HyperscanFinder(literals)
    except ImportError:  # no wheel for this machine
        return PlainFinder(literals)
