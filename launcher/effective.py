"""The effective recipe of a run: its kind's and size's overrides, and the file that the driver reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import InputError
from recipes.planning.edits import hydra

if TYPE_CHECKING:
    from launcher.request import Kind
    from launcher.runs import RunSpec
    from recipes.inheritance import EffectiveRecipe, Resolver

SMOKE_STEPS = 5
_ONE_CHECKPOINT = (f"++checkpointing.save_period={SMOKE_STEPS}", "++checkpointing.keep_top_k=1")
"""A save comes at each multiple of the period and at the last step (nemo_rl/algorithms/distillation.py:987):
with the steps as the period that is one, the last, whatever the metric says of earlier ones."""
_OWN_DIRECTORIES = {
    "logger.log_dir": "output/logs",
    "checkpointing.checkpoint_dir": "output/checkpoints",
}


def distillation(recipe: Path, overrides: Sequence[str], resolver: Resolver | None = None) -> EffectiveRecipe:
    """Return the effective recipe of a distillation.

    Raises:
        RecipeError: the recipe cannot be read.
        InputError: it is not a distillation recipe.
    """
    from recipes.inheritance import Resolver

    effective = (resolver or Resolver()).resolve(recipe, overrides)
    if not isinstance(effective.get("distillation"), dict):
        raise InputError(
            "this is not a recipe of an on-policy distillation (it has no `distillation:` section)",
            where=recipe,
            fix="Give a recipe for NeMo-RL's run_distillation.py.",
        )
    return effective


def size_overrides(kind: Kind, nodes: int, gpus_per_node: int) -> tuple[str, ...]:
    """Return the overrides that set a recipe's nodes and GPUs to those requested from the cluster."""
    own = (f"++cluster.num_nodes={nodes}", f"++cluster.gpus_per_node={gpus_per_node}")
    if kind == "smoke":
        return (
            *own,
            f"++distillation.max_num_steps={SMOKE_STEPS}",
            "++logger.wandb_enabled=false",
            *_ONE_CHECKPOINT,
        )
    return own


def single_checkpoint_overrides(kind: Kind, recipe: EffectiveRecipe) -> tuple[str, ...]:
    """Return the further overrides by which a smoke run saves only at its end.

    Checkpoints for crash recovery are saved besides (nemo_rl/algorithms/distillation.py:992, after 0.7).
    """
    if kind != "smoke" or recipe.get("checkpointing.ft_save_period") is None:
        return ()
    return (f"++checkpointing.ft_save_period={SMOKE_STEPS}",)


def directory_overrides(kind: Kind, directory: str | Path = "") -> tuple[str, ...]:
    """Return the overrides that give a rehearsal or smoke run its own log and checkpoint directories.

    NeMo-RL resumes from whatever is in a checkpoint directory.
    """
    if kind == "training":
        return ()
    return tuple(f"++{key}={hydra(str(Path(directory, path)))}" for key, path in _OWN_DIRECTORIES.items())


def own_directory_keys(kind: Kind) -> frozenset[str]:
    """Return the keys that `directory_overrides` sets: they name the directory a run was submitted in."""
    return frozenset() if kind == "training" else frozenset(_OWN_DIRECTORIES)


def user_overrides(spec: RunSpec) -> tuple[str, ...]:
    """Return a run's overrides without those of `size_overrides`."""
    added = size_overrides(spec.kind, spec.nodes, spec.gpus_per_node)
    # The user may have set the checkpoints' keys for the real run, too.
    keys = {_key(item) for item in added if item not in _ONE_CHECKPOINT}
    own = {*added, f"++checkpointing.ft_save_period={SMOKE_STEPS}"} if spec.kind == "smoke" else set(added)
    return tuple(item for item in spec.recipe.overrides if item not in own and _key(item) not in keys)


def _key(override: str) -> str:
    return override.partition("=")[0]


def max_steps_of(effective: EffectiveRecipe) -> int | None:
    """Return the recipe's maximum number of steps."""
    steps = effective.get("distillation.max_num_steps")
    return steps if isinstance(steps, int) else None


def effective_yaml(effective: EffectiveRecipe) -> bytes:
    """Return the values of a recipe as one file; what comes from a secret variable stays an interpolation."""
    import yaml

    return yaml.safe_dump(effective.public, sort_keys=False, allow_unicode=True).encode()
