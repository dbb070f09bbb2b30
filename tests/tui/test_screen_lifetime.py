"""Screens that are closed before they are composed, and runs that cannot be opened or asked about."""

from __future__ import annotations

import ast
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from launcher.errors import InputError, TransportError
from launcher.job_records import record_job
from launcher.runs import Job
from launcher.transports.local import LocalTransport
from tests.tui.pilot import WIDE, shown
from tests.tui.replay import START, make_run, running
from tui.app import DistillApp
from tui.machines import LocalMachine
from tui.opening import ActionFailed, OpenedRun, find_run
from tui.screens.charts import ChartsScreen
from tui.screens.comparison import ComparisonScreen
from tui.screens.dialogs import BusyDialog, ChoiceDialog, DialogChoice
from tui.screens.doctor import DoctorScreen, DoctorStart
from tui.screens.editor.diff_screen import DiffScreen
from tui.screens.editor.recipe_editor import RecipeEditorScreen
from tui.screens.editor.session_worker import OpenedFile
from tui.screens.help import HelpScreen
from tui.screens.home import HomeScreen
from tui.screens.log_picker import LogPicker
from tui.screens.monitor import MonitorScreen
from tui.screens.wizard.runs_root_dialog import DirectoryDialog
from tui.screens.wizard.screen import WizardScreen
from tui.widgets.entry_dialog import EntryDialog, EntryRequest
from tui.widgets.text_screen import TextScreen

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "library" / "rehearsal.yaml"
QUERIES = frozenset({"query", "query_one", "query_exactly_one", "query_children"})


def refuse() -> OpenedRun:
    raise InputError("no such run")


SCREENS: dict[str, Callable[[DistillApp, Path], Screen[Any]]] = {
    "monitor": lambda app, root: MonitorScreen(app, refuse, "a run"),
    "home": HomeScreen,
    "wizard": lambda app, root: WizardScreen(app),
    "doctor": lambda app, root: DoctorScreen(app, DoctorStart(None, root)),
    "editor": lambda app, root: RecipeEditorScreen(app, OpenedFile(RECIPE, ())),
    "charts": lambda app, root: ChartsScreen(refuse, "a run"),
    "comparison": lambda app, root: ComparisonScreen([(str(root), LocalMachine())]),
    "help": lambda app, root: HelpScreen(HomeScreen.SCOPES, ""),
    "question": lambda app, root: ChoiceDialog("Quit?", "text", [DialogChoice("y", "yes", "y")]),
    "busy": lambda app, root: BusyDialog("wait"),
    "entry": lambda app, root: EntryDialog(EntryRequest("title", "text")),
    "directory": lambda app, root: DirectoryDialog("title", "text"),
    "text": lambda app, root: TextScreen("title", "", ()),
    "diff": lambda app, root: DiffScreen("Diff", {"a part": "-x\n+y\n"}),
    "picker": lambda app, root: LogPicker(MonitorScreen(app, refuse, "").view, None, None),
}


async def test_screens_that_are_closed_before_they_are_composed(tmp_path: Path) -> None:
    """What has no widgets yet shows nothing, and fails at nothing."""
    async with shown(tmp_path) as screen:
        await screen.see("No runs yet.")
        for make in SCREENS.values():
            screen.app.push_screen(make(screen.app, tmp_path))
            screen.app.pop_screen()
            await screen.pilot.pause()
        await screen.see("No runs yet.")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCREENS)
async def test_an_app_that_ends_before_its_screen_is_composed(name: str, tmp_path: Path) -> None:
    async with shown(tmp_path) as screen:
        screen.app.push_screen(SCREENS[name](screen.app, tmp_path))
        screen.app.exit()


def test_widgets_are_held_and_not_looked_up() -> None:
    """A lookup fails on a screen that is closed before it is composed: Textual mounts none of its widgets."""
    calls = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tui").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in QUERIES
    ]
    assert calls == []


def slurm_run(root: Path) -> None:
    """Make a run with a job of Slurm that is not over."""
    transport = LocalTransport()
    run = make_run(root, host="elsewhere", job=False)
    spec = run.spec.model_copy(update={"cluster": "slurm"})
    Path(run.directory, "run.json").write_text(spec.model_dump_json())
    record_job(transport, run, Job(id="4711", submitted=START))


REFUSALS = {
    "refused": "echo 'slurm_load_jobs error: Access/permission denied' >&2; exit 1",
    "unknown": "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1",
    "down": "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
    "garbled": "printf '\\377\\000|||\\n'",
    "killed": "kill -9 $$",
}


@pytest.mark.parametrize(
    "refusal",
    ["refused", *(pytest.param(name, marks=pytest.mark.slow) for name in REFUSALS if name != "refused")],
)
async def test_a_scheduler_that_refuses_at_once(
    refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("squeue", "sacct", "scontrol", "sinfo"):
        (folder / name).write_text(f"#!/bin/sh\n{REFUSALS[refusal]}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    slurm_run(tmp_path / "runs")
    async with shown(tmp_path / "runs", WIDE, open_run="demo") as screen:
        await screen.see("timeline", "Ray head up", "F1 help")
        assert isinstance(screen.app.screen, MonitorScreen)
        await screen.until(lambda: "opening the run" not in screen.text, "an open run")
        await screen.press("b")
        await screen.see("1 run in")


async def test_a_failure_before_the_run_is_open_does_not_close_the_monitor(tmp_path: Path) -> None:
    running(tmp_path, host="elsewhere")
    answer = threading.Event()

    def opener() -> OpenedRun:
        answer.wait(20)
        return find_run(tmp_path, "demo")

    async with shown(tmp_path) as screen:
        await screen.see("11/20")
        screen.app.push_screen(MonitorScreen(screen.app, opener, "demo"))
        await screen.see("opening the run …")
        for _ in range(3):  # the same failure again: one dialog
            screen.app.screen.post_message(ActionFailed(InputError("cannot read the settings")))
        await screen.see("Error", "✗ cannot read the settings")
        await screen.press("enter")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        answer.set()
        await screen.see("✓ Ray head up")


async def test_a_failure_is_shown_whichever_screen_it_is_of(tmp_path: Path) -> None:
    async with shown(tmp_path) as screen:
        await screen.see("No runs yet.")
        screen.app.screen.post_message(ActionFailed(TransportError("scancel: not permitted", fix="Ask.")))
        await screen.see("Error", "✗ scancel: not permitted", "Ask.")
