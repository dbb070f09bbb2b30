"""Parsing of the output of Slurm's commands into rows and values.

Text formats only: the JSON of Slurm's commands changes shape with every release, ignores filters, and with
the controller down `squeue --json` prints an empty list and exits with 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from launcher.durations import DurationError, parse_duration
from launcher.errors import TransportError

MAX_ROWS = 50_000
"""Limit of a list: a row takes some 2 kB and 0.1 ms."""
_SHOWN = 200
"""Characters of a line that are shown: one may have 100,000 digits."""


class ParseError(TransportError):
    """Output of a command that cannot be parsed."""

    def __init__(self, what: str, text: str, *, why: str = "") -> None:
        shown = next((line for line in text.splitlines() if line.strip()), "").strip()
        super().__init__(f"cannot read this {what}{f' ({why})' * bool(why)}: '{shown[:_SHOWN]}'")


def unread_text(command: str, line: str) -> str:
    """Return what is said of a line of a command's output that is no row."""
    return f"cannot read this line of {command}: '{line[:_SHOWN]}'"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows by column name."""

    rows: tuple[dict[str, str], ...]
    unread: tuple[str, ...] = ()
    """Lines that do not have the table's columns."""


def read_table(text: str, columns: Sequence[str] | None = None, *, what: str = "table") -> Table:
    """Read a table as Slurm's commands print it; its last column may hold the separator.

    Args:
        text: The output.
        columns: The columns of `|`-separated output without a header; None where a header names them
            (separated by `|`, or set out in columns with or without a line of dashes).
        what: What the table holds, for messages.

    Raises:
        ParseError: there is no such table.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > MAX_ROWS:
        raise ParseError(what, text, why=f"more than {MAX_ROWS:,} lines")
    if columns is not None:
        return _separated(lines, list(columns), trailing=False)
    if not lines:
        return Table(())
    header = lines[0]
    if (
        not re.fullmatch(r"[A-Za-z(][\w %()/.|-]*", header.strip(" |"))
        or len(header.split()) + header.count("|") < 2
    ):
        raise ParseError(what, text)
    if "|" in header:
        bare = header.strip()
        if bare.startswith("|"):
            cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
            return _rows(cells[0], cells[1:], lines[1:])
        return _separated(lines[1:], bare.rstrip("|").split("|"), trailing=bare.endswith("|"))
    if len(lines) > 1 and set(lines[1]) <= {"-", " "}:
        return _under_dashes(header, lines[1], lines[2:])
    names = header.split()
    cells = [line.split(None, len(names) - 1) for line in lines[1:]]
    # A list of no nodes leaves the last cell out.
    padded = [[*values, ""] if len(values) == len(names) - 1 else values for values in cells]
    return _rows(names, padded, lines[1:])


def read_records(text: str, *, what: str = "record") -> list[dict[str, str]]:
    """Read what `scontrol show` prints, over several lines or with `-o`: one mapping a record.

    Raises:
        ParseError: a line holds no `Key=value`.
    """
    records: list[dict[str, str]] = []
    first = ""
    for line in text.splitlines():
        if not line.strip():
            continue
        pairs = re.findall(r"(?:^|\s)([A-Z][\w/:]*)=(.*?)(?=\s+[A-Z][\w/:]*=|\s*$)", line)
        if not pairs or not re.match(r"\s*[A-Z][\w/:]*=", line):
            raise ParseError(what, line)
        first = first or pairs[0][0]
        if pairs[0][0] == first:
            if len(records) == MAX_ROWS:
                raise ParseError(what, line, why=f"more than {MAX_ROWS:,} records")
            records.append({})
        records[-1].update(pairs)
    return records


def read_duration(text: str) -> int | None:
    """Return a duration that a command printed, in seconds; None for no limit or unknown.

    Raises:
        ParseError: it is none.
    """
    try:
        return parse_duration(text)
    except DurationError as error:
        raise ParseError("duration", text) from error


def whole(text: str) -> int | None:
    """Return a whole number; None for one that is unset or without limit."""
    text = text.strip()
    return int(text) if text.isdecimal() and int(text) < 4294967294 else None


def listed(text: str) -> tuple[str, ...] | None:
    """Return a list of names; None where it says ALL or nothing."""
    names = tuple(name for name in text.split(",") if name)
    return None if not names or text.upper() in ("ALL", "(NULL)", "N/A") else names


def _separated(lines: Sequence[str], columns: Sequence[str], *, trailing: bool) -> Table:
    cuts = len(columns) - 1 if columns[-1].lower() in _FREE else -1
    cells = [(line.removesuffix("|") if trailing else line).split("|", cuts) for line in lines]
    return _rows(columns, cells, lines)


def _rows(columns: Sequence[str], cells: Sequence[Sequence[str]], lines: Sequence[str]) -> Table:
    rows, unread = [], []
    for line, values in zip(lines, cells, strict=True):
        if len(values) == len(columns):
            rows.append(dict(zip(columns, (value.strip() for value in values), strict=True)))
        else:
            unread.append(line)
    return Table(tuple(rows), tuple(unread))


_FREE = ("comment", "reason", "submitline", "name", "jobname")
"""Columns that may hold any text; they stand last where we ask."""


def _under_dashes(header: str, dashes: str, lines: Sequence[str]) -> Table:
    spans = [match.span() for match in re.finditer(r"-+", dashes)]
    if len(spans) < 2:
        raise ParseError("table", header)
    ends = [start for start, _ in spans[1:]]

    def cut(line: str) -> list[str]:
        starts = [0, *ends]
        return [
            line[start:end].strip()
            for start, end in zip(starts, [*ends, max(len(line), ends[-1])], strict=True)
        ]

    return Table(tuple(dict(zip(cut(header), cut(line), strict=True)) for line in lines))
