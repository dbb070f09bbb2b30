"""Models in the Hugging Face cache of the job, with their size on disk: only these run offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from recipes.models.hub import Hub

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


def cached_models(environment: Mapping[str, str]) -> tuple[CachedModel, ...]:
    """Return the models that a job with this environment finds in its cache, by id."""
    return tuple(_models(Hub.of(environment)))


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
