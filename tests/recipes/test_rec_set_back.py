"""`recipe set` there and back gives the old bytes: every leaf of every stock recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recipes.document import Document
from recipes.keys import KeyPath, format_key
from recipes.values import leaves
from recipes.yaml.find import find_spot
from recipes.yaml.nodes import ScalarNode
from recipes.yaml.typed import read_typed

if TYPE_CHECKING:
    from pathlib import Path


def other_value(node: ScalarNode) -> str:
    """A value of the same kind: a string's quotes are kept only by another string."""
    value = node.read()
    return "changed" if isinstance(value, str) else "false" if isinstance(value, bool) else "12.5"


def restorable(document: Document, path: KeyPath) -> ScalarNode | None:
    """The scalar at a key, unless nothing is written there (`key:`) or it takes several lines."""
    node = find_spot(document.revision.tree, path).node
    if isinstance(node, ScalarNode) and document.spelling(path):
        return node
    return None


def check_leaves(files: list[Path]) -> int:
    count = 0
    for path in files:
        document = Document.open(path)
        values = document.revision.values
        assert values is not None
        before = document.text
        for leaf, _ in list(leaves(values)):
            if not document.is_written(leaf) or (node := restorable(document, leaf)) is None:
                continue
            key = format_key(leaf)
            old = document.yaml(key)
            for text in (other_value(node), old):
                typed = read_typed(text)
                change = document.set(key, typed.value, spelling=typed.spelling)
                assert key not in change.also
            assert document.text == before, (path, key, old)
            count += 1
    return count


@pytest.mark.long
def test_set_and_back_gives_the_old_bytes(sample: list[Path]) -> None:
    assert check_leaves(sample[::4]) > 100


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_set_and_back_gives_the_old_bytes_for_every_leaf(corpus: list[Path]) -> None:
    assert check_leaves(corpus) > 15_000


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("1.0e-06", "5e-6"),
        ("1e-8", "0.5"),
        ("1E5", "1"),
        ("1_000", "2_000"),
        ("0x10", "7"),
        ("0b11", "7"),
        ("017", "7"),
        ("4:00:00", "7"),
        ("+3", "-3"),
        (".5", "-.5"),
        ("5.", "0"),
        (".inf", "-.INF"),
        ("True", "false"),
        ("TRUE", "off"),
        ("yes", "no"),
        ("~", "1"),
        ("Null", "1"),
        ("'x'", "other"),
        ("'yes'", "other"),
        ('"1"', "other"),
        ('"caf\\u00e9"', "other"),
        ("'it''s'", "other"),
        ("2024-01-02", "other"),
        ("a:b", "1"),
        ("'!x'", "other"),
        ("[]", "1"),
        ("{}", "1"),
    ],
)
def test_any_legal_spelling_comes_back(old: str, other: str) -> None:
    for frame in ("k: {}  # why\n", "l:\n  - {}\n  - b\n", "m: {{k: {}, z: 1}}\n", "m: [{}, 1]\n"):
        text = frame.format(old)
        document = Document(text)
        values = document.revision.values
        assert values is not None
        key = format_key(next(iter(leaves(values)))[0])
        back = document.yaml(key)
        for typed in (read_typed(other), read_typed(back)):
            assert document.set(key, typed.value, spelling=typed.spelling).also == ()
        assert document.text == text
