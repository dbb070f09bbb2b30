"""Packages in uv's cache, by its directories: what nodes without internet can build environments from.

A wheel is in it as `wheels-vN/pypi/NAME/VERSION-TAGS`, or below `index/…` and `url/…`; what was built from
sources as `sdists-vN/pypi/NAME/VERSION`. Entries with a suffix (`.http`, `.msgpack`) only tell of a package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular

_LOCKED = re.compile(
    r'^name = "(?P<name>[a-z0-9-]+)"\nversion = "(?P<version>[^"]+)"\nsource = \{ registry ', re.MULTILINE
)
_SUFFIXES = (".http", ".msgpack", ".lock", ".rev")
_PLACES = ("pypi", "index/*", "url/*")


def absent_packages(cache: Path, checkout: Path, names: Iterable[str]) -> list[str]:
    """Return those of some packages that the cache lacks in their locked versions, if an index has them."""
    return [
        f"{name} {' or '.join(sorted(versions))}"
        for name, versions in sorted(_from_index(checkout, names).items())
        if not versions & {_public(version) for version in _cached_versions(cache, name)}
    ]


def _from_index(checkout: Path, names: Iterable[str]) -> Mapping[str, set[str]]:
    """Return the locked versions of packages that come from an index, not from the checkout or git."""
    asked = frozenset(names)
    try:
        text = read_regular(checkout / "uv.lock", SOURCE_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    locked: dict[str, set[str]] = {}
    for match in _LOCKED.finditer(text):
        if match["name"] in asked:
            locked.setdefault(match["name"], set()).add(_public(match["version"]))
    return locked


def _cached_versions(cache: Path, name: str) -> Iterator[str]:
    for bucket in ("wheels-v*", "sdists-v*"):
        for place in _PLACES:
            for entry in cache.glob(f"{bucket}/{place}/{name}/*"):
                if not entry.name.endswith(_SUFFIXES):
                    yield entry.name.partition("-")[0]


def _public(version: str) -> str:
    """Return a version without its local part, which says by whom it was built."""
    return version.partition("+")[0]
