"""Search of an edited recipe's keys by any part of key, value or comment, also of keys that are not set."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from recipes.editing.analysis import Analysis
from recipes.editing.predictor import Predictor
from recipes.editing.stock_comments import joined
from recipes.values import find as find_value

_WORDS = re.compile(r"[^a-z0-9]+")
_TERMS = {
    "learning rate": "lr",
    "batch size": "batch_size",
    "sequence length": "sequence_length",
    "context length": "sequence_length",
    "tensor parallel": "tensor parallel_size",
    "pipeline parallel": "pipeline parallel_size",
    "context parallel": "context parallel_size",
}
"""Terms of the field that keys spell otherwise."""
_UNSPOKEN = ("size", "model")
_SECTIONS = (
    "distillation",
    "loss_fn",
    "policy",
    "teacher",
    "data",
    "env",
    "cluster",
    "checkpointing",
    "logger",
)

KEY_EXACT, WORD, STEP_EXACT, WORD_START, PART, STEP_PART, VALUE, COMMENT = range(8)
_REASONS = {VALUE: "value", COMMENT: "comment"}


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """A match: `reason` is key, value or comment; `row` the key's index in the outline, if it is set."""

    key: str
    value: str
    is_set: bool
    reason: str
    help: str
    row: int | None


@dataclass(frozen=True)
class SearchEntry:
    """A key with its texts, in lower case where they are searched."""

    key: str
    value: str
    help: str
    row: int | None
    order: int

    @cached_property
    def lower(self) -> str:
        """Key to search."""
        return self.key.lower()

    @cached_property
    def last(self) -> str:
        """Last step that is not a list item's number."""
        steps = [step for step in self.lower.split(".") if not step.isdigit()]
        return steps[-1] if steps else self.lower

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words of the last step."""
        return tuple(word for word in _WORDS.split(self.last) if word)

    @cached_property
    def abbreviations(self) -> tuple[str, ...]:
        """Usual short names: first letters of the words without `size` and `model`, all or all but the first.

        tp for tensor_parallel_size, gb and mb for train_global_batch_size and train_micro_batch_size.
        """
        if "size" not in self.words:
            return ()
        letters = "".join(word[0] for word in self.words if word not in _UNSPOKEN)
        return tuple(
            text for text in (letters, f"{letters}s", letters[1:], f"{letters[1:]}s") if len(text) > 1
        )

    @cached_property
    def help_lower(self) -> str:
        """Comment to search."""
        return self.help.lower()


class SearchIndex:
    """Keys of one analysed recipe, set ones first."""

    def __init__(self, entries: Iterable[SearchEntry]) -> None:
        self.entries = tuple(entries)

    @classmethod
    def of(cls, predictor: Predictor, analysis: Analysis) -> SearchIndex:
        """Index an analysed recipe, and the keys that the schema knows besides."""
        return cls(_entries(predictor, analysis))

    def find(self, text: str, limit: int = 50) -> tuple[KeyMatch, ...]:
        """Return the keys that match all words of a text, best first."""
        query = " ".join(text.lower().split())
        if not query:
            return ()
        words = _TERMS.get(query, query).split(" ")
        ranked = []
        for entry in self.entries:
            ranks = [_rank(entry, word) for word in words]
            if any(rank is None for rank in ranks):
                continue
            rank = max(rank for rank in ranks if rank is not None)
            if query != words[0] and query in entry.lower:
                rank = min(rank, KEY_EXACT if entry.lower == query else STEP_PART)
            order = (rank, entry.row is None, entry.lower.count("."), _section_rank(entry), entry.order)
            ranked.append((order, entry))
        ranked.sort(key=lambda pair: pair[0])
        return tuple(_match(entry, order[0]) for order, entry in ranked[:limit])


def _match(entry: SearchEntry, rank: int) -> KeyMatch:
    reason = _REASONS.get(rank, "key")
    return KeyMatch(entry.key, entry.value, entry.row is not None, reason, entry.help, entry.row)


def _rank(entry: SearchEntry, word: str) -> int | None:
    """Return how well a word matches an entry, smaller is better; None where it does not."""
    if word in (entry.lower, entry.last):
        return KEY_EXACT
    if len(entry.words) > 1 and word in entry.abbreviations:
        return WORD
    if word in entry.lower:
        return _rank_in_key(entry, word)
    if word in entry.value.lower():
        return VALUE
    return COMMENT if word in entry.help_lower else None


def _rank_in_key(entry: SearchEntry, word: str) -> int:
    if word in entry.words:
        return WORD
    if word in entry.lower.split("."):
        return STEP_EXACT if word in entry.last else STEP_PART
    if any(part.startswith(word) for part in entry.words):
        return WORD_START
    return PART if word in entry.last else STEP_PART


def _section_rank(entry: SearchEntry) -> int:
    section = entry.lower.partition(".")[0]
    return _SECTIONS.index(section) if section in _SECTIONS else len(_SECTIONS)


def _entries(predictor: Predictor, analysis: Analysis) -> Iterator[SearchEntry]:
    comments = predictor.comments(analysis)
    merged = analysis.recipe.merged
    number = 0
    for index, row in enumerate(analysis.outline.rows):
        value = find_value(merged, row.path) if row.state != "commented" else None
        text = joined(comments.of(value)) if value is not None else ""
        shown = row.written if row.written == row.effective else f"{row.written} {row.effective}".strip()
        yield SearchEntry(row.key, shown, text, index, number)
        number += 1
    present = {row.key for row in analysis.outline.rows}
    for key, text in predictor.schema.known_texts(predictor.schema.algorithm(analysis.recipe.values)).items():
        if key not in present:
            yield SearchEntry(key, "", text, None, number)
            number += 1
