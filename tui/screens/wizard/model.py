"""The fields of each step, and the texts of those that were not edited. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from launcher.clusters.inventory import gpu_memory_gib
from launcher.durations import DurationError, format_time_limit, parse_time_limit
from launcher.fields import Field
from launcher.fields import field as field_of
from launcher.fields.compound_fields import WANDB_VARIABLE
from launcher.fields.field_values import field_with_key as recipe_field
from launcher.fields.field_values import is_available, key_in, split_of, text_in
from tui.screens.wizard.recipe_paths import PACKAGED
from tui.screens.wizard.wizard_state import STEPS, DraftStatus, Step, WizardState

if TYPE_CHECKING:
    from launcher.clusters.inventory import Partition
    from launcher.request import Kind

__all__ = [
    "REHEARSAL_RECIPE",
    "STARTING_RECIPE",
    "STEPS",
    "DraftStatus",
    "Step",
    "WizardState",
    "count_of",
    "default_text",
    "field_with_key",
    "fields_of",
    "gpus_per_node_of",
    "key_of",
    "kind_of",
    "lacks_gpu_memory",
    "partition_of",
    "profile_answer",
    "step_of",
    "steps_of",
    "text_of",
    "time_s",
    "words_of",
]

STARTING_RECIPE = "qwen3-1.7b-from-4b.yaml"
REHEARSAL_RECIPE = "rehearsal.yaml"
_DEFAULT_TIME_S = {"rehearsal": 600, "smoke": 1800, "training": 86400}
"""Default time limits, where the partition allows them."""
_NOT_IN_REHEARSAL = ("checkout",)
_NOT_IN_SMOKE = (
    "steps", "save_period", "keep_checkpoints", "checkpoint_dir", "log_dir",
    "wandb", "wandb_project", "wandb_name",
)  # fmt: skip
"""Fields that a smoke run answers itself (`launcher.effective`)."""
_FOR_CONTAINERS = ("container", "mounts")


def step_of(identity: str) -> Step:
    """Return a step by its id."""
    return next(step for step in STEPS if step.id == identity)


def kind_of(state: WizardState) -> Kind:
    """Return the kind of run."""
    kind = state.texts.get("kind", "training")
    return kind if kind in ("rehearsal", "smoke") else "training"  # type: ignore[return-value]


def fields_of(step: Step, state: WizardState, status: DraftStatus) -> tuple[Field, ...]:
    """Return the fields of a step that apply; rehearsals have stand-in models and need no checkout."""
    rows = [field_of(name) for name in step.fields]
    return tuple(row for row in rows if _applies(row, state, status))


def _applies(row: Field, state: WizardState, status: DraftStatus) -> bool:
    kind = kind_of(state)
    if row.of_recipe:
        left_out = kind == "rehearsal" or (kind == "smoke" and row.name in _NOT_IN_SMOKE)
        return not left_out and _applies_to_recipe(row, state, status)
    if row.name in _NOT_IN_REHEARSAL:
        return kind != "rehearsal"
    if row.name == "gpu_memory":
        return "gpu_memory" in state.texts or lacks_gpu_memory(state, status)
    if row.name == "profile":
        return status.detection is not None and bool(status.detection.site.profiles)
    if row.name == "modules":
        return bool(status.loaded_modules or text_of("modules", state, status) or "modules" in state.texts)
    if row.name in _FOR_CONTAINERS:
        return text_of("launcher", state, status) != "ray_bare"
    return True


def _applies_to_recipe(row: Field, state: WizardState, status: DraftStatus) -> bool:
    recipe = status.effective or status.recipe
    if recipe is None:
        return not (row.only_megatron or row.name in ("generation_gpus", "generation_nodes", "kl_mix"))
    if row.name in ("generation_gpus", "generation_nodes"):
        return split_of(recipe, count_of("nodes", state, status))[row.name == "generation_nodes"]
    if row.name == "kl_mix" and recipe.get("loss_fn.kl_type", "mixed") != "mixed":
        return False
    return is_available(row, recipe, status.key_tree)


def steps_of(state: WizardState, status: DraftStatus) -> tuple[Step, ...]:
    """Return the steps that have fields, and the review."""
    return tuple(step for step in STEPS if step.id == "review" or fields_of(step, state, status))


def lacks_gpu_memory(state: WizardState, status: DraftStatus) -> bool:
    """Return whether nobody knows the memory of the chosen partition's GPUs, and a run needs it."""
    partition = partition_of(state, status)
    if status.detection is None or partition is None or not offered_gpus(state, status):
        return False
    known = gpu_memory_gib(partition.gpus.type or "gpu", status.detection.site.gpu_memory_gib)
    return known is None and kind_of(state) != "rehearsal"


