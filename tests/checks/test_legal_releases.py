"""No false alarm on legal recipes of each release, and each is read as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.checks import Checker, ClusterRequest, Inputs
from tests.checks.legal_recipes import legal_recipe
from tests.checks.releases import RELEASES, release

NOT_OF_VALUES = ("C66", "C81", "C82", "C83", "C84", "C89")
"""Warnings on files, on memory, and on parents' parents."""


@pytest.mark.long
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(100, 250), marks=pytest.mark.slow)])
def test_legal_recipes_raise_no_alarm(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, name: str, seeds: range
) -> None:
    root = release(shared, tmp_path_factory, name)
    folder = tmp_path_factory.mktemp("legal")
    parent = root / "examples" / "configs" / "distillation_math.yaml"
    inputs = Inputs.of(
        environment={"HF_HOME": "/nonexistent", "TORCH_CUDA_ARCH_LIST": "9.0"},
        checkout=root,
        request=ClusterRequest(gpu_memory_gib=80),
        cache=folder,
    )
    checker = Checker(inputs)
    wrong = {}
    for seed in seeds:
        text, values = legal_recipe(seed, str(parent), old=name in RELEASES[:2])
        path = folder / f"legal-{seed}.yaml"
        path.write_text(text, encoding="utf-8", newline="")
        report = checker.check(path, verify_fixes=False)
        assert report.recipe is not None, (seed, report.failing)
        misread = {
            key: (value, report.recipe.get(key))
            for key, value in values.items()
            if not isinstance(value, dict) and report.recipe.get(key) != value
        }
        alarms = [
            (result.id, result.message)
            for result in report.results
            if result.outcome == "fail" or (result.outcome == "warn" and result.id not in NOT_OF_VALUES)
        ]
        if misread or alarms:
            wrong[seed] = (misread, alarms)
    assert wrong == {}
