"""Lines of a log, and the segments of a line: a cleaned text and the process that printed it.

A line has layers, taken off from the outside in: what carried it (`prefixes.py`), a logger's header
(`headers.py`), the message.

A line ends at a newline alone. Within a line, a carriage return redraws a progress bar, and Ray appends a
worker's line to a bar that the driver left unfinished; both are split into segments here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from launcher.logs.headers import LineSeverity, header
from launcher.logs.prefixes import FIRST_CHARACTERS, NOBODY, LineOrigin, split_prefixes
from launcher.text import clean

LINE_LIMIT = 64 * 1024
"""Bytes kept of one line; the rest of a longer line is counted, not kept."""

_COUNT_IS_FAST = sys.version_info >= (3, 13)
_SHORT = 1024

# Ray colours the prefix also in files (ray/_private/worker.py, print_worker_logs).
_SEGMENT_BREAK = re.compile(r"\r+|(?=\x1b\[3[36]m\()")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REPEATED = re.compile(r"\s\[repeated (?P<n>\d+)x across cluster\](?: \(Ray deduplicates.*\))?\s*$")
_LONGEST_NUMBER = 24
"""Digits of the longest number: no count, size or time has more, and computing with more can fail."""
_LONG_NUMBER = re.compile(rf"\d{{{_LONGEST_NUMBER + 1},}}")
_DIGITS = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_DIGITS_RUN = b"0" * (_LONGEST_NUMBER + 1)
"""All digits as zeros: a search for a text takes a fifth of the time of one for a pattern."""
_XTRACE = re.compile(r"^\++ \S")
# The end of a progress bar that something else was printed behind, without a line break.
_BAR_END = re.compile(r"\d[\d.,]*[A-Za-z]*(?:/\S+)?(?: [a-z]+)? \[\d+:\d\d[^\]]*\](?=\S)")
_RATE_END = re.compile(r"/[A-Za-z]+(?:,[^\]]*)?\](?=\S)")
_DOCKER_JSON = '{"log":"'
_RAY_BEGINS = (b"(", b"\x1b")
_RESET = b"\x1b[0m"
_COUNT_COLOUR = b"\x1b[32m"
_RAY_LIMIT = 200
_LAYERED = FIRST_CHARACTERS | {_DOCKER_JSON[0]}
"""First characters of the lines that may have a prefix; any other printable line is a segment as it is."""


class Segment(NamedTuple):
    """A cleaned piece of a line without its carriers' prefixes, and who printed it."""

    text: str
    actor: str | None = None
    """Ray actor or task name; `raylet` and the like for Ray itself; None for the owner of the log."""
    rank: int | None = None
    pid: int | None = None
    ip: str | None = None
    repeated: int = 0
    """Number of other processes that printed the same line, as counted by Ray."""
    node: str | None = None
    task: int | None = None
    """Number that srun, mpirun or torchrun's tee put before the line."""
    stamp: str = ""
    """Time at which a carrier received the line, as text."""

    @property
    def body(self) -> str:
        """Text after a logger's header."""
        return self.text[header(self.text).length :]

    @property
    def severity(self) -> LineSeverity:
        """Severity that a logger gave to the line."""
        return header(self.text).severity

    @property
    def own(self) -> bool:
        """True if the process that owns the log printed it (no Ray prefix)."""
        return self.actor is None and self.pid is None

    @property
    def traced(self) -> bool:
        """True if it is a shell's echo of its own source (`set -x`), which reports nothing."""
        return self.text.startswith("+") and _XTRACE.match(self.text) is not None


def segments(raw: bytes) -> list[Segment]:
    """Split a raw line (without its newline) into cleaned segments; empty ones are dropped."""
    if raw[:1] in _RAY_BEGINS and (simple := _behind_ray(raw)) is not None:
        return simple
    if raw.startswith(b"\r"):
        raw = raw.strip(b"\r")
    text = raw.decode("utf-8", errors="replace")
    if text.isprintable() and not _may_have_prefix(text) and not _may_hold_bar(text):
        return [Segment(text)] if (text := _without_long_numbers(raw, text).rstrip()) else []
    if text.startswith(_DOCKER_JSON):
        text = _docker_message(text)
    text = _without_long_numbers(raw, text)
    if "\r" not in text and text.rfind("\x1b[3") <= 0:
        return _parse(text, NOBODY)
    result: list[Segment] = []
    carried = NOBODY
    for part in _SEGMENT_BREAK.split(text):
        if not part:
            continue
        parsed = _parse(part, carried)
        if not result and parsed and parsed[0].own:  # a carrier's prefix stands once, before the first piece
            carried = _carrier_of(parsed[0])
        result += parsed
    return result


def _without_long_numbers(raw: bytes, text: str) -> str:
    """Return a line's text with an ellipsis for each number that is none; `raw`: the line as it was read."""
    if len(raw) > _LONGEST_NUMBER and (not raw.isascii() or _DIGITS_RUN in raw.translate(_DIGITS)):
        return _LONG_NUMBER.sub("…", text)
    return text


