"""Values of options: from text to a number, with a message that says what is expected."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def count(text: str) -> int:
    """Return a whole number >= 1; raises ArgumentTypeError."""
    return _whole(text, 1)


def number(text: str) -> int:
    """Return a whole number >= 0; raises ArgumentTypeError."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, not '{text}'")
    return int(text)


def amount(text: str) -> float:
    """Return a finite number > 0; raises ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number > 0, not '{text}'")
    return value


def time(text: str) -> int:
    """Return a time limit in seconds; raises ArgumentTypeError."""
    from launcher.durations import DurationError, parse_time_limit

    try:
        return parse_time_limit(text)
    except DurationError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


CONVERTERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "count": count,
    "number": number,
    "amount": amount,
    "time": time,
}
