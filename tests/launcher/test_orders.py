"""Orders about runs: who may give them, what they may do, and that none of them gets lost."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import distill_tui
from launcher.clusters.local import LocalCluster
from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.queue import Queue, Snapshot
from launcher.errors import InputError, LaunchError, TransportError
from launcher.job_records import StopRequestedError, record_job, refreshed, request_stop
from launcher.monitor.watch import watch_directory
from launcher.ownership import ForeignRunError, foreign_reason
from launcher.plan import LaunchPlan
from launcher.request import SubmitRequest
from launcher.runs import Job, JobProcess, Run, RunStore, load
from launcher.saved_summary import save_summary
from launcher.stop_order import stop_run
from launcher.submit.resume import go_on, lay_out_resume
from launcher.submit.submit import send
from launcher.transports.base import Ownership, ProcessId
from launcher.transports.local import LocalTransport, this_process
from tests.hostile.write_inputs import access_list
from tests.launcher.ordering import Desk
from tests.slurm.scripted_machine import DOWN, Machine, listed
from tests.tui.replay import make_run
from tui.cli import main
from tui.headless.cancel import _is_over

NOW = datetime(2026, 11, 28, 2, 0, tzinfo=UTC)


class OfBob(LocalTransport):
    """A machine on which every run belongs to bob."""

    def ownership(self, path: str) -> Ownership | None:
        return Ownership("bob", is_own=False, writable_by="")


def write_jobs(run: Run, *jobs: object, **more: object) -> None:
    Path(run.directory, "jobs.json").write_text(json.dumps({"schema": 1, "jobs": jobs, **more}))


def bystander() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


def process_of(pid: int) -> dict[str, Any]:
    here = this_process()
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return {"host": here.host, "boot": here.boot, "pid": pid, "started": ticks}


def test_a_process_that_is_not_the_jobs_is_left_alone(tmp_path: Path) -> None:
    """A record that names any process of the user does not end it."""
    run = make_run(tmp_path, job=False)
    with bystander() as other:
        write_jobs(run, {"id": "local-ab12", "submitted": NOW.isoformat(), "process": process_of(other.pid)})
        with pytest.raises(LaunchError, match="was left alone"):
            stop_run(LocalTransport(), run.directory)
        assert other.poll() is None
        other.kill()


def test_a_job_of_another_machine_is_not_called_stopped(tmp_path: Path) -> None:
    run = make_run(tmp_path, host="far", process=JobProcess(host="far", boot="b", pid=1, started=1))
    with pytest.raises(LaunchError, match="runs on far"):
        stop_run(LocalTransport(), run.directory)


@pytest.mark.parametrize(
    "identity",
    [
        "--user=alice",
        "--me",
        "--signal=KILL",
        "4711,4712",
        "",
        "-u",
        "4711 4712",
        "4711\n",
        "٤٧١١",
        "../x",
        "x" * 99,
    ],
)
def test_an_id_that_is_none_is_a_damaged_record(tmp_path: Path, identity: str) -> None:
    run = make_run(tmp_path, job=False)
    write_jobs(run, {"id": identity, "submitted": NOW.isoformat(), "token": "dt-1"})
    with pytest.raises(InputError, match=r"jobs\.json is damaged: jobs\.0\.id"):
        load(LocalTransport(), run.directory)


@pytest.mark.parametrize("token", ["a b", "|", ".*", "x" * 200, "--me"])
def test_a_token_that_is_none_is_a_damaged_record(tmp_path: Path, token: str) -> None:
    run = make_run(tmp_path, job=False)
    write_jobs(run, {"id": "5", "submitted": NOW.isoformat(), "token": token})
    with pytest.raises(InputError, match=r"jobs\.json is damaged: jobs\.0\.token"):
        load(LocalTransport(), run.directory)


# ------------------------------------------------------------ whose run it is


@pytest.mark.parametrize(
    ("mode", "reason"), [(0o755, ""), (0o700, ""), (0o777, "can be written by everybody")]
)
def test_who_can_write_a_run(tmp_path: Path, mode: int, reason: str) -> None:
    run = make_run(tmp_path)
    Path(run.directory).chmod(mode)
    assert reason in foreign_reason(LocalTransport(), run)
    Path(run.directory).chmod(0o755)
    Path(run.directory, "jobs.json").chmod(mode & 0o666)
    assert reason in foreign_reason(LocalTransport(), run)
    assert bool(foreign_reason(LocalTransport(), run)) == bool(reason)


def test_a_colleague_in_an_access_list_can_write_a_run(tmp_path: Path) -> None:
    """The mode shows the list's mask as rights of the group, which has no other member."""
    run = make_run(tmp_path)
    for uid, rights, reason in (
        (4711, 4, ""),
        (os.getuid(), 6, ""),
        (4711, 6, "can be written by user 4711"),
    ):
        try:
            os.setxattr(run.directory, "system.posix_acl_access", access_list({uid: rights}, 0))
        except OSError:
            pytest.skip("no access lists in this file system")
        assert reason in foreign_reason(LocalTransport(), run)
        assert bool(foreign_reason(LocalTransport(), run)) == bool(reason)


