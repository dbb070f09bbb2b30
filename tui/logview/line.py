"""One line of a log as it is shown: cleaned, with its own colours.

Of the escape sequences only colours and weights (SGR) survive, as styles and never as bytes; all others, and
blinking and hidden text, are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from typing import Any

from rich.color import Color
from rich.style import Style

from launcher.text import clean
from recipes.secrets import Mask

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_CARRIAGE_RETURNS = re.compile(r"\r+")
_TAB = 8
_KEPT_BYTES = 512
"""Length up to which a line is kept after it was shown."""
_BLACK, _GREY = 0, 8
_WEIGHTS: dict[int, dict[str, bool | None]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    9: {"strike": True},
    21: {"underline": True},
    22: {"bold": None, "dim": None},
    23: {"italic": None},
    24: {"underline": None},
    27: {"reverse": None},
    29: {"strike": None},
    39: {"color": None},
    49: {"bgcolor": None},
}


@dataclass(frozen=True, slots=True)
class StyledSpan:
    """A part of a line and its style."""

    start: int
    stop: int
    style: Style


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is shown."""

    text: str
    offset: int = 0
    """Offset of its first byte in the source."""
    spans: tuple[StyledSpan, ...] = ()
    label: str = ""
    """Label of its log, in merged logs."""
    origin: tuple[str, int] | None = None
    """File and offset, in merged logs."""
    time: float | None = None
    """When it was written, in seconds since the epoch; in merged logs, where known."""


def display_text(raw: bytes) -> str:
    """Return a line's text as it is shown: cleaned, and of a progress bar only the last state."""
    text = raw.decode("utf-8", errors="replace")
    if text.isprintable():
        return text.rstrip()
    for part in reversed(_CARRIAGE_RETURNS.split(text)):
        if part and (cleaned := clean(part).rstrip()):
            return cleaned
    return ""


def line_of(raw: bytes, offset: int = 0) -> Line:
    """Return a line with its colours; its text is that of `display_text` with dots for secrets."""
    line = _recent_line(raw) if len(raw) <= _KEPT_BYTES else _styled_line(raw)
    return replace(line, offset=offset)


@lru_cache(maxsize=1024)
def _recent_line(raw: bytes) -> Line:
    """Return a line without its offset; a log that is followed is asked for the same lines at each poll."""
    return _styled_line(raw)


def _styled_line(raw: bytes) -> Line:
    if b"\x1b[" not in raw:
        return Line(_mask().hidden(display_text(raw)))
    style = Style.null()
    line = Line("")
    for part in _CARRIAGE_RETURNS.split(raw.decode("utf-8", errors="replace")):
        text, spans, style = _styled_part(part, style)
        if text:
            line = Line(text, spans=spans)
    return replace(line, text=_mask().hidden(line.text))


@cache
def _mask() -> Mask:
    """Return the mask of this process's environment, which does not change."""
    return Mask.of()


def _styled_part(part: str, style: Style) -> tuple[str, tuple[StyledSpan, ...], Style]:
    """Clean the text between two carriage returns; returns also the style in force after it."""
    text = ""
    spans: list[StyledSpan] = []

    def add(piece: str) -> None:
        nonlocal text
        column = len(text) % _TAB  # tabs count from the line's beginning, not from the piece's
        start = len(text)
        text += clean(" " * column + piece)[column:]
        if style and len(text) > start:
            spans.append(StyledSpan(start, len(text), style))

    position = 0
    for match in _SGR.finditer(part):
        add(part[position : match.start()])
        style = _after(style, match[1])
        position = match.end()
    add(part[position:])
    text = text.rstrip()
    visible = tuple(
        StyledSpan(span.start, min(span.stop, len(text)), span.style)
        for span in spans
        if span.start < len(text)
    )
    return text, visible, style


@lru_cache(maxsize=512)
def _after(style: Style, codes: str) -> Style:
    """Return the style after an SGR sequence; unknown codes are ignored."""
    numbers = iter([int(code or 0) for code in codes.replace(":", ";").split(";") if len(code) < 4])
    for code in numbers:
        if code == 0:
            style = Style.null()
        elif code in _WEIGHTS:
            style = _changed(style, **_WEIGHTS[code])
        elif (colour := _colour(code, numbers)) is not None:
            background = code in range(40, 50) or code in range(100, 108)
            style = _changed(style, **{"bgcolor" if background else "color": colour})
    return _readable(style)


def _changed(style: Style, **changes: Any) -> Style:  # noqa: ANN401 - as Rich's own constructor takes them
    """Return a style with some attributes changed; None removes one, which adding styles cannot."""
    names = ("color", "bgcolor", "bold", "dim", "italic", "underline", "reverse", "strike")
    return Style(**{name: getattr(style, name) for name in names} | changes)


def _colour(code: int, more: Iterator[int]) -> Color | None:
    if code in range(30, 38) or code in range(40, 48):
        return Color.from_ansi(code % 10)
    if code in range(90, 98) or code in range(100, 108):
        return Color.from_ansi(code % 10 + 8)
    if code not in (38, 48):
        return None
    kind = next(more, None)
    if kind == 5:
        number = next(more, None)
        return Color.from_ansi(number) if number is not None and number < 256 else None
    if kind == 2:
        parts = [part for part in islice(more, 3) if part < 256]
        return Color.from_rgb(*parts) if len(parts) == 3 else None
    return None


def _readable(style: Style) -> Style:
    """Replace unreadable colours: black on the dark background, or a colour on itself."""
    if style.color is not None and style.color == style.bgcolor:
        return _changed(style, bgcolor=None)
    if style.color is not None and style.color.number == _BLACK and style.bgcolor is None:
        return _changed(style, color=Color.from_ansi(_GREY))
    return style
