"""The first hour of a user at JSC on the test cluster: from nothing to a smoke run of an own recipe."""

from __future__ import annotations

import json

import pytest

from tests.slurm.guide import GUIDE, Runner, shape, shown_commands
from tests.slurm.jsc_shell import RECIPE, JscShell
from tests.slurm.test_submit import MILESTONES
from tests.slurm.tmux import Tmux
from tests.slurm.user import ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(300)]
MOST_KEYS = 12
SETTINGS = ".config/distill-tui/"


def test_python_needs_its_module(shell: JscShell) -> None:
    python = str(shell.checkout / ".venv" / "bin" / "python")
    assert shell(python, "-V").stdout.startswith("Python 3.")
    without = shell(python, "-V", without="LD_LIBRARY_PATH", check=False)
    assert without.returncode == 127
    assert "error while loading shared libraries" in without.stderr


def test_wizard_from_nothing_to_a_completed_smoke_run(shell: JscShell, tmux: Tmux) -> None:
    before = shell.files_of_home()
    tmux.start(shell.argv("distill-tui", "--no-mouse"))
    tmux.see("n new")
    tmux.press("n")
    tmux.see("JUWELS Booster", "distill", "‹ booster ›")
    tmux.press("NPage")
    tmux.see("‹ training ›", "Qwen/Qwen3-1.7B-Base")
    tmux.press("Right", "Down")
    tmux("send-keys", "-l", RECIPE)
    tmux.see("‹ smoke ›", "this direc", "5 steps")
    tmux.press("F8")
    tmux.see("smoke of", f"{shell.checkout}/recipes/{RECIPE[:12]}", "develbooster")
    tmux.press("s")
    tmux.see("Where are runs to be kept?", "$SCRATCH")
    tmux.press("1")
    tmux.see("Submit?", "y  submit")
    tmux.press("y")
    tmux.see("✓ Completed", "✓ completed", limit_s=200)
    assert len(tmux.pressed) <= MOST_KEYS, tmux.pressed
    _check_run(shell, before)


def test_submit_from_nothing_to_a_completed_smoke_run(shell: JscShell) -> None:
    before = shell.files_of_home()
    shell("distill-tui", "detect")
    shell("distill-tui", "check", RECIPE)
    shell("distill-tui", "settings", "storage.runs", str(shell.runs))
    printed = shell("distill-tui", "submit", RECIPE, "--smoke", "--time", "30m", "--json").stdout
    shell("distill-tui", "watch", "--plain", json.loads(printed)["run"])
    _check_run(shell, before)


def test_the_guide_shows_what_the_commands_print(shell: JscShell) -> None:
    runner = Runner(shell)
    commands = shown_commands(GUIDE.read_text(encoding="utf-8"))
    assert len(commands) >= 12
    for shown in commands:
        printed = runner(shown.command)
        assert sorted(shape(printed)) == sorted(shape(shown.output)), (shown.command, printed)


def _check_run(shell: JscShell, before: dict[str, int]) -> None:
    """Check that the only run is complete, and where everything was written."""
    listed = json.loads(shell("distill-tui", "runs", "--json").stdout)["runs"]
    (run,) = listed
    assert (run["state"], run["kind"]) == ("completed", "smoke")
    directory = shell.runs / run["run"]
    state = json.loads(shell("distill-tui", "watch", "--once", "--json", str(directory)).stdout)
    assert {item["id"] for item in state["milestones"]} == set(MILESTONES)
    assert (state["metrics"]["step"], state["metrics"]["max_steps"], state["findings"]) == (5, 5, [])
    spec = json.loads(shell("cat", str(directory / "run.json")).stdout)
    assert (spec["nodes"], spec["slurm"]["partition"]) == (1, "develbooster")
    plan = json.loads(shell("cat", str(directory / "plan.json")).stdout)
    passed = ("HF_HOME", "UV_CACHE_DIR", "NEMO_RL_VENV_DIR", "LD_LIBRARY_PATH", "LOADEDMODULES")
    assert {name: plan["env"][name] for name in passed} == {name: shell.variables[name] for name in passed}
    written = {name: size for name, size in shell.files_of_home().items() if name not in before}
    assert {name for name in written if not name.startswith(SETTINGS)} == set()
    assert sum(written.values()) < 10_000
    assert ray_processes(shell.cluster) == {}
