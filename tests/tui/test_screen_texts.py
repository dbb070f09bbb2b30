"""The texts of the list, the charts and the comparison are those beside the pictures, at both sizes."""

from __future__ import annotations

import importlib.util
import sys
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
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
@pytest.mark.parametrize(
    "size", [pytest.param((80, 24), id="80x24"), pytest.param((160, 48), id="160x48", marks=pytest.mark.slow)]
)
async def test_the_texts_are_those_beside_the_pictures(size: tuple[int, int]) -> None:
    make = maker()
    with make.overview_runs() as root:
        taken = await make.take_overview(root, size, settled_s=0.3)
    for name, (_, text) in taken.items():
        kept = (HERE / "text" / f"{name}.txt").read_text(encoding="utf-8")
        assert text == kept, f"{name}: `uv run python screenshots/make.py` makes it anew"
