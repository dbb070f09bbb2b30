"""Scalars in TensorBoard event files, parsed without TensorBoard.

A file is a sequence of records: length (8 bytes), its checksum (4), the record, its checksum (4)
(tensorflow/core/lib/io/record_writer.h). A record is a protobuf `Event`: wall_time = 1, step = 2,
summary = 5; a summary's values = 1: tag = 1, simple_value = 2, tensor = 8 (float_val = 5,
tensor_content = 4). Other fields are skipped. Checksums are not verified: a torn file ends where its
lengths become invalid.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEAD, _TAIL = 12, 4
RECORD_LIMIT = 8 * 1024 * 1024
"""Scalars need a hundred bytes; a longer record is an image, or not a record."""
_TAG_CHARACTERS = 1000
"""Longest tag that is a metric's name: each tag of a file is kept."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
Value = int | float | bytes


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value of one tag."""

    tag: str
    step: int
    value: float
    time: float


class DamagedError(ValueError):
    """Bytes that do not continue an event file."""


class EventFile:
    """Parser of an event file's bytes as they arrive; holds at most one unfinished record."""

    def __init__(self) -> None:
        self.offset = 0
        """Bytes taken so far."""
        self._unfinished = b""

    def feed(self, data: bytes) -> Iterator[Scalar]:
        """Yield the scalars of the records that `data` completes.

        Raises:
            DamagedError: the next bytes are not a record.
        """
        self.offset += len(data)
        data = self._unfinished + data
        start = 0
        while start + _HEAD <= len(data):
            (length,) = struct.unpack_from("<Q", data, start)
            if not 0 < length <= RECORD_LIMIT:
                raise DamagedError(f"a record of {length} bytes")
            end = start + _HEAD + length + _TAIL
            if end > len(data):
                break
            yield from _scalars(data[start + _HEAD : end - _TAIL])
            start = end
        self._unfinished = data[start:]


def _scalars(record: bytes) -> Iterator[Scalar]:
    time, step = 0.0, 0
    summaries: list[bytes] = []
    for field, value in _fields(record):
        if field == 1 and isinstance(value, float):
            time = value
        elif field == 2 and isinstance(value, int):
            step = _signed(value)
        elif field == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, item in _fields(summary):
            if field == 1 and isinstance(item, bytes):
                scalar = _value(item)
                if scalar is not None:
                    yield Scalar(scalar[0], step, scalar[1], time)


def _signed(number: int) -> int:
    """Return a varint as the int64 that it is."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


def _value(item: bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for field, value in _fields(item):
        if field == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8", errors="replace")
        elif field == 2 and isinstance(value, float):
            number = value
        elif field == 8 and isinstance(value, bytes):
            number = _tensor(value)
    return (tag, number) if 0 < len(tag) <= _TAG_CHARACTERS and number is not None else None


def _tensor(tensor: bytes) -> float | None:
    for field, value in _fields(tensor):
        if field in (4, 5) and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
        if field == 5 and isinstance(value, float):
            return value
    return None


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a protobuf message: floats for fixed widths, ints for varints."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            number, position = _varint(data, position)
            yield field, number
        elif kind == _BYTES:
            length, position = _varint(data, position)
            if position + length > len(data):
                raise DamagedError("a field longer than its record")
            yield field, data[position : position + length]
            position += length
        elif kind in (_FIXED32, _FIXED64):
            width, form = (4, "<f") if kind == _FIXED32 else (8, "<d")
            if position + width > len(data):
                raise DamagedError("a number beyond its record")
            yield field, float(struct.unpack_from(form, data, position)[0])
            position += width
        else:
            raise DamagedError(f"wire type {kind}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return number, position
        shift += 7
    raise DamagedError("a number without an end")