def key_of(item: Field, status: DraftStatus) -> str:
    """Return the recipe key that a field sets; "" for several, and where the release has none."""
    return key_in(item, status.recipe, status.key_tree)


def field_with_key(key: str, status: DraftStatus) -> str | None:
    """Return the name of the field that sets a recipe key."""
    if key == "cluster.num_nodes":
        return "nodes"
    if key == "cluster.gpus_per_node":
        return "gpus_per_node"
    item = recipe_field(key, status.recipe, status.key_tree)
    return item.name if item is not None else None


def gpus_per_node_of(state: WizardState, status: DraftStatus) -> int | None:
    """Return the GPUs of each node that the job gets; None where nobody knows."""
    return count_of("gpus_per_node", state, status) or status.gpus_per_node or None


def partition_of(state: WizardState, status: DraftStatus) -> Partition | None:
    """Return the chosen partition, else the default one."""
    if status.detection is None:
        return None
    name = (
        state.texts.get("partition")
        or profile_answer("partition", state, status)
        or _smoke_target(state, status)[0]
    )
    if name:
        return status.detection.partition(name)
    default = status.detection.partition(status.detection.default_partition or "")
    return default or next(iter(status.detection.partitions), None)


def _smoke_target(state: WizardState, status: DraftStatus) -> tuple[str, str]:
    """Return the partition and the reservation that a smoke run gets by default, as `submit --smoke` does."""
    names = ("partition", "reservation")
    chosen = any(state.texts.get(name) or profile_answer(name, state, status) for name in names)
    if kind_of(state) != "smoke" or chosen or status.detection is None:
        return "", ""
    from launcher.submit.complete import smoke_target

    typed = state.texts.get("time") or profile_answer("time", state, status)
    try:
        limit_s = parse_time_limit(typed) if typed else _DEFAULT_TIME_S["smoke"]
    except DurationError:
        limit_s = _DEFAULT_TIME_S["smoke"]
    target = smoke_target(status.detection, count_of("nodes", state, status) or 1, limit_s)
    return (target[0], target[1] or "") if target is not None else ("", "")


def profile_of(state: WizardState, status: DraftStatus) -> str:
    """Return the name of the chosen profile, else of the default one; empty for none."""
    if "profile" in state.texts:
        return state.texts["profile"]
    return _default_profile(state, status)


def _default_profile(_state: WizardState, status: DraftStatus) -> str:
    site = status.detection.site if status.detection is not None else None
    return site.default_profile if site is not None and site.default_profile in site.profiles else ""


def profile_answer(name: str, state: WizardState, status: DraftStatus) -> str:
    """Return what the chosen profile answers for a field; empty where it does not."""
    profiles = status.detection.site.profiles if status.detection is not None else {}
    profile = profiles.get(profile_of(state, status))
    value = getattr(profile, name, None)
    if isinstance(value, tuple):  # its sbatch arguments come before the request's, in any case
        return " ".join(value) if name == "modules" else ""
    return str(value) if isinstance(value, str | int) else ""


def default_text(name: str, state: WizardState, status: DraftStatus) -> str:
    """Return the text of a field that was not edited."""
    item = field_of(name)
    if item.of_recipe:
        return _recipe_text(item, state, status)
    if answer := profile_answer(name, state, status):
        return answer
    default = _DEFAULTS.get(name)
    return default(state, status) if default is not None else ""


def _default_partition(state: WizardState, status: DraftStatus) -> str:
    partition = partition_of(state, status)
    return partition.name if partition is not None else ""


def _default_recipe(state: WizardState, status: DraftStatus) -> str:
    return _packaged_recipe(REHEARSAL_RECIPE if kind_of(state) == "rehearsal" else STARTING_RECIPE, status)


def _default_modules(_state: WizardState, status: DraftStatus) -> str:
    return " ".join(status.detection.site.modules) if status.detection is not None else ""


def _default_time(state: WizardState, status: DraftStatus) -> str:
    partition = partition_of(state, status)
    max_time_s = partition.max_time_s if partition is not None else None
    return format_time_limit(min(_DEFAULT_TIME_S[kind_of(state)], max_time_s or _DEFAULT_TIME_S["training"]))


