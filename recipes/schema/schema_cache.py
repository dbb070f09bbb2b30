"""Schemas by checkout and driver: read from sources once, then from a cache that is checked by content.

Three files for each checkout and driver in the cache's directory, for this user alone to read: `NAME.core`
has the core schemas, all that `check` needs; `NAME.description` has what editors and `lint` ask for besides;
`NAME.keys` has the keys that stock recipes use. Each holds the digests of the sources that it was made from.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from recipes.cache_root import cache_root
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular
from recipes.remote_path import identity_of

FORMAT = 2
"""Version of what is kept; other versions are made anew."""
_MODE = 0o600


def default_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where schemas are kept: `schema` in the directory of cached data."""
    return cache_root(environment) / "schema"


def digest(text: str | bytes) -> str:
    """Return the digest of a text."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Store:
    """Files of one checkout and driver in a cache directory. What cannot be read or written is not kept."""

    def __init__(self, root: Path, driver: str, directory: Path) -> None:
        self._root = root
        name = digest(f"{identity_of(root)}\0{driver}")
        self._base = directory / name

    def _digest(self, path: str) -> str:
        """Return the digest of a source; "" for one that is not there."""
        try:
            return digest(read_regular(self._root / path, SOURCE_BYTES))
        except (OSError, ValueError):
            return ""

    def load(self, kind: str, versions: Mapping[str, str]) -> dict[str, Any] | None:
        """Return what is kept of a kind if it was made by these versions from the sources as they are."""
        try:
            data = json.loads(self._base.with_suffix(f".{kind}").read_bytes())
            if data["versions"] != {"format": str(FORMAT), **versions}:
                return None
            if any(self._digest(path) != made for path, made in data["sources"].items()):
                return None
            content: dict[str, Any] = data["content"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return content

    def save(
        self, kind: str, versions: Mapping[str, str], sources: Iterable[str], content: Mapping[str, Any]
    ) -> None:
        """Keep something with the digests of the sources that it was made from."""
        import tempfile

        data = {
            "versions": {"format": str(FORMAT), **versions},
            "sources": {path: self._digest(path) for path in sources},
            "content": content,
        }
        try:
            text = json.dumps(data, separators=(",", ":"))
            self._base.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._base.parent)
        except (OSError, ValueError, TypeError):
            return
        path = Path(temporary)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            path.chmod(_MODE)
            path.replace(self._base.with_suffix(f".{kind}"))
        except (OSError, UnicodeError):
            path.unlink(missing_ok=True)
