"""The wizard on a screen, by keyboard alone; Slurm's commands are scripts on PATH."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from launcher.runs import load
from launcher.storage.wizard_drafts import RunDrafts
from launcher.transports.local import LocalTransport
from tests.tui.fakeslurm import LoginNode
from tests.tui.pilot import NARROW, WIDE, Screen, shown
from tui.screens.home import HomeScreen
from tui.screens.monitor import MonitorScreen
from tui.screens.wizard.model import WizardState, fields_of
from tui.screens.wizard.poller import DraftResolved
from tui.screens.wizard.screen import WizardScreen
from tui.widgets.form import FieldRow

NEXT, BACK = "pagedown", "escape"


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginNode:
    one = LoginNode.at(tmp_path / "node")
    for name in ("HF_HOME", "HF_HUB_CACHE", "SYSTEMNAME", "SLURM_CONF", "HF_TOKEN", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in one.environment.items():
        monkeypatch.setenv(name, value)
    return one


@asynccontextmanager
async def wizard(node: LoginNode, size: tuple[int, int] = NARROW, **texts: str) -> AsyncIterator[Screen]:
    state = WizardState({"recipe": str(node.recipe), **texts})
    async with shown(node.runs, size, wizard_state=state) as screen:
        await screen.see("1 Cluster", "booster", "distill")
        yield screen


def page(screen: Screen) -> WizardScreen:
    one = screen.app.screen
    assert isinstance(one, WizardScreen)
    return one


async def on_review(screen: Screen) -> None:
    while page(screen).step.id != "review":
        await screen.press(NEXT)
    await screen.until(lambda: page(screen).status.settled, "everything is looked at")
    await screen.pilot.pause()


async def to_step(screen: Screen, step: str) -> None:
    """Go on to a step."""
    while page(screen).step.id != step:
        before = page(screen).step.id
        await screen.press(NEXT)
        assert page(screen).step.id != before


async def retype(screen: Screen, field: str, text: str) -> None:
    """Type something else into a field of the step that is shown."""
    next(row for row in page(screen).form.rows if row.item.name == field).entry.focus()
    await screen.pilot.pause()
    await screen.press("ctrl+u")
    await screen.type(text)


def runs(node: LoginNode) -> list[Any]:
    return [load(LocalTransport(), str(path)) for path in sorted(node.runs.glob("2*"))]


@pytest.mark.long
async def test_where_runs_are_kept_is_asked_once_before_the_first_submission(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISTILL_TUI_RUNS")
    monkeypatch.setenv("XDG_STATE_HOME", str(node.root / "state"))
    scratch = node.root.parent / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("SCRATCH", str(scratch))
    state = WizardState({"recipe": str(node.recipe), "kind": "smoke", "time": "30m"})
    async with shown(node.root / "state" / "distill-tui" / "runs", wizard_state=state) as screen:
        await screen.see("1 Cluster", "booster", "distill")
        await on_review(screen)
        await screen.press("s")
        await screen.see(
            "Where are runs to be kept?", "which is in your home", "$SCRATCH/carla/distill-tui/runs"
        )
        await screen.press("1")
        await screen.see("Submit?")
        await screen.press("y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        root = scratch / "carla" / "distill-tui" / "runs"
        assert len(list(root.glob("2*"))) == 1
        assert not (node.root / "state").exists()
        settings = (node.root / "config" / "distill-tui" / "settings.toml").read_text()
        assert f'runs = "{root}"' in settings
        await screen.press("escape")
        await screen.see("1 run in", "recipe")


@pytest.mark.long
async def test_from_the_list_to_the_monitor(node: LoginNode) -> None:
    (node.root / "r.yaml").symlink_to(node.recipe)
    async with shown(node.runs) as screen:
        await screen.see("No runs yet.", "a new run, step by step")
        await screen.press("n")
        await screen.see("1 Cluster", "‹ booster ›", "4 a100 40 GiB", "closed", "down")
        await screen.press("right")
        await screen.see("‹ devel ›", "2 node-h")
        await screen.press(NEXT)
        await screen.see("‹ training ›", "qwen3-1.7b-from-4b.yaml", "28 layers", "36 layers")
        await retype(screen, "recipe", "~/r.yaml")
        await screen.see("12 layers", "vocabulary 1,000", "✓ the same")
        await screen.press(NEXT)
        await screen.see("Student TP", "2 copies of TP 2", "values", "1  [2]  4")
        await retype(screen, "policy_tp", "4")
        await screen.see("student", "1 copy of TP 4", "● Student TP")
        await to_step(screen, "job")
        await screen.see("Nodes", "02:00:00", "devel", "at most 2 nodes and 02:00:00 per job")
        await retype(screen, "time", "30")
        await screen.see("0.5 node-h", "2 GPU-h", "24 core-h")
        await on_review(screen)
        await screen.see("training of", "1 node × 4 GPUs of devel for 00:30:00, charged to distill")
        await screen.see("no failure predicted", "press t to ask Slurm")
        page(screen).facts_box.scroll_end(animate=False)
        await screen.see("--partition=devel", "--time=00:30:00", "--gres=gpu:4")
        assert runs(node) == []
        await screen.press("s")
        await screen.see("Submit?", "charged to")
        await screen.press("y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        await screen.see("1 node × 4 GPUs")
        (run,) = runs(node)
        assert run.jobs[0].id == "4711"
        assert "++policy.dtensor_cfg.tensor_parallel_size=4" in run.spec.recipe.overrides
        (asked,) = node.asked("sbatch")
        assert "--partition=devel --account=distill --nodes=1" in asked
        await screen.press("b")
        assert isinstance(screen.app.screen, HomeScreen)


@pytest.mark.slow
async def test_nothing_typed_is_lost_by_going_back(node: LoginNode) -> None:
    async with shown(node.runs) as screen:
        await screen.press("n")
        await screen.see("booster")
        await to_step(screen, "job")
        await retype(screen, "nodes", "3")
        await screen.press(*[BACK] * 5)
        assert page(screen).step.id == "cluster"
        await screen.press(BACK)
        await screen.see("No runs yet")
        await screen.press("n")
        await screen.see("There is a draft of a run.")
        await screen.press("g")
        await screen.see("booster")
        await to_step(screen, "job")
        await screen.see("booster", "Nodes")
        assert page(screen).wizard_state.texts == {"nodes": "3"}
        await screen.press("tab", "tab", "end", "q")  # in a field of text q is a letter
        assert page(screen).wizard_state.texts["time"].endswith("q")
        await screen.press("ctrl+c")  # nothing is lost: the draft is on disk
        await screen.until(lambda: not screen.app.is_running, "the end")
    (draft,) = RunDrafts.of().offered()
    assert WizardState.from_json(draft.state).texts["nodes"] == "3"
    assert draft.step == "job"


@pytest.mark.slow
async def test_letters_that_are_typed_fast_are_all_there(node: LoginNode) -> None:
    async with wizard(node) as screen:
        await screen.press(NEXT)
        await retype(screen, "student", "Qwen/Qwen3-1.7B")
        await screen.see("1.7B parameters")
        assert page(screen).wizard_state.texts["student"] == "Qwen/Qwen3-1.7B"
        await screen.see("has a vocabulary of 151936")


@pytest.mark.slow
async def test_steps_that_are_passed_in_haste_are_laid_out_once(node: LoginNode) -> None:
    async with wizard(node) as screen:
        one = page(screen)
        looked = DraftResolved(one.status)
        await asyncio.gather(
            one.action_next(),
            one.on_draft_resolved(looked),
            one.action_next(),
            one.on_draft_resolved(looked),
        )
        await screen.pilot.pause()
        rows = [row.item.name for row in one.query(FieldRow)]
        assert (
            rows
            == list(one.form.names)
            == [item.name for item in fields_of(one.step, one.wizard_state, one.status)]
        )
        assert rows[0] == "policy_tp"


@pytest.mark.slow
async def test_a_list_of_choices_and_taking_back(node: LoginNode) -> None:
    async with wizard(node) as screen:
        await screen.press("enter")
        await screen.see("Partition", "8 nodes × 4 a100", "closed")
        await screen.press("down", "enter")
        await screen.see("‹ devel ›")
        await screen.press("down", "f2")
        await screen.see("your default")
        await screen.press("escape")
        await screen.press("end", "x")
        await screen.see("distillx", "! may not use devel")
        await screen.press("f4")
        await screen.until(lambda: "account" not in page(screen).wizard_state.texts, "taken back")
        await screen.press("up")
        row = page(screen).form.focused_row
        assert row is not None
        assert row.item.name == "partition"


@pytest.mark.long
async def test_a_failing_check_blocks_until_it_is_fixed_with_a_key(node: LoginNode) -> None:
    async with wizard(node, global_batch="30") as screen:
        await screen.see("✗ C22")
        await on_review(screen)
        await screen.press("s")
        await screen.see("The run would fail", "C22")
        await screen.press("b", "f")
        await screen.see("Apply which fix?", "30 ->")
        await screen.press("1")
        await screen.until(lambda: page(screen).status.settled and page(screen).status.plan, "planned again")
        await screen.see("no failure predicted")
        assert page(screen).wizard_state.texts["global_batch"] != "30"
        assert node.asked("sbatch") == []


@pytest.mark.slow
async def test_a_failing_check_can_be_skipped_by_its_id(node: LoginNode) -> None:
    async with wizard(node, teacher_tp="3") as screen:
        await on_review(screen)
        for name in ("C35", "C37"):
            await screen.press("x")
            await screen.see("Skip which check?", name)
            await screen.press("home" if name == "C35" else "end", "enter")
            await screen.until(lambda name=name: name in page(screen).wizard_state.skipped, name)  # type: ignore[misc]
        await screen.until(lambda: page(screen).status.settled, "looked at again")
        await screen.see("C35 (skipped)")
        await screen.press("s")
        await screen.see("Skipped failing checks: C35, C37")
        await screen.press("y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        assert [item.id for item in runs(node)[0].spec.skipped_checks] == ["C35", "C37"]


@pytest.mark.slow
async def test_memory_that_does_not_fit_is_asked_about(node: LoginNode) -> None:
    (node.root / "config" / "distill-tui" / "site.toml").write_text("[gpu_memory_gib]\na100 = 2\n")
    async with wizard(node) as screen:
        await screen.see("✗ does not fit")
        await on_review(screen)
        await screen.press("s")
        await screen.see("GPU memory may not be sufficient", "student-train needs")
        await screen.press("enter")  # "cancel" is chosen
        assert runs(node) == []
        await screen.press("s", "y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")


@pytest.mark.parametrize(
    ("message", "what", "do"),
    [
        ("Batch job submission failed: Requested time limit is invalid", "Requested time limit", "shorter"),
        ("Batch job submission failed: Invalid account or account/partition combination specified",
         "Invalid account", "account that may use"),
    ],
)  # fmt: skip
@pytest.mark.slow
async def test_a_refusal_is_told_in_slurms_words_and_keeps_what_was_typed(
    node: LoginNode, message: str, what: str, do: str
) -> None:
    node.refuses(message)
    async with wizard(node, time="9:00") as screen:
        await on_review(screen)
        await screen.press("t")
        await screen.see("starts", what)
        await screen.press("s", "y")
        await screen.see("Error", f"Slurm refused: {what}", do)
        (run,) = runs(node)
        assert what in run.jobs[0].refused
        await screen.press("enter")
        node.takes("4712")
        assert page(screen).wizard_state.texts["time"] == "9:00"
        await screen.until(lambda: page(screen).status.settled, "planned again")
        await screen.press("s", "y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        first, second = runs(node)
        assert first.spec.id != second.spec.id
        assert second.jobs[0].id == "4712"


@pytest.mark.slow
async def test_a_job_that_was_taken_although_the_answer_was_lost_is_found_and_watched(
    node: LoginNode,
) -> None:
    node.answer(
        "sbatch",
        "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller' >&2; exit 1",
    )
    node.answer("squeue", "true")
    async with wizard(node) as screen:
        await on_review(screen)
        await screen.press("s", "y")
        await screen.see("Submission unclear", "Do not submit again", "watch the run", limit_s=30)
        (run,) = runs(node)
        token = run.jobs[0].token
        assert token
        assert not run.jobs[0].refused
        node.answer("squeue", f"echo '4713|PENDING|1795829893|N/A|N/A||Priority|{token}'")
        await screen.press("w")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        await screen.until(lambda: runs(node)[0].jobs[0].id == "4713", "the job's number", limit_s=60)
        await screen.see("queued", limit_s=30)
        assert len(node.asked("sbatch")) == 1


@pytest.mark.slow
async def test_when_it_would_start(node: LoginNode) -> None:
    async with wizard(node) as screen:
        await on_review(screen)
        await screen.press("t")
        await screen.see("at 2030-01-01 08:00:00")
        assert runs(node) == []


@pytest.mark.slow
async def test_what_is_missing_is_named(node: LoginNode) -> None:
    async with wizard(node, checkout="/nowhere") as screen:
        await on_review(screen)
        await screen.see("Cannot be submitted yet", "not a NeMo-RL checkout")
        await screen.press("s")
        await screen.see("NeMo-RL checkout: not a NeMo-RL checkout")
        await screen.press("o", "f3", *[BACK] * 4)
        await screen.see("NeMo-RL checkout", "2 Models ✗")


@pytest.mark.slow
async def test_wide_windows_have_the_facts_beside_the_form(node: LoginNode) -> None:
    async with wizard(node, WIDE) as screen:
        line = next(line for line in screen.text.split("\n") if "Partition" in line)
        assert "site" in line or "partition" in line


@pytest.mark.slow
async def test_a_smaller_window_has_the_same_keys(node: LoginNode) -> None:
    async with wizard(node) as screen:
        await screen.pilot.resize_terminal(60, 15)
        await to_step(screen, "batches")
        await screen.press(*["down"] * 10)
        await screen.see("Steps")
        await on_review(screen)
        await screen.see("Job", "resources")


@pytest.mark.long
async def test_no_slurm_here(node: LoginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(node.root / "bin"))
    for command in ("sinfo", "scontrol", "sacctmgr", "sbatch", "squeue"):
        (node.root / "bin" / command).unlink()
    state = WizardState({"recipe": str(node.recipe)})
    async with shown(node.runs, wizard_state=state) as screen:
        await screen.see("Slurm is not available here", "rehearse on this machine", "continue without Slurm")
        await screen.press("l")
        await on_review(screen)
        await screen.see("Cannot be submitted yet", "no Slurm here")


@pytest.mark.slow
async def test_no_slurm_is_told_again_when_it_is_asked_again(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    async with shown(node.runs, wizard_state=WizardState({"recipe": str(node.recipe)})) as screen:
        await screen.see("Slurm is not available here")
        await screen.press("l", "f5")
        await screen.see("Slurm is not available here")
        await screen.press("b")
        await screen.see("No runs yet")


@pytest.mark.slow
async def test_slurm_is_asked_again_on_a_key(node: LoginNode) -> None:
    async with wizard(node) as screen:
        asked = len(node.asked("sinfo"))
        assert asked == 2
        node.answer(
            "sinfo",
            "case $1 in --version) echo slurm 22.05.8;; *) echo 'fresh*|up|1:00:00|1|gpu:4|8|1|4';; esac",
        )
        await screen.press("f5")
        await screen.see("▸ fresh")
        assert len(node.asked("sinfo")) == asked + 2


@pytest.mark.long
async def test_the_review_shows_what_becomes_of_the_environment(
    node: LoginNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("UV_CACHE_DIR", "relative")
    monkeypatch.setenv("HF_TOKEN", "not-shown")
    async with wizard(node, WIDE) as screen:
        await on_review(screen)
        await screen.see("Environment", "in the key file", "dropped", "UV_CACHE_DIR: not an absolute path")
        await screen.press("e")
        await screen.see("The job's environment", "NCCL_DEBUG", "INFO", "mode 600")
        assert "not-shown" not in screen.text
        await screen.press("escape")
        await screen.see("press t to ask Slurm")


@pytest.mark.long
async def test_page_keys_scroll_in_the_review_and_in_lists_and_help_is_everywhere(node: LoginNode) -> None:
    async with wizard(node, WIDE) as screen:
        await screen.press("f2", "pagedown", "pageup", "pagedown")
        assert page_below(screen).step.id == "cluster"
        await screen.press("f1")
        await screen.see("Help", "Estimate the start")
        await screen.press("escape", "escape")
        assert page(screen).step.id == "cluster"
        await on_review(screen)
        await screen.press("pageup", "pageup", "pagedown")
        assert page(screen).step.id == "review"
        await screen.press("f1")
        await screen.see("Help", "Estimate the start")
        await screen.press("f1", BACK)
        assert page(screen).step.id == "job"


def page_below(screen: Screen) -> WizardScreen:
    """Return the wizard below a dialog."""
    return next(item for item in screen.app.screen_stack if isinstance(item, WizardScreen))