def offered_gpus(state: WizardState, status: DraftStatus) -> int:
    """Return the GPUs of the partition's nodes; where Slurm lists none, those that the recipe names."""
    partition, detection = partition_of(state, status), status.detection
    if partition is None or detection is None:
        return 0
    if partition.gpus.count or detection.lists_gpus or kind_of(state) == "rehearsal":
        return partition.gpus.count
    count = status.recipe.get("cluster.gpus_per_node") if status.recipe is not None else None
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _default_gpus(state: WizardState, status: DraftStatus) -> str:
    return str(offered_gpus(state, status) or "")


def _recipe_text(item: Field, state: WizardState, status: DraftStatus) -> str:
    """Return a recipe's own value; where another field decides it by now, that one's."""
    recipe = status.recipe
    if item.name not in status.state.texts and status.effective is not None:
        recipe = status.effective
    if recipe is None:
        return ""
    text = text_in(item, recipe, status.key_tree)
    return "offline" if item.name == "wandb" and text == "online" and _is_offline(state, status) else text


def _is_offline(state: WizardState, status: DraftStatus) -> bool:
    """Return whether the job's environment keeps W&B from the network."""
    typed = words_of(state.texts.get("env", "")) or ()
    if any(word.startswith(f"{WANDB_VARIABLE}=") for word in typed):
        return f"{WANDB_VARIABLE}=offline" in typed
    if status.detection is None:
        return False
    site, partition = status.detection.site, partition_of(state, status)
    profile = site.profiles.get(profile_of(state, status))
    own = site.job_environment(partition.name if partition is not None else None)
    variables = {**own, **(profile.environment if profile is not None else {})}
    return variables.get(WANDB_VARIABLE) == "offline"


def _default_nodes(state: WizardState, status: DraftStatus) -> str:
    """Return the recipe's nodes; for a smoke run the fewest that suffice, once they are known."""
    if kind_of(state) == "smoke" and status.fewest_nodes is not None:
        return str(status.fewest_nodes)
    count = status.recipe.get("cluster.num_nodes") if status.recipe is not None else None
    return str(count) if isinstance(count, int) and not isinstance(count, bool) and count > 0 else "1"


def _packaged_recipe(name: str, status: DraftStatus) -> str:
    """Return a packaged recipe as it is typed: its name, unless a file of this directory has the same."""
    packaged = (item for item in status.recipes if item.source == PACKAGED and item.path.name == name)
    return next((item.text for item in packaged), name)


def _default_account(partition: Partition | None, status: DraftStatus) -> str:
    if status.detection is None:
        return ""
    default = status.detection.account_for(partition) or ""
    usable = status.detection.accounts_in(partition) if partition is not None else None
    if usable and default not in usable:
        return usable[0]
    return default


def text_of(name: str, state: WizardState, status: DraftStatus) -> str:
    """Return the text of a field: as typed, else its default."""
    return state.texts[name] if name in state.texts else default_text(name, state, status)


def time_s(state: WizardState, status: DraftStatus) -> int | None:
    """Return the time limit in seconds; None where it is missing or invalid."""
    try:
        return parse_time_limit(text_of("time", state, status))
    except DurationError:
        return None


def count_of(name: str, state: WizardState, status: DraftStatus) -> int | None:
    """Return a field's whole number >= 1; None where it is missing or invalid."""
    text = text_of(name, state, status)
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


def words_of(text: str) -> tuple[str, ...] | None:
    """Return the words of a text as a shell has them; None where a quote is not closed."""
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return None


_DEFAULTS: Mapping[str, Callable[[WizardState, DraftStatus], str]] = {
    "partition": _default_partition,
    "account": lambda state, status: _default_account(partition_of(state, status), status),
    "reservation": lambda state, status: _smoke_target(state, status)[1],
    "kind": lambda _state, _status: "training",
    "recipe": _default_recipe,
    "checkout": lambda _state, status: status.default_checkout,
    "modules": _default_modules,
    "profile": _default_profile,
    "nodes": _default_nodes,
    "gpus_per_node": _default_gpus,
    "time": _default_time,
    "chain": lambda _state, _status: "1",
    "launcher": lambda _state, _status: "ray_bare",
}
"""Defaults of fields that the recipe does not decide, where no profile answers."""
