"""Figures and values of a comparison as text."""

from __future__ import annotations

from launcher.durations import in_words
from launcher.overview.comparison import Figure
from recipes.compare import ABSENT

_VALUE_CHARS = 60


def texts_of(row: Figure) -> list[str]:
    """Return a figure's values as text."""
    texts = []
    for value in row.values:
        if value is None:
            texts.append("-")
        elif row.unit == "s" and isinstance(value, int | float):
            texts.append(in_words(value) if value >= 100 else f"{value:.2f} s")
        else:
            number = f"{value:.4g}" if isinstance(value, float) else str(value)
            texts.append(f"{number} {row.unit}".strip())
    return texts


def value_text(value: object) -> str:
    """Return a recipe's value on one line; `(not set)` for a key that is not there."""
    text = "(not set)" if value is ABSENT else str(value)
    return text if len(text) <= _VALUE_CHARS else f"{text[: _VALUE_CHARS - 1]}…"
