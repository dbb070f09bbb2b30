"""An offline run of W&B that has logged many scalars over many steps, for `wandb leet`.

    PYTHON tests/bench/wandb_scalars.py DIRECTORY SCALARS STEPS    with a Python that has wandb

W&B itself writes a run of one step; its records, with one for each step, make the run that is shown:
`run.log` would take minutes for 100,000 steps.
"""

from __future__ import annotations

import importlib
import os
import random
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.wandb_run import NO_SERVICE  # noqa: E402 - the project is found first

_HEADER, _BLOCK = 7, 32 * 1024
_CHUNK = struct.Struct("<IHB")
"""Checksum of kind and data, length of the data, kind."""
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def written_scalars(python: str, directory: Path, scalars: int, steps: int) -> Path:
    """Have a run written; returns the folder that `wandb leet run` takes."""
    command = [python, __file__, str(directory), str(scalars), str(steps)]
    environment = {**os.environ, **NO_SERVICE, "WANDB_SILENT": "true"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    (file,) = directory.glob("wandb/offline-run-*/*.wandb")
    return file.parent


def main() -> None:
    """Write a run."""
    directory, scalars, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wandb: Any = importlib.import_module("wandb")
    run = wandb.init(mode="offline", dir=directory, project="bench")
    run.log({"train/scalar_000": 1.0})
    run.finish()
    (file,) = Path(directory).glob("wandb/offline-run-*/*.wandb")
    rewrite(file, scalars, steps)


def rewrite(file: Path, scalars: int, steps: int) -> None:
    """Put a record for each step in the place of the one that is there."""
    messages: Any = importlib.import_module("wandb.proto.wandb_internal_pb2")
    data = file.read_bytes()
    noise, began, number = random.Random(1), time.time() - steps, 0
    with file.open("wb") as out:
        out.write(data[:_HEADER])
        writer = RecordWriter(out)
        for bytes_ in records_in(data):
            record = messages.Record.FromString(bytes_)
            if record.WhichOneof("record_type") != "history":
                number += 1
                record.num = number
                writer.write(record.SerializeToString())
                continue
            for step in range(1, steps + 1):
                number += 1
                base = 3.0 / (1 + step / 1000) + noise.random() / 5
                values = {f"train/scalar_{index:03d}": base + index for index in range(scalars)}
                row = _history(messages, number, step, {**values, "_timestamp": began + step})
                writer.write(row.SerializeToString())


def records_in(data: bytes) -> Iterator[bytes]:
    """Yield the records of a .wandb file: LevelDB's log format behind a header."""
    offset, parts = _HEADER, b""
    while offset + _CHUNK.size <= len(data):
        left = _BLOCK - offset % _BLOCK
        if left < _CHUNK.size:
            offset += left
            continue
        _, length, kind = _CHUNK.unpack_from(data, offset)
        offset += _CHUNK.size
        parts += data[offset : offset + length]
        offset += length
        if kind in (_FULL, _LAST):
            yield parts
            parts = b""


class RecordWriter:
    """Writer of records behind the header of a .wandb file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._offset = _HEADER

    def write(self, record: bytes) -> None:
        """Write a record, in as many chunks as it takes."""
        parts: list[bytes] = []
        room = self._room()
        while len(record) > room:
            parts.append(record[:room])
            record, room = record[room:], _BLOCK - _CHUNK.size
        for index, part in enumerate((*parts, record)):
            self._room()
            first, last = index == 0, index == len(parts)
            kind = (_FULL if last else _FIRST) if first else (_LAST if last else _MIDDLE)
            checksum = zlib.crc32(part, zlib.crc32(bytes([kind])))
            self._out.write(_CHUNK.pack(checksum, len(part), kind) + part)
            self._offset += _CHUNK.size + len(part)

    def _room(self) -> int:
        """Return the bytes that the next chunk can hold; where a block has none, the next one begins."""
        left = _BLOCK - self._offset % _BLOCK
        if left < _CHUNK.size:
            self._out.write(b"\0" * left)
            self._offset += left
            left = _BLOCK
        return left - _CHUNK.size


def _history(messages: Any, number: int, step: int, values: dict[str, float]) -> Any:
    record = messages.Record(num=number)
    record.history.step.num = step
    for name, value in {**values, "_step": step}.items():
        item = record.history.item.add()
        item.nested_key.append(name)
        item.value_json = f"{value:.10g}"
    return record


if __name__ == "__main__":
    main()