def test_a_colleagues_run_is_readable_and_not_stopped(tmp_path: Path) -> None:
    with bystander() as other:
        run = make_run(tmp_path, process=JobProcess(**process_of(other.pid)))
        assert load(OfBob(), run.directory).spec == run.spec
        with pytest.raises(ForeignRunError) as raised:
            stop_run(OfBob(), run.directory)
        assert raised.value.what == (
            f"not done: the run's directory belongs to bob; it would run `kill -TERM -- {other.pid}`"
        )
        assert "--trust" in raised.value.fix
        assert "bob" in raised.value.question
        assert refreshed(LocalTransport(), run).cancel_requested is None
        other.kill()


def test_a_summary_of_before_the_last_job_says_nothing_about_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(tmp_path))
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "RAY_BARE_JOB_ID": "local-ab12"}) as job:
        run = make_run(tmp_path, process=JobProcess(**process_of(job.pid)))
        save_summary(LocalTransport(), run, {"schema": 1, "state": "completed", "reason": "", "metrics": {}})
        os.utime(Path(run.directory, "summary.json"), (1, 1))
        assert main(distill_tui.__version__, ["cancel", "demo"]) == 0
        assert capsys.readouterr().err.endswith("stopped\n")
        assert job.wait(10) == -15


@pytest.mark.parametrize(
    ("job", "over"),
    [(None, False), ({"state": "running"}, False), ({"state": "failed"}, True), ("failed", False)],
)
def test_an_end_that_only_a_log_tells_keeps_cancel_from_nothing(
    tmp_path: Path, job: object, *, over: bool
) -> None:
    run = make_run(tmp_path)
    slurm = replace(run, spec=run.spec.model_copy(update={"cluster": "slurm"}))
    (tmp_path / "ray-driver.log").write_text(
        "ValueError: bad\n[NRL_PHASE] ray_bare.sub exiting (exit_code=1)\n"
    )
    watch = watch_directory(LocalTransport(), str(tmp_path))
    watch.catch_up()
    assert _is_over(slurm, {"state": "failed", "job": job}, watch) is over
    assert not _is_over(slurm, None, watch)
    assert _is_over(run, None, watch)


def test_cancel_of_an_open_directory_asks_and_trust_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(tmp_path))
    with subprocess.Popen(["sleep", "60"], env={**os.environ, "RAY_BARE_JOB_ID": "local-ab12"}) as job:
        run = make_run(tmp_path, process=JobProcess(**process_of(job.pid)))
        Path(run.directory).chmod(0o777)
        assert main(distill_tui.__version__, ["cancel", "demo"]) == 2
        said = capsys.readouterr().err
        assert "can be written by everybody" in said
        assert f"`kill -TERM -- {job.pid}`" in said
        assert job.poll() is None
        assert main(distill_tui.__version__, ["cancel", "demo", "--trust"]) == 0
        assert capsys.readouterr().err.endswith("stopped\n")
        assert job.wait(10) == -15


def test_directories_are_not_writable_by_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        run = make_run(tmp_path / "runs")
    finally:
        os.umask(before)
    for path in (tmp_path / "runs", Path(run.directory), Path(run.logs), Path(run.directory, "run.json")):
        assert path.stat().st_mode & 0o022 == 0, path


# ------------------------------------------------------------ resumption


def ended(desk: Desk) -> Run:
    run = send(desk.plan_of(SubmitRequest(desk.recipe, 1, "2:00:00")), desk.store, desk.environment)
    summary = {"schema": 1, "state": "failed", "reason": "", "metrics": {"step": 3}}
    save_summary(desk.transport, run, summary)
    return run


def test_the_command_of_a_plan_is_not_executed(tmp_path: Path) -> None:
    desk = Desk.at(tmp_path)
    run = ended(desk)
    path = Path(run.directory, "plan.json")
    plan = json.loads(path.read_text())
    forged = {"argv": ["sh", "-c", "touch /x", plan["argv"][-1]], "env": {"LD_PRELOAD": "/x.so"}, "cwd": "/"}
    path.write_text(json.dumps({**plan, **forged}))
    resumption = lay_out_resume(run, desk.store)
    assert resumption.plan.argv[0] == "sbatch"
    assert "LD_PRELOAD" not in resumption.plan.environment
    assert resumption.plan.cwd == run.directory
    go_on(resumption, desk.store)
    assert ("sh", "-c", "touch /x") not in {argv[:3] for argv in desk.transport.asked}


@pytest.mark.parametrize("name", ["job.sh", "ray_bare.sub", "effective.yaml"])
def test_a_resumption_of_an_open_directory_asks(tmp_path: Path, name: str) -> None:
    desk = Desk.at(tmp_path)
    run = ended(desk)
    Path(run.directory, name).chmod(0o777)
    resumption = lay_out_resume(run, desk.store)
    with pytest.raises(
        ForeignRunError, match=rf"{re.escape(name)} of .* can be written by everybody; .* `sbatch"
    ):
        go_on(resumption, desk.store)
    assert go_on(resumption, desk.store, trust=True).jobs[-1].id == "4712"


# ------------------------------------------------------------ orders that race


