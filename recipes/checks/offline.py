"""Files that a run needs on nodes without internet, and the command that fetches what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks.data import REPOSITORIES, datasets, is_cached
from recipes.checks.worker_registry import (
    ActorEnvironment,
    actor_environments,
    environment_of_class,
    prefetches_by_name,
    quantised_actor,
)
from recipes.files import is_directory, is_file
from recipes.models.hub import hub_name
from recipes.remote_path import on_machine_of

if TYPE_CHECKING:
    from recipes.checks.checkout import Checkout
    from recipes.checks.core import Context

_ACTORS = "nemo_rl.models"
_NEWEST = {
    "DTensorPolicyWorkerV2": f"{_ACTORS}.policy.workers.dtensor_policy_worker_v2",
    "DTensorPolicyWorker": f"{_ACTORS}.policy.workers.dtensor_policy_worker",
    "MegatronPolicyWorker": f"{_ACTORS}.policy.workers.megatron_policy_worker",
    "VllmGenerationWorker": f"{_ACTORS}.generation.vllm.vllm_worker",
    "VllmAsyncGenerationWorker": f"{_ACTORS}.generation.vllm.vllm_worker_async",
    "SGLangGenerationWorker": f"{_ACTORS}.generation.sglang.sglang_worker",
    "TrtllmAsyncGenerationWorker": f"{_ACTORS}.generation.trtllm.trtllm_worker_async",
    "NemoGym": "nemo_rl.environments.nemo_gym",
}
"""Modules of the newest release by worker, for a checkout whose registry does not tell."""
_BUILT_FOR_DRIVER = frozenset(("DTensorPolicyWorkerV2", "DTensorPolicyWorker", "NemoGym"))
"""Workers that have an environment of their own even with NEMO_RL_PY_EXECUTABLES_SYSTEM=1."""
_GENERATORS = {"sglang": "SGLangGenerationWorker", "trtllm": "TrtllmAsyncGenerationWorker"}
MARK = "STARTED_ENV_BUILDER"
"""File in an environment that a node is building (nemo_rl/utils/venvs.py)."""


@dataclass(frozen=True, slots=True)
class Need:
    """File or directory that the nodes must be able to read; `present` is None where that is unknown here."""

    name: str
    key: str
    present: bool | None
    path: str
    command: str
    stuck: bool = False
    """Begun and never finished: waited for without end."""
    actor: str = ""
    """Full name of the worker whose environment it is; empty for files."""
    marked: bool = False
    """Whether the mark of a building is in an environment that has its Python."""


def needs(context: Context) -> Iterator[Need]:
    """Yield models, tokenizers and data sets that a recipe will load."""
    models = context.inputs.models
    hub = str(models.hub.directory)
    listed: set[str] = set()
    for side in context.sides:
        name = side.model
        if name and name not in listed:
            listed.add(name)
            command = f"hf download {hub_name(name)}"
            yield Need(f"the model {name}", side.key("model_name"), models.has_weights(name), hub, command)
        tokenizer = side.tokenizer
        if tokenizer and tokenizer not in listed:
            listed.add(tokenizer)
            present = models.directory(tokenizer) is not None
            key = side.key("tokenizer.name")
            yield Need(
                f"the tokenizer {tokenizer}",
                key,
                present,
                hub,
                f"hf download {hub_name(tokenizer)} --include 'token*' '*.json'",
            )
    for entry in datasets(context.recipe):
        label = entry.path or entry.name
        if not label or label in listed:
            continue
        listed.add(label)
        yield _data_need(context, entry.key, entry.name, entry.path)


def _data_need(context: Context, key: str, name: str, path: str) -> Need:
    if path:
        root = context.inputs.root
        present = is_file(root / path) or is_directory(root / path)
        if not present and context.checkout is None and not Path(path).is_absolute():
            return Need(
                f"the data file {path}",
                f"{key}.data_path",
                None,
                str(root),
                "Give the checkout (--checkout).",
            )
        return Need(
            f"the data file {path}", f"{key}.data_path", present, str(root), f"ls {shlex.quote(path)}"
        )
    cached = is_cached(context.inputs.models.hub, name)
    repository = REPOSITORIES.get(name, name)
    command = (
        f"hf download --repo-type dataset {repository}"
        if cached is not None
        else f"Load the data set {name} once on a node with internet."
    )
    location = str(context.inputs.models.hub.directory.parent)
    return Need(f"the data set {name}", f"{key}.dataset_name", cached, location, command)


def worker_environments(context: Context, directory: Path) -> Iterator[Need]:
    """Yield the workers' Python environments below `NEMO_RL_VENV_DIR`, as the checkout's registry names them.

    Nodes without internet cannot build them.
    One that was begun (a `STARTED_ENV_BUILDER` file, no Python) makes every node wait for ever.
    """
    on_system = context.variable("NEMO_RL_PY_EXECUTABLES_SYSTEM") == "1"
    environments: dict[str, str] = {}
    for worker, key, quantised in sorted(_workers(context)):
        environment = _environment(context, worker, quantised=quantised)
        if not (on_system and environment.system_on_request):
            environments.setdefault(environment.actor, key)
    for actor, key in environments.items():
        yield _environment_need(context, directory, actor, key)


def _workers(context: Context) -> Iterator[tuple[str, str, bool]]:
    """Yield the classes of the workers, each with the key that chooses it, and whether it is quantised.

    The key names a single finding, which can be skipped.
    """
    for side in context.sides:
        quantised = side.get("quant_cfg") is not None
        if side.backend == "megatron":
            yield "MegatronPolicyWorker", side.key("megatron_cfg.enabled"), quantised
        else:
            name = "DTensorPolicyWorkerV2" if side.get("dtensor_cfg._v2") is True else "DTensorPolicyWorker"
            yield name, side.key("dtensor_cfg.enabled"), quantised
    backend = context.get("policy.generation.backend")
    if backend == "vllm":
        asynchronous = context.get("policy.generation.vllm_cfg.async_engine") is True
        name = "VllmAsyncGenerationWorker" if asynchronous else "VllmGenerationWorker"
        quantised = context.get("policy.generation.quant_cfg") is not None
        yield name, "policy.generation.backend", quantised
    elif isinstance(backend, str) and backend in _GENERATORS:
        yield _GENERATORS[backend], "policy.generation.backend", False
    if context.gym:
        yield "NemoGym", "env.should_use_nemo_gym", False


def _environment(context: Context, worker: str, *, quantised: bool) -> ActorEnvironment:
    """Return the environment of a worker: the checkout's, else that of the newest release."""
    checkout = context.checkout
    environment = environment_of_class(checkout, worker) if checkout is not None else None
    if environment is None:
        on_request = worker not in _BUILT_FOR_DRIVER
        environment = ActorEnvironment(f"{_NEWEST[worker]}.{worker}", (), on_request)
    if quantised and checkout is not None:
        actor = quantised_actor(checkout, environment.actor)
        return actor_environments(checkout).get(actor, environment)
    return environment


