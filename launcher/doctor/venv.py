"""A Python environment's files: packages, where it was built, what its project asks for. Nothing is run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular
from recipes.remote_path import RemotePath, on_machine_of

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_MARKER = re.compile(r"(sys_platform|platform_machine)\s*(==|!=)\s*['\"]([\w-]+)['\"]")
_LOCKED = re.compile(r'^name = "([^"]+)"\nversion = "([^"]+)"', re.MULTILINE)
_SHEBANG_BYTES = 512


def normalised(name: str) -> str:
    """Return a package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Venv:
    """A Python environment on disk."""

    path: Path

    @cached_property
    def python(self) -> Path:
        """Its interpreter."""
        return self.path / "bin" / "python"

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Installed packages with their versions, from the names of their metadata directories."""
        listed: dict[str, str] = {}
        for site in self.path.glob("lib*/python3*/site-packages"):
            for entry in site.iterdir():
                if entry.name.endswith((".dist-info", ".egg-info")):
                    name, _, version = entry.name.rpartition(".")[0].partition("-")
                    listed[normalised(name)] = version
        return listed

    @cached_property
    def settings(self) -> Mapping[str, str]:
        """The keys of `pyvenv.cfg`; empty without it."""
        try:
            text = read_regular(self.path / "pyvenv.cfg", SOURCE_BYTES).decode("utf-8", "replace")
        except OSError:
            return {}
        pairs = (line.partition("=") for line in text.splitlines())
        return {key.strip(): value.strip() for key, _, value in pairs}

    def misplacement(self) -> str:
        """Return why it cannot work where it is: its interpreter is gone, or it was built elsewhere."""
        if target := _dangling(self.python):
            return f"its Python {target} is gone"
        home = self.settings.get("home", "")
        if home and not on_machine_of(self.path, home).exists():
            return f"its Python was in {home}, which is gone"
        for script in ("ray", "pip", "hf"):
            built = _shebang(self.path / "bin" / script)
            if built is not None and not _same(built, self.python):
                return f"it was built as {built.parent.parent}: bin/{script} starts {built}"
        return ""


def _dangling(link: Path) -> str:
    """Return what a link leads to where that is gone; empty for all else, `(a link)` for one of a host."""
    if link.exists():
        return ""
    if isinstance(link, RemotePath):
        is_link = link.parent.is_dir() and link in link.parent.iterdir()
        return "(a link)" if is_link else ""
    return str(link.readlink()) if link.is_symlink() else ""


def _shebang(script: Path) -> Path | None:
    """Return the Python that a script starts with; None where it names none in an environment."""
    try:
        head = read_regular(script, SOURCE_BYTES)[:_SHEBANG_BYTES]
    except OSError:
        return None
    match = re.match(rb"#!(/\S+/bin/python[\d.]*)\s*\n", head) or re.match(
        rb"#!/bin/sh\n'''exec' [\"']?(/[^\"'\n]+/bin/python[\d.]*)[\"']? ", head
    )
    return on_machine_of(script, match[1].decode("utf-8", "replace")) if match is not None else None


def _same(built: Path, python: Path) -> bool:
    """Return whether two paths name the same environment; its directory may be reached through a link."""
    folder, own = built.parent, python.parent
    return folder == own or (folder.exists() and own.exists() and folder.samefile(own))


@dataclass(frozen=True, slots=True)
class Project:
    """The `pyproject.toml` of a checkout: what its environments should hold."""

    dependencies: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]
    requires_python: str = ""


def read_project(checkout: Path) -> Project | None:
    """Return the dependencies that a checkout declares; None where it has no readable pyproject.toml."""
    try:
        data = tomllib.loads(read_regular(checkout / "pyproject.toml", SOURCE_BYTES).decode("utf-8"))
    except (OSError, ValueError):
        return None
    project = data.get("project")
    if not isinstance(project, dict):
        return None
    extras = project.get("optional-dependencies")
    return Project(
        tuple(_texts(project.get("dependencies"))),
        {name: tuple(_texts(items)) for name, items in extras.items()} if isinstance(extras, dict) else {},
        str(project.get("requires-python") or ""),
    )


def _texts(items: object) -> Iterator[str]:
    yield from (item for item in items if isinstance(item, str)) if isinstance(items, list) else ()


def required_names(requirements: Iterable[str], machine: str) -> frozenset[str]:
    """Return the packages that requirements name for Linux on a kind of machine, such as `x86_64`.

    A marker that is not understood leaves its package out: it may not be needed.
    """
    names = set()
    for text in requirements:
        requirement, _, marker = text.partition(";")
        match = _NAME.match(requirement.strip())
        if match is not None and _holds(marker, machine):
            names.add(normalised(match[0]))
    return frozenset(names)


def _holds(marker: str, machine: str) -> bool:
    facts = {"sys_platform": "linux", "platform_machine": machine}
    text = _MARKER.sub(lambda match: str((facts[match[1]] == match[3]) is (match[2] == "==")), marker)
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    if not words:
        return True
    if not set(words) <= {"True", "False", "and", "or", "(", ")"}:
        return False
    return _Marker(words).alternatives()


class _Marker:
    """Reader of a marker's truth values: `or` of `and` of values and brackets."""

    def __init__(self, words: list[str]) -> None:
        self._words = words

    def alternatives(self) -> bool:
        result = self._conjunction()
        while self._next() == "or":
            self._words.pop(0)
            result = self._conjunction() or result
        return result

    def _conjunction(self) -> bool:
        result = self._value()
        while self._next() == "and":
            self._words.pop(0)
            result = self._value() and result
        return result

    def _value(self) -> bool:
        word = self._words.pop(0) if self._words else "False"
        if word != "(":
            return word == "True"
        result = self.alternatives()
        if self._next() == ")":
            self._words.pop(0)
        return result

    def _next(self) -> str:
        return self._words[0] if self._words else ""


def locked_versions(checkout: Path, names: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """Return the versions that `uv.lock` has of packages; several where extras or platforms differ."""
    asked = frozenset(names)
    try:
        text = read_regular(checkout / "uv.lock", SOURCE_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    versions: dict[str, set[str]] = {}
    for match in _LOCKED.finditer(text):
        if (name := normalised(match[1])) in asked:
            versions.setdefault(name, set()).add(match[2])
    return {name: frozenset(items) for name, items in versions.items()}
