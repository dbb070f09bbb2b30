"""What the wheel carries."""

from __future__ import annotations

import zipfile
from pathlib import Path

CARRIED = (
    "recipes/library/*.yaml",
    "launcher/scripts/**/*.py",
    "launcher/scripts/*.sub",
    "launcher/sites/*.toml",
    "tui/**/*.tcss",
)


def test_the_wheel_carries_recipes_scripts_and_sites(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    root = Path(__file__).parent.parent.parent
    for pattern in CARRIED:
        paths = [str(path.relative_to(root)) for path in root.glob(pattern)]
        assert paths, pattern
        assert set(paths) <= names
    assert {"distill_tui.py", "tui/py.typed", "launcher/py.typed", "recipes/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]
