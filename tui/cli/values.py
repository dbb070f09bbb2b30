"""Values of options: from text to a number, with a message that says what is expected."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any


def count(text: str) -> int:
    """Return a whole number >= 1; raises ArgumentTypeError."""
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, not '{text}'")
    return int(text)


def amount(text: str) -> float:
    """Return a finite number > 0; raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number > 0, not '{text}'")
    return number


def time(text: str) -> int:
    """Return a time limit in seconds; raises ArgumentTypeError."""
    from launcher.time_limit import TimeLimitError, parse_time_limit

    try:
        return parse_time_limit(text)
    except TimeLimitError as error:
        raise argparse.ArgumentTypeError(error.what) from error


CONVERTERS: dict[str, Callable[[str], Any]] = {"text": str, "count": count, "amount": amount, "time": time}
