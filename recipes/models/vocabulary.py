"""Comparison of the student's and teacher's vocabularies, by their cached tokenizer files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.limits import TOKENIZER_BYTES
from recipes.models.facts import UnknownModel
from recipes.models.json_file import read_json

if TYPE_CHECKING:
    from recipes.models.hub import Models


@dataclass(frozen=True, slots=True)
class VocabularyDifference:
    """Difference of two vocabularies, as a phrase for a message."""

    what: str


@dataclass(frozen=True, slots=True)
class _TokenizerFile:
    """A tokenizer's file, with its modification time (ns) and size (bytes) as cache key."""

    path: Path
    modified: int
    size: int


def _find(directory: Path) -> _TokenizerFile | UnknownModel:
    """Find the file that holds a tokenizer's vocabulary."""
    for name in ("tokenizer.json", "vocab.json"):
        path = directory / name
        try:
            stamp = path.stat()
        except OSError:
            continue
        return _TokenizerFile(path, stamp.st_mtime_ns, stamp.st_size)
    return UnknownModel(
        f"{directory} holds no tokenizer.json or vocab.json",
        "Download the model's tokenizer files on a node with internet.",
    )


@lru_cache(maxsize=8)
def _parsed(file: _TokenizerFile) -> dict[str, int] | UnknownModel:
    """Read token -> id, added tokens included; never raises."""
    path = file.path
    again = "Download the tokenizer again."
    try:
        data = read_json(path, TOKENIZER_BYTES)
        vocabulary = _tokens(data) if path.name == "tokenizer.json" else dict(data)
        extra = path.with_name("added_tokens.json")
        if path.name == "vocab.json" and extra.is_file():
            vocabulary.update(read_json(extra, TOKENIZER_BYTES))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        return UnknownModel(f"{path} cannot be read: {error}", again)
    if not vocabulary or not all(isinstance(number, int) for number in vocabulary.values()):
        return UnknownModel(f"{path} holds no vocabulary", again)
    return vocabulary


def _tokens(data: dict[str, Any]) -> dict[str, int]:
    vocabulary = data["model"]["vocab"]
    if isinstance(vocabulary, list):  # unigram models list [token, score]
        tokens = {str(item[0]): number for number, item in enumerate(vocabulary)}
    else:
        tokens = dict(vocabulary)
    for token in data.get("added_tokens") or ():
        tokens[token["content"]] = token["id"]
    return tokens


def compare(models: Models, student: str, teacher: str) -> VocabularyDifference | UnknownModel | None:
    """Compare two tokenizers by name; None if they are the same, `UnknownModel` where files are missing."""
    if student == teacher:
        return None
    tokenizer_files: list[_TokenizerFile] = []
    for name in (student, teacher):
        directory = models.directory(name)
        if directory is None:
            return UnknownModel(
                f"the tokenizer of {name} is not in the Hugging Face cache ({models.hub.directory})",
                f"Run `hf download {name} tokenizer.json` on a node with internet.",
            )
        file = _find(directory)
        if isinstance(file, UnknownModel):
            return file
        tokenizer_files.append(file)
    return _compared(student, teacher, *tokenizer_files)


@lru_cache(maxsize=16)
def _compared(
    student: str, teacher: str, left: _TokenizerFile, right: _TokenizerFile
) -> VocabularyDifference | UnknownModel | None:
    """Compare two files; kept, since a vocabulary has 150 000 tokens and people type meanwhile."""
    first, second = _parsed(left), _parsed(right)
    if isinstance(first, UnknownModel):
        return first
    if isinstance(second, UnknownModel):
        return second
    if first == second:
        return None
    if len(first) != len(second):
        return VocabularyDifference(f"{student} has {len(first)} tokens, {teacher} has {len(second)}")
    token = next(token for token, number in first.items() if second.get(token) != number)
    return VocabularyDifference(
        f"the token {token!r} is {first[token]} in {student}, {second.get(token)} in {teacher}"
    )
