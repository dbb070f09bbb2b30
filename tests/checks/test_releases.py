"""The rules against the releases of NeMo-RL: their own recipes pass, what is quoted stands in their code."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from recipes.checks import RULES, Checker, ClusterRequest, Inputs
from recipes.checks.checkout import Checkout
from recipes.checks.releases import APPLIES, DIFFERS, state, table
from recipes.checks.rule_sources import FEATURES, FORMS, SOURCES
from recipes.schema.checkout_source import CheckoutSource
from tests.checks.releases import RELEASES, release, stock_recipes

NO_CACHE = {"HF_HOME": "/nonexistent", "TORCH_CUDA_ARCH_LIST": "9.0"}
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="session")
def roots(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: release(shared, tmp_path_factory, name) for name in RELEASES}


def failing(root: Path, cache: Path, *, share: int = 1) -> dict[str, list[tuple[str, str]]]:
    inputs = Inputs.of(
        environment=NO_CACHE, checkout=root, request=ClusterRequest(gpu_memory_gib=80), cache=cache
    )
    checker = Checker(inputs)
    recipes = stock_recipes(root)[::share]
    assert len(recipes) >= 2
    return {
        path.name: [(result.id, result.message) for result in report.failing]
        for path in recipes
        if not (report := checker.check(path, verify_fixes=False)).ok
    }


@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("share", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_no_release_refuses_its_own_recipes(
    roots: dict[str, Path], tmp_path: Path, name: str, share: int
) -> None:
    assert failing(roots[name], tmp_path, share=share) == {}


@pytest.mark.parametrize("name", RELEASES)
def test_each_loader_reads_its_own_recipes_as_we_do(
    roots: dict[str, Path], tmp_path: Path, name: str
) -> None:
    checker = Checker(Inputs.of(environment=NO_CACHE, checkout=roots[name], cache=tmp_path))
    for path in stock_recipes(roots[name])[::5]:
        report = checker.check(path, verify_fixes=False)
        assert [r.message for r in report.results if r.id in ("C88", "C89") and r.outcome != "pass"] == []


def literals(root: Path, files: tuple[str, ...]) -> list[str]:
    """Return the string literals of some sources; an f-string's pieces are one, with … for the values."""
    paths = [root / "nemo_rl" / file for file in files]
    return [text for path in paths if path.is_file() for text in literals_of(path)]


@cache
def literals_of(path: Path) -> tuple[str, ...]:
    texts = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            texts.append("".join(parts))
    return tuple(texts)


def reached(root: Path, script: str) -> set[str]:
    """Return the modules that a script imports, or names for Ray's workers, in any number of steps."""
    source = CheckoutSource(root)
    modules, waiting = set(), [script.removesuffix(".py").replace("/", ".")]
    while waiting:
        name = waiting.pop()
        module = source.module(name) if name not in modules else None
        if module is None:
            continue
        modules.add(name)
        waiting += re.findall(r"nemo_rl(?:\.\w+)+", module.text)
        waiting += [name.rpartition(".")[0] for name in re.findall(r"nemo_rl(?:\.\w+)+", module.text)]
        waiting += [f"nemo_rl.{match}" for match in re.findall(r"from nemo_rl import (\w+)", module.text)]
        waiting += [
            f"{match[1]}.{name.strip()}"
            for match in re.finditer(r"from (nemo_rl[\w.]*) import \(?([\w\s,]+)", module.text)
            for name in match[2].split(",")
        ]
    paths = {source.path_of(name) for name in modules}
    return {path.removeprefix("nemo_rl/") for path in paths if path is not None}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in RELEASES[:-1]), RELEASES[-1]]
)
def test_what_a_rule_quotes_stands_in_a_literal_of_code_that_the_driver_reaches(
    roots: dict[str, Path], name: str
) -> None:
    root = roots[name]
    checkout = Checkout.at(root)
    files = reached(root, driver(checkout))
    for id_, source in SOURCES.items():
        if source.dependency or source.never or state(checkout, id_) not in (APPLIES, DIFFERS):
            continue
        there = [file for file in source.files if file in files]
        assert there, (id_, "the driver reaches none of its files")
        if source.quote:
            assert any(source.quote in text for text in literals(root, tuple(there))), id_
        else:
            sources = [(root / "nemo_rl" / file).read_text(encoding="utf-8") for file in there]
            assert any(re.search(source.code, text) for text in sources), id_


def driver(checkout: Checkout) -> str:
    return next(script for script in checkout.scripts if "run_distillation" in script and "gym" not in script)


def plain(text: str) -> str:
    """Return a predicted message without what stands for values."""
    return re.sub(r"\s+", " ", text)


def test_each_rule_has_a_source_and_each_form_a_feature() -> None:
    assert set(SOURCES) == {rule.id for rule in RULES}
    assert {name for names in FORMS.values() for name in names} <= set(FEATURES)


def test_predictions_are_quoted_word_for_word(roots: dict[str, Path]) -> None:
    root = roots["main-7ea279ab"]
    for rule in RULES:
        source = SOURCES[rule.id]
        if not source.quote:
            continue
        texts = [plain(text) for text in literals(root, source.files)]
        said = re.sub(r" \((?:in|at|after) [^()]*\)$", "", rule.foretells)
        for piece in filter(None, map(str.strip, said.split("…"))):
            assert any(piece in text for text in texts), (rule.id, piece)


def test_the_table_in_the_docs_is_of_the_releases(roots: dict[str, Path]) -> None:
    assert table([roots[name] for name in RELEASES]) in (DOCS / "checks.md").read_text(encoding="utf-8")


def test_a_checkout_without_sources_counts_as_the_newest(tmp_path: Path) -> None:
    checkout = Checkout.at(tmp_path)
    assert all(checkout.has_rule(rule.id) for rule in RULES if not SOURCES[rule.id].never)
    assert all(checkout.has(name) == feature.newest for name, feature in FEATURES.items())


def test_a_moved_file_is_found_and_a_missing_one_makes_its_rules_not_apply(tmp_path: Path) -> None:
    package = tmp_path / "nemo_rl"
    (package / "core").mkdir(parents=True)
    (package / "algorithms").mkdir()
    text = 'raise ValueError(f"World size ({n}) is insufficient for the parallelism configuration. ")\n'
    (package / "core" / "lm_policy.py").write_text(text)
    (package / "renamed.py").write_text('raise ValueError("Unknown packing algorithm: " + name)\n')
    checkout = Checkout.at(tmp_path)
    assert checkout.has_rule("C34")
    assert checkout.has_rule("C76")
    assert not checkout.has_rule("C35")
    assert not checkout.has_rule("C16")
    assert checkout.has_rule("C74"), "a dependency's failure does not depend on the checkout"
