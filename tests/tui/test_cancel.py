"""Stopping runs from the app: the question, the waiting, the end; and the demo's own rules."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from launcher.clusters.local import JOB_ID_VARIABLE, LocalCluster
from launcher.errors import InputError
from launcher.plan import LaunchPlan, passed_on
from launcher.runs import Run, load
from launcher.transports.local import LocalTransport
from tests.tui.pilot import shown
from tests.tui.replay import Replay, make_run
from tui.demo_run import DemoStart
from tui.widgets.paged_options import PagedOptions

CALM = "trap 'sleep 0.5; exit 143' TERM; while :; do sleep 0.05; done"
"""A job that takes its time to stop, as the launcher does."""


@dataclass
class Jobs:
    """Real processes as jobs; whatever is left is ended."""

    root: Path
    runs: list[Run] = field(default_factory=list)

    def start(self, script: str = CALM) -> Run:
        run = make_run(self.root, job=False)
        plan = LaunchPlan(
            job_id="local-ab12",
            argv=("bash", "-c", script),
            cwd=run.directory,
            environment={**passed_on(os.environ), JOB_ID_VARIABLE: "local-ab12"},
            files=(),
            output=str(Path(run.logs, "slurm-local-ab12.out")),
        )
        run = LocalCluster(LocalTransport()).submit(run, plan)
        self.runs.append(run)
        replay = Replay(run)
        replay.start()
        replay.drive("train_data_step12")
        return run

    def pid(self) -> int:
        job = self.runs[-1].job
        assert job is not None
        assert job.process is not None
        return job.process.pid

    def alive(self) -> bool:
        job = self.runs[-1].job
        assert job is not None
        assert job.process is not None
        return bool(LocalTransport().alive(job.process.identity()))

    async def still_alive(self) -> bool:
        """Ask from a thread, as long as nothing may block the loop."""
        return await asyncio.to_thread(self.alive)

    def end(self) -> None:
        for run in self.runs:
            if run.job is not None and run.job.process is not None:
                LocalTransport().signal(run.job.process.identity(), signal.SIGKILL)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    jobs = Jobs(tmp_path)
    yield jobs
    jobs.end()


@pytest.mark.long
async def test_cancel_from_the_monitor(tmp_path: Path, jobs: Jobs) -> None:
    jobs.start()
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("● running", "step 11/20", "c cancel")
        await screen.press("c")
        await screen.see("Cancel this run?", "the last checkpoint is of step 10: 1 step would")
        await screen.press("n")
        await screen.see("● running")
        assert await jobs.still_alive()
        await screen.press("c", "y")
        await screen.see("stopping …")
        await screen.see("⊘ cancelled", "run cancelled (cancelled by you)")
        assert not await jobs.still_alive()
        assert "c cancel" not in screen.text
        await screen.press("b")
        await screen.see("⊘ cancelled")


async def test_cancel_from_the_list(tmp_path: Path, jobs: Jobs) -> None:
    jobs.start()
    async with shown(tmp_path) as screen:
        await screen.see("● running")
        await screen.press("c", "escape")
        assert await jobs.still_alive()
        await screen.press("c")
        await screen.until(lambda: isinstance(screen.app.focused, PagedOptions), "the answers have the focus")
        await screen.press("up", "enter")
        await screen.see("⊘ cancelled", "cancelled by you")
        assert not await jobs.still_alive()


@pytest.mark.long
async def test_a_run_that_does_not_stop_is_told(
    tmp_path: Path, jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launcher.clusters.local.STOP_WITHIN_S", 0.3)
    jobs.start("trap '' TERM; while :; do sleep 0.05; done")
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("● running")
        await screen.press("c", "y")
        await screen.see("Error", "the run did not stop within")
        await screen.press("enter")
        await screen.see("c cancel")


@pytest.mark.long
async def test_quitting_leaves_runs_alone(tmp_path: Path, jobs: Jobs) -> None:
    jobs.start()
    for key in ("q", "ctrl+c", "ctrl+q"):
        async with shown(tmp_path, open_run="demo") as screen:
            await screen.see("● running")
            await screen.press(key)
            await screen.until(lambda: not screen.app.is_running, "the app has ended")
        assert await jobs.still_alive()


async def test_ctrl_c_in_the_demo_stops_its_run(tmp_path: Path, jobs: Jobs) -> None:
    async with shown(tmp_path, demo=DemoStart(jobs.start)) as screen:
        await screen.see("● running", "step 11/20")
        await screen.press("ctrl+c")
        await screen.see("stopping …")
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.app.is_running, "the app has ended")
    assert not jobs.alive()
    assert screen.app.return_code == 0


async def test_ctrl_c_while_the_demo_is_starting(tmp_path: Path, jobs: Jobs) -> None:
    def slowly() -> Run:
        time.sleep(1)
        return jobs.start()

    async with shown(tmp_path, demo=DemoStart(slowly)) as screen:
        await screen.see("starting the demo …")
        await screen.press("ctrl+c")
        await screen.until(lambda: not screen.app.is_running, "the app has ended")
    assert jobs.runs
    assert not jobs.alive()


@pytest.mark.long
async def test_q_in_the_demo_asks(tmp_path: Path, jobs: Jobs) -> None:
    async with shown(tmp_path, demo=DemoStart(jobs.start)) as screen:
        await screen.see("● running")
        await screen.press("q", "n")
        await screen.see("● running")
        await screen.press("q")
        await screen.see("Quit the demo?", "leave it running", "stop it and quit")
        await screen.press("l")
        await screen.until(lambda: not screen.app.is_running, "the app has ended")
    assert jobs.alive()
    async with shown(
        tmp_path
    ) as screen:  # opening the app again shows it, and it can be cancelled from there
        await screen.see("● running")
        await screen.press("c", "y")
        await screen.see("⊘ cancelled")
    assert not jobs.alive()


async def test_q_in_the_demo_after_its_end_quits(tmp_path: Path, jobs: Jobs) -> None:
    async with shown(tmp_path, demo=DemoStart(jobs.start)) as screen:
        await screen.see("● running")
        os.kill(jobs.pid(), signal.SIGKILL)
        await screen.see("✗ failed", "the launcher is gone")
        await screen.press("q")
        await screen.until(lambda: not screen.app.is_running, "the app has ended")


async def test_a_demo_that_cannot_start(tmp_path: Path) -> None:
    def fails() -> Run:
        raise InputError("Ray is not installed [bold]", where="/venv", fix="Install it.")

    async with shown(tmp_path, demo=DemoStart(fails)) as screen:
        await screen.see("Error", "Ray is not installed [bold]", "in /venv", "Install it.")
        await screen.press("enter")
        await screen.see("No runs yet.")
        await screen.press("q")
        await screen.until(lambda: not screen.app.is_running, "the app has ended")


async def test_a_cancelled_run_is_recorded(tmp_path: Path, jobs: Jobs) -> None:
    run = jobs.start()
    async with shown(tmp_path, open_run="demo") as screen:
        await screen.see("● running")
        await screen.press("c", "y")
        await screen.see("⊘ cancelled")
    job = load(LocalTransport(), run.directory).job
    assert job is not None
    assert job.cancel_requested is not None