def test_a_start_that_is_cancelled_meanwhile_leaves_no_process(tmp_path: Path) -> None:
    class Late(LocalTransport):
        """A machine where the user cancels between the intent and the process."""

        def spawn(self, *arguments: Any, **more: Any) -> ProcessId:
            request_stop(self, run)
            return super().spawn(*arguments, **more)

    run = make_run(tmp_path, job=False)
    output = str(Path(run.logs, "slurm-local-1.out"))
    environment = {"PATH": os.environ["PATH"], "RAY_BARE_JOB_ID": "local-1"}
    plan = LaunchPlan("local-1", ("sleep", "60"), run.directory, environment, (), output)
    with pytest.raises(StopRequestedError, match="while it was being started"):
        LocalCluster(Late()).submit(run, plan)
    assert LocalTransport().find_process("RAY_BARE_JOB_ID=local-1") is None


def _record(directory: str, first: int) -> None:
    transport = LocalTransport()
    run = load(transport, directory)
    for number in range(first, first + 10):
        record_job(transport, run, Job(id=str(number), submitted=NOW, token=f"dt-{number}"))


def test_records_of_many_processes_all_stay(tmp_path: Path) -> None:
    run = make_run(tmp_path, job=False)
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    workers = [context.Process(target=_record, args=(run.directory, 100 * n)) for n in range(1, 4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(load(LocalTransport(), run.directory).jobs) == 30
    assert [path.name for path in Path(run.directory).iterdir() if "lock" in path.name] == []


def test_a_request_to_stop_stays_whatever_is_recorded_after_it(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    transport = LocalTransport()
    request_stop(transport, run)
    requested = record_job(transport, run, run.jobs[0]).cancel_requested
    assert requested is not None
    stopped = record_job(transport, run, run.jobs[0].model_copy(update={"cancel_requested": NOW}))
    assert record_job(transport, stopped, run.jobs[0]).jobs[0].cancel_requested == NOW
    assert load(transport, run.directory).cancel_requested == requested
    again = request_stop(transport, run).cancel_requested
    assert again is not None
    assert again > requested


def test_a_store_lists_runs_beside_a_damaged_one(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path), make_run(tmp_path, identity="20261128-030000-demo-cd34")
    write_jobs(bad, {"id": "--me", "submitted": NOW.isoformat()})
    listed = RunStore(LocalTransport(), str(tmp_path)).list()
    assert [item.directory for item in listed] == [bad.directory, good.directory]
    assert isinstance(listed[1], Run)


def test_a_forged_answer_of_slurm_is_not_read(tmp_path: Path) -> None:
    """Answers lie in the user's own state directory; a file in the runs root is not looked at."""
    environment = {"USER": "u", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    transport = Machine(squeue=[listed("7")])
    queue = Queue(SlurmClient(transport, environment), str(tmp_path / "runs"))
    queue.ask()
    path = Path(queue.path)
    assert path.is_relative_to(tmp_path / "cache")
    assert path.stat().st_mode & 0o777 == 0o600
    assert set(queue.latest().jobs) == {"7"}
    path.chmod(0o666)
    transport.answers["squeue"] = [listed("8")]
    assert set(queue.latest().jobs) == {"8"}


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"jobs": {"7": 5}}', '{"tried": 1e999}', '{"failures": "x"}', "\0" * 99, "[" * 9999],
)
def test_a_damaged_answer_of_slurm_is_asked_for_again(tmp_path: Path, content: str) -> None:
    environment = {"USER": "u", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    queue = Queue(SlurmClient(Machine(squeue=[listed("7")]), environment), str(tmp_path))
    queue.ask()
    Path(queue.path).write_text(content)
    assert set(queue.latest().jobs) == {"7"}


def test_a_clock_that_was_set_back_does_not_stop_the_questions(tmp_path: Path) -> None:
    """Nor does a number of failures whose power of two is no float."""
    clock = [2_000_000_000.0]
    environment = {"USER": "u", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    queue = Queue(SlurmClient(Machine(squeue=[DOWN]), environment, now=lambda: clock[0]), str(tmp_path))
    queue.ask(Snapshot(failures=5000))
    assert queue.latest().failures == 5001
    clock[0] -= 100_000
    assert queue.latest().failures == 5002


def test_the_output_of_a_job_follows_no_link(tmp_path: Path) -> None:
    output = tmp_path / "job.out"
    output.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TransportError, match="cannot be started"):
        LocalTransport().spawn(["true"], env={}, cwd=str(tmp_path), output=str(output))
    assert not (tmp_path / "elsewhere").exists()


def test_another_users_run_whose_jobs_are_not_listed_is_not_called_stopped(tmp_path: Path) -> None:
    here = this_process()
    gone = JobProcess(host=here.host, boot=here.boot, pid=here.pid, started=here.started + 1)
    run = make_run(tmp_path, host=here.host, process=gone)
    assert stop_run(LocalTransport(), run.directory) is False
    with pytest.raises(LaunchError, match="none of its jobs is yours") as refused:
        stop_run(OfBob(), run.directory, trust=True)
    assert "bob" in refused.value.fix
