"""A unified diff as styled lines; they keep their signs, so that it reads without colour."""

from __future__ import annotations

from textual.content import Content

from launcher.text import clean

_STYLES = {"+": "$text-success", "-": "$text-error", "@": "$text-primary"}


def diff_lines(diff: str) -> list[Content]:
    """Return the lines of a unified diff, without its two lines of file names."""
    return [
        Content.assemble((line, _STYLES.get(line[:1], "dim" if line.startswith("\\") else "")))
        for line in map(clean, _body(diff))
    ]


def changed_count(diff: str) -> tuple[int, int]:
    """Return the numbers of added and removed lines."""
    lines = _body(diff)
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _body(diff: str) -> list[str]:
    lines = diff.rstrip("\n").split("\n")
    return lines[2:] if lines[0].startswith("--- ") else [line for line in lines if line]
