"""The wrapping of a checkout's workers, read from its sources: releases, and Automodel at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recipes.memory.worker_sources import AUTOMODEL, wrapping_of
from recipes.memory.wrapping import V1, V1_UNTIED, V2_HOLDING, V2_PARTS, V2_PLAIN
from tests.checks.releases import RELEASES, release

SETUP = """
def setup_model_and_optimizer(model, tied):
    if tied:
        model.tie_weights()
"""
TRAIN = "def automodel_forward_backward(model, data):\n    return []\n"
HOOKS = """
def shard(units, depth):
    for unit in units:
        unit.set_modules_to_forward_prefetch(units[:depth])
"""
REENTRANT = """
def strategy(model):
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
"""
PARTS = """
def strategy(layers):
    for number, layer in enumerate(layers):
        layers[number].mlp = checkpoint_wrapper(layer.mlp)
"""
INSIDE = "def strategy(model, layers):\n    apply_full_layer_checkpointing_to_layers(model, layers)\n"
SKIPS = 'def parallelize(model):\n    logger.info("World size is 1, skipping parallelization.")\n'


def checkout(root: Path, parallelizer: str, manager: str = SKIPS) -> Path:
    automodel = root / AUTOMODEL
    own = root / "nemo_rl" / "models" / "automodel"
    for folder in (automodel, own):
        folder.mkdir(parents=True)
    (own / "setup.py").write_text(SETUP)
    (own / "train.py").write_text(TRAIN)
    (automodel / "parallelizer.py").write_text(parallelizer)
    (automodel / "fsdp2.py").write_text(manager)
    return root


@pytest.mark.parametrize("name", RELEASES)
def test_releases_without_the_submodule(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    root = release(shared, tmp_path_factory, name)
    first, second = wrapping_of(root, v2=False), wrapping_of(root, v2=True)
    assert first.certain
    assert not second.certain
    old = name in ("v0.4.0", "v0.5.0")
    assert first.wrapping == (V1_UNTIED if old else V1)
    if old:
        assert second.wrapping.checkpoints == V2_PARTS.checkpoints
        assert second.wrapping.bare_on_one_gpu == (name == "v0.5.0")
        assert not second.wrapping.ties_again
    else:
        assert second.wrapping == (V2_PLAIN if name == "v0.6.0" else V2_HOLDING)


@pytest.mark.parametrize(
    ("parallelizer", "checkpoints", "holds"),
    [
        (REENTRANT + HOOKS, "layers outside FSDP", True),
        (REENTRANT, "layers outside FSDP", False),
        (REENTRANT.replace("True", "False") + HOOKS, "layers", False),
        (INSIDE + HOOKS, "layers", False),
        (PARTS + HOOKS, "parts", False),
        (PARTS + "# set_modules_to_forward_prefetch, gradient_checkpointing_enable\n", "parts", False),
        ("def broken(:\n    gradient_checkpointing_enable(\n", "parts", False),
    ],
)
def test_automodel_at_hand_decides(tmp_path: Path, parallelizer: str, checkpoints: str, holds: bool) -> None:
    source = wrapping_of(checkout(tmp_path, parallelizer), v2=True)
    assert source.certain
    assert source.wrapping.checkpoints == checkpoints
    assert source.wrapping.holds_layers is holds
    assert source.wrapping.keeps_losses
    assert source.wrapping.ties_again
    assert source.wrapping.bare_on_one_gpu


def test_one_gpu_is_sharded_where_automodel_does_not_skip_it(tmp_path: Path) -> None:
    root = checkout(tmp_path, REENTRANT, manager="def parallelize(model):\n    return model\n")
    assert not wrapping_of(root, v2=True).wrapping.bare_on_one_gpu


def test_a_changed_source_is_read_again(tmp_path: Path) -> None:
    root = checkout(tmp_path, REENTRANT + HOOKS)
    assert wrapping_of(root, v2=True).wrapping.holds_layers
    path = root / AUTOMODEL / "parallelizer.py"
    path.write_text(INSIDE)
    os.utime(path, ns=(1, 1))
    assert not wrapping_of(root, v2=True).wrapping.holds_layers


@pytest.mark.parametrize("given", [None, "empty"])
def test_without_sources_the_newest_release_counts(tmp_path: Path, given: str | None) -> None:
    root = tmp_path / given if given else None
    assert wrapping_of(root, v2=True) == (V2_HOLDING, False)
    assert wrapping_of(root, v2=False) == (V1, False)
