"""The catalogue of failures: each is recognised by its lines and by no line beside them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from launcher.logs.events import FindingSeen, Role
from launcher.logs.launcher_log import launcher_reader
from launcher.logs.scanner import Scanner
from launcher.logs.search import HyperscanFinder, PlainFinder, finder_for
from launcher.logs.signatures import catalogue
from recipes.errors import ExplainedError
from recipes.inheritance import resolve

CASES: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parents[1] / "cases" / "logs" / "signatures.toml").read_text()
)
KNOWN = catalogue()


def seen_in(line: str) -> list[str]:
    """Return the ids found in a line that stands alone in a log."""
    scanner = Scanner(launcher_reader("log", Role.COMPANION))
    data = f"before\n{line}\nafter\n".encode()
    return [event.id for event in scanner.feed(data, lambda _: None) if isinstance(event, FindingSeen)]


def test_every_signature_has_lines_and_near_misses() -> None:
    assert set(CASES) == set(KNOWN.signatures)
    assert all(case["yes"] and case["no"] for case in CASES.values())


@pytest.mark.parametrize("identity", sorted(CASES))
def test_its_lines_are_recognised(identity: str) -> None:
    for line in CASES[identity]["yes"]:
        assert seen_in(line) == [identity], line


@pytest.mark.parametrize("identity", sorted(CASES))
def test_near_misses_are_not(identity: str) -> None:
    for line in CASES[identity]["no"]:
        assert identity not in seen_in(line), line


def test_every_wording_is_tried() -> None:
    tried = [line for case in CASES.values() for line in case["yes"]]
    untried = [
        (signature.id, clause.literal)
        for signature in KNOWN.signatures.values()
        for clause in signature.clauses
        if not any(clause.matches(line) for line in tried)
    ]
    assert len(untried) <= 8, untried


def test_the_catalogue_is_sound() -> None:
    assert len(KNOWN.signatures) >= 100
    for signature in KNOWN.signatures.values():
        assert signature.causes <= set(KNOWN.signatures), signature.id
        assert signature.id not in signature.causes
        assert signature.advice.fix
        assert signature.source
        assert {Role(name) for name in signature.where}
        assert not re.search(r"[.]$", signature.title)
        assert all(len(clause.literal.encode()) >= 6 for clause in signature.clauses)
        for advice in (signature.advice, *signature.phases.values()):
            for edit in advice.edits:
                assert (edit.to is None) != (edit.how == ""), (signature.id, edit.key)


def test_a_literal_stands_in_all_that_its_pattern_matches() -> None:
    for identity, case in CASES.items():
        for line in case["yes"]:
            matching = [
                clause
                for clause in KNOWN.signatures[identity].clauses
                if clause.pattern is None or clause.pattern.search(line)
            ]
            assert any(clause.literal in line for clause in matching), (identity, line)


def test_no_signature_speaks_of_a_plain_error() -> None:
    assert KNOWN.recognise(str(ExplainedError("what", where="x", fix="y"))) is None


def test_the_fast_finder_is_used_where_it_is_there() -> None:
    pytest.importorskip("hyperscan")
    assert isinstance(finder_for((b"needle",)), HyperscanFinder)


def test_without_the_library_python_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hyperscan", None)
    assert isinstance(finder_for((b"another needle",)), PlainFinder)


def test_edits_name_keys_that_recipes_have(shared: Path) -> None:
    recipe = resolve(shared / "corpus" / "nemo-rl" / "examples" / "configs" / "distillation_math.yaml")
    keys = {
        edit.key
        for signature in KNOWN.signatures.values()
        for advice in (signature.advice, *signature.phases.values())
        for edit in advice.edits
    }
    assert {key for key in keys if not recipe.has(key)} == {"policy.tokenizer.chat_template"}
