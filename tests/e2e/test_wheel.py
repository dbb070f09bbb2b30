"""What the wheel carries."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, run

CARRIED = (
    "recipes/library/*.yaml",
    "launcher/scripts/**/*.py",
    "launcher/scripts/*.sub",
    "launcher/sites/*.toml",
    "tui/**/*.tcss",
)


def carried_paths() -> set[str]:
    """Return the files that are no modules, and those of the scripts."""
    found = {pattern: {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)} for pattern in CARRIED}
    assert all(found.values()), found
    return set().union(*found.values())


def test_the_wheel_carries_recipes_scripts_and_sites(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert carried_paths() <= names
    assert {"distill_tui.py", "tui/py.typed", "launcher/py.typed", "recipes/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]


@pytest.mark.long
def test_the_source_distribution_carries_them_too(uv: str, tmp_path: Path) -> None:
    run(uv, "build", "--offline", "--quiet", "--sdist", "--out-dir", tmp_path, cwd=ROOT)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert carried_paths() | {"README.md", "pyproject.toml", "tests/conftest.py"} <= names
