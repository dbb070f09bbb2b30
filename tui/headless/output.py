"""Writing results."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def print_json(value: Mapping[str, object], *, line: bool = False) -> None:
    """Print one JSON object: indented, or on a line of its own and at once (for streams)."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=None if line else 1, allow_nan=False)
    try:
        print(text, flush=line)
    except UnicodeEncodeError:  # half of a surrogate pair, or a terminal that is not UTF-8
        print(json.dumps(value, indent=None if line else 1, allow_nan=False), flush=line)


def say(text: str) -> None:
    """Print a message that is not a result."""
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return a duration as people read it: `8 s`, `3 min 05 s`, `2 h 10 min`, `1 d 04 h`."""
    whole = max(int(seconds), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 60:
        return f"{whole} s"
    if hours < 1:
        return f"{minutes} min {whole % 60:02d} s"
    if days < 1:
        return f"{hours} h {minutes % 60:02d} min"
    return f"{days} d {hours % 24:02d} h"
