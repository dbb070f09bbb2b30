"""Output of the commands: results on standard output, messages on standard error.

Text is cleaned of control characters here, whatever it quotes; documents are written as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

SCHEMA = {"schema": 1}


def print_json(value: Mapping[str, object], *, line: bool = False) -> None:
    """Print one JSON object: indented, or on one line and flushed (for streams).

    Control characters that JSON may hold as they are (DEL, C1) are escaped: a terminal could obey them.
    """
    import json
    import re

    text = json.dumps(value, ensure_ascii=False, indent=None if line else 1, allow_nan=False)
    text = re.sub("[\x7f-\x9f]", lambda match: f"\\u{ord(match[0]):04x}", text)
    try:
        print(text, flush=line)
    except UnicodeEncodeError:  # half of a surrogate pair, or a terminal that is not UTF-8
        print(json.dumps(value, indent=None if line else 1, allow_nan=False), flush=line)


def show(text: str, *, flush: bool = False) -> None:
    """Print lines of a result."""
    print(_clean(text), flush=flush)


def say(text: str) -> None:
    """Print a message that is not part of the result."""
    print(_clean(text), file=sys.stderr, flush=True)


def ask(question: str) -> bool:
    """Ask a yes-or-no question on the terminal; anything but yes is no."""
    say(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def write_document(text: str | bytes) -> None:
    """Write a document to standard output as it is."""
    if isinstance(text, bytes):
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(text)


def _clean(text: str) -> str:
    from launcher.text import clean_lines

    return clean_lines(text)
