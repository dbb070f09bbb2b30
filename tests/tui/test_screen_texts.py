"""The texts of the list, the charts and the comparison are those beside the pictures, at both sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from screenshots.scenes import overview_runs
from screenshots.taking import take_overview

HERE = Path(__file__).parents[2] / "screenshots"


@pytest.mark.long
@pytest.mark.parametrize(
    "size", [pytest.param((80, 24), id="80x24"), pytest.param((160, 48), id="160x48", marks=pytest.mark.slow)]
)
async def test_the_texts_are_those_beside_the_pictures(size: tuple[int, int]) -> None:
    with overview_runs() as root:
        taken = await take_overview(root, size, settled_s=0.3)
    for name, (_, text) in taken.items():
        kept = (HERE / "text" / f"{name}.txt").read_text(encoding="utf-8")
        assert text == kept, f"{name}: `uv run python screenshots/make.py` makes it anew"
