"""A run that ended is prepared anew, with what the advice on its failure changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from launcher.logs.events import FindingSeen, Role, Source
from launcher.logs.signatures import SuggestedEdit, catalogue
from launcher.runs import RecipeRef, RequestRecord, Run, RunSpec, SlurmRequest
from tests.driver_text import DriverText
from tests.tui.fakeslurm import LoginNode
from tests.tui.test_wizard import node, on_review, page, runs, wizard  # noqa: F401 - a fixture among them
from tui.screens.monitor import MonitorScreen
from tui.screens.wizard.from_run import remedies, variable_remedies, wizard_state_of
from tui.screens.wizard.screen import WizardScreen

FAILURE = (
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
    "[NRL_PHASE][2026-11-28T10:00:00+0000][+9s] driver exited (exit_code=1)\n"
    "[NRL_PHASE][2026-11-28T10:00:09+0000][+9s] ray_bare.sub exiting (exit_code=1)\n",
)


def test_remedies_are_what_the_cause_s_advice_names_a_value_for() -> None:
    cause = FindingSeen(
        "x", "X", "fatal", "x", Source("d", Role.DRIVER, 1), root=True,
        edits=(SuggestedEdit("policy.a", True), SuggestedEdit("policy.b", how="lower"),
               SuggestedEdit("policy.c", "val:accuracy")),
    )  # fmt: skip
    other = replace(cause, root=False, edits=(SuggestedEdit("policy.d", 1),))
    assert remedies([other, cause]) == ("++policy.a=true", "++policy.c='val:accuracy'")


def test_variables_that_the_advice_sets_are_passed_in_place_of_the_earlier_ones() -> None:
    cause = FindingSeen("cudnn-status", "X", "fatal", "x", Source("d", Role.DRIVER, 1), root=True)
    assert variable_remedies([replace(cause, root=False), cause]) == ("NVTE_FUSED_ATTN=0",)
    assert variable_remedies([replace(cause, id="python-error")]) == ()
    for signature in catalogue().signatures.values():
        for name, value in signature.set_variables:
            assert f"{name}={value}" in signature.advice.fix
    spec = RunSpec(
        id="i", name="n", kind="smoke", created=datetime.now(UTC), user="u", host="h", cluster="slurm",
        nodes=1, gpus_per_node=4, schema=1, recipe=RecipeRef(source="/p/r.yaml"),
        request=RequestRecord(env=("NVTE_FUSED_ATTN=1", "A=b c")),
    )  # fmt: skip
    state = wizard_state_of(Run("/runs/i", spec, ()), variables=("NVTE_FUSED_ATTN=0",))
    assert state.texts["env"] == "'A=b c' NVTE_FUSED_ATTN=0"


def test_a_draft_says_what_was_chosen_and_not_what_the_submission_added() -> None:
    overrides = ("policy.lr=1e-5", "++cluster.num_nodes=2", "++cluster.gpus_per_node=4")
    smoke = ("++distillation.max_num_steps=5", "++logger.wandb_enabled=false")
    spec = RunSpec(
        id="i", name="n", kind="smoke", created=datetime.now(UTC), user="u", host="h", cluster="slurm",
        nodes=2, gpus_per_node=4, checkout="/p/nemo-rl", schema=1,
        recipe=RecipeRef(source="/p/r.yaml", overrides=(*overrides, *smoke)),
        slurm=SlurmRequest(partition="booster", account="a", time_s=5400, chain=3),
    )  # fmt: skip
    state = wizard_state_of(Run("/runs/i", spec, ()), ("++policy.a=true",))
    assert state.texts == {
        "kind": "smoke", "recipe": "/p/r.yaml", "nodes": "2", "checkout": "/p/nemo-rl",
        "partition": "booster", "account": "a", "time": "01:30:00", "chain": "3",
    }  # fmt: skip
    assert state.overrides == ("policy.lr=1e-5", "++policy.a=true")


def fail(logs: Path) -> None:
    """Write the logs of a job that failed."""
    logs.mkdir(parents=True)
    for name, text in zip(("ray-driver.log", "launcher.log"), FAILURE, strict=True):
        (logs / name).write_text(text)


@pytest.mark.slow
async def test_from_a_failed_run_to_the_next_one(node: LoginNode) -> None:  # noqa: F811
    async with wizard(node, time="30", partition="devel") as screen:
        await on_review(screen)
        await screen.press("s", "y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        (run,) = runs(node)
        fail(Path(run.logs, "4711-logs"))
        token = run.jobs[0].token
        node.answer("squeue", f"echo '4711|FAILED|1795829893|1795829893|1795829993|n1|None|{token}'")
        await screen.see("✗ reason: Illegal memory access on the GPU", limit_s=60)
        await screen.press("R")
        await screen.see("Run again", "policy.generation.vllm_cfg.enforce_eager=true")
        await screen.press("w")
        await screen.until(lambda: isinstance(screen.app.screen, WizardScreen), "the wizard")
        await screen.see("‹ devel ›")
        await on_review(screen)
        assert page(screen).wizard_state.texts["time"] == "00:30:00"
        node.takes("4712")
        await screen.press("s", "y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        second = next(item for item in runs(node) if item.spec.id != run.spec.id)
        assert "++policy.generation.vllm_cfg.enforce_eager=true" in second.spec.recipe.overrides
        assert second.spec.slurm == run.spec.slurm
        assert second.jobs[0].id == "4712"


def stop(logs: Path) -> None:
    """Write the log of a driver that saved before its time limit."""
    logs.mkdir(parents=True)
    end = "Timeout has been reached, stopping training early"
    (logs / "ray-driver.log").write_text(DriverText([0.9, 0.8], 50, save_at=(2,), end=end).text())


@pytest.mark.slow
async def test_a_run_that_saved_and_stopped_is_resumed_from_the_monitor(node: LoginNode) -> None:  # noqa: F811
    async with wizard(node, time="30", partition="devel") as screen:
        await on_review(screen)
        await screen.press("s", "y")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        (run,) = runs(node)
        stop(Path(run.logs, "4711-logs"))
        token = run.jobs[0].token
        node.answer("squeue", f"echo '4711|COMPLETED|1795829893|1795829893|1795829993|n1|None|{token}'")
        await screen.see("◐ stopped", "at step 2 of", "distill-tui resume", limit_s=60)
        node.takes("4712")
        await screen.press("R")
        await screen.see("Resume this run?", "resume from its checkpoint")
        await screen.press("r")
        await screen.until(lambda: len(runs(node)[0].jobs) == 2, "the second job")
        assert [job.id for job in runs(node)[0].jobs] == ["4711", "4712"]
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
