"""All scalars of TensorBoard event files as columns, for charts.

A driver writes the same tags in the same order at each step, so that the bytes of a step are those of the
step before except for step, time, value and checksums. Where that is so, many steps are read at once as the
rows of a matrix (220 MB per CPU second); any other record is read by itself (`launcher.logs.tensorboard`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from launcher.logs.tensorboard import RECORD_LIMIT, DamagedError, EventFile

_HEAD, _TAIL = 12, 4
_MOST_RECORDS = 2048
"""Records of a step at most; with more tags than that each record is read by itself."""
_LEAST_ROWS = 8
_MOST_TAGS = 20_000
"""Tags of a file: a thousand GPUs have 4,000."""
_MOST_ALONE = 1_000_000
"""Records of a file that are read by themselves: each takes some 10 us."""
_MOST_SINGLE = 4096
"""Records of a tag that wait as numbers of Python, 150 bytes each, before they become arrays."""
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ScalarColumn:
    """Values of one tag in the order of the file."""

    steps: NDArray[np.int64]
    times: NDArray[np.float64]
    """Seconds since the epoch."""
    values: NDArray[np.float32]


@dataclass(slots=True)
class _Parts:
    steps: list[NDArray[np.int64]] = field(default_factory=list)
    times: list[NDArray[np.float64]] = field(default_factory=list)
    values: list[NDArray[np.float32]] = field(default_factory=list)
    single: list[tuple[int, float, float]] = field(default_factory=list)
    """Records that were read by themselves since the last rows."""

    def settle(self) -> None:
        """Append the single records as arrays."""
        if self.single:
            steps, times, values = zip(*self.single, strict=True)
            self.steps.append(np.array(steps, dtype=np.int64))
            self.times.append(np.array(times, dtype=np.float64))
            with np.errstate(over="ignore"):  # a number of 8 bytes, where a driver writes 4
                self.values.append(np.array(values, dtype=np.float64).astype(np.float32))
            self.single = []


@dataclass(frozen=True, slots=True)
class _Field:
    """Where a record of the pattern has what differs from step to step; offsets from the pattern's start."""

    tag: str
    time: int
    step: int
    step_bytes: int
    value: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The bytes of one step."""

    template: Bytes
    constant: NDArray[np.bool_]
    """Which bytes are the same at each step; of a step's varint the top bits are compared, too."""
    continued: NDArray[np.bool_]
    fields: tuple[_Field, ...]


