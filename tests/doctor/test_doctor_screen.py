"""The doctor's screen: verdicts worst first, the selected one in full, what can be run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from launcher.doctor.doctor_request import DoctorRequest
from tests.doctor.place import FROM_HUB, MODEL, VLLM, Place
from tests.tui.pilot import NARROW, WIDE, shown
from tui.screens.doctor import DoctorScreen


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place in which a model and a worker's environment are missing."""
    place = Place.at(tmp_path / "p")
    shutil.rmtree(place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}")
    shutil.rmtree(place.root / "venvs" / VLLM)
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    return place


@pytest.mark.parametrize("size", [NARROW, pytest.param(WIDE, marks=pytest.mark.slow)])
async def test_what_is_missing_is_listed_first_with_its_command(place: Place, size: tuple[int, int]) -> None:
    request = DoctorRequest(place.root / "recipe.yaml", (*FROM_HUB, "checkpointing.enabled=false"))
    async with shown(place.root / "runs", size, doctor=request) as screen:
        await screen.see("✗ not ready", "doctor", "recipe.yaml", "D18", "D22", limit_s=30)
        assert isinstance(screen.app.screen, DoctorScreen)
        lines = screen.text.splitlines()
        assert screen.text.index("D18") < screen.text.index("D22")
        assert any("▸✗ D18" in line for line in lines), screen.text
        await screen.see("prefetch_venvs", "vllm_worker.VllmGenerationWorker")
        await screen.press("down")
        await screen.see(f"hf download {MODEL}", "foretells")
        await screen.press("p")
        await screen.see("✓ D01") if size == WIDE else await screen.see("D22")
        await screen.press("f")
        await screen.see("Run this command?", "run in this terminal")
        await screen.press("n")
        await screen.press("F")
        await screen.see("Run 2 commands?")
        await screen.press("escape")
        await screen.press("b")
        await screen.see("No runs yet")


async def test_the_doctor_is_opened_from_any_screen(place: Place) -> None:
    async with shown(place.root / "runs") as screen:
        await screen.see("No runs yet")
        await screen.press("f9")
        await screen.see("doctor", "every run", "passed", limit_s=30)
        await screen.press("f9")
        await screen.press("b")
        await screen.see("No runs yet")


@pytest.mark.long
async def test_details_that_do_not_fit_are_scrolled_by_keys(place: Place) -> None:
    request = DoctorRequest(place.root / "recipe.yaml", (*FROM_HUB, "checkpointing.enabled=false"))
    async with shown(place.root / "runs", (60, 14), doctor=request) as screen:
        await screen.see("✗ not ready", "D18", limit_s=30)
        assert "foretells" not in screen.text
        await screen.press("tab", "end")
        await screen.see("foretells")
        await screen.press("home")
        await screen.until(lambda: "foretells" not in screen.text, "the beginning is shown")
        await screen.press("2", "end")
        await screen.see("foretells")
        await screen.press("1", "down")
        await screen.see("2 D22", "evidence")
