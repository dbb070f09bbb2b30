"""The wrapping that a checkout's DTensor workers use, read from its sources with `ast`.

    wrapping_of(Path("RL"), v2=True)      # Wrapping, and whether Automodel's own source was read

DTensor v2 leaves the wrapping to Automodel, a submodule that many checkouts lack. NeMo-RL pins its commits
277a8a8d in v0.4, 1d42deb9 in v0.5, 92635e74 in v0.6 and 24b47e85 in v0.7; without the submodule, NeMo-RL's
own sources tell which of them it was made for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recipes.memory.wrapping import V1, V1_UNTIED, V2_HOLDING, V2_PARTS, V2_PLAIN, Checkpoints, Wrapping

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

AUTOMODEL = "3rdparty/Automodel-workspace/Automodel/nemo_automodel/components/distributed"
_V1_WORKERS = (
    "nemo_rl/models/policy/workers/dtensor_policy_worker.py",
    "nemo_rl/models/policy/dtensor_policy_worker.py",
)
_V2_WORKERS = (
    "nemo_rl/models/policy/workers/dtensor_policy_worker_v2.py",
    "nemo_rl/models/policy/dtensor_policy_worker_v2.py",
)
_SETUP = "nemo_rl/models/automodel/setup.py"
_TRAIN = "nemo_rl/models/automodel/train.py"
_POLICY = "nemo_rl/models/policy/lm_policy.py"
_REPLICAS = "dp_replicate_size"
"""A key that came with Automodel's explicit prefetch, between v0.6 and v0.7."""


class WorkerSource(NamedTuple):
    """Wrapping of a worker; `certain` where the source that decides it was read."""

    wrapping: Wrapping
    certain: bool


def wrapping_of(checkout: Path | None, *, v2: bool) -> WorkerSource:
    """Return a worker's wrapping in a checkout; without one, the newest release's."""
    if checkout is None or not _holds_sources(checkout):
        return WorkerSource(V2_HOLDING if v2 else V1, False)
    own = (_SETUP, _TRAIN, _POLICY, *_V1_WORKERS, *_V2_WORKERS)
    names = (*own, f"{AUTOMODEL}/parallelizer.py", f"{AUTOMODEL}/fsdp2.py")
    return _wrapping_of(checkout, v2, tuple(_stamp(checkout / name) for name in names))


def _holds_sources(checkout: Path) -> bool:
    return any((checkout / "nemo_rl" / name).is_dir() for name in ("algorithms", "models/automodel"))


@lru_cache(maxsize=32)
def _wrapping_of(checkout: Path, v2: bool, stamps: tuple[int, ...]) -> WorkerSource:
    """Read the sources; `stamps` are their times, so that an edited checkout is read again."""
    if not v2:
        worker = next((path for name in _V1_WORKERS if (path := checkout / name).is_file()), None)
        return WorkerSource(V1 if worker and _calls(worker, "tie_weights") else V1_UNTIED, worker is not None)
    setup = checkout / _SETUP
    base = _by_release(checkout)
    wrapping = replace(
        base,
        ties_again=_calls(setup, "tie_weights"),
        keeps_losses=_defines(checkout / _TRAIN, "automodel_forward_backward"),
    )
    source = checkout / AUTOMODEL / "parallelizer.py"
    if not source.is_file():
        return WorkerSource(wrapping, False)
    checkpoints = _checkpoints(source)
    prefetch = _calls(source, "set_modules_to_forward_prefetch")
    bare = base.bare_on_one_gpu and _says(checkout / AUTOMODEL / "fsdp2.py", "skipping parallelization")
    name = f"v2, {checkpoints} checkpointed" + (", explicit prefetch" if prefetch else "")
    read = replace(
        wrapping, name=name, checkpoints=checkpoints, explicit_prefetch=prefetch, bare_on_one_gpu=bare
    )
    return WorkerSource(read, True)


def _by_release(checkout: Path) -> Wrapping:
    """Return v2's wrapping by what NeMo-RL's own sources tell of the Automodel they were made for."""
    if not (checkout / _SETUP).is_file():
        # v0.4 calls the strategy itself; v0.5 leaves it to a manager, which skips FSDP on one GPU.
        managed = any(_calls(checkout / name, "FSDP2Manager") for name in _V2_WORKERS)
        return replace(V2_PARTS, bare_on_one_gpu=managed)
    return V2_HOLDING if _REPLICAS in _text(checkout / _POLICY) else V2_PLAIN


def _checkpoints(source: Path) -> Checkpoints:
    """Return the units that Automodel recomputes of a Hugging Face model."""
    import ast

    for call in _named_calls(source, "gradient_checkpointing_enable"):
        options = {
            key.value: value.value
            for node in ast.walk(call)
            if isinstance(node, ast.Dict)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
        }
        return "layers" if options.get("use_reentrant") is False else "layers outside FSDP"
    return "layers" if _calls(source, "apply_full_layer_checkpointing_to_layers") else "parts"


def _calls(path: Path, name: str) -> bool:
    return next(_named_calls(path, name), None) is not None


def _named_calls(path: Path, name: str) -> Iterator[ast.Call]:
    """Yield the calls of a function or method, in a file that names it at all."""
    import ast

    tree = _tree(path, name)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == name:
                yield node


def _defines(path: Path, name: str) -> bool:
    import ast

    tree = _tree(path, name)
    return tree is not None and any(
        isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body
    )


def _says(path: Path, words: str) -> bool:
    import ast

    tree = _tree(path, words)
    return tree is not None and any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and words in node.value
        for node in ast.walk(tree)
    )


def _tree(path: Path, needle: str) -> ast.Module | None:
    """Return a parsed source; None where it lacks `needle` or Python cannot read it."""
    import ast

    text = _text(path)
    if needle not in text:
        return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
