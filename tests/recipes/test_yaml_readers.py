"""What we read as a recipe is what NeMo-RL's loader reads, and what it refuses we refuse."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import get_yaml_loader

from recipes.errors import FilePosition, RecipeError
from recipes.inheritance import resolve
from recipes.yaml.parse import parse
from recipes.yaml.parser_events import scanners_differ
from recipes.yaml.scalars import same
from tui.cli import main

from .conftest import data_folder
from .yaml_documents import DOCUMENTS

REFUSED: dict[str, tuple[str, int, str]] = {
    "anchor twice": ("a: &x 1\nb:\n  - &y 2\n  - &x 3\n", 4, r"&x is defined twice \(lines 1 and 4\)"),
    "anchor twice on sections": ("a: &x\n  b: 1\nc: &x\n  b: 2\nd: *x\n", 3, "defined twice"),
    "anchor twice around an alias": ("a: &x {b: 1}\nd: *x\nc: &x {b: 2}\n", 3, "defined twice"),
    "anchor with dot": ("a:\n  b: &x.1\n    c: 1\n", 2, "name of an anchor.*letters"),
    "anchor with slash": ("a: &x/1 {b: 1}\n", 1, "name of an anchor"),
    "anchor with umlaut": ("a: 1\nb: &é 1\n", 2, "name of an anchor"),
    "anchor with colon": ("a: &x:y {b: 1}\n", 1, "mapping values"),
    "alias with dot": ("a: &x 1\nb: *x.y\n", 2, "name of an alias"),
    "alias of nothing": ("a: 1\nb: *x\n", 2, r"alias \*x"),
    "alias inside its anchor": ("a: &x\n  b: *x\n", 2, r"\*x is used inside"),
    "key twice": ("a: 1\nb: 2\na: 3\n", 3, r"(?s)Duplicate key 'a'.*\(lines 1 and 3\)"),
    "key twice in brackets": ("a: {b: 1,\n  b: 2}\n", 2, "Duplicate key 'b'"),
    "quoted key twice": ("a:\n  b: 1\n  'b': 2\n", 3, "Duplicate key 'b'"),
    "tab as indentation": ("a:\n\tb: 1\n", 2, "tab"),
    "tab before a value": ("a: {b:\t1}\n", 1, "tab"),
    "mapping as key": ("{a: 1}: 2\n", 1, "scalars as keys"),
    "null as key": ("~: 2\n", 1, "key"),
    "equals sign as value": ("a: =\n", 1, "="),
    "merge sign as value": ("a: <<\n", 1, "<<"),
    "merge of a number": ("a:\n  <<: 1\n", 2, "merge"),
    "unknown tag": ("a: !x 1\n", 1, "!x"),
    "date with its tag": ("a: !!timestamp 2024-01-02\n", 1, "timestamp"),
    "two documents": ("a: 1\n---\nb: 2\n", 3, "several documents"),
    "colon in a plain scalar": ("a: b: c\n", 1, "mapping values"),
    "question mark in brackets": ("a: [b?]\n", 1, "expected"),
    "at sign": ("a: @x\n", 1, "@"),
    "per cent": ("a: %x\n", 1, "%"),
    "control character": ("a: b\x07\n", 1, r"U\+0007"),
    "key of more than 1024 characters": ("a: 1\n" + "x" * 1030 + ": 1\n", 2, ":|could not|mapping"),
    "other version of YAML": ("%YAML 2.0\n---\na: 1\n", 1, "version"),
    "less indented text": ("a:\n  - b\n - c\n", 3, "expected"),
    "unclosed bracket": ("a: [1, 2\nb: 1\n", 2, "expected"),
    "unclosed quote": ("a: 'x\nb: 1\n", 3, "quoted scalar"),
    "binary number without digits": ("a: 0b_\n", 1, "0b_"),
    "list": ("- a\n", 1, "mapping of keys"),
}

READ: dict[str, tuple[str, Any]] = {
    "next line": ("a:\n  b: x\x85  c: 2\n", {"a": {"b": "x", "c": 2}}),
    "line separator": ("a:\n  b: x\u2028  c: 2\n", {"a": {"b": "x", "c": 2}}),
    "paragraph separator": ("a: 1\u2029b: 2", {"a": 1, "b": 2}),
    "next line after a comment": ("a: 1 # c\x85b: 2\n", {"a": 1, "b": 2}),
    "next line in a plain scalar": ("a: x\x85  y\n", {"a": "x y"}),
    "next line in quotes": ("a: 'x\x85\x85y'\n", {"a": "x\ny"}),
    "line separator in a literal block": ("a: |\n  x\u2028  y\n", {"a": "x\u2028y\n"}),
    "carriage returns": ("a: 1\rb:\r  c: 2\r", {"a": 1, "b": {"c": 2}}),
    "byte order mark": ("\ufeffa: 1\n", {"a": 1}),
    "directive": ("%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
    "version 1.2, read as 1.1": ("%YAML 1.2\n---\na: yes\n", {"a": True}),
    "tags": ("a: !!str 1\nb: !!int '3'\nc: !!float 1\nd: ! '12'\n", {"a": "1", "b": 3, "c": 1.0, "d": 12}),
    "sexagesimal and octal": ("a: 1:30\nb: 010\nc: 0o7\nd: 0x1F\n", {"a": 90, "b": 8, "c": "0o7", "d": 31}),
    "words": ("a: on\nb: No\nc: y\nd: ~\ne:\n", {"a": True, "b": False, "c": "y", "d": None, "e": None}),
    "date": ("a: 2024-01-02\n", {"a": "2024-01-02"}),
    "keys of other types": ("7: a\n1.5: b\ntrue: c\n'7': d\n", {7: "a", 1.5: "b", True: "c", "7": "d"}),
    "colon in brackets": ("a: [b:c, http://x/y]\n", {"a": ["b:c", "http://x/y"]}),
    "no space after a quoted key": ('a: {"b":1}\n', {"a": {"b": 1}}),
    "comment without a space": ('a: "x"#c\nb: [1]#c\n', {"a": "x", "b": [1]}),
    "plain scalar on two lines": ("a: x\n  y\nb: 1\n", {"a": "x y", "b": 1}),
    "block indentation": ("a: |2\n   x\nb: >1\n  y\n", {"a": " x\n", "b": " y\n"}),
    "explicit key": ("? a\n: 1\n", {"a": 1}),
    "merges": ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    "merge of itself": ("a: &x\n  <<: *x\n  b: 1\n", {"a": {"b": 1}}),
    "equals sign as key": ("=: 1\n", {"=": 1}),
    "anchor with dash and underscore": ("a: &x-1_Y 1\nb: *x-1_Y\n", {"a": 1, "b": 1}),
}
# OmegaConf puts own keys before merged ones; the order is not compared here.


def by_omegaconf(path: Path) -> Any:
    config = OmegaConf.load(path)
    assert isinstance(config, DictConfig)
    return OmegaConf.to_container(config, resolve=True)


def write(directory: Path, text: str) -> Path:
    path = directory / "recipe.yaml"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_loader_refuses_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, line, words = REFUSED[name]
    path = write(tmp_path, text)
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever OmegaConf raises
        by_omegaconf(path)
    with pytest.raises(RecipeError, match=words) as caught:
        resolve(path)
    where = caught.value.where
    assert isinstance(where, FilePosition)
    assert (where.file, where.line) == (str(path), line)


@pytest.mark.parametrize("name", READ)
def test_what_the_loader_reads_is_read_alike(name: str, tmp_path: Path) -> None:
    text, data = READ[name]
    path = write(tmp_path, text)
    assert same(resolve(path).values, by_omegaconf(path))
    assert resolve(path).values == data


COMMANDS = [
    ("recipe", "get", "FILE", "a"),
    ("recipe", "show", "FILE", "--effective"),
    ("recipe", "resolve", "FILE", "--json"),
    ("recipe", "origin", "FILE", "a", "--json"),
    ("recipe", "lint", "FILE", "--json"),
    ("recipe", "diff", "FILE", "FILE"),
    ("recipe", "minimise", "FILE"),
    ("check", "FILE"),
    ("check", "FILE", "--json"),
    ("memory", "FILE"),
    ("scale", "FILE", "--nodes", "1"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", ["anchor twice", "anchor with dot", "key twice", "tab as indentation"])
def test_every_command_refuses_and_names_the_line(
    command: tuple[str, ...], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line, words = REFUSED[name]
    path = write(tmp_path, text)
    code = main("0", [str(path) if word == "FILE" else word for word in command])
    captured = capsys.readouterr()
    told = captured.out + captured.err
    assert code in (1, 2)
    assert re.search(words, told, re.IGNORECASE)
    assert re.search(rf"recipe\.yaml:{line}\b|\"line\": {line}\b", told)
    assert path.read_text() == text


def public_cases() -> list[str]:
    from .conftest import DATA

    return sorted(path.name for path in (DATA / "public-cases").glob("yaml-*"))


@pytest.mark.parametrize("name", public_cases())
def test_public_cases(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data_folder("public-cases") / name
    case = tomllib.loads((folder / "expected.toml").read_text())
    expect = case["expect"]
    for command in (["recipe", "resolve"], ["check"]):
        code = main("0", [*command, str(folder / case["file"]), "--json"])
        captured = capsys.readouterr()
        if command == ["check"]:
            assert code != 0 or 0 in expect["exit"]
            assert "Traceback" not in captured.err
            continue
        assert code in expect["exit"]
        for words in expect.get("told", []):
            options = [words] if isinstance(words, str) else words
            assert any(word in captured.err for word in options)
        if "recipe" in expect:
            assert json.loads(captured.out)["recipe"] == json.loads((folder / expect["recipe"]).read_text())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: !!binary aGk=\n", "aGk="),
        ("a: !!python/object/apply:pathlib.Path [x, y]\n", "x/y"),
        ('a: "\\ud800"\n', "\ud800"),
        ("a: .nan\n", ".nan"),
    ],
)
def test_values_that_json_does_not_have_are_printed_as_text(
    text: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path, text))
    assert main("0", ["recipe", "resolve", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"] == {"a": value}
    for command in (
        ["recipe", "resolve"],
        ["recipe", "show", "--effective"],
        ["recipe", "get", "--effective"],
    ):
        assert main("0", [*command, path, *(["a"] if "get" in command else [])]) in (0, 2)
    assert main("0", ["recipe", "origin", path, "a", "--json"]) == 0


# Random documents: ours against OmegaConf's own loader


def loaded(path: Path) -> Any:
    """What NeMo-RL's loader makes of a file, or the error.

    A text that is one scalar counts as refused: OmegaConf parses that string once more, and we do not.
    """
    try:
        if not isinstance(yaml.load(path.read_text(encoding="utf-8"), Loader=get_yaml_loader()), dict | None):
            return ValueError("not a mapping")
        return by_omegaconf(path)
    except Exception as error:  # noqa: BLE001 - OmegaConf and PyYAML raise whatever their code raises
        return error


def check_alike(text: str, directory: Path) -> None:
    path = write(directory, text)
    theirs = loaded(path)
    ours: Any = None
    try:
        ours = resolve(path).values
    except RecipeError as error:
        ours = error
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert isinstance(ours, Exception), (text, theirs)
        assert isinstance(theirs, Exception), (text, ours)
    else:
        assert same(ours, theirs), text


@pytest.mark.long
@given(DOCUMENTS)
@settings(max_examples=250)
def test_random_documents_read_as_the_loader_reads_them(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    check_alike(text, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("first", ["{a: 1}", "&m {a: 1, longer_key: 1}"])
@pytest.mark.parametrize("second", ["{a: 3}", "{longer_key: 3, b: 2}", "[{a: 2}, {a: 3}]"])
def test_a_second_merge_is_read_as_the_loader_reads_it(tmp_path: Path, first: str, second: str) -> None:
    check_alike(f"<<: {first}\nb: 1\n<<: {second}\n", tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(DOCUMENTS)
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_random_documents_read_as_the_loader_reads_them(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    check_alike(text, tmp_path_factory.getbasetemp())


# The two scanners of PyYAML


def events_of(text: str, loader: Any) -> list[tuple[Any, ...]] | None:
    """All that the parser takes from events, None if the text is refused.

    An empty scalar's marks are not used, nor the implied resolution of a node with the tag "!".
    """
    result = []
    try:
        for event in yaml.parse(text, Loader=loader):
            value = getattr(event, "value", None)
            marks = (event.start_mark.index, event.end_mark.index) if value != "" else ()  # type: ignore[union-attr]
            names = ("anchor", "tag", "style", "flow_style")
            details = [getattr(event, name, None) or None for name in names]
            result.append((type(event).__name__, value, marks, *details))
    except (yaml.YAMLError, ValueError, OverflowError):
        return None
    return result


def check_scanners(text: str) -> None:
    if scanners_differ(text):
        return
    fast = events_of(text, yaml.CSafeLoader)
    if fast is not None:
        assert fast == events_of(text, yaml.SafeLoader), text


@pytest.mark.long
@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
@given(DOCUMENTS)
@settings(max_examples=300)
def test_libyaml_is_used_only_where_it_agrees(text: str) -> None:
    check_scanners(text)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(DOCUMENTS)
@settings(max_examples=30_000, deadline=None, suppress_health_check=list(HealthCheck))
def test_libyaml_is_used_only_where_it_agrees_on_many(text: str) -> None:
    check_scanners(text)


@pytest.mark.slow
def test_the_scanners_agree_on_every_stock_recipe(corpus: list[Path]) -> None:
    for path in corpus:
        text = path.read_text(encoding="utf-8")
        assert not scanners_differ(text)
        check_scanners(text)


def test_nesting_is_limited() -> None:
    with pytest.raises(RecipeError, match="Nested deeper"):
        parse("a: " + "[" * 300 + "]" * 300)
