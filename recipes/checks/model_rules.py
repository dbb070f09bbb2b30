"""Rules on models and files: C64 to C66."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipes.checks.core import Context, Finding, Rule, fail, undecided, warn
from recipes.checks.offline import needs, package_cache, worker_environments
from recipes.models import ModelFacts, UnknownModel
from recipes.models.table import TABLE
from recipes.models.vocabulary import VocabularyDifference, compare
from recipes.planning.setup import whole
from recipes.remote_path import on_machine_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recipes.planning import Fix

_SKIP = "NRL_SKIP_DISTILLATION_TOKENIZER_CHECK"
_DISTILLATION = "algorithms/distillation.py"
_NO_REGISTRY = "uv cannot reach the package registry"


def _vocabulary(context: Context) -> Iterator[Finding]:
    """C64: as NeMo-RL compares: tokens, then the models' vocabulary sizes."""
    student, teacher = context.sides
    if not student.model or not teacher.model or student.model == teacher.model == student.tokenizer:
        return
    keys = student.key("model_name"), teacher.key("model_name")
    skipped = bool(context.variable(_SKIP))
    facts = [context.model(side) for side in (student, teacher)]
    sizes = [known.vocab for known in facts if isinstance(known, ModelFacts)]
    if len(sizes) == 2 and sizes[0] != sizes[1]:
        message = f"{student.model} has a vocabulary of {sizes[0]}, {teacher.model} of {sizes[1]}"
        if skipped:
            yield warn(f"{message}; {_SKIP} lets it pass", *keys)
        else:
            text = "Model config vocab sizes differ between student and teacher."
            yield fail(message, *keys, fixes=_same_vocabulary(context), foretells=text)
        return
    for known in facts:
        if isinstance(known, UnknownModel):
            yield undecided(f"whether the vocabularies agree, {known.reason}", known.fix, *keys)
            return
    found = compare(context.inputs.models, student.tokenizer, teacher.model)
    if isinstance(found, UnknownModel):
        yield undecided(f"whether the tokenizers agree, {found.reason}", found.fix, *keys)
    elif isinstance(found, VocabularyDifference):
        text = "Token->ID mapping differs between student and teacher."
        make = warn if skipped else fail
        yield make(found.what, student.key("tokenizer.name"), *keys, foretells=text)


def _same_vocabulary(context: Context) -> list[Fix]:
    """Known students for the teacher, and teachers for the student, of the same family and vocabulary."""
    student, teacher = (context.model_facts(side) for side in context.sides)
    if student is None or teacher is None:
        return []
    fixes: list[Fix] = []
    for kept, replaced, key in (
        (teacher, student, "policy.model_name"),
        (student, teacher, "teacher.model_name"),
    ):
        near = [
            facts
            for facts in TABLE.values()
            if facts.vocab == kept.vocab
            and facts.family == kept.family
            and ((facts.params or 0) > (kept.params or 0)) == (kept is student)
            and facts.params != kept.params
        ]
        near.sort(key=lambda facts: abs((facts.params or 0) - (replaced.params or 0)))
        fixes += [context.fix(key, facts.id) for facts in near[:2]]
    return fixes


def _context_length(context: Context) -> Iterator[Finding]:
    """C65."""
    key = "policy.generation.vllm_cfg.max_model_len"
    length = whole(context.get(key))
    side = context.setup.policy
    if length is None or context.get("policy.generation.backend") != "vllm" or not side.model:
        return
    facts = context.model(side)
    if isinstance(facts, UnknownModel):
        yield undecided(
            f"whether {length} tokens are within the model's context, {facts.reason}", facts.fix, key
        )
    elif facts.context is None:
        need = f"Run `hf download {facts.id} config.json` on a node with internet."
        yield undecided(f"the context length of {facts.id}", need, key)
    elif length > facts.context and not side.get("hf_config_overrides.rope_scaling"):
        text = f"User-specified max_model_len ({length}) is greater than the derived ({facts.context})"
        both = {"policy.max_total_sequence_length": facts.context}
        yield fail(
            f"{key} is {length}, {facts.id} reaches {facts.context}",
            key,
            "policy.max_total_sequence_length",
            fixes=[context.fix_all(both), context.fix(key, facts.context)],
            foretells=text,
        )


def _files(context: Context) -> Iterator[Finding]:
    """C66: what a node without internet must find in the cache."""
    offline = context.inputs.request.offline or any(
        context.variable(name) not in (None, "", "0") for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )
    for need in needs(context):
        if need.present is True:
            continue
        if need.present is None:
            yield undecided(f"whether {need.name} is there", need.command, need.key)
        elif offline:
            yield fail(f"{need.name} is not in {need.path}: `{need.command}`", need.key)
        else:
            message = f"{need.name} is not in {need.path}; a node without internet needs `{need.command}`"
            yield warn(message, need.key)
    yield from _worker_files(context, offline=offline)


def _worker_files(context: Context, *, offline: bool) -> Iterator[Finding]:
    """Look at the workers' Python environments, which are built on first use, from the internet."""
    checkout = context.checkout
    if checkout is None:
        return
    named = context.variable("NEMO_RL_VENV_DIR")
    directory = on_machine_of(checkout.path, named) if named else checkout.path / "venvs"
    environments = tuple(worker_environments(context, directory))
    cache = package_cache(context, environments) if offline else None
    # Only of the models' libraries is it known that they do not ask for anything: uv may.
    no_packages = context.inputs.request.offline or context.variable("UV_OFFLINE") not in (None, "", "0")
    hopeless = no_packages and cache is not None and cache.present is False
    for need in environments:
        message = f"{need.name} is not complete in {need.path}: `{need.command}`"
        if need.stuck:
            waits = "nothing: every node waits for the environment without end"
            yield fail(message, need.key, foretells=waits)
        elif not need.present and hopeless and cache is not None:
            text = f"{need.name} is not complete in {need.path}, and {cache.name} in {cache.path} is empty"
            yield fail(f"{text}: `{need.command}` on a node with internet", need.key, foretells=_NO_REGISTRY)
        elif not need.present and offline:
            yield warn(message, need.key, foretells=_NO_REGISTRY)
    if cache is None or cache.present or hopeless:
        return
    if cache.present is None:
        yield undecided(f"where {cache.name} is, from which they could be built", cache.command)
    else:
        yield warn(
            f"{cache.name} in {cache.path} is empty: they cannot be built from it either: `{cache.command}`",
            foretells=_NO_REGISTRY,
        )


RULES = (
    Rule(
        "C64",
        "Student and teacher share a vocabulary",
        _vocabulary,
        "Token->ID mapping differs between student and teacher.",
        _DISTILLATION,
    ),
    Rule(
        "C65",
        "The model's context is long enough",
        _context_length,
        "User-specified max_model_len is greater than the derived max_model_len",
        "vLLM",
    ),
    Rule(
        "C66",
        "Files are there without internet",
        _files,
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
        "transformers, datasets",
    ),
)
