"""Look-up of the files of models and data sets: a directory, or the Hugging Face cache.

The cache's layout is read directly (`hub/models--ORG--NAME/refs/main` names a snapshot directory), so
nothing needs to be installed; `recipes.models.download` is the only part that fetches, when asked.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recipes.files import is_directory, with_home
from recipes.limits import REFERENCE_BYTES
from recipes.models.config import read_config
from recipes.models.facts import ModelFacts, UnknownModel
from recipes.models.table import TABLE
from recipes.reading import read_limited
from recipes.remote_path import on_machine_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_HUB_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)?")
_CACHED = re.compile(r"(?:.*/)?models--(?P<name>[^/]+?)(?:/(?:snapshots(?:/[^/]*)?)?)?/?")
_WEIGHTS = (".safetensors", ".bin", ".gguf")
Kind = Literal["models", "datasets"]


def hub_name(name: str) -> str:
    """Return the name of a model that is given by its path in a Hugging Face cache; any other name as it is.

    `/data/hub/models--ORG--NAME/snapshots/REVISION` is `ORG/NAME`, also where that cache is not mounted.
    """
    match = _CACHED.fullmatch(name)
    return match["name"].replace("--", "/", 1) if match else name


@dataclass(frozen=True, slots=True)
class Hub:
    """A Hugging Face cache; `directory` is the `hub` directory."""

    directory: Path

    @classmethod
    def of(cls, environment: Mapping[str, str], root: Path = Path()) -> Hub:
        """Return the cache that Hugging Face's libraries would use in an environment; on `root`'s machine."""
        for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
            if environment.get(name):
                return cls(on_machine_of(root, environment[name]).expanduser())
        home = environment.get("HF_HOME")
        if not home:
            cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME') or '~'}/.cache"
            home = str(Path(cache) / "huggingface")
        return cls(on_machine_of(root, home).expanduser() / "hub")

    def snapshot(self, name: str, kind: Kind = "models") -> Path | None:
        """Return the directory of the main snapshot (else the newest), None where nothing is cached."""
        root = self.directory / f"{kind}--{name.replace('/', '--')}"
        try:
            revision = read_limited(root / "refs" / "main", REFERENCE_BYTES).decode("utf-8").strip()
            if revision and (root / "snapshots" / revision).is_dir():
                return root / "snapshots" / revision
        except (OSError, UnicodeDecodeError):
            pass  # no main revision: a download of another one, taken below
        try:
            snapshots = [path for path in (root / "snapshots").iterdir() if path.is_dir()]
            return max(snapshots, key=lambda path: path.stat().st_mtime, default=None)
        except OSError:
            return None


@dataclass(frozen=True, slots=True)
class Models:
    """Look-up of models: a local directory first, then the cache, then the built-in table.

    Relative directories count from `root`, where the driver will run.
    """

    hub: Hub
    root: Path

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None, root: Path | None = None) -> Models:
        """Return the look-up for an environment (default: this process's) and a driver's directory."""
        root = root or Path.cwd()
        return cls(Hub.of(os.environ if environment is None else environment, root), root)

    def directory(self, name: str) -> Path | None:
        """Return the directory of a model's files, None if there is none on this machine."""
        if not name:
            return None
        local = self.root / with_home(name, self.root)
        if is_directory(local):
            return local
        repository = hub_name(name)
        return self.hub.snapshot(repository) if _HUB_NAME.fullmatch(repository) else None

    def find(self, name: str) -> ModelFacts | UnknownModel:
        """Return a model's facts, or why they are unknown and what to do."""
        local = self.root / with_home(name, self.root)
        if name and is_directory(local):
            return read_config(local / "config.json", name, "config.json")
        name = hub_name(name)
        if not _HUB_NAME.fullmatch(name):
            return UnknownModel(f"there is no model directory {local}", "Correct the path of the model.")
        snapshot = self.hub.snapshot(name)
        cached = read_config(snapshot / "config.json", name, "cache") if snapshot is not None else None
        if isinstance(cached, ModelFacts):
            return cached
        listed = TABLE.get(name)
        if listed is not None:
            return listed
        if cached is not None:
            return cached
        return UnknownModel(
            f"{name} is neither in the Hugging Face cache ({self.hub.directory}) nor a known model",
            f"Run `distill-tui models {name} --download`, or `hf download {name} config.json`, with internet "
            "(for a gated model, `hf auth login` first, with an account that was given access).",
        )

    def has_weights(self, name: str) -> bool:
        """Return whether weights of a model lie in its directory or in the cache."""
        directory = self.directory(name) if hub_name(name) == name else self.root / with_home(name, self.root)
        if directory is None:
            return False
        try:
            return any(path.suffix in _WEIGHTS and path.exists() for path in directory.iterdir())
        except OSError:
            return False
