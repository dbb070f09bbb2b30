"""Text from outside as it may be printed: what a terminal or a reader could be deceived by becomes visible.

A file name, a key or a value may hold escape sequences, line breaks, marks that turn the direction of text
(Unicode's bidirectional controls), invisible characters, or bytes that are no text at all.
"""

from __future__ import annotations

import re

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that are not seen, or that move others: Unicode's default ignorable ones and line ends."""
_UNPRINTABLE = re.compile(f"[\x00-\x08\x0a-\x1f\x7f-\x9f{INVISIBLE}\ud800-\udfff]")
_VARIATION = re.compile("(?<=[\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff#*0-9])[\ufe0e\ufe0f]")
"""Variation selectors behind a character that has two forms: emoji are no deception."""


def visible(text: str) -> str:
    """Return a text as one printable line: control characters as marks (␛), invisible ones as <U+202E>."""
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(_mark, _VARIATION.sub("", text)).expandtabs(8)


def visible_lines(text: str) -> str:
    """Return a text with each line made visible and its line breaks kept."""
    return "\n".join(map(visible, text.replace("\r\n", "\n").split("\n")))


def escaped_json(text: str) -> str:
    """Return JSON with what `visible` would mark written as JSON's own escapes."""
    return _UNPRINTABLE.sub(_escape, text)


def _mark(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x20:
        return chr(0x2400 + number)
    if number == 0x7F:
        return "␡"
    if number < 0xA0:
        return f"␛{chr(number - 0x40)}"  # the same control function in its two-byte form
    return f"<U+{number:04X}>"


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number == 0x0A:
        return "\n"  # between the lines of indented JSON; json writes those of texts as \n itself
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
