"""Resumption by key: one question with its cost, and another one where the run is not only the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import LaunchError
from launcher.plan import LaunchPlan
from launcher.request import Cost
from launcher.runs import Run, SlurmRequest
from launcher.submit import resume
from launcher.submit.resume import ResumePlan
from tests.tui.pilot import NARROW, shown
from tests.tui.replay import Replay, make_run
from tui.machines import LocalMachine
from tui.screens.home import HomeScreen
from tui.screens.monitor import MonitorScreen
from tui.screens.resuming import (
    ask_to_resume,
    ask_to_resume_several,
    resumption_in_words,
    resumptions_in_words,
)


class Submissions:
    """A cluster that takes jobs, and keeps which."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, ...]] = []

    def submit(self, run: Run, plan: LaunchPlan) -> Run:
        self.taken.append(plan.argv)
        return run


@pytest.fixture
def submissions(monkeypatch: pytest.MonkeyPatch) -> Submissions:
    """Slurm, as far as a resumption uses it: the plan is laid out, the job is taken."""
    taken = Submissions()
    monkeypatch.setattr(resume, "lay_out_resume", lambda run, store: plan_of(run))
    monkeypatch.setattr(resume, "cluster_of", lambda run, transport: taken)
    return taken


def plan_of(run: Run) -> ResumePlan:
    plan = LaunchPlan("41", ("sbatch", "job.sh"), run.directory, {}, (), "out")
    request = SlurmRequest(partition="devel", account="a", time_s=3600)
    return ResumePlan(run, plan, request, Cost.of(2, 4, 3600), "stopped", "", 12, 10, 50, ())


def ended(root: Path) -> Path:
    replay = Replay(make_run(root, host="elsewhere"))
    replay.start()
    replay.drive("train_data_step12")
    replay.finish(0)
    return Path(replay.run.directory)


def test_a_resumption_in_words(tmp_path: Path) -> None:
    words = resumption_in_words(plan_of(make_run(tmp_path)))
    assert "from the checkpoint of step 10 of 50 (step 12 was reached)" in words
    assert "At most 8.0 GPU hours." in words


@pytest.mark.long
async def test_a_run_that_others_can_write_is_resumed_only_on_the_users_word(
    tmp_path: Path, submissions: Submissions
) -> None:
    directory = ended(tmp_path)
    directory.chmod(0o777)
    async with shown(tmp_path, NARROW, open_run="demo") as screen:
        await screen.see("Ray head up")
        ask_to_resume(screen.monitor, str(directory))
        await screen.see("Resume this run?", "step 10 of 50", "8.0 GPU hours")
        await screen.press("y")
        await screen.see("Not only yours", "by everybody", "sbatch job.sh")
        await screen.press("n")
        await screen.see("Error", "not done")
        await screen.press("o")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        assert submissions.taken == []
        ask_to_resume(screen.monitor, str(directory), reason="it saved", new_run=lambda: None)
        await screen.see("Resume this run?", "it saved", "a new run with its settings")
        await screen.press("r")
        await screen.see("Not only yours")
        await screen.press("y")
        await screen.until(lambda: submissions.taken == [("sbatch", "job.sh")], "the job")
        await screen.see("Ray head up")


async def test_where_a_run_cannot_be_resumed_a_new_one_is_offered(
    tmp_path: Path, submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(run: Run, store: object) -> ResumePlan:
        raise LaunchError("all of its 50 steps are done")

    monkeypatch.setattr(resume, "lay_out_resume", refuse)
    directory = ended(tmp_path)
    new: list[bool] = []
    async with shown(tmp_path, NARROW, open_run="demo") as screen:
        await screen.see("Ray head up")
        ask_to_resume(screen.monitor, str(directory), new_run=lambda: new.append(True))
        await screen.see("cannot be resumed", "all of its 50 steps are done")
        await screen.press("n")
        await screen.until(lambda: new == [True], "a new run")
        await screen.until(lambda: isinstance(screen.app.screen, MonitorScreen), "the monitor")
        ask_to_resume(screen.monitor, str(directory))
        await screen.see("Error", "all of its 50 steps are done")
    assert submissions.taken == []


def test_several_resumptions_in_words(tmp_path: Path) -> None:
    plans = [
        plan_of(make_run(tmp_path, identity=f"20261128-02000{number}-x-000{number}")) for number in range(8)
    ]
    words = resumptions_in_words(plans, ["x is finished"], left_out=2)
    assert words.count("from the checkpoint of step 10 of 50") == 6
    assert "and 2 more" in words
    assert "At most 64.0 GPU hours together." in words
    assert "Not resumed: x is finished." in words
    assert "Not resumed: 2 further rows without a run that can be resumed." in words


async def test_several_runs_are_resumed_after_one_question(
    tmp_path: Path, submissions: Submissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(tmp_path, host="elsewhere", identity=f"20261128-02000{n}-x-000{n}") for n in range(3)]

    def lay_out(run: Run, store: object) -> ResumePlan:
        if run.spec.id.endswith("2"):
            raise LaunchError("all of its 50 steps are done")
        return plan_of(run)

    monkeypatch.setattr(resume, "lay_out_resume", lay_out)
    async with shown(tmp_path, NARROW) as screen:
        await screen.see("3 runs in")
        home = screen.app.screen
        assert isinstance(home, HomeScreen)
        ask_to_resume_several(home, [(run.directory, LocalMachine()) for run in runs])
        await screen.see("Resume 2 runs?", "16.0 GPU hours together", "Not resumed: all of its 50 steps")
        await screen.press("y")
        await screen.until(lambda: len(submissions.taken) == 2, "two jobs")
        await screen.see("resumed: ")