def _environment_need(context: Context, directory: Path, actor: str, key: str) -> Need:
    folder = directory / actor
    python, started = (folder / "bin" / "python").exists(), (folder / MARK).exists()
    description = f"the environment of {actor.rpartition('.')[2]}"
    command = prefetch_command(context.checkout, directory, (actor,))
    if started and not python:
        command = f"rm {shlex.quote(f'{folder}/{MARK}')} && {command}"
        description += ", whose building was interrupted,"
    return Need(
        description, key, python, str(directory), command,
        stuck=started and not python, actor=actor, marked=started and python,
    )  # fmt: skip


def prefetch_command(checkout: Checkout | None, directory: Path, actors: Iterable[str]) -> str:
    """Return the command that builds or completes the environments of some actors, in the checkout.

    It takes each actor whose full name contains one of its arguments: module and class name one alone.
    """
    variable = f"NEMO_RL_VENV_DIR={shlex.quote(str(directory))}"
    words = [f"{variable} uv run python -m nemo_rl.utils.prefetch_venvs"]
    if checkout is None or prefetches_by_name(checkout):
        words += [shlex.quote(".".join(actor.split(".")[-2:])) for actor in actors]
    return " ".join(words)


def package_cache(context: Context, environments: Iterable[Need]) -> Need | None:
    """Return uv's cache, from which nodes without internet build missing environments; None: none is missing.

    The cache is where uv looks for it: `UV_CACHE_DIR`, `XDG_CACHE_HOME`/uv, ~/.cache/uv.
    """
    missing = [need for need in environments if not need.present]
    if not missing:
        return None
    named, base = context.variable("UV_CACHE_DIR"), context.variable("XDG_CACHE_HOME")
    home = context.variable("HOME")
    if not (named or base or home):
        return Need("uv's cache", "", None, "an unknown directory", "Set UV_CACHE_DIR or HOME for the job.")
    directory = Path(named) if named else Path(base, "uv") if base else Path(str(home), ".cache", "uv")
    cache = on_machine_of(context.inputs.root, directory)
    filled = cache.is_dir() and any(cache.glob("archive-v*/*"))
    return Need("uv's cache", "", filled, str(cache), missing[0].command)
