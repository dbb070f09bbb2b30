"""Random edits of NeMo-RL's stock recipes: nothing outside the edit changes, the value reads back equal."""

from __future__ import annotations

import copy
import math
import random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader

from recipes.document import Document
from recipes.keys import KeyPath, format_key, parse_key
from recipes.values import Leaf, Map, Seq, Value
from recipes.yaml.find import find_spot
from recipes.yaml.parse import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

AWKWARD: list[Any] = [
    7,
    -3,
    0,
    2.5,
    1e-5,
    5e-06,
    1e22,
    math.inf,
    True,
    False,
    None,
    "plain",
    "",
    "yes",
    "off",
    "1e-5",
    "012",
    "4:00:00",
    "1:30",
    "1_000",
    "2024-01-02",
    "null",
    "~",
    "#no comment",
    "a #b",
    "a: b",
    "- x",
    "it's",
    'say "hi"',
    "back\\slash",
    " lead",
    "${policy.model_name}",
    "${mul:${a.b}, 2}",
    "[x",
    "{y}",
    "*z",
    "&z",
    "!t",
    "%p",
    "@q",
    "tab\there",
    "ünïcode 漢",
    "=",
    "<<",
]
COLLECTIONS: list[Any] = [
    [],
    {},
    [1, "no", None],
    {"a": 1, "yes": "off"},
    {"a": {"b": [1, {"c": 1e-8}]}},
    [{"name": "x", "kwargs": {"k": 1}}, [1, 2]],
    "two\nlines",
    "block\n  text\n",
]


def read(text: str) -> Any:
    return yaml.load(text, Loader=get_yaml_loader())


def canon(value: Any) -> Any:
    """With types, so that 1 is not 1.0 is not True."""
    if isinstance(value, dict):
        return {repr(key): canon(item) for key, item in value.items()}
    if isinstance(value, list):
        return [canon(item) for item in value]
    return type(value).__name__, repr(value)


def flat(value: Any, without: set[KeyPath], path: KeyPath = ()) -> dict[KeyPath, Any]:
    """Every scalar and empty collection by its path, without some."""
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        found: dict[KeyPath, Any] = {}
        for key, item in pairs:
            found |= flat(item, without, (*path, key))
        return found
    return {} if parse_key(format_key(path)) in without else {path: canon(value)}


def paths(value: Value, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Value]]:
    yield path, value
    if isinstance(value, Map):
        for key, item in value.items.items():
            yield from paths(item, (*path, key))
    elif isinstance(value, Seq):
        for index, item in enumerate(value.items):
            yield from paths(item, (*path, index))


def at(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step]
    return data


def separate(data: Any) -> Any:
    """The same data without parts shared through aliases."""
    if isinstance(data, dict):
        return {key: separate(item) for key, item in data.items()}
    return [separate(item) for item in data] if isinstance(data, list) else data