def _behind_ray(raw: bytes) -> list[Segment] | None:
    """Return the segment behind Ray's prefix; None where the line needs to be looked at as a whole."""
    stop = raw.find(b")", 0, _RAY_LIMIT) + 1
    if raw.startswith(_RESET, stop):
        stop += len(_RESET)
    if raw.startswith(b" ", stop):
        stop += 1
    origin = _ray_origin(raw[:stop])
    if origin is None:
        return None
    rest = raw[stop:]
    if rest.endswith(_RESET):  # Ray colours its count of repetitions
        rest = rest[: -len(_RESET)].replace(_COUNT_COLOUR, b"", 1)
    text = rest.decode("utf-8", errors="replace")
    if not text.isprintable() or _may_hold_bar(text):
        return None
    text = _without_long_numbers(rest, text)
    if _may_have_prefix(text):
        text, origin = split_prefixes(text, origin)
    return [made] if (made := _segment(text, origin)).text else []


@lru_cache(maxsize=4096)
def _ray_origin(prefix: bytes) -> LineOrigin | None:
    """Return the process that Ray's prefix names; None if this is no such prefix alone.

    Most lines of a run have one of a few hundred prefixes.
    """
    rest, origin = split_prefixes(_COLOUR.sub("", prefix.decode("utf-8", errors="replace")))
    return origin if not rest and origin.pid is not None else None


def _may_have_prefix(text: str) -> bool:
    first = text[:1]
    if first != " ":
        return first in _LAYERED
    return text.lstrip(" ")[:1].isdigit()  # a label of srun


def _may_hold_bar(text: str) -> bool:
    """Return False where no rate ends a bar that text follows, without the search for all of a bar."""
    return "/" in text and "]" in text and _RATE_END.search(text) is not None


def _docker_message(text: str) -> str:
    """Return the line in a record of Docker's json-file driver, with its time as a prefix."""
    try:
        record = json.loads(text)
        return f"{record['time']} {record['log']}".rstrip("\n")
    except (ValueError, KeyError, TypeError, RecursionError):
        return text


def _carrier_of(segment: Segment) -> LineOrigin:
    return LineOrigin(rank=segment.rank, node=segment.node, task=segment.task, stamp=segment.stamp)


def _parse(part: str, carried: LineOrigin) -> list[Segment]:
    text = _COLOUR.sub("", part) if "\x1b[" in part else part
    if not text.isprintable():
        text = clean(part)
    text, origin = split_prefixes(text, carried)
    if _may_hold_bar(text) and (bar := _BAR_END.search(text)):
        return [_segment(text[: bar.end()], origin), *_parse(text[bar.end() :], origin)]
    return [made] if (made := _segment(text, origin)).text else []


def _segment(text: str, origin: LineOrigin) -> Segment:
    if origin is NOBODY:
        return Segment(text.rstrip())
    actor, rank, pid, ip, node, task, stamp = origin
    repeated = 0
    if actor is not None and "[repeated " in text and (match := _REPEATED.search(text)):
        repeated = int(match["n"])
        text = text[: match.start()]
    return Segment(text.rstrip(), actor, rank, pid, ip, repeated, node, task, stamp)


class RawLine(NamedTuple):
    """Line of a file, as its bytes."""

    number: int
    """Counted from 1."""
    offset: int
    data: bytes
    """Without the newline; at most LINE_LIMIT bytes."""


class LineSplitter:
    """Splitter of a byte stream into lines with numbers and offsets, in memory bounded by LINE_LIMIT."""

    def __init__(self) -> None:
        self.lines = 0
        """Complete lines so far."""
        self._start = 0
        self._unfinished = bytearray()
        self._length = 0

    @property
    def offset(self) -> int:
        """Byte offset of the next byte expected."""
        return self._start + self._length

    def feed(self, data: bytes) -> Iterator[RawLine]:
        """Yield the lines that `data` completes."""
        position = 0
        while (newline := data.find(b"\n", position)) >= 0:
            if self._length:
                self._keep(data[position:newline])
                line, length = bytes(self._unfinished), self._length + 1
                self._unfinished.clear()
                self._length = 0
            else:
                line = data[position : min(newline, position + LINE_LIMIT)]
                length = newline - position + 1
            self.lines += 1
            yield RawLine(self.lines, self._start, line)
            self._start += length
            position = newline + 1
        if position < len(data):
            self._keep(data[position:])

    def skip(self, lines: int, length: int) -> None:
        """Pass over `length` bytes that hold `lines` whole lines; only between lines."""
        self.lines += lines
        self._start += length

    @property
    def has_unfinished(self) -> bool:
        """True if an unfinished line is held."""
        return self._length > 0

    def pending(self) -> RawLine | None:
        """Return the unfinished last line, if there is one."""
        if not self._length:
            return None
        return RawLine(self.lines + 1, self._start, bytes(self._unfinished))

    def _keep(self, piece: bytes) -> None:
        room = LINE_LIMIT - len(self._unfinished)
        if room > 0:
            self._unfinished += piece[:room]
        self._length += len(piece)


def count_newlines(data: bytes, start: int, stop: int) -> int:
    """Return the number of newlines in `data[start:stop]`; a quarter of the work of reading a log.

    Up to Python 3.12, `bytes.count` compares each byte, while `bytes.replace` searches for the next newline
    as fast as the processor can: in MB per CPU second 1,330 against 2,263, in pieces of 128 KiB. numpy would
    do 4,841, but takes a tenth of a second and 11 MB to import.
    """
    if _COUNT_IS_FAST or stop - start < _SHORT:
        return data.count(b"\n", start, stop)
    piece = data[start:stop]
    return len(piece) - len(piece.replace(b"\n", b""))
