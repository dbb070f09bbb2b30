"""Results of `doctor_node.py`, read with care: they are files that a job wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.text import clean


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def rows(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a value as one clean line; empty for null."""
    return "" if value is None else clean(str(value))


def whole(value: object) -> int | None:
    """Return a whole number, also from text; None for anything else, such as `[N/A]`."""
    try:
        return int(str(value).strip())
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What was measured on one node."""

    name: str
    data: Mapping[str, Any]

    def part(self, *keys: str) -> Mapping[str, Any]:
        """Return a part of it; empty where it is not there."""
        value: object = self.data
        for key in keys:
            value = mapping(value).get(key)
        return mapping(value)

    @property
    def gpus(self) -> list[Mapping[str, Any]]:
        """The GPUs that nvidia-smi lists."""
        return rows(self.part("gpu").get("gpus"))

    @property
    def venvs(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The Python environments, by their labels."""
        for label, venv in self.part("venvs").items():
            yield clean(label), mapping(venv)


@dataclass(frozen=True, slots=True)
class Library:
    """A family of CUDA libraries in one environment: what its package brings, and what is loaded."""

    venv: str
    wheel: str
    wheel_version: str
    version: str
    """As the loaded library reports it; empty where it tells none."""
    files: tuple[str, ...]
    loaded: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def foreign(self) -> tuple[str, ...]:
        """Loaded files that the package did not bring."""
        folders = self._folders
        return tuple(path for path in self.loaded if self.files and path.rpartition("/")[0] not in folders)

    @property
    def is_mixed(self) -> bool:
        """Whether files of the package and others are loaded."""
        own = [path for path in self.loaded if path.rpartition("/")[0] in self._folders]
        return bool(own) and len(own) < len(self.loaded)

    @property
    def _folders(self) -> set[str]:
        return {file.rpartition("/")[0] for file in self.files}


def libraries(node: NodeResult, family: str) -> Iterator[Library]:
    """Yield a family's libraries in the environments of a node that have or load any."""
    for label, venv in node.venvs:
        data = mapping(mapping(mapping(venv.get("libraries")).get("families")).get(family))
        files, loaded, errors = (
            tuple(text(item) for item in data.get(key) or () if item) for key in ("files", "loaded", "errors")
        )
        if files or loaded or errors:
            yield Library(
                label,
                text(data.get("wheel")),
                text(data.get("wheel_version")),
                text(data.get("version")),
                files,
                loaded,
                errors,
            )


def module_of(node: NodeResult, path: str) -> str:
    """Return the loaded module that a file comes from: by its root (EBROOT…), or its name in the path."""
    machine = node.part("machine")
    modules = [text(name) for name in machine.get("modules") or ()]
    for variable, root in mapping(machine.get("roots")).items():
        if path.startswith(f"{text(root).rstrip('/')}/"):
            name = variable.removeprefix("EBROOT").lower()
            return next((item for item in modules if _plain(item) == name), name)
    return next((item for item in modules if item.lower() in path.lower()), "")


def _plain(module: str) -> str:
    return module.partition("/")[0].replace("-", "").replace("_", "").lower()