class ScalarColumns:
    """Columns of one event file, read in pieces as it grows."""

    def __init__(self) -> None:
        self.offset = 0
        """Bytes taken so far."""
        self._rest = b""
        self._parts: dict[str, _Parts] = {}
        self._history: list[tuple[int, _Field, bytes]] = []
        """Records since the pattern began: size, fields relative to the record, bytes."""
        self._positions: dict[str, int] = {}
        """Tag -> its index in the history."""
        self._pattern: _Pattern | None = None
        self._single = 0
        """Records that were read by themselves."""
        self.left_out: dict[str, int] = {}
        """Values that were thinned out, by tag."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file.

        Raises:
            DamagedError: they are not records.
        """
        self.offset += len(data)
        data = self._rest + data
        view = np.frombuffer(data, dtype=np.uint8)
        start = 0
        while True:
            start += self._take_rows(view, start)
            size = self._record_size(data, start)
            if size is None:
                break
            self._take_record(data[start : start + size])
            start += size
        self._rest = data[start:]

    @property
    def tags(self) -> int:
        """Number of tags so far."""
        return len(self._parts)

    def columns(self) -> dict[str, ScalarColumn]:
        """Return the columns by tag."""
        result = {}
        for tag, parts in self._parts.items():
            parts.settle()
            if len(parts.steps) > 1:
                parts.steps, parts.times = [np.concatenate(parts.steps)], [np.concatenate(parts.times)]
                parts.values = [np.concatenate(parts.values)]
            result[tag] = ScalarColumn(parts.steps[0], parts.times[0], parts.values[0])
        return result

    def thin(self, most: int) -> None:
        """Keep at most so many values: every second one of the longest columns, as often as needed."""
        columns = self.columns()
        lengths = {tag: len(column.steps) for tag, column in columns.items()}
        strides = dict.fromkeys(columns, 1)
        left = sum(lengths.values()) - most
        while left > 0 and (longest := max(lengths.values(), default=0)) > 1:
            for tag in [tag for tag, length in lengths.items() if 2 * length > longest]:
                strides[tag] *= 2
                left -= lengths[tag] // 2
                lengths[tag] -= lengths[tag] // 2
        for tag, stride in strides.items():
            if stride > 1:
                self._keep_every(stride, tag, columns[tag])

    def _keep_every(self, stride: int, tag: str, column: ScalarColumn) -> None:
        # Copies: a view would keep all of its array.
        steps, times = column.steps[::stride].copy(), column.times[::stride].copy()
        self._parts[tag] = _Parts([steps], [times], [column.values[::stride].copy()])
        self.left_out[tag] = self.left_out.get(tag, 0) + len(column.steps) - len(steps)

    def drained(self) -> dict[str, ScalarColumn]:
        """Return the columns of what was fed since the last call; they are not kept."""
        columns = self.columns()
        self._parts = {}
        return columns

    # ------------------------------------------------------------ single records

    @staticmethod
    def _record_size(data: bytes, start: int) -> int | None:
        """Return the size of the record at `start`; None where it is not complete."""
        if start + _HEAD > len(data):
            return None
        (length,) = struct.unpack_from("<Q", data, start)
        if not 0 < length <= RECORD_LIMIT:
            raise DamagedError(f"a record of {length} bytes")
        size = _HEAD + int(length) + _TAIL
        return size if start + size <= len(data) else None

    def _take_record(self, record: bytes) -> None:
        self._single += 1
        if self._single > _MOST_ALONE:
            raise DamagedError(f"more than {_MOST_ALONE} records without a pattern")
        scalars = list(EventFile().feed(record))
        for scalar in scalars:
            parts = self._parts.get(scalar.tag)
            if parts is None:
                if len(self._parts) == _MOST_TAGS:
                    raise DamagedError(f"more than {_MOST_TAGS} tags")
                parts = self._parts[scalar.tag] = _Parts()
            parts.single.append((scalar.step, scalar.time, scalar.value))
            if len(parts.single) == _MOST_SINGLE:
                parts.settle()
        self._learn(record, scalars[0].tag if len(scalars) == 1 else "")

    def _learn(self, record: bytes, tag: str) -> None:
        """Note a record; once its tag returns, what lies between is the pattern of a step."""
        located = _located(record, tag) if tag else None
        if located is None or len(self._history) == _MOST_RECORDS:
            self._forget()
        if located is None:
            return
        if tag in self._positions:
            self._pattern = _pattern_of(self._history[self._positions[tag] :])
            self._forget()
        self._positions[tag] = len(self._history)
        self._history.append((len(record), located, record))

    def _forget(self) -> None:
        self._history, self._positions = [], {}

    # ------------------------------------------------------------ many steps at once

    def _take_rows(self, view: Bytes, start: int) -> int:
        """Read the steps at `start` that have the pattern; returns their bytes."""
        pattern = self._pattern
        if pattern is None:
            return 0
        stride = len(pattern.template)
        rows = (len(view) - start) // stride
        head = slice(start, start + _HEAD - _TAIL)
        if rows < _LEAST_ROWS or not np.array_equal(view[head], pattern.template[: _HEAD - _TAIL]):
            return 0
        if not _matches(view[start : start + stride][None, :], pattern)[0]:
            return 0
        matrix = view[start : start + rows * stride].reshape(rows, stride)
        rows = _matching_rows(matrix, pattern)
        for item in pattern.fields:
            parts = self._parts.setdefault(item.tag, _Parts())
            parts.settle()
            parts.steps.append(_varints(matrix[:rows, item.step : item.step + item.step_bytes]))
            parts.times.append(
                _numbers(matrix[:rows], item.time, np.dtype("<f8")).astype(np.float64, copy=False)
            )
            parts.values.append(
                _numbers(matrix[:rows], item.value, np.dtype("<f4")).astype(np.float32, copy=False)
            )
        self._forget()
        return rows * stride


