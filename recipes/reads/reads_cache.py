"""Where reads come from: a cache on disk, the releases that are shipped, else a walk through the checkout.

A walk takes seconds. Releases are recognised by the content of the files that the walk went through; a fork's
reads are kept in the cache, with size and time of each of these files, so that the next check only looks at
the files' `stat` (141 of them for the main branch of August 2026: 2 ms on a local file system).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from recipes.cache_root import cache_root
from recipes.limits import SOURCE_BYTES
from recipes.reading import read_regular
from recipes.reads.description import FORMAT, Reads
from recipes.remote_path import identity_of

SHIPPED = Path(__file__).with_name("data")
INDEX = "index.json.z"
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Found:
    """Reads, and how they were found.

    `release` names a shipped one, "" is the checkout itself; `shipped` is the file that it came from.
    """

    reads: Reads
    release: str = ""
    shipped: str = ""


def default_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where reads are kept: `reads` in the directory of cached data."""
    return cache_root(environment) / "reads"


def find_reads(root: Path | None, script: str, cache: Path | None = None) -> Found | None:
    """Return the reads of a checkout's driver script; None where the checkout has no such script.

    Without a checkout, those of the newest release that has the script. What cannot be read
    from or written to the cache is not kept.
    """
    if root is None:
        return newest_release(script)
    cache = cache or default_directory()
    kept = cache / f"{_name(root, script)}.json"
    found = _cached(kept, root)
    if found is None:
        found = _release(root, script) or _walked(root, script)
        if found is not None:
            _save(kept, root, found)
    return found


def newest_release(script: str) -> Found | None:
    """Return the shipped reads of a script in the newest release that has it."""
    for entry in reversed(_index()):
        if entry["script"] == script and entry["release"].startswith("v"):  # not a state of the main branch
            reads = _shipped(entry["name"])
            return None if reads is None else Found(reads, entry["release"])
    return None


def digest(data: bytes) -> str:
    """Return the digest of a file's content."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _name(root: Path, script: str) -> str:
    return digest(f"{identity_of(root)}\0{script}".encode("utf-8", "surrogatepass"))


def _walked(root: Path, script: str) -> Found | None:
    from recipes.reads.walk import walk

    reads = walk(root, script)
    return None if reads is None else Found(reads)


def _release(root: Path, script: str) -> Found | None:
    """Return the shipped reads of the release whose files are all in a checkout, unchanged."""
    digests: dict[str, str] = {}
    for entry in _index():
        if entry["script"] != script:
            continue
        if all(_digest_of(root, path, digests) == wanted for path, wanted in entry["files"].items()):
            reads = _shipped(entry["name"])
            if reads is not None:
                return Found(reads, entry["release"], entry["name"])
    return None


def _digest_of(root: Path, path: str, known: dict[str, str]) -> str:
    if path not in known:
        try:
            known[path] = digest(read_regular(root / path, SOURCE_BYTES))
        except OSError:
            known[path] = ""
    return known[path]


def _index() -> list[dict[str, Any]]:
    try:
        data = json.loads(zlib.decompress((SHIPPED / INDEX).read_bytes()))
        return list(data["entries"]) if data["format"] == FORMAT else []
    except (OSError, ValueError, KeyError, TypeError, zlib.error):
        return []


@lru_cache(maxsize=8)
def _shipped(name: str) -> Reads | None:
    try:
        return Reads.from_json(zlib.decompress((SHIPPED / name).read_bytes()))
    except (OSError, zlib.error):
        return None


def _stamps(root: Path, files: Iterable[str]) -> Iterator[list[int]]:
    for name in files:
        try:
            stamp = (root / name).stat()
            yield [stamp.st_mtime_ns, stamp.st_size]
        except OSError:
            yield [0, 0]


def _cached(path: Path, root: Path) -> Found | None:
    try:
        stamp = path.stat()
    except OSError:
        return None
    kept = _parsed(path, stamp.st_mtime_ns, stamp.st_size)
    if kept is None:
        return None
    found, stamps = kept
    return found if list(_stamps(root, found.reads.files)) == stamps else None


@lru_cache(maxsize=8)
def _parsed(path: Path, modified: int, size: int) -> tuple[Found, list[list[int]]] | None:
    """Read a file of the cache; its stamp is part of this function's own cache's key."""
    try:
        data = json.loads(path.read_bytes())
        name = data.get("shipped", "")
        reads = _shipped(name) if name else Reads.from_json(data["reads"])
        return None if reads is None else (Found(reads, data["release"], name), data["stamps"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _save(path: Path, root: Path, found: Found) -> None:
    stamps = list(_stamps(root, found.reads.files))
    data: dict[str, Any] = {"release": found.release, "stamps": stamps}
    data |= {"shipped": found.shipped} if found.shipped else {"reads": found.reads.to_json()}
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file)
        Path(temporary).chmod(_MODE)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
