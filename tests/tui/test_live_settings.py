"""Settings while the app runs: the file is adopted, choices are kept; site and profile reach the wizard."""

# ruff: noqa: F811 - the fixture `node`
from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from launcher.settings import load_settings, set_setting, settings_path
from tests.tui.fakeslurm import LoginNode
from tests.tui.pilot import NARROW, Screen, shown
from tests.tui.test_wizard import node, page, wizard  # noqa: F401 - a fixture
from tui.screen_settings import load_screen_settings


async def write(environment: Mapping[str, str], key: str, value: str) -> None:
    await asyncio.to_thread(set_setting, environment, key, [value])


async def look(screen: Screen) -> None:
    """Look at the file, as the app does every few seconds, and wait until that is done."""
    watch = screen.app._live_settings._watch
    watch.look()
    await screen.until(lambda: not watch._looking.locked(), "looked")
    await screen.pilot.pause()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    return environment


async def test_what_another_program_writes_is_adopted(settings: dict[str, str], tmp_path: Path) -> None:
    set_setting(settings, "screen.density", ["comfortable"])
    first = load_screen_settings(settings)
    async with shown(tmp_path / "runs", screen=first) as screen:
        await look(screen)
        assert (screen.app.theme, screen.app.has_class("-compact")) == ("distill", False)
        await write(settings, "screen.density", "compact")
        await write(settings, "screen.theme", "nord")
        await write(settings, "polling.logs_s", "2")
        await look(screen)
        assert (screen.app.theme, screen.app.has_class("-compact")) == ("nord", True)
        assert screen.app.screen_settings.logs_s == 2.0
        await asyncio.to_thread(settings_path(settings).write_text, "[screen]\ntheme = 'norf'\n")
        await look(screen)
        await screen.see("Settings not adopted", "did you mean nord?")
        assert screen.app.theme == "nord"


async def test_a_theme_and_a_density_that_are_chosen_are_kept(
    settings: dict[str, str], tmp_path: Path
) -> None:
    async with shown(tmp_path / "runs") as screen:
        screen.app._live_settings.start()
        for name in ("dracula", "distill"):  # the first one again is a choice, too
            screen.app.theme = name
            await screen.until(lambda name=name: load_settings(settings).theme == name, name)  # type: ignore[misc]
        await screen.app.run_action("change_density")
        assert screen.app.has_class("-compact")
        await screen.until(lambda: load_settings(settings).density == "compact", "kept")
        await screen.app.run_action("change_density")
        await screen.until(lambda: load_settings(settings).density == "comfortable", "kept")
    assert "# Colour theme" in settings_path(settings).read_text()


@pytest.mark.long
async def test_a_default_profile_is_adopted_by_an_open_wizard(node: LoginNode) -> None:
    async with wizard(node, NARROW) as screen:
        await look(screen)
        await screen.see("‹ none ›")
        await write(node.environment, "defaults.profile", "light")
        await look(screen)
        await screen.see("‹ light ›")
        await screen.until(lambda: page(screen).status.settled, "planned")
        plan = page(screen).status.plan
        assert plan is not None
        assert plan.submission.plans[0].environment["RAY_BARE_CPUS"] == "2"
