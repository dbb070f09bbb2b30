"""The releases of NeMo-RL that come as test data, unpacked once per session."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

RELEASES = ("v0.4.0", "v0.5.0", "v0.6.0", "v0.7.0", "main-7ea279ab")
NAMES = {"main-7ea279ab": "main"}


def unpack(archive: Path, target: Path) -> Path:
    """Unpack a release, and return its directory, named like the release."""
    root = target / NAMES.get(archive.name.removesuffix(".tar.gz"), archive.name.removesuffix(".tar.gz"))
    if not root.is_dir():
        with tarfile.open(archive) as members:
            members.extractall(target / "unpacking", filter="data")
        next((target / "unpacking").iterdir()).rename(root)
    return root


def release(shared: Path, factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a release's directory; skip where the test data lacks it."""
    archive = shared / "nemo-versions" / f"{name}.tar.gz"
    if not archive.is_file():
        pytest.skip(f"no {archive}")
    return unpack(archive, factory.getbasetemp())


def stock_recipes(root: Path) -> list[Path]:
    """Return a release's own distillation recipes."""
    configs = root / "examples" / "configs"
    return sorted(
        [*configs.glob("distillation*.yaml"), *(configs / "recipes/llm").glob("distillation*.yaml")]
    )
