"""Headers of loggers: severity and length of what a logger writes before its message.

vLLM 0.6 and later, SGLang, Python's logging in its usual forms, transformers, NeMo, DeepSpeed, Hydra, loguru,
rich, glog and its relatives in torch, absl and TensorFlow, Ray's C++ and Python, NCCL. Times are read by
`clock.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache


class LineSeverity(IntEnum):
    """Severity that a logger gave to a line; UNKNOWN where it gave none."""

    UNKNOWN = -1
    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3
    FATAL = 4


_LETTERS = {
    "D": LineSeverity.DEBUG, "I": LineSeverity.INFO, "W": LineSeverity.WARNING, "E": LineSeverity.ERROR,
    "F": LineSeverity.FATAL, "C": LineSeverity.FATAL, "T": LineSeverity.DEBUG,
}  # fmt: skip
_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|SUCCESS|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
_DATE = r"(?:\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d{4})[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_SHORT_DATE = r"\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"

# Each with `level` or `letter`; what is matched is taken off the message.
_REMOVED = (
    # vLLM: file and line in brackets since 0.8, without the first bracket before
    rf"(?P<level>{_LEVEL}) {_SHORT_DATE} (?:\[[^\]]+\]|[\w./-]+:\d+\]) ?",
    # glog: torch, torchrun, absl, Ray of old; with and without a date, the month without a leading zero
    r"\[?(?P<letter>[DIWEFC])(?:\d{3,4} [\d:.]+(?:\s+\d+)*)? [\w./+-]+:\d+\] ?",
    # Ray's C++, of which the file and line are a part of the message
    r"\[\d{4}-\d\d-\d\d [\d:,.]+ (?P<letter>[DIWEFC]) \d+ \d+\] (?:\([\w-]+\) )?",
    r"\d{4}-\d\d-\d\d [\d:,.]+: (?P<letter>[DIWEF]) [\w./+-]+:\d+\] ",
    rf"\[(?P<level>{_LEVEL})\|[^\]]*\] {_DATE} >> ",
    r"\[NeMo (?P<letter>[DIWEF]) [^\]]*\] ",
    rf"\[(?P<level>{_LEVEL})\] \[[^\]]+:\d+:\w+\] (?:\[Rank -?\d+\] )?",
    rf"\[{_DATE}\](?:\[[^\]]+\])*\[(?P<level>{_LEVEL})\](?: -)? ",
    rf"{_DATE}\s+(?P<level>{_LEVEL})\s+[\w./-]+:\d+ -- ",
    rf"{_DATE}\s*(?:[-|]\s*)?\[?(?P<level>{_LEVEL})\]?\s*(?:[-|]\s*[\w.:<>]+\s*[-|]\s|[-|:]\s|\s)\s*",
    rf"{_DATE} - [\w.]+ - (?P<level>{_LEVEL}) - ",
    rf"(?P<level>{_LEVEL}):(?=[\w.-]+:)[\w.-]+:(?:[\w.-]+:\d+:)? ?",
    rf"\[\d\d:\d\d:\d\d\]\s+(?P<level>{_LEVEL})\s+",
    rf"(?!FATAL:)(?P<level>{_LEVEL})(?::\s+|\s{{1,9}})(?=\S)",  # `FATAL:` is Apptainer's
    r"(?P<level>)\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]+\d+)+\] ",
    rf"(?P<level>){_DATE}\s+(?=\S)",
)
# Only their severity counts: signatures need their words.
_KEPT = (
    r"\[(?P<level>WARN(?:ING)?|INFO|DEBUG)\]",
    r"[\w.-]+:\d+:\d+ \[-?\d+\] (?:\S+:\d+ )?NCCL (?P<level>INFO|TRACE) ",
    r"wandb: (?P<level>WARNING|INFO) ",
)
_PATTERNS = tuple((re.compile(pattern), True) for pattern in _REMOVED) + tuple(
    (re.compile(pattern), False) for pattern in _KEPT
)
_CANDIDATE = re.compile(r"[\[\d]|[DIWEFC]\d{3,4} |[DIWEFC] \S+:\d+\]|[A-Z]{4,8}[\s:]|wandb: |\S+:\d+:\d+ \[")
"""Beginning of every line with a header."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a line."""

    length: int
    """Characters that are not a part of the message."""
    severity: LineSeverity


_NONE = Header(0, LineSeverity.UNKNOWN)


@lru_cache(maxsize=64)
def header(text: str) -> Header:
    """Return the header of a line without prefixes."""
    if _CANDIDATE.match(text) is None:
        return _NONE
    for pattern, removed in _PATTERNS:
        if match := pattern.match(text):
            return Header(match.end() if removed else 0, _severity(match.groupdict()))
    return _NONE


def _severity(groups: dict[str, str | None]) -> LineSeverity:
    if letter := groups.get("letter"):
        return _LETTERS[letter]
    level = groups.get("level") or ""
    if level in ("CRITICAL", "FATAL"):
        return LineSeverity.FATAL
    if level == "ERROR":
        return LineSeverity.ERROR
    if level.startswith("WARN"):
        return LineSeverity.WARNING
    if level in ("DEBUG", "TRACE"):
        return LineSeverity.DEBUG
    return LineSeverity.INFO if level else LineSeverity.UNKNOWN
