"""The table of kinds in docs/security.md, and the reasons of exceptions from the linter's security rules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.hostile.attempts import ROOT


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_kind_has_its_tests() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    table = text[text.index("<!-- kinds -->") : text.index("<!-- end -->", text.index("<!-- kinds -->"))]
    rows = [line for line in table.splitlines() if re.match(r"\| \d+ ", line)]
    assert [int(row.split()[1]) for row in rows] == list(range(1, 15))
    for row in rows:
        tests = re.findall(r"`([^`]+)::([^`]+)`", row)
        assert tests, row
        for file, name in tests:
            assert name in functions_of(ROOT / file), f"{file}::{name}"


def test_each_exception_from_the_security_rules_has_its_reason() -> None:
    for package in ("recipes", "launcher", "tui"):
        for path in (ROOT / package).rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if re.search(r"# noqa:.*\bS\d{3}", line):
                    assert re.search(r"# noqa: [A-Z0-9, ]+ - \w", line), f"{path}: {line}"
