"""Language of the stand-ins: a text, its characters, a teacher built from it, prompts taken from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TEXT = (
    "a small boat leaves the harbour before dawn. the old pilot knows every rock, and the young one holds "
    "the wheel. he steers by what he sees, and the pilot says what he would have done. so the boy learns "
    "from his own turns and not from a book. when he drifts to the left, he hears of it at once. when he "
    "keeps the line, he hears nothing. after an hour the boat runs straight. the pilot has not touched "
    "the wheel, yet his way of steering is in it now. the wind is light and the water is calm. a grey "
    "bird sits on the mast and looks at the shore. the sun comes up behind the hills, and the fog turns "
    "to gold. nobody speaks for a while. then the boy asks how deep it is here, and the pilot says that "
    "it is deep enough. at noon they reach the island. they tie the boat to a post and walk to the "
    "village. there they eat bread and fish, and the boy draws the way they came on a sheet of paper. the "
    "pilot adds two rocks and takes away one. the next day they sail back, and the boy finds the way "
    "alone. he makes a few mistakes, but each is smaller than the one before. in the evening the harbour "
    "lies before them, quiet and bright. the pilot nods, jumps to the quay, and makes the rope fast."
)
VOCABULARY = "".join(sorted(set(TEXT)))
STOP = VOCABULARY.index(".")
CONTEXT = 3
"""Preceding characters that teacher and student use."""
PROMPT_LENGTH = 12
SMOOTHING = 0.4
"""Weight of the shorter context in the teacher's prediction, in counted characters."""
HELD_OUT = 5
"""Every fifth prompt is kept for validation."""

_CODES = {character: code for code, character in enumerate(VOCABULARY)}


def encode(text: str) -> Ints:
    """Return the codes of the characters of `text`."""
    return np.array([_CODES[character] for character in text], dtype=np.int64)


def decode(codes: Iterable[Any]) -> str:
    """Return the text of character codes."""
    return "".join(VOCABULARY[int(code)] for code in codes)


def log_softmax(logits: Floats) -> Floats:
    """Return the log probabilities of the last axis' logits."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)), dtype=np.float64)


def teacher_log_probabilities() -> Floats:
    """Return the teacher: log p(next | CONTEXT characters) of an n-gram model of TEXT with back-off."""
    size = len(VOCABULARY)
    codes = encode(TEXT)
    probabilities: Floats = np.full(size, 1.0 / size)
    for length in range(CONTEXT + 1):
        counts = np.zeros((size,) * (length + 1))
        np.add.at(counts, tuple(codes[at : len(codes) - length + at] for at in range(length + 1)), 1.0)
        total = counts.sum(axis=-1, keepdims=True)
        probabilities = (counts + SMOOTHING * probabilities) / (total + SMOOTHING)
    return np.asarray(np.log(probabilities), dtype=np.float64)


def top_logits(teacher: Floats, contexts: Ints, k: int) -> tuple[Floats, Ints]:
    """Return the teacher's k largest logits after each context, and their characters."""
    scores = teacher[tuple(contexts.T)]
    indices = np.argsort(-scores, axis=-1, kind="stable")[:, :k]
    return np.take_along_axis(scores, indices, axis=-1), indices


def prompts() -> tuple[Ints, Ints]:
    """Return the training and the validation prompts: pieces of TEXT that start with a word, no two alike."""
    starts = [0, *(at + 1 for at, character in enumerate(TEXT) if character == " ")]
    pieces = dict.fromkeys(TEXT[at : at + PROMPT_LENGTH] for at in starts if at + PROMPT_LENGTH <= len(TEXT))
    rows = np.stack([encode(piece) for piece in pieces])
    held_out = np.arange(len(rows)) % HELD_OUT == 0
    return rows[~held_out], rows[held_out]
