"""Cases from other tools' bug reports: one edit each, and the text it must give."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from recipes.document import Document

if TYPE_CHECKING:
    from pathlib import Path


def words(line: str) -> tuple[str, list[Any]]:
    verb, _, rest = line.partition(" ")
    decoder, values, position = json.JSONDecoder(), [], 0
    while match := re.compile(r"\s*(?=\S)").match(rest, position):
        value, position = decoder.raw_decode(rest, match.end())
        values.append(value)
    return verb, values


def edit(document: Document, line: str) -> None:
    verb, values = words(line)
    path = tuple(values[0])
    match verb:
        case "set" | "assign":
            document.set(path, values[1])
        case "insert":
            document.insert(path, values[1], values[2])
        case "delete":
            document.delete(path)
        case _:
            pytest.fail(f"unknown edit {verb}")


def test_every_case_gives_the_expected_text(yaml_cases: list[Path]) -> None:
    assert len(yaml_cases) >= 20
    wrong = []
    for case in yaml_cases:
        document = Document.open(case / "input.yaml")
        before = document.to_bytes()
        for line in (case / "edit.txt").read_text().splitlines():
            edit(document, line)
        if document.to_bytes() != (case / "expected.yaml").read_bytes():
            wrong.append((case.name, document.text))
        while document.undo():
            pass
        assert document.to_bytes() == before
    assert not wrong
