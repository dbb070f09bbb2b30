"""Other spellings of a secret value: what programs, languages and encodings make of it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE = 16
"""Characters of a line of a secret that is masked by itself."""
_SHORTEST = 8
"""Characters of the shortest spelling that is masked."""
_JSON_LEVELS = 3
_URL_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
_SKIPPED = (0, 2, 3)
"""Letters of base64 that depend on the bytes before, by the number of these in the same group of three."""


@lru_cache(maxsize=256)
def spellings(secret: str) -> tuple[str, ...]:
    """Return what becomes of a secret in a URL, in JSON, in base64, in a program's text, and its lines."""
    return tuple(
        text for text in dict.fromkeys(_spelled(secret)) if text != secret and len(text) >= _SHORTEST
    )


def _spelled(secret: str) -> Iterator[str]:
    data = secret.encode("utf-8", "surrogateescape")
    yield from _base64(data)
    yield data.hex()
    yield data.hex().upper()
    for safe in (_URL_SAFE, _URL_SAFE | {0x2F}):
        yield (text := "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in data))
        yield text.replace("%20", "+")
    if not secret.isalnum():
        yield "".join(_HTML.get(letter, letter) for letter in secret)
        yield secret.replace("'", "'\"'\"'")  # in single quotes of a shell
        yield secret.replace("'", "'\\''")
    if '"' in secret or "'" in secret or "\\" in secret or not secret.isprintable() or not secret.isascii():
        from recipes.secret_finder import without_interruptions

        yield without_interruptions(secret)  # it is sought in a text without them
        yield from _escaped(secret, data)
    if "\n" in secret:
        yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= _LINE)


def _base64(data: bytes) -> Iterator[str]:
    """Yield base64, and the letters of it that stay the same behind other bytes, as a user's name."""
    from binascii import b2a_base64

    for before in range(3):
        text = b2a_base64(bytes(before) + data, newline=False).decode().rstrip("=")
        stable = text[_SKIPPED[before] : (before + len(data)) * 8 // 6]
        for piece in (text, stable) if before == 0 else (stable,):
            if len(piece) >= _SHORTEST:
                yield piece
                yield piece.translate({0x2B: "-", 0x2F: "_"})


def _escaped(secret: str, data: bytes) -> Iterator[str]:
    """Yield a value as JSON has it, also JSON in JSON, and as Python does."""
    from json import dumps

    for is_ascii in (True, False):
        text = secret
        for _ in range(_JSON_LEVELS):
            text = dumps(text, ensure_ascii=is_ascii)[1:-1]
            yield text
    yield repr(secret)[1:-1]
    yield ascii(secret)[1:-1]
    yield repr(data)[2:-1]
