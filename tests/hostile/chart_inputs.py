"""Generators of hostile event files of TensorBoard and tables of GPU use, with the commands that read them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from random import Random

from tests.hostile.attempts import SECRET, SECRET_NAME, Attempt
from tests.hostile.log_inputs import log_text
from tests.hostile.recipe_parts import hostile_text

GROUP = "charts"
_STEPS = (0, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**69)
_FLOATS = (0.5, -1.0, float("nan"), float("inf"), float("-inf"), 3e38, 1e-40)
_TIMES = (1.7e9, 1.7e9 + 5, 0.0, -1.0, float("nan"), float("inf"), 1e308, -1e308, 1e12)
_TAGS = (
    "train/loss",
    "train/kl",
    "ray/node.0.gpu.0.util",
    "ray/node.0.gpu.1.mem_gb",
    "timing/total",
    "x" * 5000,
    "",
    "[red]x[/]",
)
_CELLS = (
    "0",
    "99",
    "[N/A]",
    "nan",
    "inf",
    "1e400",
    "-5",
    "9" * 5000,
    "²",
    "٣",
    "x" * 200_000,
    '"',
    "",
    "\x1b[2J",
    "None",
)
_DATES = (
    "2026-11-28T02:00:00+0000",
    "0001-01-01T00:00:00+2359",
    "9999-12-31T23:59:59-2359",
    "2026-13-99",
    "",
    "x",
)
_READS = (("compare", "a", "b"), ("compare", "a", "b", "--json"), ("watch", "--once", "a"), ("watch", "--once", "--json", "a"),
          ("report", "a"))  # fmt: skip


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def field(number: int, data: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(event: bytes) -> bytes:
    """Return a record with checksums that nobody verifies."""
    return struct.pack("<Q", len(event)) + bytes(4) + event + bytes(4)


def scalar(tag: bytes, step: int, value: float, time: float) -> bytes:
    """Return the record of one scalar."""
    summary = field(1, field(1, tag) + b"\x15" + struct.pack("<f", value))
    return record(b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + field(5, summary))


def _odd_scalar(random: Random) -> bytes:
    """Return a record whose parts have other types, are doubled, left out or nested."""
    parts = [
        b"\x09" + struct.pack("<d", random.choice(_TIMES)),
        b"\x10" + varint(random.choice(_STEPS)),
        b"\x0d" + struct.pack("<f", 1.0),
        field(5, field(1, field(1, b"a") + b"\x11" + struct.pack("<d", 1e308))),
        field(5, field(1, field(1, b"t") + field(8, field(5, struct.pack("<f", 1.5)) + field(4, b"abcd")))),
        field(5, field(1, field(1, b"\xff\xfe\x1b[2J") + b"\x15" + struct.pack("<f", 2.0))),
        field(5, b"\x0a" * random.randint(1, 60)),
        b"\x10" + b"\xff" * random.randint(1, 12),
        field(3, b"brain.Event:2"),
    ]
    return record(b"".join(random.choices(parts, k=random.randint(1, 5))))


def events(random: Random) -> bytes:
    """Return an event file: regular, or with records and bytes that no driver writes."""
    tags = [random.choice(_TAGS).encode() for _ in range(random.randint(1, 6))]
    kind = random.randrange(7)
    if kind == 0:  # a tag for each record
        return b"".join(
            scalar(b"tag%d" % number, 1, 1.0, 1.7e9) for number in range(random.choice((50, 3000, 30_000)))
        )
    if kind == 1:  # as a driver writes it, long enough to be read as rows
        count = random.choice((5, 300, 5000))
        return b"".join(scalar(tag, step, 1.0, 1.7e9 + step) for step in range(count) for tag in tags)
    steps: Sequence[int] = _STEPS if random.random() < 0.5 else range(40)
    data = b"".join(
        _odd_scalar(random) if random.random() < 0.15
        else scalar(random.choice(tags), random.choice(steps), random.choice(_FLOATS), random.choice(_TIMES))
        for _ in range(random.randint(1, 400))
    )  # fmt: skip
    if kind == 2:
        return data[: random.randint(0, len(data))]
    if kind == 3:
        at = random.randrange(len(data))
        return data[:at] + random.randbytes(random.randint(1, 30)) + data[at + random.randint(0, 30) :]
    if kind == 4:
        return (
            data + struct.pack("<Q", random.choice((2**63, 8 << 20, (8 << 20) + 1, 2**64 - 1))) + bytes(100)
        )
    return data


def table(random: Random) -> bytes:
    """Return a table of GPU use with cells of any kind."""
    heading = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB],power.draw [W],host.memory.used [MiB]"
    lines = [heading if random.random() < 0.9 else heading[:40]]
    for _ in range(random.choice((3, 50, 2000))):
        cells = [
            random.choice(_CELLS) if random.random() < 0.1 else str(random.randint(0, 90_000))
            for _ in range(6)
        ]
        lines.append(",".join([random.choice(_DATES) if random.random() < 0.2 else _DATES[0], *cells]))
    return "\n".join(lines).encode()


def chart_attempts(count: int, *, seed: int) -> Iterator[Attempt]:
    """Yield directories of logs with such files beside the logs."""
    random = Random(seed)
    for number in range(count):
        name = hostile_text(random, 3).translate({0: None, ord("/"): None, 0xD800: None}) or "x"
        files = {
            "a/ray-driver.log": log_text(random),
            "a/tensorboard/events.out.tfevents.1": events(random),
            f"a/tensorboard/events.out.tfevents.{name}": events(random),
            "a/gpu-n1.csv": table(random),
            "b/driver.log": log_text(random),
            "b/gpu-n2.csv": table(random),
        }
        special, kind = {}, "mutated"
        if number % 6 == 0:
            target = random.choice(("a/tensorboard/events.out.tfevents.1", "a/gpu-n1.csv"))
            del files[target]
            kind = random.choice(("fifo", "directory", "loop", "gigabyte", "-> /dev/zero", "-> /proc/kmsg"))
            special[target] = kind
        yield Attempt(
            GROUP, kind, _READS[number % len(_READS)], files, special,
            variables={SECRET_NAME: SECRET},
        )  # fmt: skip
