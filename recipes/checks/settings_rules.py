"""Rules on settings and entry: C6 to C17. They predict failures in the driver's first minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.checkout import BUILT_IN_DATASETS, BUILT_IN_ENVIRONMENTS
from recipes.checks.core import Context, Finding, Rule, fail, shown, undecided, warn
from recipes.checks.data import datasets
from recipes.files import is_file
from recipes.planning.setup import whole

if TYPE_CHECKING:
    from collections.abc import Iterator


_DISTILLATION = "algorithms/distillation.py"


def _generation(context: Context) -> Iterator[Finding]:
    """C6."""
    if isinstance(context.get("policy"), dict) and not isinstance(context.get("policy.generation"), dict):
        yield fail("policy.generation is missing: the student must generate", "policy.generation")


def _refit(context: Context) -> Iterator[Finding]:
    """C7."""
    key = "policy.generation.refit_transport"
    if context.get("policy.generation.backend") == "vllm" and context.get(key) in (
        "vllm_s3_sparse",
        "vllm_zmq_sparse",
    ):
        yield fail(f"{key} {context.get(key)} is for GRPO only", key, fixes=[context.removal(key)])


def _sequence_parallel_packing(context: Context) -> Iterator[Finding]:
    """C8."""
    for side in context.sides:
        if side.backend == "dtensor" and side.packing and side.sequence_parallel:
            keys = side.key("dtensor_cfg.sequence_parallel"), side.key("sequence_packing.enabled")
            who = "student" if side.name == "policy" else "teacher"
            yield fail(
                f"{side.name}: sequence parallelism and sequence packing exclude each other",
                *keys,
                fixes=[context.fix(keys[0], after=False), context.fix(keys[1], after=False)],
                foretells=(
                    "Distillation does not support DTensor sequence parallel + sequence packing "
                    f"({who} policy)."
                ),
            )


def _train_data(context: Context) -> Iterator[Finding]:
    """C9."""
    if isinstance(context.get("data"), dict) and not context.get("data.train"):
        old = context.get("data.dataset_name")
        fixes = [context.fix("data.train", {"dataset_name": old})] if isinstance(old, str) else []
        yield fail("data.train is missing: which data set to train on", "data.train", fixes=fixes)


def _dataset_names(context: Context) -> Iterator[Finding]:
    """C10."""
    known = context.checkout.datasets if context.checkout else None
    for entry in datasets(context.recipe):
        if not entry.name or ("." in entry.name and context.has_feature("dataset paths")):
            continue
        names = known or BUILT_IN_DATASETS
        if entry.name in names:
            continue
        near = _nearest(entry.name, names)
        key = f"{entry.key}.dataset_name"
        yield fail(
            f"NeMo-RL knows no data set '{entry.name}'",
            key,
            fixes=[context.fix(key, near)] if near else [],
            foretells=f"Unsupported dataset_name='{entry.name}'.",
        )


def _nearest(name: str, names: frozenset[str]) -> str | None:
    from difflib import get_close_matches

    lower = {known.lower(): known for known in sorted(names)}
    found = get_close_matches(name.lower()[:80], lower, 1, 0.6)
    return lower[found[0]] if found else None


def _prompt_files(context: Context) -> Iterator[Finding]:
    """C11."""
    seen: set[str] = set()
    for entry in datasets(context.recipe):
        for name, (key, value) in entry.files.items():
            if not isinstance(value, str) or value in seen:
                continue
            seen.add(value)
            if is_file(context.inputs.root / value):
                continue
            if context.checkout is None and not value.startswith("/"):
                need = "Give the checkout (--checkout or NEMO_RL_ROOT): the driver starts there."
                yield undecided(f"whether {value} is there where the driver starts", need, key)
                continue
            yield fail(
                f"{name} {value} does not exist in {context.inputs.root}",
                key,
                fixes=[context.fix(key, None)],
                foretells=f"Prompt file {value} not found",
            )
    yield from _template(context)


def _template(context: Context) -> Iterator[Finding]:
    """Look for the file of a template: a text that ends with .jinja; any other is the template itself."""
    key = "policy.tokenizer.chat_template"
    value = context.get(key)
    if context.checkout is None or not isinstance(value, str) or not value.endswith(".jinja"):
        return
    if not is_file(context.inputs.root / value):
        yield fail(
            f"chat_template {value} does not exist in {context.inputs.root}",
            key,
            fixes=[context.fix(key, "default")],
            foretells=f"FileNotFoundError: [Errno 2] No such file or directory: '{value}'",
        )


def _environments(context: Context) -> Iterator[Finding]:
    """C12."""
    known = context.checkout.environments if context.checkout else BUILT_IN_ENVIRONMENTS
    seen: set[str] = set()
    for entry in datasets(context.recipe):
        name = entry.env
        if not name or name in seen:
            continue
        seen.add(name)
        key = entry.env_key
        blocks = context.get("env")
        if not isinstance(blocks, dict) or name not in blocks:
            fixes = [context.fix(key, "math")] if isinstance(blocks, dict) and "math" in blocks else []
            yield fail(f"env has no block for '{name}'", key, fixes=fixes, foretells=f"KeyError: '{name}'")
        elif name not in known:
            text = f"Env name {name} is not registered in ENV_REGISTRY."
            yield fail(f"NeMo-RL knows no environment '{name}'", key, foretells=text)


def _validation_data(context: Context) -> Iterator[Finding]:
    """C13."""
    if not isinstance(context.get("data"), dict) or not context.validates or context.get("data.validation"):
        return
    if not context.has_feature("data.train"):
        return  # up to v0.5 each data set brings its own validation data
    train = context.get("data.train")
    entries = train if isinstance(train, list) else [train]
    if any(isinstance(entry, dict) and (entry.get("split_validation_size") or 0) > 0 for entry in entries):
        return
    message = "validation is on, but there is no data.validation"
    off = {"distillation.val_period": 0, "distillation.val_at_start": False, "distillation.val_at_end": False}
    keys = ("data.validation", "distillation.val_period")
    fixes = [
        context.fix_all({key: value for key, value in off.items() if context.get(key) not in (value, None)})
    ]
    if context.gym:
        yield warn(f"{message}; NeMo-Gym's data set must bring its own", *keys, fixes=fixes)
    else:
        yield fail(message, *keys, fixes=fixes)


def _validation_samples(context: Context) -> Iterator[Finding]:
    """C14."""
    key = "distillation.max_val_samples"
    if not context.gym and context.validates and context.has(key) and context.get(key) is None:
        yield fail(f"{key} is null", key, fixes=[context.fix(key, 512)])
    if context.gym or not context.validates or context.has_feature("validation rounds up"):
        return
    samples, batch = whole(context.get(key)), whole(context.get("distillation.val_batch_size"))
    if samples is not None and batch is not None and 0 < samples < batch:
        yield warn(
            f"{key} is {samples}, less than a batch of {batch}: this NeMo-RL validates whole batches only, "
            "so none, and its accuracy is 0",
            key,
            "distillation.val_batch_size",
            fixes=[context.fix("distillation.val_batch_size", samples), context.fix(key, batch)],
            foretells="nothing: validation of no samples",
        )


def _gym(context: Context) -> Iterator[Finding]:
    """C15."""
    if not context.gym:
        return
    key = "distillation.max_val_samples"
    if context.get(key, 512) is not None:
        text = "A non-null `distillation.max_val_samples` parameter is not supported."
        yield fail(f"{key} must be null with NeMo-Gym", key, fixes=[context.fix(key, None)], foretells=text)
    for name in ("async_engine", "expose_http_server"):
        engine = f"policy.generation.vllm_cfg.{name}"
        if context.driver.script is None and context.get(engine) is not True:
            yield warn(
                f"{engine} is not true: only NeMo-Gym's own driver sets it by itself",
                engine,
                fixes=[context.fix(engine, after=True)],
            )


def _loss(context: Context) -> Iterator[Finding]:
    """C16."""
    kind = context.get("loss_fn.kl_type", "mixed")
    if kind not in ("forward", "reverse", "mixed"):
        near = _nearest(str(kind), frozenset(("forward", "reverse", "mixed")))
        fixes = [context.fix("loss_fn.kl_type", near or "mixed")]
        yield fail(
            f"loss_fn.kl_type is {shown(kind)}, not forward, reverse or mixed",
            "loss_fn.kl_type",
            fixes=fixes,
            foretells="Invalid KL type",
        )
    weight = context.get("loss_fn.mixed_kl_weight", 0.5)
    if isinstance(weight, (int, float)) and not isinstance(weight, bool) and not 0 <= weight <= 1:
        fixes = [context.fix("loss_fn.mixed_kl_weight", 0.5)]
        yield fail(
            f"loss_fn.mixed_kl_weight is {weight}, not between 0 and 1",
            "loss_fn.mixed_kl_weight",
            fixes=fixes,
            foretells="Invalid mixed KL weight",
        )


def _topk(context: Context) -> Iterator[Finding]:
    """C17."""
    key = "distillation.topk_logits_k"
    value = whole(context.get(key, 64))
    if value is not None and value < 1:
        yield fail(
            f"{key} is {value}",
            key,
            fixes=[context.fix(key, 64)],
            foretells=f"topk must be positive, got {value}.",
        )


RULES = (
    Rule(
        "C6",
        "The student generates",
        _generation,
        "A generation config in the PolicyConfig is required for distillation",
        _DISTILLATION,
    ),
    Rule(
        "C7",
        "No sparse refit",
        _refit,
        "Remote sparse refit is currently supported only by GRPO",
        _DISTILLATION,
    ),
    Rule(
        "C8",
        "Sequence parallelism without packing",
        _sequence_parallel_packing,
        "Distillation does not support DTensor sequence parallel + sequence packing",
        _DISTILLATION,
    ),
    Rule(
        "C9",
        "Training data is named",
        _train_data,
        "The dataset config structure is updated. Please refer to …",
        "data/utils.py",
    ),
    Rule(
        "C10",
        "Data sets that NeMo-RL knows",
        _dataset_names,
        "Unsupported dataset_name",
        "data/datasets/response_datasets/__init__.py",
    ),
    Rule("C11", "Prompt files are there", _prompt_files, "Prompt file … not found", "data/interfaces.py"),
    Rule(
        "C12",
        "Environments are configured",
        _environments,
        "Env name … is not registered in ENV_REGISTRY",
        "environments/utils.py",
    ),
    Rule(
        "C13",
        "Data for validation",
        _validation_data,
        "Validation dataset is required if validation is enabled",
        _DISTILLATION,
    ),
    Rule(
        "C14",
        "Number of validation samples",
        _validation_samples,
        "TypeError: unsupported operand type(s) for +: 'NoneType' and 'int' (at the first validation)",
        _DISTILLATION,
    ),
    Rule(
        "C15",
        "NeMo-Gym's settings",
        _gym,
        "In order to use NeMo-Gym, you must use a generation backend with `async_engine: true`",
        "environments/nemo_gym.py",
    ),
    Rule(
        "C16",
        "Kind and weight of the divergence",
        _loss,
        "Invalid KL type (after both models are loaded)",
        "algorithms/loss/loss_functions.py",
    ),
    Rule(
        "C17",
        "At least one logit",
        _topk,
        "topk must be positive, got … (in the first step)",
        "distributed/model_utils.py",
    ),
)
