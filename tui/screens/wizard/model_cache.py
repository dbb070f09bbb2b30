"""Models in the cache of the job, and facts of models that are kept while something is typed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from launcher.errors import TransportError
from recipes.models.facts import ModelFacts, UnknownModel
from recipes.models.hub import Hub, Models
from recipes.remote_path import RemotePath

_PREFIX = "models--"
_WEIGHTS = (".safetensors", ".bin")
_MOST = 300
"""Models that are looked at."""


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model whose weights are in the cache."""

    id: str
    bytes: int
    """Size of all its files on disk."""


KEPT_S = 5.0
"""Time after which a model's files are read again: it may be downloaded while the wizard is open."""


@dataclass(frozen=True, slots=True)
class KeptModels(Models):
    """Look-up that answers from memory for some seconds: one analysis asks eight times for two models."""

    _facts: dict[str, tuple[float, ModelFacts | UnknownModel]] = field(default_factory=dict, compare=False)

    def find(self, name: str) -> ModelFacts | UnknownModel:
        """Return a model's facts, or why they are unknown and what to do."""
        kept = self._facts.get(name)
        if kept is None or time.monotonic() - kept[0] > KEPT_S:
            kept = self._facts[name] = (time.monotonic(), Models.find(self, name))
        return kept[1]


def cached_models(hub: Hub) -> tuple[CachedModel, ...]:
    """Return the models in a cache, by id; none where a host does not list it in time."""
    try:
        if isinstance(hub.directory, RemotePath):
            hub.directory.remote.below(str(hub.directory))  # lists all of it in one request
        return tuple(_models(hub))
    except TransportError:
        return ()


def _models(hub: Hub) -> Iterator[CachedModel]:
    try:
        names = sorted(path.name for path in hub.directory.iterdir() if path.name.startswith(_PREFIX))
    except OSError:  # no cache yet, or one that may not be read
        return
    for name in names[:_MOST]:
        identity = name.removeprefix(_PREFIX).replace("--", "/", 1)
        snapshot = hub.snapshot(identity)
        try:
            files = [path for path in snapshot.iterdir() if path.is_file()] if snapshot is not None else []
            if any(path.suffix in _WEIGHTS for path in files):
                yield CachedModel(identity, sum(path.stat().st_size for path in files))
        except OSError:
            continue
