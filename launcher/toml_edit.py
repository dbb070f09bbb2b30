"""Edits of a TOML file that keep its comments and all other lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

TomlValue = str | int | float | Sequence[str]
_TABLE = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*(?P<name>[A-Za-z0-9_-]+)\s*=")
_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*')


def with_value(text: str, table: str, name: str, value: TomlValue) -> str:
    """Return a text of TOML with a key set; all other lines stay, and a missing table is added at the end.

    Keys in inline tables and dotted keys are not recognised: the result must be read back.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    ending = "\r" if text.endswith("\r\n") else ""
    start, end = _section(lines, table)
    line = f"{name} = {_toml(value)}"
    if start is None:
        gap = [ending] if lines and lines[-1].strip() else []
        lines += [*gap, f"[{table}]{ending}", line + ending]
        return "\n".join(lines) + "\n"
    for index in range(start, end):
        match = _KEY.match(lines[index])
        if match and match["name"] == name:
            last = _last_line(lines, index)
            lines[index : last + 1] = [line + _comment(lines[last]) + ending]
            return "\n".join(lines) + "\n"
    lines.insert(_end_of_section(lines, start, end), line + ending)
    return "\n".join(lines) + "\n"


def _end_of_section(lines: Sequence[str], start: int, end: int) -> int:
    """Return where a table's new last line goes: above blank lines and the next table's own comment."""
    if end < len(lines):
        above = end
        while above > start and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        if above == start or not lines[above - 1].strip():
            end = above
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _section(lines: Sequence[str], table: str) -> tuple[int | None, int]:
    """Return the lines of a table, `[start, end)`; no start where it is not there."""
    start: int | None = None if table else 0
    for index, line in enumerate(lines):
        match = _TABLE.fullmatch(line)
        if match and start is not None:
            return start, index
        if match and match["name"].strip() == table:
            start = index + 1
    return start, len(lines)


def _last_line(lines: Sequence[str], first: int) -> int:
    """Return the last line of a key's value, which may go over several lines in brackets."""
    depth = 0
    for index in range(first, len(lines)):
        bare = _BRACKETS.sub("", lines[index])
        depth += bare.count("[") - bare.count("]")
        if depth <= 0:
            return index
    return len(lines) - 1


def _comment(line: str) -> str:
    """Return the comment at the end of a line, with the blanks before it."""
    for match in _BRACKETS.finditer(line):
        if match[0].startswith("#"):
            return line[len(line[: match.start()].rstrip()) :].rstrip("\r")
    return ""


def _toml(value: TomlValue) -> str:
    """Return a value as TOML; TOML's basic strings have JSON's escapes."""
    import json

    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
