"""The extras of pyproject.toml that a checkout's workers run with, from its sources; nothing is imported.

`ACTOR_ENVIRONMENT_REGISTRY` (nemo_rl/distributed/ray_actor_environment_registry.py) names an executable for
each actor; `PY_EXECUTABLES` (nemo_rl/distributed/virtual_cluster.py) has their `uv run --extra …` lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular

_REGISTRY = "nemo_rl/distributed/ray_actor_environment_registry.py"
_EXECUTABLES = "nemo_rl/distributed/virtual_cluster.py"
_ACTOR = re.compile(r'^    "([\w.]+)":\s*([\w.]+),', re.MULTILINE)
_ALIAS = re.compile(r"^(\w+)\s*=\s*\((.*?)^\)", re.MULTILINE | re.DOTALL)
_EXECUTABLE = re.compile(r'^    ([A-Z_]+) = f?"([^"\n]*)"', re.MULTILINE)


def worker_extras(checkout: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the extras of each actor by its full name; actors with the driver's own Python are left out."""
    registry, executables = _text(checkout / _REGISTRY), _text(checkout / _EXECUTABLES)
    commands = {match[1]: match[2] for match in _EXECUTABLE.finditer(executables)}
    # `VLLM_EXECUTABLE = (PY_EXECUTABLES.SYSTEM if … else PY_EXECUTABLES.VLLM)`
    aliases = {
        match[1]: match[2].rpartition("PY_EXECUTABLES.")[2].strip() for match in _ALIAS.finditer(registry)
    }
    extras = {}
    for match in _ACTOR.finditer(registry):
        actor, executable = match[1], match[2]
        name = aliases.get(executable, executable.rpartition(".")[2])
        if name in commands and commands[name].startswith("uv "):
            extras[actor] = tuple(re.findall(r"--extra[ =](\S+)", commands[name]))
    return extras


def _text(path: Path) -> str:
    try:
        return read_regular(path, SOURCE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
