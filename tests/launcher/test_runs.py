"""Run directories and the jobs of one machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from launcher.clusters.local import JOB_ID_VARIABLE, LocalCluster
from launcher.errors import AmbiguousError, InputError, TransportError
from launcher.job_records import record_job
from launcher.logs.events import JobState
from launcher.monitor.watch_run import summary_of
from launcher.paths import runs_root
from launcher.plan import LaunchPlan, passed_on
from launcher.runs import Damaged, Job, RecipeRef, Run, RunSpec, RunStore, load, new_id
from launcher.transports.local import LocalTransport

NOW = datetime(2026, 11, 28, 2, 0, tzinfo=UTC)


def spec(identity: str = "20261128-020000-demo-ab12") -> RunSpec:
    return RunSpec(
        schema=1,
        id=identity,
        name="demo",
        kind="rehearsal",
        created=NOW,
        user="alice",
        host=LocalTransport().host,
        recipe=RecipeRef(source="/r.yaml"),
        cluster="local",
        nodes=1,
        gpus_per_node=1,
        max_steps=3,
    )


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(LocalTransport(), str(tmp_path / "runs"))


def plan(run: Run, script: str) -> LaunchPlan:
    return LaunchPlan(
        job_id="local-1",
        argv=("bash", "-c", script),
        cwd=run.directory,
        environment={**passed_on(os.environ), JOB_ID_VARIABLE: "local-1"},
        files=(),
        output=str(Path(run.logs, "slurm-local-1.out")),
    )


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} did not appear")


def test_a_run_is_found_again_also_when_moved(store: RunStore, tmp_path: Path) -> None:
    made = store.create(spec(), {"recipe.yaml": b"a: 1\n", "ray_bare.sub": b"#!/bin/bash\n"})
    (found,) = store.list()
    assert isinstance(found, Run)
    assert found.spec == made.spec
    assert (Path(made.directory) / "ray_bare.sub").stat().st_mode & 0o777 == 0o755
    moved = shutil.move(made.directory, tmp_path / "elsewhere")
    assert load(store.transport, str(moved)).logs == str(tmp_path / "elsewhere" / "logs")


def test_finding_by_part_of_the_name(store: RunStore) -> None:
    for identity in ("20261128-020000-demo-ab12", "20261128-030000-demo-cd34"):
        store.create(spec(identity), {})
    assert store.find("cd34").spec.id == "20261128-030000-demo-cd34"
    with pytest.raises(InputError, match="could be 20261128-030000-demo-cd34, 20261128-020000"):
        store.find("demo")
    with pytest.raises(InputError, match="no run 'zz'"):
        store.find("zz")


def test_a_number_is_the_id_of_a_job_first_and_a_name_only_in_full(store: RunStore) -> None:
    submitted = datetime(2026, 11, 28, tzinfo=UTC)
    one = store.create(spec("20261114-020000-demo-ab14"), {})
    other = store.create(spec("14"), {})
    with_job = store.create(spec("20261128-030000-demo-cd34"), {})
    assert store.find("14").spec.id == "14"
    for number in ("1", "20261114", "4"):  # parts of names
        with pytest.raises(InputError, match=f"no run '{number}'"):
            store.find(number)
    record_job(store.transport, with_job, Job(id="14", submitted=submitted))
    assert store.find("14").spec.id == with_job.spec.id
    record_job(store.transport, other, Job(id="14_2", submitted=submitted))
    assert store.find("14_2").spec.id == "14"
    record_job(store.transport, one, Job(id="14", submitted=submitted))
    with pytest.raises(AmbiguousError, match=r"cd34 \(job 14 of .*ab14 \(job 14 of"):
        store.find("14")


def test_damaged_directories_are_listed_with_the_reason(store: RunStore) -> None:
    run = store.create(spec(), {})
    Path(run.directory, "run.json").write_text('{"schema": 1, "id": 5}')
    (Path(store.root) / "not-a-run").mkdir()
    (damaged,) = store.list()
    assert isinstance(damaged, Damaged)
    assert "run.json is damaged" in damaged.problem
    Path(run.directory, "run.json").write_bytes(b"\xff\xfe")
    (damaged,) = store.list()
    assert isinstance(damaged, Damaged)


def test_a_run_of_a_newer_version_is_not_guessed_at(store: RunStore) -> None:
    run = store.create(spec(), {})
    path = Path(run.directory, "run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 2}))
    with pytest.raises(InputError, match="damaged: schema"):
        load(store.transport, run.directory)


def test_nothing_half_made_stays(store: RunStore) -> None:
    with pytest.raises(TransportError):
        store.create(spec(), {"recipe.yaml": b"a", "recipe.yaml/x": b"b"})
    assert os.listdir(store.root) == []


def test_an_unwritable_root_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = RunStore(LocalTransport(), str(tmp_path / "file" / "runs"))
    with pytest.raises(TransportError, match=r"runs cannot be kept in .*: Not a directory"):
        blocked.create(spec(), {})


def test_identifiers_sort_by_time_and_are_fit_for_file_names() -> None:
    assert new_id("Qwen/Qwen3 1.7B: β", NOW).startswith("20261128-020000-qwen-qwen3-1-7b-")
    assert new_id("///", NOW).startswith("20261128-020000-run-")


def test_where_runs_are_kept() -> None:
    assert runs_root({"DISTILL_TUI_RUNS": "/r"}) == Path("/r")
    assert runs_root({"XDG_STATE_HOME": "/s"}) == Path("/s/distill-tui/runs")


def test_a_job_runs_outlives_us_and_is_cancelled_with_its_script_cleaning_up(store: RunStore) -> None:
    cluster = LocalCluster(store.transport)
    run = store.create(spec(), {})
    script = "trap 'echo cleaned > cleaned; exit 143' TERM; echo $$ > ready; while :; do sleep 0.05; done"
    run = cluster.submit(run, plan(run, script))
    assert run.job is not None
    assert run.job.process is not None
    pid = int(wait_for(Path(run.directory, "ready")))
    assert pid == run.job.process.pid
    assert os.getsid(pid) == pid
    state = cluster.state(run, run.job)
    assert state is not None
    assert state.state is JobState.RUNNING
    reloaded = load(store.transport, run.directory)
    assert reloaded.job == run.job
    run = cluster.cancel(reloaded, run.job)
    assert Path(run.directory, "cleaned").exists()
    assert run.job is not None
    state = cluster.state(run, run.job)
    assert state is not None
    assert state.state is JobState.CANCELLED
    assert summary_of(store.transport, run)["state"] == "cancelled"


def test_a_job_whose_record_was_lost_is_found_by_its_id(store: RunStore) -> None:
    cluster = LocalCluster(store.transport)
    run = store.create(spec(), {})
    run = cluster.submit(run, plan(run, "echo $$ > ready; sleep 30 & wait"))
    wait_for(Path(run.directory, "ready"))
    assert run.job is not None
    run = record_job(store.transport, run, Job(id="local-1", submitted=NOW))
    assert run.job is not None
    assert run.job.process is None
    state = cluster.state(run, run.job)
    assert state is not None
    assert state.state is JobState.RUNNING
    cluster.cancel(run, run.job)
    assert store.transport.find_process(f"{JOB_ID_VARIABLE}=local-1") is None or _only_sleep_is_left()


def _only_sleep_is_left() -> bool:
    """End the `sleep` that bash's own death leaves behind."""
    process = LocalTransport().find_process(f"{JOB_ID_VARIABLE}=local-1")
    assert process is not None
    assert Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n"
    return LocalTransport().signal(process, signal.SIGTERM)


