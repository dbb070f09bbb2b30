"""Files that a run needs on nodes without internet, and the command that fetches what is missing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.checks.data import REPOSITORIES, datasets, is_cached
from recipes.files import is_directory, is_file
from recipes.models.hub import hub_name
from recipes.remote_path import on_machine_of

if TYPE_CHECKING:
    from recipes.checks.core import Context

_ACTORS = "nemo_rl.models"
_WORKERS = {
    "dtensor": "policy.workers.dtensor_policy_worker_v2.DTensorPolicyWorkerV2",
    "dtensor-v1": "policy.workers.dtensor_policy_worker.DTensorPolicyWorker",
    "megatron": "policy.workers.megatron_policy_worker.MegatronPolicyWorker",
    "vllm": "generation.vllm.vllm_worker.VllmGenerationWorker",
    "vllm-async": "generation.vllm.vllm_worker_async.VllmAsyncGenerationWorker",
}

_KEYS = {
    "dtensor": "policy.dtensor_cfg.enabled",
    "megatron": "policy.megatron_cfg.enabled",
    "vllm": "policy.generation.backend",
}
"""Keys that choose a worker; with them a single finding can be skipped."""


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
    """Yield the workers' Python environments below `NEMO_RL_VENV_DIR`.

    Nodes without internet cannot build them.
    One that was begun (a `STARTED_ENV_BUILDER` file, no Python) makes every node wait for ever.
    """
    kinds: set[str] = {side.backend or "dtensor" for side in context.sides}
    if "dtensor" in kinds and context.get("policy.dtensor_cfg._v2") is not True:
        kinds = {kind if kind != "dtensor" else "dtensor-v1" for kind in kinds}
    if context.get("policy.generation.backend") == "vllm":
        asynchronous = context.get("policy.generation.vllm_cfg.async_engine") is True
        kinds.add("vllm-async" if asynchronous else "vllm")
    if context.variable("NEMO_RL_PY_EXECUTABLES_SYSTEM") == "1":
        kinds -= {"vllm", "vllm-async", "megatron"}  # these then use the driver's own Python
    for kind in sorted(kinds):
        name = f"{_ACTORS}.{_WORKERS[kind]}"
        folder = directory / name
        python = (folder / "bin" / "python").exists()
        begun = not python and (folder / "STARTED_ENV_BUILDER").exists()
        description = f"the environment of {name.rpartition('.')[2]}"
        prefetch = "uv run python -m nemo_rl.utils.prefetch_venvs"
        command = f"NEMO_RL_VENV_DIR={shlex.quote(str(directory))} {prefetch} {kind.partition('-')[0]}"
        if begun:
            command = f"rm {shlex.quote(f'{folder}/STARTED_ENV_BUILDER')} && {command}"
            description += ", whose building was interrupted,"
        yield Need(description, _KEYS[kind.partition("-")[0]], python, str(directory), command, begun)


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