def _matching_rows(matrix: Bytes, pattern: _Pattern) -> int:
    """Return how many of the first rows have the pattern.

    A few are compared at first, then more: a file whose pattern breaks often is not compared to its
    end each time.
    """
    begin, size = 0, _LEAST_ROWS
    while begin < len(matrix):
        equal = _matches(matrix[begin : begin + size], pattern)
        if not equal.all():
            return begin + int(np.argmin(equal))
        begin, size = begin + size, size * 4
    return len(matrix)


def _matches(matrix: Bytes, pattern: _Pattern) -> NDArray[np.bool_]:
    """Return which rows have the pattern."""
    differ = (matrix != pattern.template) & pattern.constant
    continued = (matrix[:, pattern.continued] ^ pattern.template[pattern.continued]) & 0x80
    equal: NDArray[np.bool_] = ~differ.any(axis=1) & ~continued.any(axis=1)
    return equal


def _numbers(matrix: Bytes, offset: int, kind: np.dtype[np.floating]) -> NDArray[np.floating]:
    return np.ascontiguousarray(matrix[:, offset : offset + kind.itemsize]).view(kind)[:, 0]


def _varints(digits: Bytes) -> NDArray[np.int64]:
    numbers = np.zeros(len(digits), dtype=np.int64)
    for place in range(digits.shape[1]):
        numbers |= (digits[:, place] & 0x7F).astype(np.int64) << (7 * place)
    return numbers


def _pattern_of(records: list[tuple[int, _Field, bytes]]) -> _Pattern:
    template = np.frombuffer(b"".join(record for _, _, record in records), dtype=np.uint8)
    constant, continued = np.ones(len(template), dtype=np.bool_), np.zeros(len(template), dtype=np.bool_)
    fields, start = [], 0
    for size, located, _ in records:
        item = _Field(
            located.tag, start + located.time, start + located.step, located.step_bytes, start + located.value
        )
        for begin, length in ((item.time, 8), (item.step, item.step_bytes), (item.value, 4)):
            constant[begin : begin + length] = False
        constant[start + 8 : start + _HEAD] = False  # checksums
        constant[start + size - _TAIL : start + size] = False
        continued[item.step : item.step + item.step_bytes] = True
        fields.append(item)
        start += size
    return _Pattern(template, constant, continued, tuple(fields))


def _located(record: bytes, tag: str) -> _Field | None:
    """Return where a record holds time, step and a simple value; None for one of another shape."""
    spans = dict(_spans(record, _HEAD, len(record) - _TAIL))
    if not {1, 2, 5} <= spans.keys():
        return None
    summary = spans[5]
    values = dict(_spans(record, summary[0], summary[0] + summary[1]))
    if 1 not in values:
        return None
    inner = dict(_spans(record, values[1][0], values[1][0] + values[1][1]))
    if 2 not in inner or inner[2][1] != 4 or spans[1][1] != 8:
        return None
    return _Field(tag, spans[1][0], spans[2][0], spans[2][1], inner[2][0])


def _spans(data: bytes, start: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield field number, and offset and length of the content, of the fields of a protobuf message."""
    while start < end:
        key, start = _varint_at(data, start)
        kind = key & 7
        if kind == 2:
            length, start = _varint_at(data, start)
        elif kind == 0:
            length = _varint_at(data, start)[1] - start
        else:
            length = 8 if kind == 1 else 4
        yield key >> 3, (start, length)
        start += length


def _varint_at(data: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[start]
        number |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if byte < 0x80:
            return number, start
