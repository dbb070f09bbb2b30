"""The rank that others waited for in a collective operation, by what torch prints when one times out. Pure.

Each rank's watchdog prints the operation that it waited in (torch ProcessGroupNCCL.cpp, checkTimeout), its
process group, and its last operation that was enqueued. The rank to look at is the one in another operation
than most, the one that had not begun what the others waited in, or the one that is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from launcher.logs.events import FindingSeen
from launcher.logs.log_survey import ranks_text

WAITS = frozenset({"nccl-timeout", "nccl-watchdog", "nccl-remote", "rdzv-timeout", "peer-gone"})
"""Signatures of what a rank prints when others do not do their part."""
_OPERATION = re.compile(
    r"WorkNCCL\(SeqNum=(?P<number>\d+), OpType=(?P<name>\w+)"
    r"(?:, NumelIn=(?P<sent>\d+), NumelOut=(?P<got>\d+))?"
)
_GROUP = re.compile(r"\[PG (?:ID \d+ PG GUID )?(?P<group>[^\]\s]+) Rank \d+\]")
_ENQUEUED = re.compile(r"[Ll]ast enqueued (?:\w+ )?work: (?P<number>-?\d+)")
_BARRIER = re.compile(
    r"in store based barrier on rank:? (?P<rank>\d+), for key: \S+ \(world_size=(?P<size>\d+),"
)
_REPORTED = re.compile(
    r"\[(?P<behind>\d+)[\d, ]*\] finished collective #\d+, but didn't join collective #\d+"
    r"|ranks \[(?P<absent>\d+)[\d, ]*\] are the lagging ranks"
)
_WHOLE_WORLD = ("", "0", "0(default_pg)")
"""Names of the group of all ranks; empty where none is printed."""
_RATIO_OPERATIONS = ("ALLGATHER", "REDUCE_SCATTER")
_MOST_MISSING = 3
"""One in so many ranks may be missing from a list that is taken for complete."""
_LARGEST_WORLD = 100_000


@dataclass(frozen=True, slots=True)
class _Wait:
    """Operation in which a rank waited until it timed out."""

    rank: int
    number: int
    name: str
    finding: FindingSeen
    group: str = ""
    size: int | None = None
    """Ranks of the group; None where the operation does not tell."""

    @property
    def operation(self) -> tuple[int, str]:
        """Number and name: ranks of a group that fit together are in the same one."""
        return self.number, self.name

    def in_words(self) -> str:
        """Return the operation as the logs name it."""
        return f"{self.name} {self.number}"


@dataclass(frozen=True, slots=True)
class OddRank:
    """Rank that is to be looked at."""

    rank: int
    why: str
    finding: FindingSeen
    """Its own line where it printed one, else that of a rank that waited for it."""

    def as_cause(self) -> FindingSeen:
        """Return the finding that names it."""
        item = self.finding
        fix = f"{self.why}: look at rank {self.rank}. {item.fix}"
        return replace(item, title=f"{item.title}: rank {self.rank} is the odd one", rank=self.rank, fix=fix)


def odd_rank(findings: Sequence[FindingSeen]) -> OddRank | None:
    """Return the rank that others waited for; None where what they printed does not tell."""
    for item in findings:
        if match := _REPORTED.search(item.text):
            return OddRank(int(match["behind"] or match["absent"]), f"{item.text.strip(' -')} (torch)", item)
    groups = {item.rank: match["group"] for item in findings if (match := _GROUP.search(item.text))}
    waits = list(_waits(findings, groups))
    for group in sorted({item.group for item in waits}, key=lambda name: (name not in _WHOLE_WORLD, name)):
        within = [item for item in waits if item.group == group]
        if (
            odd := _not_begun(within, findings, group)
            or _other_operation(within)
            or _missing(within, findings)
        ):
            return odd
    return _missing_from_barrier(findings)


def _waits(findings: Iterable[FindingSeen], groups: dict[int | None, str]) -> Iterator[_Wait]:
    """Yield the first operation that timed out on each rank."""
    ranks = set()
    for item in findings:
        match = _OPERATION.search(item.text) if item.id == "nccl-timeout" else None
        if match is None or item.rank is None or item.rank in ranks:
            continue
        ranks.add(item.rank)
        name, group = match["name"].lstrip("_").removesuffix("_BASE"), groups.get(item.rank, "")
        size = None
        if (
            name in _RATIO_OPERATIONS
            and match["sent"]
            and min(sizes := (int(match["sent"]), int(match["got"])))
        ):
            size = max(sizes) // min(sizes)
        yield _Wait(item.rank, int(match["number"]), name, item, group, size)


def _not_begun(waits: Sequence[_Wait], findings: Iterable[FindingSeen], group: str) -> OddRank | None:
    """Return a rank that was told of the time-out and had not begun what the others waited in."""
    if not waits:
        return None
    waiting = {item.rank for item in waits}
    first = min(waits, key=lambda item: item.number)
    for item in findings:
        enqueued, named = _ENQUEUED.search(item.text), _GROUP.search(item.text)
        if item.rank is None or item.rank in waiting or enqueued is None:
            continue
        if (named["group"] if named else "") == group and int(enqueued["number"]) < first.number:
            why = (
                f"{_subject(waiting)} in {first.in_words()}, which rank {item.rank} had not begun "
                f"(its last one: {enqueued['number']})"
            )
            return OddRank(item.rank, why, item)
    return None


def _other_operation(waits: Sequence[_Wait]) -> OddRank | None:
    """Return the rank that is in another operation than most; of two, the one that is behind."""
    operations = Counter(item.operation for item in waits)
    if len(operations) < 2:
        return None
    (usual, count), *_ = operations.most_common()
    others = [item for item in waits if item.operation != usual]
    if count <= len(others):  # no majority
        numbers = {item.number for item in waits}
        if len(numbers) < 2:
            return None
        behind = min(numbers)
        others = [item for item in waits if item.number == behind]
        if len(others) * 2 > len(waits):
            return None
        usual = min(item.operation for item in waits if item.number != behind)
    odd = min(others, key=lambda item: (item.number, item.rank))
    number, name = usual
    waiting = {item.rank for item in waits if item.operation == usual}
    return OddRank(
        odd.rank, f"{_subject(waiting)} in {name} {number}, rank {odd.rank} in {odd.in_words()}", odd.finding
    )


def _missing(waits: Sequence[_Wait], findings: Sequence[FindingSeen]) -> OddRank | None:
    """Return the rank of which no time-out was printed, where all others printed theirs.

    Ray prints lines that many processes have in common once, so that what it relays is no list of ranks.
    """
    relayed = any(item.finding.pid is not None for item in waits)
    if len(waits) < 2 or relayed or waits[0].group not in _WHOLE_WORLD:
        return None
    ranks = {item.rank for item in waits}
    ranks |= {item.rank for item in findings if item.rank is not None and _ENQUEUED.search(item.text)}
    highest = max((item.rank for item in findings if item.rank is not None), default=0)
    size = max((item.size or 0 for item in waits), default=0) or highest + 1
    return _absent(ranks, size, f"in {waits[0].in_words()}", waits[0].finding)


def _missing_from_barrier(findings: Iterable[FindingSeen]) -> OddRank | None:
    """Return the rank that did not come to torch's barrier at the start of a process group."""
    matches = [(match, item) for item in findings if (match := _BARRIER.search(item.text))]
    if not matches:
        return None
    ranks = {int(match["rank"]) for match, _ in matches}
    size = max(int(match["size"]) for match, _ in matches)
    return _absent(ranks, size, "for the process group", matches[0][1])


def _absent(ranks: set[int], size: int, where: str, finding: FindingSeen) -> OddRank | None:
    """Return the first of a few ranks that are missing among those that waited."""
    if not max(ranks) < size <= _LARGEST_WORLD:
        return None
    missing = sorted(set(range(size)) - ranks)
    if not missing or len(missing) * _MOST_MISSING > max(len(ranks), _MOST_MISSING):
        return None
    return OddRank(missing[0], f"{_subject(ranks)} {where}, {ranks_text(missing)} not", finding)


def _subject(ranks: Iterable[int]) -> str:
    present = sorted(ranks)
    text = ranks_text(present)
    return f"{text[:1].upper()}{text[1:]} {'waited' if present else ''}".strip()
