"""Going on with a run that ended."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import distill_tui
from launcher.errors import InputError, LaunchError
from launcher.request import SubmitRequest
from launcher.runs import SUMMARY, RecipeRef, Run, RunSpec, load
from launcher.saved_summary import load_summary, save_summary
from launcher.storage.moving import move_run
from launcher.submit.resume import go_on, lay_out_resume
from launcher.submit.submit import send
from recipes.document import Document
from tests.launcher.ordering import Desk
from tui.cli import main


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk.at(tmp_path)


def ended(
    desk: Desk, state: str = "failed", *, step: int = 37, checkpoints: tuple[int, ...] = (20, 30)
) -> Run:
    """Submit the recipe and let it have ended."""
    plan = desk.plan_of(SubmitRequest(desk.recipe, 1, "2:00:00"))
    run = send(plan, desk.store, desk.environment)
    summary = {"schema": 1, "state": state, "reason": "the time limit was reached", "metrics": {"step": step}}
    save_summary(desk.transport, run, summary)
    for number in checkpoints:
        (desk.world.root / "results" / f"step_{number}").mkdir(parents=True)
    return run


def driver_says(run: Run, text: str) -> None:
    log = Path(run.logs, f"{run.jobs[-1].id}-logs", "ray-driver.log")
    log.parent.mkdir()
    log.write_text(text)


@pytest.mark.parametrize("listed_in", ["old", "new"])
def test_a_run_that_was_moved_goes_on_as_long_as_its_link_is_there(
    desk: Desk, tmp_path: Path, listed_in: str
) -> None:
    plan = desk.plan_of(SubmitRequest(desk.recipe, 1, "2:00:00", kind="smoke"))
    run = send(plan, desk.store, desk.environment)
    summary = {"schema": 1, "state": "failed", "reason": "", "metrics": {"step": 2}}
    save_summary(desk.transport, run, summary)
    target = tmp_path / "big"
    target.mkdir()
    assert move_run(desk.store, run, target).problem == ""
    directory = run.directory if listed_in == "old" else str(target / run.spec.id)
    moved = load(desk.transport, directory)
    resumption = lay_out_resume(moved, desk.store)
    assert resumption.changed == ()
    after = go_on(resumption, desk.store)
    assert [job.id for job in load(desk.transport, run.directory).jobs] == ["4711", "4712"]
    assert after.spec.id == run.spec.id
    save_summary(desk.transport, after, summary)
    Path(run.directory).unlink()
    with pytest.raises(InputError, match="this run was moved, or is a copy"):
        lay_out_resume(load(desk.transport, str(target / run.spec.id)), desk.store)


def test_it_goes_on_from_the_last_checkpoint_as_one_more_job_of_the_run(desk: Desk) -> None:
    run = ended(desk)
    resumption = lay_out_resume(run, desk.store)
    assert (resumption.step, resumption.done, resumption.left) == (30, 37, 70)
    assert (resumption.changed, resumption.cost.gpu_hours) == ((), 8.0)
    assert load_summary(desk.transport, run) is not None
    after = go_on(resumption, desk.store)
    assert [(job.id, job.link) for job in load(desk.transport, after.directory).jobs] == [
        ("4711", 1),
        ("4712", 2),
    ]
    assert not Path(run.directory, SUMMARY).exists()
    first, second = (argv for argv in desk.transport.asked if argv[0] == "sbatch")
    token = {text for text in second if text.startswith("--comment=")}
    assert token == {f"--comment=distill-tui {after.jobs[-1].token}"}
    assert set(second) - set(first) - token == {"--dependency=singleton"}
    assert second[-1] == first[-1] == str(Path(run.directory, "job.sh"))


def test_another_time_limit(desk: Desk) -> None:
    resumption = lay_out_resume(ended(desk), desk.store, time_s=5400)
    assert "--time=01:30:00" in resumption.plan.argv
    assert "--time=02:00:00" not in resumption.plan.argv
    assert resumption.cost.node_hours == 1.5


def test_a_recipe_that_has_changed_since_is_told_and_has_no_effect(desk: Desk) -> None:
    run = ended(desk)
    document = Document.open(desk.recipe)
    document.set("loss_fn.kl_type", "forward")
    document.save()
    assert lay_out_resume(run, desk.store).changed == ("loss_fn.kl_type",)
    desk.recipe.unlink()
    assert lay_out_resume(run, desk.store).changed is None


def test_without_a_checkpoint_it_begins_again(desk: Desk) -> None:
    resumption = lay_out_resume(ended(desk, "cancelled", checkpoints=()), desk.store)
    assert (resumption.step, resumption.left) == (None, 100)


def test_a_run_that_has_done_all_steps_is_left_alone(desk: Desk) -> None:
    run = ended(desk, "failed", step=100, checkpoints=(90, 100))
    with pytest.raises(LaunchError, match="all of its 100 steps"):
        lay_out_resume(run, desk.store)


def test_a_driver_that_ended_by_itself_is_finished_unless_its_time_was_over(desk: Desk) -> None:
    run = ended(desk, "completed")
    driver_says(run, "Max number of epochs done\n")
    with pytest.raises(LaunchError, match="is finished"):
        lay_out_resume(run, desk.store)
    Path(run.logs, "4711-logs", "ray-driver.log").write_text(
        "Timeout has been reached, stopping training early\n"
    )
    assert lay_out_resume(run, desk.store).step == 30


def test_a_run_with_a_job_that_is_still_there(desk: Desk) -> None:
    run = send(desk.plan_of(SubmitRequest(desk.recipe, 1, "2:00:00")), desk.store, desk.environment)
    with pytest.raises(LaunchError, match="has not ended"):
        lay_out_resume(run, desk.store)


def test_a_run_that_was_moved(desk: Desk) -> None:
    run = ended(desk)
    Path(run.directory).rename(f"{run.directory}-moved")
    with pytest.raises(InputError, match="was moved"):
        lay_out_resume(load(desk.transport, f"{run.directory}-moved"), desk.store)


@pytest.mark.parametrize(("file", "text"), [("plan.json", "{}"), ("effective.yaml", "a: [")])
def test_damaged_files(desk: Desk, file: str, text: str) -> None:
    run = ended(desk)
    Path(run.directory, file).write_text(text)
    with pytest.raises(InputError, match="damaged"):
        lay_out_resume(run, desk.store)


def test_a_run_of_this_machine(desk: Desk) -> None:
    spec = RunSpec(
        id="r", name="r", kind="rehearsal", created=datetime(2026, 1, 1, tzinfo=UTC), user="u", host="h",
        recipe=RecipeRef(source="x"), cluster="local", nodes=1, gpus_per_node=1, schema=1,
    )  # fmt: skip
    with pytest.raises(InputError, match="on this machine"):
        lay_out_resume(desk.store.create(spec, {}), desk.store)


def test_the_command_tells_what_it_would_do(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ended(desk)
    monkeypatch.setenv("DISTILL_TUI_RUNS", desk.store.root)
    assert main(distill_tui.__version__, ["resume", run.spec.id, "--dry-run", "--json"]) == 0
    out, said = capsys.readouterr()
    printed = json.loads(out)
    assert printed["resumes"] == {"step": 30, "done": 37, "max_steps": 100, "left": 70}
    assert (printed["jobs"], printed["changed"]) == ([], [])
    assert "continues from the checkpoint of step 30 of 100 (reached: step 37)" in said
    assert "8 GPU-hours" in said
    assert main(distill_tui.__version__, ["resume", "nothing-like-it"]) == 2
    assert main(distill_tui.__version__, ["resume", run.spec.id, "--time", "soon"]) == 2