class Editor:
    """One document under random edits, checked against a model of plain data."""

    def __init__(self, path: Path, seed: str) -> None:
        self.before = path.read_bytes()
        self.document = Document.open(path)
        self.random = random.Random(seed)
        self.name = path.name
        self.first = self.last = separate(read(self.document.text))

    def model(self) -> Any:
        """What OmegaConf read last, to apply the next edit to."""
        return copy.deepcopy(self.last)

    def written(self) -> list[tuple[KeyPath, Value]]:
        values = self.document.revision.values
        assert values is not None
        return [(path, value) for path, value in paths(values) if path and self.document.is_written(path)]

    def check(self, model: Any, also: tuple[str, ...], path: KeyPath) -> None:
        text = self.document.text
        got = separate(read(text))
        # What an anchor hands on is announced; the model does not know of it.
        handed_on = {parse_key(key) for key in also}
        assert flat(got, handed_on) == flat(model, handed_on), (self.name, format_key(path))
        assert OmegaConf.create(got) is not None
        assert self.document.revision.tree == parse(text, str(self.document.path))
        self.last = got

    def lines_changed(self, before: str) -> tuple[int, int, int]:
        """How many lines are equal at the start, gone and new."""
        old, new = before.splitlines(keepends=True), self.document.text.splitlines(keepends=True)
        head = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        return head, len(old) - head - tail, len(new) - head - tail

    def undo_all(self) -> None:
        while self.document.undo():
            pass
        assert self.document.to_bytes() == self.before
        self.last = self.first

    # The edits

    def set_scalar(self) -> None:
        scalars = [(path, value) for path, value in self.written() if isinstance(value, Leaf)]
        if not scalars:
            return
        path, old = self.random.choice(scalars)
        new = self.random.choice([value for value in AWKWARD if canon(value) != canon(old.value)])
        spot = find_spot(self.document.revision.tree, path)
        lines = self.document.revision.tree.lines
        one_line = lines.number(spot.child.start) == lines.number(spot.node.end)
        line = lines.number(spot.node.start)
        text, model = self.document.text, self.model()
        change = self.document.set(path, new)
        at(model, path[:-1])[path[-1]] = new
        self.check(model, change.also, path)
        if one_line:
            assert self.lines_changed(text) == (line - 1, 1, 1), (self.name, format_key(path), new)

    def set_anything(self) -> None:
        path, old = self.random.choice(self.written())
        new = self.random.choice(
            [value for value in AWKWARD + COLLECTIONS if canon(value) != canon(_data(old))]
        )
        if self.holds_used_anchor(path):
            return
        model = self.model()
        change = self.document.set(path, new)
        at(model, path[:-1])[path[-1]] = copy.deepcopy(new)
        self.check(model, change.also, path)

    def add(self) -> None:
        maps = [(path, value) for path, value in [((), self.document.revision.values), *self.written()]]
        path, value = self.random.choice([(path, value) for path, value in maps if isinstance(value, Map)])
        assert isinstance(value, Map)
        key = self.random.choice(["new_key", "on", "a b", "x.y", "7"])
        if key in value.items:
            return
        new = self.random.choice(AWKWARD + COLLECTIONS)
        text, model = self.document.text, self.model()
        change = self.document.insert(path, key, new)
        at(model, path)[key] = copy.deepcopy(new)
        self.check(model, change.also, (*path, key))
        if find_spot(self.document.revision.tree, path).node.body != 0 and "\n" in text:
            assert self.lines_changed(text)[1] <= 1

    def delete(self) -> None:
        path, _ = self.random.choice(self.written())
        if self.holds_used_anchor(path):
            return
        model = self.model()
        change = self.document.delete(path)
        del at(model, path[:-1])[path[-1]]
        self.check(model, change.also, path)

    def list_item(self) -> None:
        lists = [(path, value) for path, value in self.written() if isinstance(value, Seq)]
        if not lists:
            return
        path, value = self.random.choice(lists)
        assert isinstance(value, Seq)
        model, kind = self.model(), self.random.choice(["set", "append", "insert", "delete"])
        new = self.random.choice(AWKWARD + COLLECTIONS[:4])
        if kind in ("set", "delete") and value.items:
            index = self.random.randrange(len(value.items))
            if kind == "set":
                change = self.document.set((*path, index), new)
                at(model, path)[index] = copy.deepcopy(new)
            else:
                change = self.document.delete((*path, index))
                del at(model, path)[index]
        else:
            index = self.random.randrange(len(value.items) + 1) if kind == "insert" else len(value.items)
            change = self.document.insert_item(path, index, new)
            at(model, path).insert(index, copy.deepcopy(new))
        self.check(model, change.also, path)

    def holds_used_anchor(self, path: KeyPath) -> bool:
        """Taking the anchor away is refused, rightly; that has a test of its own."""
        tree = self.document.revision.tree
        node = find_spot(tree, path).node
        from recipes.yaml.nodes import AliasNode, walk

        used = {item.name for root in tree.roots for item in walk(root) if isinstance(item, AliasNode)}
        return any(not isinstance(item, AliasNode) and item.anchor in used for item in walk(node))


def _data(value: Value) -> Any:
    from recipes.values import plain

    return plain(value)


EDITS = ["set_scalar", "set_anything", "add", "delete", "list_item"]


def run_edits(files: list[Path], rounds: int) -> int:
    count = 0
    for path in files:
        for number in range(rounds):
            editor = Editor(path, f"{path.name} {number}")
            assert editor.document.to_bytes() == editor.before
            for edit in EDITS:
                getattr(editor, edit)()
                count += 1
            editor.undo_all()
            for edit in EDITS:  # and each on the untouched text
                getattr(editor, edit)()
                editor.undo_all()
                count += 1
    return count


@pytest.mark.long
def test_edits_of_a_sample_change_nothing_else(sample: list[Path]) -> None:
    assert run_edits(sample[::6], 1) >= 35


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_edits_of_every_stock_recipe_change_nothing_else(corpus: list[Path]) -> None:
    assert len(corpus) == 339
    assert run_edits(corpus, 3) >= 10_000


def test_every_stock_recipe_opens_and_stays_byte_identical(corpus: list[Path]) -> None:
    for path in corpus[::3]:
        document = Document.open(path)
        assert document.to_bytes() == path.read_bytes()
        assert not document.problems


@pytest.mark.slow
def test_all_stock_recipes_open_and_stay_byte_identical(corpus: list[Path], tmp_path: Path) -> None:
    for path in corpus:
        copied = tmp_path / "recipe.yaml"
        copied.write_bytes(path.read_bytes())
        document = Document.open(copied)
        document.save()
        assert copied.read_bytes() == path.read_bytes()
    assert len(corpus) == 339
