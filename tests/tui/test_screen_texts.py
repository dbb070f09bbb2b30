"""The texts of the list, the charts and the comparison are those beside the pictures, at both sizes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parents[2] / "screenshots"


def maker() -> ModuleType:
    """Return the script that makes the pictures."""
    spec = importlib.util.spec_from_file_location("screenshots_make", HERE / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=["80x24", "160x48"])
async def test_the_texts_are_those_beside_the_pictures(size: tuple[int, int]) -> None:
    make = maker()
    with make.overview_runs() as root:
        taken = await make.take_overview(root, size, settled_s=0.3)
    for name, (_, text) in taken.items():
        kept = (HERE / "text" / f"{name}.txt").read_text(encoding="utf-8")
        assert text == kept, f"{name}: `uv run python screenshots/make.py` makes it anew"
