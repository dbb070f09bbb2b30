"""The NeMo-RL checkout that jobs run in: its choice and its features, from its files alone.

Nothing of it is imported: it may need another Python, and importing it takes minutes on a cold file system.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from launcher.errors import InputError, TransportError
from launcher.paths import config_root
from launcher.transports.base import Transport
from recipes.drivers import choose_driver
from recipes.remote_path import RemotePath, prefetch

VARIABLE = "NEMO_RL_ROOT"
VENV = "RAY_BARE_VENV"
"""Names the Python environment of the driver and of Ray."""
REMEMBERED = "checkout"
# The name changed between v0.5 and v0.6.
DRIVERS = ("examples/run_distillation.py", "examples/run_distillation_math.py")
ALGORITHMS = "nemo_rl/algorithms"
"""Directory of every checkout, also of a fork that has given its scripts other names."""


@dataclass(frozen=True, slots=True)
class NemoCheckout:
    """A checkout of NeMo-RL."""

    path: str
    version: str | None
    """From `nemo_rl/package_info.py`, which has been wrong on the main branch."""
    driver: str
    """The distillation script, relative to the checkout; empty where a fork has none of a known name."""
    python: str | None
    """The Python of its environment; None without one."""
    features: frozenset[str]
    """`validates`: recipes are validated before Ray starts. `save-by`: `checkpoint_must_save_by` is known.
    `phases`: its ray.sub stamps its phases. `async`: it has the asynchronous generation engine."""


# Feature, file, pattern in the file where the feature exists.
_FEATURES = (
    ("validates", "nemo_rl/algorithms/distillation.py", r"class MasterConfig\(BaseModel"),
    ("save-by", "nemo_rl/algorithms/distillation.py", r"checkpoint_must_save_by"),
    ("phases", "ray.sub", r"NRL_PHASE"),
    ("async", "nemo_rl/models/generation/vllm/vllm_worker_async.py", r"."),
)


def choose(
    transport: Transport,
    chosen: str | None,
    environment: Mapping[str, str],
    near: Sequence[Path] = (),
) -> NemoCheckout:
    """Return the checkout: as chosen, else NEMO_RL_ROOT, else one that holds a path, else the last one.

    Args:
        transport: The machine.
        chosen: The user's choice, if any.
        environment: That of this program.
        near: Paths that a checkout may hold: the recipe, the current directory.

    Raises:
        InputError: none is known, or it is not a checkout.
    """
    path, source = chosen or environment.get(VARIABLE), "--checkout" if chosen else VARIABLE
    if not path:
        path, source = _holding(transport, near) or _remembered(transport, environment)
    if not path:
        raise InputError(
            "the NeMo-RL checkout for the job is not known",
            fix=f"Give --checkout DIR, or set {VARIABLE}; the choice is remembered.",
        )
    return probe(transport, str(transport.path(path).expanduser().absolute()), source)


def _holding(transport: Transport, near: Sequence[Path]) -> tuple[str, str] | None:
    """Return the checkout that holds one of the paths, and that path."""
    for path in near:
        for parent in (path.absolute(), *path.absolute().parents):
            if any(_is_there(transport, parent / name) for name in (*DRIVERS, ALGORITHMS)):
                return str(parent), str(path)
    return None


def _is_there(transport: Transport, path: Path) -> bool:
    """Return whether there is a file; one on another machine is looked up in the listing of its directory."""
    return path.exists() if isinstance(path, RemotePath) else transport.stat(str(path)) is not None


def _remembered(transport: Transport, environment: Mapping[str, str]) -> tuple[str, str]:
    file = str(config_root(environment) / REMEMBERED)
    if transport.stat(file) is None:
        return "", ""
    return transport.read(file).decode(errors="replace").strip(), file


def remember(transport: Transport, checkout: NemoCheckout, environment: Mapping[str, str]) -> None:
    """Remember the checkout; without effect where the directory cannot be written."""
    try:
        transport.write_atomic(str(config_root(environment) / REMEMBERED), f"{checkout.path}\n".encode())
    except TransportError:
        return


def probe(transport: Transport, path: str, source: str = "") -> NemoCheckout:
    """Return the version and the features of a checkout.

    Raises:
        InputError: the directory is not a NeMo-RL checkout.
    """
    prefetch(transport.path(path))
    driver = next((name for name in DRIVERS if _is_there(transport, transport.path(f"{path}/{name}"))), None)
    if driver is None and not _is_there(transport, transport.path(f"{path}/{ALGORITHMS}")):
        raise InputError(
            f"not a NeMo-RL checkout (no {DRIVERS[0]})" + (f", as given by {source}" if source else ""),
            where=path,
            fix="Give the directory of a clone of NeMo-RL.",
        )
    python = f"{path}/.venv/bin/python"
    return NemoCheckout(
        path=path,
        version=_version(_text(transport, f"{path}/nemo_rl/package_info.py")),
        driver=driver or "",
        python=python if _is_there(transport, transport.path(python)) else None,
        features=frozenset(
            name for name, file, says in _FEATURES if re.search(says, _text(transport, f"{path}/{file}"))
        ),
    )


def with_driver_of(
    transport: Transport, checkout: NemoCheckout, values: Mapping[str, Any]
) -> tuple[NemoCheckout, str]:
    """Return the checkout with the driver that a recipe is for, and a note where that is not the usual one.

    A recipe for which the checkout has no driver keeps the usual one.

    Raises:
        InputError: there is no usual one either.
    """
    scripts = _scripts(transport, checkout.path)
    driver = choose_driver(values, scripts)
    if driver.script is None and not checkout.driver:
        raise InputError(
            f"the checkout has no driver script of a known name: {driver.reason}",
            where=checkout.path,
            fix=f"--driver names it; there are {', '.join(scripts) or 'none in examples/'}.",
        )
    if driver.script is None:
        return checkout, f"the checkout has no driver for this recipe: {driver.reason}"
    if driver.script == checkout.driver:
        return checkout, ""
    return replace(checkout, driver=driver.script), f"the driver is {driver.script}: {driver.reason}"


def _scripts(transport: Transport, path: str) -> tuple[str, ...]:
    """Return the driver scripts of a checkout, relative to it."""
    names = []
    for folder in ("examples", "examples/nemo_gym"):
        if transport.stat(f"{path}/{folder}") is not None:
            names += [f"{folder}/{entry.name}" for entry in transport.listdir(f"{path}/{folder}")]
    return tuple(name for name in names if re.fullmatch(r".*/run_\w+\.py", name))


def _version(text: str) -> str | None:
    parts = {
        name: re.search(rf"^{name}\s*=\s*[\"']?(\w*)", text, re.MULTILINE)
        for name in ("MAJOR", "MINOR", "PATCH", "PRE_RELEASE")
    }
    if any(parts[name] is None for name in ("MAJOR", "MINOR", "PATCH")):
        return None
    major, minor, patch, extra = (match[1] if match else "" for match in parts.values())
    return f"{major}.{minor}.{patch}{extra}"


def _text(transport: Transport, path: str) -> str:
    own_path = transport.path(path)
    if not _is_there(transport, own_path):
        return ""
    data = own_path.read_bytes() if isinstance(own_path, RemotePath) else transport.read(path)
    return data.decode(errors="replace")


def driver_venv(
    transport: Transport, checkout: str, job: Mapping[str, str], shell: Mapping[str, str]
) -> Path:
    """Return the Python environment of the driver and of Ray.

    It is the one that RAY_BARE_VENV names in the job's environment, else the checkout's `.venv`, else the one
    that uv has for projects in the shell (UV_PROJECT_ENVIRONMENT), where that has Ray.
    """
    if named := job.get(VENV):
        return transport.path(named).expanduser().absolute()
    own = transport.path(f"{checkout}/.venv")
    of_uv = shell.get("UV_PROJECT_ENVIRONMENT", "")
    if not of_uv or _is_there(transport, own / "bin" / "python"):
        return own
    other = transport.path(checkout) / transport.path(of_uv).expanduser()
    return other if _is_there(transport, other / "bin" / "ray") else own


def check_venv(transport: Transport, venv: Path, shell: Mapping[str, str] | None = None) -> None:
    """Check that Ray can be started from a Python environment; `shell` may have another one that is active.

    Raises:
        TransportError: `bin/python` or `bin/ray` is missing.
    """
    for program in ("python", "ray"):
        if transport.stat(str(venv / "bin" / program)) is None:
            fix = f"Install `ray[default]` into it, or name another one with {VENV}."
            if active := _active(transport, shell or {}):
                fix = f"The one that is active in your shell has Ray: export {VENV}={shlex.quote(active)}"
            elif program == "python":
                fix = f"Make it with `uv sync` in the checkout, or name another one with {VENV}."
            raise TransportError(f"there is no bin/{program} in the Python environment", where=venv, fix=fix)


def _active(transport: Transport, shell: Mapping[str, str]) -> str:
    """Return the Python environment that is active in a shell, if it has Ray."""
    paths = (shell.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX"))
    return next((path for path in paths if path and transport.stat(f"{path}/bin/ray") is not None), "")
