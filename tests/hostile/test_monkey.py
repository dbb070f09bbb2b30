"""Random keys, clicks and sizes on every screen, over hostile runs and recipes: no traceback, nothing stuck."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from textual.widgets import OptionList

from launcher.doctor import fixing
from launcher.doctor.doctor_request import DoctorRequest
from tests.hostile.chart_inputs import events
from tests.hostile.monkey import Monkey
from tests.tui.editor_world import EditorWorld, suspended
from tests.tui.fakeslurm import LoginNode
from tests.tui.replay import LATER, running
from tests.tui.test_hostile import EVIL, hostile_run
from tui.app import DistillApp
from tui.app_settings import AppSettings, EditStart
from tui.screens.editor import choose_recipe, recipe_editor  # noqa: F401 - imports on the loop would block it
from tui.screens.wizard.model import WizardState
from tui.widgets.paged_options import PagedOptions
from tui.widgets.run_columns import ColumnLayout

SCREENS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "home": ("home", ()),
    "monitor": ("monitor", ()),
    "wizard": ("wizard", ()),
    "editor": ("editor", ()),
    "charts": ("home", ("end", "m")),
    "comparison": ("home", ("A", "D")),
    "doctor": ("doctor", ()),
}
"""Screen -> the settings of the app, and the keys that lead to it."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, AppSettings]]:
    """Return settings that begin on each screen, in a world where nothing real can be touched."""
    here = Path.cwd()
    node = LoginNode.at(tmp_path / "node")
    world = EditorWorld.at(tmp_path / "world")
    for name, value in {**node.environment, **world.environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(DistillApp, "suspend", suspended)
    monkeypatch.setattr(fixing, "run_step", lambda *_, **__: 0)  # its commands would be carried out
    monkeypatch.setenv("PATH", node.environment["PATH"])
    for name in ("TMUX", "DISPLAY", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("PAGER", "EDITOR", "VISUAL", "SHELL"):
        monkeypatch.setenv(name, "true")
    os.chdir(world.root)
    root = tmp_path / "runs"
    replay = hostile_run(root)
    running(root, host="elsewhere", identity="20261128-040000-live-0004", name="live")
    (root / f"bad{EVIL.replace('/', '').replace(chr(0), '')}").mkdir()
    (root / f"bad{EVIL.replace('/', '').replace(chr(0), '')}" / "run.json").write_text("{")
    (replay.logs / "events.out.tfevents.1").write_bytes(events(Random(1)))
    run = replay.logs.parent
    yield {
        "home": AppSettings(root, now=lambda: LATER),
        "monitor": AppSettings(root, open_run=str(run), now=lambda: LATER),
        "wizard": AppSettings(
            root, wizard_state=WizardState({"recipe": str(node.recipe)}), now=lambda: LATER
        ),
        "editor": AppSettings(root, edit=EditStart(world.recipe), now=lambda: LATER),
        "doctor": AppSettings(root, doctor=DoctorRequest(node.recipe), now=lambda: LATER),
    }
    os.chdir(here)


async def play(settings: AppSettings, actions: int, seed: int, keys: Sequence[str] = ()) -> int:
    """Let a monkey play after some keys; the app is opened again when it was left. Returns what it did."""
    random, done = Random(seed), 0
    while done < actions:
        app = DistillApp(settings)
        async with app.run_test(size=random.choice(((80, 24), (160, 48))), notifications=True) as pilot:
            await pilot.press(*keys)
            monkey = Monkey(pilot, random)
            done += max(await monkey.play(actions - done), 1)
            if not monkey.is_over:
                await pilot.pause()
        assert app._exception is None, monkey.story()
    return done


async def test_a_monkey_on_the_list_of_runs(settings: Mapping[str, AppSettings]) -> None:
    assert await play(settings["home"], 20, seed=1) >= 20


def test_the_list_has_columns_in_any_width() -> None:
    for width in range(200):
        layout = ColumnLayout.of(width)
        assert layout.name > 0
        assert "run" in layout.header()


async def test_every_screen_of_help_fits_the_smallest_terminal(settings: Mapping[str, AppSettings]) -> None:
    app = DistillApp(settings["home"])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f1")
        for width, height in ((1, 1), (12, 3), (400, 100)):
            await pilot.resize_terminal(width, height)
    assert app._exception is None


def test_options_are_paged_through_before_they_have_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OptionList, "_index_to_line", {})
    monkeypatch.setattr(OptionList, "_lines", [])
    with pytest.raises((KeyError, IndexError)):
        OptionList("a", "b", "c")._move_page(1)
    for direction in (1, -1):
        PagedOptions("a", "b", "c")._move_page(direction)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("screen", SCREENS)
async def test_a_monkey_for_hours(
    settings: Mapping[str, AppSettings], screen: str, capsys: pytest.CaptureFixture[Any]
) -> None:
    actions = int(os.environ.get("DISTILL_TUI_MONKEY", "2900"))
    seed = int(os.environ.get("DISTILL_TUI_SEED", "2")) * len(SCREENS) + list(SCREENS).index(screen)
    name, keys = SCREENS[screen]
    done = await play(settings[name], actions, seed, keys)
    with capsys.disabled():
        print(f"\nkeys on {screen}: tried {done}, bad 0")
