"""Output of the commands: results on standard output, messages on standard error.

Everything a command prints goes through here: text is made visible (`recipes.printable`) and secrets are
masked, whatever it quotes. Documents are written as they are, except to a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

SCHEMA = {"schema": 1}


def print_json(value: Mapping[str, object], *, line: bool = False) -> None:
    """Print one JSON object: indented, or on one line and flushed (for streams).

    Characters that a terminal could obey or a reader not see are escaped.
    """
    import json

    from recipes.printable import escaped_json
    from recipes.secrets import Mask

    indent = None if line else 1
    text = escaped_json(json.dumps(Mask.of().data(value), ensure_ascii=False, indent=indent, allow_nan=False))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a terminal that is not UTF-8
        text = json.dumps(json.loads(text), indent=indent)
    write_text(sys.stdout, text + "\n", flush=line)


def show(text: str, *, flush: bool = False) -> None:
    """Print lines of a result."""
    write_text(sys.stdout, _printable(text) + "\n", flush=flush)


def say(text: str) -> None:
    """Print a message that is not part of the result; where nobody can get it, the command goes on."""
    with suppress(OSError):
        write_text(sys.stderr, _printable(text) + "\n", flush=True)


def announce(text: str) -> None:
    """Say what was done beyond recall before its result is printed to where no terminal shows it."""
    if not sys.stdout.isatty():
        say(text)


def finish(code: int) -> int:
    """Write what is still buffered; returns the exit code, 3 where a result of a success got lost.

    What cannot be written is dropped: at the end of the process Python would try once more, and end it with
    code 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            _drop(stream)
            if stream is sys.stdout and not isinstance(error, BrokenPipeError) and code == 0:
                say(f"distill-tui: {error.strerror}: standard output")
                code = 3
            elif stream is sys.stdout and isinstance(error, BrokenPipeError):
                code = 141
    return code


def _drop(stream: TextIO) -> None:
    """Let the rest of a stream go nowhere."""
    with suppress(OSError, ValueError):  # a stream of a test has no descriptor
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def ask(question: str) -> bool:
    """Ask a yes-or-no question on the terminal; anything but yes is no."""
    say(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def write_document(text: str | bytes) -> None:
    """Write a document to standard output as it is; to a terminal, with its control characters visible."""
    if sys.stdout.isatty():
        from recipes.printable import visible_lines

        text = visible_lines(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    if isinstance(text, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    else:
        write_text(sys.stdout, text)


def write_text(stream: TextIO, text: str, *, flush: bool = False) -> None:
    """Write text; characters that the stream's encoding does not have are written as escapes."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text)
        if flush:
            stream.flush()
    except OSError as error:
        name = "standard output" if stream is sys.stdout else "standard error"
        raise OSError(error.errno, error.strerror, name) from error


def _printable(text: str) -> str:
    from recipes.printable import visible_lines
    from recipes.secrets import masked

    return visible_lines(masked(text))
