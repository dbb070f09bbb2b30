"""Commenting keys and list items out and back in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from recipes.document import Document
from recipes.editing.own_lines import written_keys
from recipes.errors import RecipeError
from recipes.yaml.comment_out import comment_in, comment_out, commented_entries
from recipes.yaml.find import find_spot
from recipes.yaml.parse import parse

CASES = {
    "a value": ("a: 1\nb: 2  # two\n", "b", "a: 1\n# b: 2  # two\n"),
    "a section": (
        "a:\n  b:\n    c: 1\n    # of d\n\n    d: [x,\n      y]\n  e: 3\n",
        "a.b",
        "a:\n  # b:\n  #   c: 1\n  #   # of d\n  #\n  #   d: [x,\n  #     y]\n  e: 3\n",
    ),
    "the only key": ("a:  # of a\n  b: 1\nc: 2\n", "a.b", "a: {}  # of a\n  # b: 1\nc: 2\n"),
    "the only key of the recipe": ("# head\na: 1\n", "a", "# head\n{}\n# a: 1\n"),
    "an item": ("a:\n  - x\n  - y\n  - z\n", "a.1", "a:\n  - x\n  # - y\n  - z\n"),
    "an item with keys": ("a:\n- k: 1\n  l: 2\n- k: 3\n", "a.0", "a:\n# - k: 1\n#   l: 2\n- k: 3\n"),
    "the only item": ("a:\n  - x\nb: 1\n", "a.0", "a: []\n  # - x\nb: 1\n"),
    "a block text": ("a: |\n  one\n\n  two\nb: 1\n", "a", "# a: |\n#   one\n#\n#   two\nb: 1\n"),
    "a list at the key's column": ("a:\n- x\n- y\nb: 1\n", "a", "# a:\n# - x\n# - y\nb: 1\n"),
    "a key after a list at its column": (
        "o:\n  a:\n  - x\n  - y\n  b: 1\n",
        "o.b",
        "o:\n  a:\n  - x\n  - y\n  # b: 1\n",
    ),
    "a key after a list at its column, at the top": ("a:\n- x\nb: 1\n", "b", "a:\n- x\n# b: 1\n"),
    "windows line ends": ("a: 1\r\nb: 2\r\n", "b", "a: 1\r\n# b: 2\r\n"),
    "without a last line break": ("a: 1\nb: 2", "b", "a: 1\n# b: 2"),
    "a closing bracket at the key": ("a: [\n  1\n]\nb: 2\n", "a", "# a: [\n#   1\n# ]\nb: 2\n"),
    "comments at the key's column": (
        "a:\n# of x\n- x\n# of y\n- y\nb: 1\n",
        "a",
        "# a:\n# # of x\n# - x\n# # of y\n# - y\nb: 1\n",
    ),
    "a key in other letters": ("a: 1\nünï: 2\n", "ünï", "a: 1\n# ünï: 2\n"),
    "an item whose dash stands alone": (
        "a:\n  -\n    k: 1\n  -\n    k: 2\n    l: 3\nb: 1\n",
        "a.1",
        "a:\n  -\n    k: 1\n  # -\n  #   k: 2\n  #   l: 3\nb: 1\n",
    ),
    "the first key below a dash": (
        "a:\n  -\n    k: 1\n  -\n    k: 2\n    l: 3\n",
        "a.1.k",
        "a:\n  -\n    k: 1\n  -\n    # k: 2\n    l: 3\n",
    ),
    "a number as key": ("a:\n  -1: x\n  b: 2\n", "a.-1", "a:\n  # -1: x\n  b: 2\n"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_out_and_back_in(case: tuple[str, str, str]) -> None:
    text, key, commented = case
    document = Document(text)
    document.comment_out(key)
    assert document.text == commented
    assert not document.has(key) or isinstance(document.get(key.rpartition(".")[0]), list)
    document.comment_in(key)
    assert document.text == text


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("a: {b: 1, c: 2}\n", "a.b", "shares its line"),
        ("a: &x {b: 1}\nc: *x\n", "a", "which is used elsewhere"),
        ("a:\n  - b: 1\n    c: 2\n", "a.0.b", "shares its line"),
        ("a: 1\n", "b", "not written"),
        ("a: 1\n", "", "whole recipe"),
    ],
)
def test_what_cannot_be_commented_out(text: str, key: str, message: str) -> None:
    document = Document(text)
    with pytest.raises(RecipeError, match=message):
        document.comment_out(key)
    assert document.text == text


def test_a_key_that_is_set_as_well_stays_commented() -> None:
    document = Document("a: 1\n# a: 2\n")
    with pytest.raises(RecipeError, match="set as well"):
        document.comment_in("a")
    assert document.text == "a: 1\n# a: 2\n"


def test_the_line_says_which_of_several_is_taken_back_in() -> None:
    text = 'seed: 1\n# name: "A"\nname: "B"\n# name:\n#   first: "C"\n'
    document = Document(text)
    document.comment_out("name")
    with pytest.raises(RecipeError, match=r"'name' is commented out more than once \(lines 2, 3, 4\)"):
        document.comment_in("name")
    with pytest.raises(RecipeError, match="'name' is not commented out on line 6"):
        document.comment_in("name", 6)
    document.comment_in("name", 3)
    assert document.text == text
    document.comment_out("name")
    document.comment_in("name", 5)
    assert document.text == 'seed: 1\n# name: "A"\n# name: "B"\nname:\n  first: "C"\n'


def test_lines_that_are_no_yaml_stay_commented() -> None:
    document = Document("a: 1\n# b: [1\n")
    with pytest.raises(RecipeError, match="do not read as YAML"):
        document.comment_in("b")


def test_only_lines_where_a_key_could_stand_are_entries() -> None:
    text = (
        "# Note: this is a sentence\n"
        "a:\n"
        "  b: 1\n"
        "  # c: 2\n"
        "      # too: deep\n"
        "  d: |\n"
        "    # in: text\n"
        "  # e:\n"
        "  #   f: 3\n"
        "# g: 4\n"
        "h: 5\n"
    )
    entries = {entry.path: entry for entry in commented_entries(parse(text))}
    assert [path for path, entry in entries.items() if not entry.prose] == [("a", "c"), ("a", "e"), ("g",)]
    assert entries[("Note",)].prose
    assert (entries[("a", "e")].first_line, entries[("a", "e")].last_line) == (8, 9)
    assert entries[("a", "c")].value == "2"


@pytest.mark.parametrize("items", ["- 1\n- 2\n- 3\n", "- a: 1\n  b: 2\n- a: 2\n", "  - x\n  - y\n"])
def test_items_of_a_list_that_are_all_commented_out_come_back_by_their_lines(items: str) -> None:
    text = f"p: 1\nlist:\n{items}q: 2\n"
    tree = parse(text)
    count = len(parse(f"list:\n{items}").root.children[0].value.children)  # type: ignore[union-attr]
    for _ in range(count):
        tree = comment_out(tree, ("list", 0))
    entries = [entry for entry in commented_entries(tree) if entry.path == ("list", 0)]
    assert len(entries) == count
    with pytest.raises(RecipeError, match="more than once"):
        comment_in(tree, ("list", 0))
    for entry in entries[::-1]:
        tree = comment_in(tree, ("list", 0), entry.first_line)
    assert tree.text == text


def round_trips(path: Path, count: int, seed: int) -> list[str]:
    """Comment keys of a stock recipe out and back in; return those that did not come back as they were."""
    tree = parse(path.read_text(encoding="utf-8"), path.name)
    keys = list(written_keys(tree))
    wrong = []
    for key in random.Random(seed).sample(keys, min(count, len(keys))):
        try:
            commented = comment_out(tree, key)
        except RecipeError as error:
            if "shares its line" not in error.what and "used elsewhere" not in error.what:
                wrong.append(f"{path.name} {key}: {error.what}")
            continue
        try:
            line = tree.position(find_spot(tree, key).child.start).line
            line += commented.text.count("\n") - tree.text.count("\n")  # `{}` above the file's only key
            back = comment_in(commented, key, line if isinstance(key[-1], str) else None)
        except RecipeError as error:  # the place of a list item between other comments is ambiguous
            if not isinstance(key[-1], int):
                wrong.append(f"{path.name} {key}: {error.what}")
            continue
        if back.text != tree.text:
            wrong.append(f"{path.name} {key}")
    return wrong


def test_keys_of_some_stock_recipes_come_back_as_they_were(corpus: list[Path]) -> None:
    assert [wrong for path in corpus[::30] for wrong in round_trips(path, 3, 1)] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_keys_of_all_stock_recipes_come_back_as_they_were(corpus: list[Path]) -> None:
    assert [wrong for path in corpus for wrong in round_trips(path, 8, 2)] == []
