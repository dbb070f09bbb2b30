"""Modules of a checkout: names are followed, and texts are cut as Python would parse them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.schema.checkout_source import CheckoutSource

ROOT = Path(__file__).resolve().parents[2]
OWN = sorted(path for name in ("recipes", "launcher", "tui", "tests") for path in (ROOT / name).rglob("*.py"))
PIECES = (
    '"""doc\nclass No:\n    pass\n"""\n',
    "'''\ndef no(): ...\n'''\n",
    "# class No: it isn't\n",
    "import os\n",
    "VALUE = 'it\\'s' \"\"\n",
    "@first\n@second(\n    1,\n)\ndef decorated(a=')'):\n    x = '''\nclass No: ...\n'''\n    return x\n",
    "class One(Base):\n\n    value: int = 1  # 'one\n\n# at the margin\n    other: str\n",
    "async def wait() -> None:\n    pass\n",
    "def long(\n    a: int,\n) -> None:\n    text = r'\\\\'\n    return None\n",
    "if True:\n    class Inner:\n        pass\nelse:\n    def inner():\n        pass\n",
    "class One:\n    again = 1\n",
    "x = [\n1,\n]\n",
    "try:\n    import json\nexcept ImportError:\n    json = None\n",
)


def compared(text: str, root: Path) -> None:
    """Compare the tables of a module with what the parser makes of all its text."""
    (root / "module.py").write_text(text, encoding="utf-8")
    module = CheckoutSource(root).module("module")
    assert module is not None
    tree = ast.parse(text)
    for kinds, table in (
        (ast.ClassDef, module.classes),
        ((ast.FunctionDef, ast.AsyncFunctionDef), module.functions),
    ):
        expected: dict[str, ast.stmt] = {}
        for node in tree.body:
            if isinstance(node, kinds):
                expected.setdefault(node.name, node)
        for name, node in expected.items():
            assert ast.dump(table[name], include_attributes=True) == ast.dump(node, include_attributes=True)


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=8))
def test_blocks_are_what_the_parser_says(tmp_path_factory: pytest.TempPathFactory, pieces: list[str]) -> None:
    compared("".join(pieces), tmp_path_factory.mktemp("source"))


@pytest.mark.long
def test_blocks_of_real_modules(tmp_path: Path) -> None:
    for path in OWN[::7]:
        compared(path.read_text(encoding="utf-8"), tmp_path)


@given(text=st.text(alphabet="\"'#\\\n classdef@():x=", max_size=60))
def test_text_that_is_no_python_is_none_or_parsed(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    root = tmp_path_factory.mktemp("source")
    (root / "module.py").write_text(text, encoding="utf-8")
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        CheckoutSource(root).module("module")
    else:
        compared(text, root)


@pytest.mark.parametrize(
    ("module", "name", "file", "line"),
    [
        ("nemo_rl.algorithms.distillation", "Student", "nemo_rl/models/policy.py", "class PolicyConfig"),
        ("nemo_rl.algorithms.distillation", "DataConfig", "nemo_rl/data/moved.py", "class DataConfig"),
        ("nemo_rl.models.policy", "kinds.Kind", "nemo_rl/models/kinds.py", "Kind = "),
        ("examples.run_distillation", "MasterConfig", "nemo_rl/algorithms/distillation.py", "class Master"),
        ("examples.run_distillation", "main", "examples/run_distillation.py", "def main"),
    ],
)
def test_names_are_followed_to_their_definition(
    cases: Path, module: str, name: str, file: str, line: str
) -> None:
    definition = CheckoutSource(cases / "schema" / "models").find(module, name)
    assert definition is not None
    assert definition.module.path == file
    assert definition.module.lines[definition.node.lineno - 1].startswith(line[:6])


def test_what_is_not_there_is_none(cases: Path, tmp_path: Path) -> None:
    source = CheckoutSource(cases / "schema" / "models")
    assert source.module("nemo_rl.nothing") is None
    assert source.find("nemo_rl.algorithms.distillation", "BaseModel") is None
    assert source.find("nemo_rl.algorithms.distillation", "nothing.at.all") is None
    assert "nemo_rl/nothing.py" in source.looked_up
    assert "nemo_rl/nothing.py" not in source.files
    (tmp_path / "a.py").write_text("from b import x\n")
    (tmp_path / "b.py").write_text("from a import x\n")
    assert CheckoutSource(tmp_path).find("a", "x") is None
    (tmp_path / "c.py").write_bytes(b"\xff\x00 = 1")
    assert CheckoutSource(tmp_path).module("c") is None
