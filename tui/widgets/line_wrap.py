"""Wrapping of styled lines at words; a word that is longer than a line, such as a path, at its separators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from textual.content import Content

_PATH = "/"
_PARTS = "-_.,:=&"
"""Characters behind which a word is cut that is longer than a line and has no slash there."""
_ELLIPSIS = "…"
_LEAST_PATH = 16
"""Cells of a path that is shortened: a name, and what is left out."""


def wrapped(content: Content, width: int, *, hanging: int = 0) -> list[Content]:
    """Wrap in `width` cells; lines after the first are indented by `hanging` cells.

    As many characters at the start of the first line are its head, a label or a mark, which stays with it.
    """
    if not content.plain:
        return [Content("")]
    lines: list[Content] = []
    for paragraph in content.split("\n", allow_blank=True):
        for start, end in _pieces(paragraph.plain, max(width, 1), hanging, first=not lines):
            indent = " " * hanging if lines else ""
            piece = paragraph[start:end].rstrip()
            lines.append(Content.assemble(indent, piece) if indent else piece)
    return lines


def _pieces(plain: str, width: int, hanging: int, *, first: bool) -> Iterator[tuple[int, int]]:
    start, room = 0, width if first else width - hanging
    head = hanging if first else 0
    while cell_len(plain[start:]) > max(room, 1):
        cut = _cut(plain, start, start + head, max(room, 1), max(width - hanging, 1))
        yield start, cut
        start = cut + (plain[cut : cut + 1] == " ")
        room, head = width - hanging, 0
    yield start, len(plain)


def _cut(plain: str, start: int, body: int, room: int, next_room: int) -> int:
    """Return where the line from `start` ends; `body` is the end of its head, which is not cut."""
    end = _fitting(plain, start, room)
    if plain[end] == " ":
        return end
    body = body if body < end else start
    blank = plain.rfind(" ", body + 1, end)
    word = max(blank + 1, body)
    following = plain.find(" ", end)
    rest = plain[word : following if following >= 0 else len(plain)]
    if blank > body and cell_len(rest) <= next_room:
        return blank
    for separators in (_PATH, _PARTS):
        cut = max(plain.rfind(separator, word + 1, end) for separator in separators) + 1
        if any(letter.isalnum() for letter in plain[word:cut]):
            return cut
        if blank > body:
            return blank
    return end


def _fitting(plain: str, start: int, room: int) -> int:
    """Return the end of as many characters as fit; at least one."""
    end = min(start + room, len(plain))
    while end > start + 1 and cell_len(plain[start:end]) > room:
        end -= 1
    return end


def shortened_path(text: str, width: int) -> str:
    """Return a path in at most `width` cells: its first part, `…`, and as many of its last parts as fit."""
    if cell_len(text) <= width:
        return text
    parts = text.split("/")
    first = "/".join(parts[: 1 + text.startswith("/")])
    for start in (f"{first}/", ""):
        end = _last_parts(parts, width - cell_len(start) - 1)
        if end:
            return f"{start}{_ELLIPSIS}{end}"
    return f"{_ELLIPSIS}{_last_cells(text, width - 1)}"[: max(width, 0)]


def with_short_paths(text: str, width: int) -> str:
    """Return a text that is too long for `width` cells with its paths shortened in their middles.

    The longest comes first; none gets shorter than is still of use, so that it may remain too long.
    """
    words = text.split(" ")
    paths = [index for index, word in enumerate(words) if _PATH in word]
    for index in sorted(paths, key=lambda index: -len(words[index])):
        excess = cell_len(" ".join(words)) - width
        if excess <= 0:
            break
        words[index] = shortened_path(words[index], max(cell_len(words[index]) - excess, _LEAST_PATH))
    return " ".join(words)


def shortened_name(text: str, width: int) -> str:
    """Return a text that ends with the name of a file in at most `width` cells: its end stays."""
    if cell_len(text) <= width or width < _LEAST_PATH or not _is_name(text.rpartition(" ")[2]):
        return text
    end = _last_cells(text, width // 2)
    return text[: _fitting(text, 0, width - 1 - cell_len(end))] + _ELLIPSIS + end


def _is_name(word: str) -> bool:
    return "." in word.strip(".") or _PATH in word


def _last_parts(parts: Sequence[str], room: int) -> str:
    end = ""
    for part in reversed(parts):
        if cell_len(f"/{part}{end}") > room:
            break
        end = f"/{part}{end}"
    return end


def _last_cells(text: str, room: int) -> str:
    start = max(len(text) - max(room, 0), 0)
    while cell_len(text[start:]) > room and start < len(text):
        start += 1
    return text[start:]