def test_a_job_that_was_killed_is_over_not_running(store: RunStore) -> None:
    cluster = LocalCluster(store.transport)
    run = store.create(spec(), {})
    run = cluster.submit(run, plan(run, "echo $$ > ready; while :; do sleep 0.05; done"))
    os.kill(int(wait_for(Path(run.directory, "ready"))), signal.SIGKILL)
    assert run.job is not None
    deadline = time.monotonic() + 5
    while (
        (state := cluster.state(run, run.job)) is not None and not state.over and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    assert state is not None
    assert state.over
    assert "no last line" in state.reason


def test_another_process_with_the_same_number_is_not_touched(store: RunStore) -> None:
    bystander = subprocess.Popen(["sleep", "30"])
    try:
        run = store.create(spec(), {})
        process = {"host": LocalTransport().host, "boot": "another boot", "pid": bystander.pid, "started": 1}
        job = Job.model_validate({"id": "local-9", "submitted": NOW, "process": process})
        LocalCluster(store.transport).cancel(run, job)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_jobs_of_another_machine_are_not_judged(store: RunStore) -> None:
    run = store.create(spec().model_copy(update={"host": "far"}), {})
    process = {"host": "far", "boot": "b", "pid": 1, "started": 1}
    job = Job.model_validate({"id": "local-9", "submitted": NOW, "process": process})
    assert LocalCluster(store.transport).state(run, job) is None


def test_only_named_variables_reach_a_job() -> None:
    given = {
        "HOME": "/h",
        "PATH": "/b",
        "VIRTUAL_ENV": "/v",
        "HF_TOKEN": "x",
        "SLURM_JOB_ID": "1",
        "RAY_ADDRESS": "y",
    }
    assert passed_on(given) == {"HOME": "/h", "PATH": "/b"}
