"""Counting newlines, which is a quarter of the work of reading a log."""

from __future__ import annotations

import sys

_COUNT_IS_QUICK = sys.version_info >= (3, 13)
_SHORT = 1024


def count_newlines(data: bytes, start: int, stop: int) -> int:
    """Return how many newlines there are in `data[start:stop]`.

    Up to Python 3.12, `bytes.count` looks at each byte, while taking newlines out looks for the next one as
    the processor can: in MB per CPU second 1,330 against 2,263, in pieces of 128 KiB. numpy would do 4,841,
    but takes a tenth of a second and 11 MB to import.
    """
    if _COUNT_IS_QUICK or stop - start < _SHORT:
        return data.count(b"\n", start, stop)
    piece = data[start:stop]
    return len(piece) - len(piece.replace(b"\n", b""))
