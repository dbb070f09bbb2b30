"""Random documents under random edits, and bytes that are no recipe."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from recipes.chain import decode
from recipes.document import Document
from recipes.errors import RecipeError
from recipes.files import unified_diff
from recipes.keys import KeyPath, Step
from recipes.values import Map, Seq, Value
from recipes.yaml.parse import parse
from recipes.yaml.reader import read
from recipes.yaml.scalars import same
from recipes.yaml.typed import read_typed, writable, yaml_text

WORDS = st.sampled_from(
    [
        "a",
        "b",
        "yes",
        "off",
        "on",
        "1e-5",
        "012",
        "4:00:00",
        "null",
        "~",
        "#",
        "a b",
        "x: y",
        "- q",
        "${a.b}",
        "it's",
        "",
    ]
)
TEXTS = st.one_of(WORDS, st.text(max_size=12), st.text("ab \n:#-'\"[]{}&*!|>%@`\\\t", max_size=14))
NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(), st.sampled_from([1e-5, 5e22, math.inf, -0.0]))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
KEYS = st.one_of(WORDS.filter(bool), st.text(min_size=1, max_size=8))
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(KEYS, DATA, min_size=1, max_size=4)
COMMENTS = st.sampled_from(["", "  # beside", "\n# below", "\n\n# apart\n"])
EDITS = st.lists(
    st.tuples(st.sampled_from(["set", "insert", "delete", "append"]), st.integers(0, 99), KEYS, DATA),
    min_size=1,
    max_size=3,
)


def says(text: str, data: dict[str, Any]) -> bool:
    try:
        return same(read(text, "t"), data)
    except RecipeError:
        return False


def decorated(data: dict[str, Any], comments: list[str], *, crlf: bool, ending: bool, bom: bool) -> str:
    """A text that says the data, with comments behind some lines."""
    plain: Any = data
    lines = yaml_text(writable(plain)).split("\n")
    with_comments = []
    for index, line in enumerate(lines):
        comment = comments[index % len(comments)] if comments else ""
        with_comments.append(line + comment)
    commented, bare = "\n".join(with_comments), "\n".join(lines)
    end = "\n" if ending else ""
    # A comment may become text of a block, and a block that ends the text may lose its last line break.
    text = next(text for text in (commented + end, bare + end, bare + "\n") if says(text, data))
    return ("\ufeff" if bom else "") + (text.replace("\n", "\r\n") if crlf else text)


def paths(value: Value, path: KeyPath = ()) -> list[tuple[KeyPath, Value]]:
    found = [(path, value)]
    children: list[tuple[Step, Value]] = []
    if isinstance(value, Map):
        children = list(value.items.items())
    elif isinstance(value, Seq):
        children = list(enumerate(value.items))
    for step, item in children:
        found += paths(item, (*path, step))
    return found


def at(data: Any, path: KeyPath) -> Any:
    for step in path:
        data = data[step]
    return data


def apply(document: Document, model: Any, edit: tuple[str, int, str, Any]) -> None:
    """Apply an edit to the document and to plain data."""
    kind, number, key, value = edit
    values = document.revision.values
    assert values is not None
    places = paths(values)
    if kind == "set":
        path = places[number % len(places)][0]
        if path:
            document.set(path, value)
            at(model, path[:-1])[path[-1]] = value
    elif kind == "insert":
        maps = [(path, held) for path, held in places if isinstance(held, Map) and key not in held.items]
        if maps:
            path = maps[number % len(maps)][0]
            document.insert(path, key, value)
            at(model, path)[key] = value
    elif kind == "append":
        lists = [path for path, held in places if isinstance(held, Seq)]
        if lists:
            path = lists[number % len(lists)]
            document.append(path, value)
            at(model, path).append(value)
    else:
        path = places[number % len(places)][0]
        if path:
            document.delete(path)
            del at(model, path[:-1])[path[-1]]


def separate(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: separate(item) for key, item in data.items()}
    return [separate(item) for item in data] if isinstance(data, list) else data


def check_edits(data: dict[str, Any], text: str, edits: list[tuple[str, int, str, Any]]) -> None:
    document = Document(text, "random.yaml")
    assert same(document.revision.data, data)
    model = separate(data)
    for edit in edits:
        kind, number, key, value = edit
        apply(document, model, (kind, number, key, separate(value)))
        got = read(document.text, "edited")
        assert same(got, document.revision.data)
        assert same(_sorted(got), _sorted(model)), (text, document.text)
        assert document.revision.tree == parse(document.text, "random.yaml")
    final = document.text
    while document.undo():
        pass
    assert document.text == text
    while document.redo():
        pass
    assert document.text == final


def _sorted(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _sorted(data[key]) for key in sorted(data, key=repr)}
    return [_sorted(item) for item in data] if isinstance(data, list) else data


FLAGS = {"crlf": st.booleans(), "ending": st.booleans(), "bom": st.booleans()}


@pytest.mark.long
@given(MAPPINGS, st.lists(COMMENTS, max_size=5), EDITS, *FLAGS.values())
def test_random_edits(
    data: dict[str, Any],
    comments: list[str],
    edits: list[tuple[str, int, str, Any]],
    crlf: bool,
    ending: bool,
    bom: bool,
) -> None:
    check_edits(data, decorated(data, comments, crlf=crlf, ending=ending, bom=bom), edits)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(MAPPINGS, st.lists(COMMENTS, max_size=5), EDITS, *FLAGS.values())
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_ten_thousand_random_edits(
    data: dict[str, Any],
    comments: list[str],
    edits: list[tuple[str, int, str, Any]],
    crlf: bool,
    ending: bool,
    bom: bool,
) -> None:
    check_edits(data, decorated(data, comments, crlf=crlf, ending=ending, bom=bom), edits)


def open_anything(data: bytes) -> None:
    """Either a document, or an error that says where."""
    try:
        document = Document(decode(data, "bytes"), "bytes")
    except RecipeError:
        return
    assert document.to_bytes() == data
    with contextlib.suppress(RecipeError):
        document.set("some.key", 1)
        assert read(document.text, "edited")["some"]["key"] == 1


@given(st.one_of(st.binary(max_size=60), st.text("a:-[]{}#&*!|>'\"%@\n\t ?,\\", max_size=40).map(str.encode)))
@settings(max_examples=150)
def test_arbitrary_bytes_open_or_fail_clearly(data: bytes) -> None:
    open_anything(data)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@given(
    st.one_of(st.binary(max_size=200), st.text("a:-[]{}#&*!|>'\"%@\n\t ?,\\", max_size=80).map(str.encode))
)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_ten_thousand_arbitrary_bytes(data: bytes) -> None:
    open_anything(data)


@given(SCALARS)
@settings(max_examples=80)
def test_a_typed_value_reads_back(value: Any) -> None:
    assert same(read_typed(yaml_text(value)).value, value)


@given(SCALARS)
@settings(max_examples=150)
def test_what_is_written_reads_alike_in_yaml_1_2(value: Any) -> None:
    """Editors and other tools read YAML 1.2; what the user typed is not ours to choose."""
    text = yaml_text(writable({"block": value, "flow": [[value], [{"k": value}]]}))
    theirs = YAML(typ="safe", pure=True).load(text)
    assert same(theirs, {"block": value, "flow": [[value], [{"k": value}]]})


def test_diff_says_where_the_last_line_has_no_break() -> None:
    assert unified_diff("a: 1", "a: 2\n", "x", "y").endswith("-a: 1\n\\ No newline at end of file\n+a: 2\n")
