"""The Python environments of a checkout's Ray actors, read from its sources; nothing is imported.

`ACTOR_ENVIRONMENT_REGISTRY` (nemo_rl/distributed/ray_actor_environment_registry.py) names an executable for
each actor, `PY_EXECUTABLES` (nemo_rl/distributed/virtual_cluster.py) has the `uv run --extra …` lines. An
actor's environment is a directory with its full name (nemo_rl/utils/venvs.py), which releases have changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recipes.checks.checkout import Checkout

_REGISTRY = "distributed/ray_actor_environment_registry.py"
_EXECUTABLES = "distributed/virtual_cluster.py"
_PREFETCH = "utils/prefetch_venvs.py"
_OVERRIDES = ("models/policy/utils.py", "models/generation/vllm/utils.py")
_OVERRIDE_TABLES = ("POLICY_WORKER_OVERRIDES", "GENERATION_WORKER_OVERRIDES")
_TABLE = "ACTOR_ENVIRONMENT_REGISTRY"
_CLASS = "PY_EXECUTABLES"
_ACTOR = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_EXTRA = re.compile(r"--extra[ =]([\w.-]+)", re.ASCII)
_UV = "uv "


@dataclass(frozen=True, slots=True)
class ActorEnvironment:
    """The Python environment of an actor, which uv builds."""

    actor: str
    """Full name of the class: the name of the environment's directory."""
    extras: tuple[str, ...] = ()
    """Extras of pyproject.toml that it holds."""
    system_on_request: bool = False
    """Whether the driver's own Python takes its place with NEMO_RL_PY_EXECUTABLES_SYSTEM=1."""


def actor_environments(checkout: Checkout) -> Mapping[str, ActorEnvironment]:
    """Return the environments by their actors' full names, without actors on the driver's own Python."""
    registry = checkout.text(_REGISTRY)
    modules = tuple(checkout.text(path) for path in _imported(registry))
    return _environments(registry, modules, checkout.text(_EXECUTABLES))


def environment_of_class(checkout: Checkout, name: str) -> ActorEnvironment | None:
    """Return the environment of an actor by the name of its class; None where there is no such class."""
    listed = actor_environments(checkout).items()
    return next((item for actor, item in listed if actor.rpartition(".")[2] == name), None)


def quantised_actor(checkout: Checkout, actor: str) -> str:
    """Return the actor that takes another one's place where its section has a `quant_cfg`."""
    for file in _OVERRIDES:
        if (other := _replacements(checkout.text(file)).get(actor)) is not None:
            return other
    return actor


def prefetches_by_name(checkout: Checkout) -> bool:
    """Return whether `nemo_rl.utils.prefetch_venvs` builds single environments; v0.4 and v0.5 build all."""
    text = checkout.text(_PREFETCH)
    return not text or "filters" in text


# ------------------------------------------------------------ reading sources


def _imported(registry: str) -> tuple[str, ...]:
    """Return modules of NeMo-RL whose tables the registry takes in, as files below `nemo_rl/`."""
    names = set(re.findall(rf"^{_TABLE}\.update\((\w+)\)", registry, re.MULTILINE))
    pattern = re.compile(r"^from nemo_rl\.([\w.]+) import \(?([\w,\s]+)", re.MULTILINE)
    return tuple(
        f"{match[1].replace('.', '/')}.py"
        for match in pattern.finditer(registry)
        if names & set(re.split(r"[,\s]+", match[2]))
    )


@lru_cache(maxsize=16)
def _environments(
    registry: str, modules: tuple[str, ...], executables: str
) -> Mapping[str, ActorEnvironment]:
    commands = dict(_class_constants(executables))
    found: dict[str, ActorEnvironment] = {}
    for text in (registry, *modules):
        names: dict[str, tuple[str, bool]] = {}
        for target, value in _assignments(text):
            if isinstance(value, ast.Dict) and target.endswith("_REGISTRY"):
                found.update(_entries(value, names, commands))
            else:
                names[target] = _command(value, names, commands)
    return found


def _entries(
    table: ast.Dict, names: Mapping[str, tuple[str, bool]], commands: Mapping[str, str]
) -> Iterator[tuple[str, ActorEnvironment]]:
    for key, value in zip(table.keys, table.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            continue
        command, on_request = _command(value, names, commands)
        # The name comes to stand in commands for a shell, and the checkout may be somebody else's.
        if command.startswith(_UV) and _ACTOR.fullmatch(key.value) is not None:
            yield key.value, ActorEnvironment(key.value, tuple(_EXTRA.findall(command)), on_request)


def _command(
    value: ast.expr, names: Mapping[str, tuple[str, bool]], commands: Mapping[str, str]
) -> tuple[str, bool]:
    """Return the command that an expression stands for, and whether a switch puts another in its place."""
    if isinstance(value, ast.IfExp):
        # `PY_EXECUTABLES.SYSTEM if USE_SYSTEM_EXECUTABLE else PY_EXECUTABLES.VLLM`
        return _command(value.orelse, names, commands)[0], True
    if isinstance(value, ast.Name):
        return names.get(value.id, ("", False))
    if isinstance(value, ast.Attribute):
        is_known = isinstance(value.value, ast.Name) and value.value.id == _CLASS
        return (commands.get(value.attr, "") if is_known else ""), False
    return _literal(value), False


def _literal(value: ast.expr) -> str:
    """Return a string, without what an f-string puts in."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    if isinstance(value, ast.JoinedStr):
        return "".join(_literal(part) for part in value.values)
    return ""


def _class_constants(text: str) -> Iterator[tuple[str, str]]:
    """Yield the strings of the class of executables."""
    for statement in _statements(text):
        if isinstance(statement, ast.ClassDef) and statement.name == _CLASS:
            for name, value in _assigned(statement.body):
                yield name, _literal(value)


@lru_cache(maxsize=8)
def _replacements(text: str) -> Mapping[str, str]:
    """Return the tables of actors that replace others."""
    pairs: dict[str, str] = {}
    for name, value in _assignments(text):
        if name in _OVERRIDE_TABLES and isinstance(value, ast.Dict):
            named = zip(value.keys, value.values, strict=True)
            pairs |= {_literal(key): _literal(other) for key, other in named if key is not None}
    return {actor: other for actor, other in pairs.items() if _ACTOR.fullmatch(other) is not None}


def _assignments(text: str) -> Iterator[tuple[str, ast.expr]]:
    yield from _assigned(_statements(text))


def _assigned(statements: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, statement.value
        elif (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and statement.value is not None
        ):
            yield statement.target.id, statement.value


def _statements(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
