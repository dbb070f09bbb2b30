"""Following jobs without a Slurm: what each answer means, and how often it is asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from launcher.clusters.slurm.client import SlurmClient
from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.clusters.slurm.jobs import JobRecord, base_state, job_change
from launcher.clusters.slurm.queue import Queue
from launcher.errors import TransportError
from launcher.logs.events import DriverEnded, JobChanged, JobState, LogChanged, Role, Source
from launcher.monitor.attempts import SlurmRunState
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from tests.slurm.records import job, pending_reason, run_of, user_environment

CHAIN = Path(__file__).parent.parent.parent / "launcher" / "scripts" / "chain.sh"


class Scripted(LocalTransport):
    """A machine on which Slurm's commands answer what they are told to."""

    def __init__(self, **answers: str | None) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        self.asked.append(argv[0])
        answer = self.answers.get(argv[0], "")
        if answer is None:
            return Completed(1, "", "Unable to contact slurm controller (connect failure)")
        return Completed(0, answer, "")


def cluster_of(tmp_path: Path, transport: LocalTransport) -> SlurmCluster:
    return SlurmCluster(transport, str(tmp_path), user_environment(tmp_path), sleep=lambda _: None)


@pytest.mark.parametrize(
    ("state", "code", "expected", "words"),
    [
        ("COMPLETED", "0:0", JobState.COMPLETED, ""),
        ("CANCELLED by 1001", "0:0", JobState.CANCELLED, "cancelled by user 1001"),
        ("OUT_OF_ME+", "0:125", JobState.FAILED, "ran out of memory"),
        ("TIMEOUT", "0:0", JobState.FAILED, "time limit"),
        ("NODE_FAIL", "1:0", JobState.FAILED, "node failed"),
        ("PREEMPTED", "0:0", JobState.FAILED, "preempted"),
        ("FAILED", "3:0", JobState.FAILED, "exit code 3"),
        ("FAILED", "0:53", JobState.FAILED, "output file or directory"),
        ("CONFIGURING", "", JobState.STARTING, "nodes"),
        ("COMPLETING", "", JobState.RUNNING, "ending"),
        ("REQUEUED", "", JobState.QUEUED, "requeued"),
        ("MOONSTRUCK", "", JobState.UNKNOWN, "MOONSTRUCK"),
    ],
)
def test_states(state: str, code: str, expected: JobState, words: str) -> None:
    answer = job_change(JobRecord("1", state, exit_code=code))
    assert answer.state is expected
    assert words in answer.reason


def test_reasons_and_cut_states() -> None:
    assert "requeued job waits" in pending_reason("BeginTime")
    assert "never start" in pending_reason("(QOSMaxWallDurationPerJobLimit)")
    assert pending_reason("None") == ""
    assert "down, drained or reserved" in pending_reason("ReqNodeNotAvail, UnavailableNodes:n[1-3]")
    assert "maintenance" in pending_reason("ReqNodeNotAvail, Reserved for maintenance")
    assert "SomethingNew" in pending_reason("SomethingNew")
    assert base_state("CANCELLED+") == "CANCELLED"


def test_twenty_runs_are_one_question(tmp_path: Path) -> None:
    transport = Scripted(squeue="\n".join(f"{n}|RUNNING|1|1|1|n1|None|dt-{n}" for n in range(20)))
    runs = [run_of(tmp_path, transport, (job(str(n), f"dt-{n}"),), f"r{n}") for n in range(20)]
    for _ in range(5):
        for run in runs:
            answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
            assert answer is not None
            assert (answer.state, answer.reason, answer.deadline) == (JobState.RUNNING, "", 1.0)
    assert transport.asked == ["squeue"]


def test_jobs_that_left_the_queue_are_one_question_to_sacct(tmp_path: Path) -> None:
    rows = "\n".join(f"{n}|TIMEOUT|1|1|9|n1|0:0|sbatch" for n in range(20))
    transport = Scripted(squeue="", sacct=rows)
    runs = [run_of(tmp_path, transport, (job(str(n), f"dt-{n}"),), f"r{n}") for n in range(20)]
    from launcher.job_records import record_job

    for run in runs:
        record_job(transport, run, run.jobs[0])
    for run in runs:
        answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
        assert answer is not None
        assert (answer.state, answer.time) == (JobState.FAILED, 9.0)
    assert transport.asked == ["squeue", "sacct"]


def test_no_answer_is_not_the_end_and_is_asked_for_less_often(tmp_path: Path) -> None:
    clock = [1_800_000_000.0]
    transport = Scripted(squeue="7|RUNNING|1|1|1|n1|None|dt-1")
    queue = Queue(SlurmClient(transport, user_environment(tmp_path), now=lambda: clock[0]), str(tmp_path))
    assert queue.latest().job("7") is not None
    transport.answers["squeue"] = None
    for _ in range(600):
        clock[0] += 1
        assert queue.latest().job("7") is not None
    # After 30, then 60, 120 and 240 s: five questions in all.
    assert len(transport.asked) == 5
    run = run_of(tmp_path, transport, (job("7"),))
    answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
    assert answer is not None
    assert answer.state is JobState.RUNNING
    assert "no answer" in answer.reason


def test_a_job_is_found_by_its_token(tmp_path: Path) -> None:
    transport = Scripted(squeue="9|PENDING|1|N/A|N/A||Priority|distill-tui dt-abc")
    run = run_of(tmp_path, transport, (job("dt-abc", "dt-abc"),))
    answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
    assert answer is not None
    assert answer.state is JobState.QUEUED
    assert '"id": "9"' in Path(run.directory, "jobs.json").read_text().replace('"id":"', '"id": "')


def test_a_token_that_nobody_knows_was_never_submitted(tmp_path: Path) -> None:
    transport = Scripted(squeue="", sacct="")
    run = run_of(tmp_path, transport, (job("dt-abc", "dt-abc"),))
    answer = cluster_of(tmp_path, transport).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.over) == (JobState.FAILED, True)


def test_the_links_that_a_chain_did_not_need_do_not_make_it_cancelled(tmp_path: Path) -> None:
    transport = Scripted(
        squeue="1|TIMEOUT|1|1|5|n1|None|a\n2|COMPLETED|1|5|8|n1|None|b\n3|CANCELLED|1|8|8||None|c"
    )
    jobs = tuple(job(str(n), f"dt-{n}") for n in (1, 2, 3))
    run = run_of(tmp_path, transport, jobs)
    answer = cluster_of(tmp_path, transport).state(run, jobs[-1])
    assert answer is not None
    assert answer.state is JobState.COMPLETED


def said(state: SlurmRunState) -> str:
    return state.state.value


def test_the_end_of_one_job_is_not_the_end_of_the_run() -> None:
    state = SlurmRunState()
    state.apply(LogChanged("logs/7-logs/ray-driver.log", Role.DRIVER, 1, 1))
    state.apply(DriverEnded(143, Source("logs/7-logs/launcher.log", Role.SLURM, 9)))
    state.apply(JobChanged(JobState.FAILED, "the time limit was reached"))
    assert (said(state), state.reason) == ("failed", "the time limit was reached")
    state.apply(JobChanged(JobState.QUEUED, "waiting"))
    assert said(state) == "queued"
    state.apply(LogChanged("logs/8-logs/ray-driver.log", Role.DRIVER, 1, 1))
    state.apply(JobChanged(JobState.RUNNING, ""))
    assert said(state) == "starting"
    state.apply(DriverEnded(0, Source("logs/8-logs/launcher.log", Role.SLURM, 9)))
    state.apply(JobChanged(JobState.COMPLETED, ""))
    assert said(state) == "completed"


@pytest.mark.parametrize(
    ("left", "expected"), [("1:00:00", "00:00:34:59"), ("1-00:00:00", "00:23:24:35"), ("0:20", "00:00:00:01")]
)
def test_when_the_driver_must_save(tmp_path: Path, left: str, expected: str) -> None:
    (tmp_path / "squeue").write_text(f"#!/bin/bash\necho {left}\n")
    (tmp_path / "squeue").chmod(0o755)
    done = subprocess.run(
        ["bash", CHAIN, "save-by"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "1", "BASE_LOG_DIR": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == expected


def test_a_machine_without_slurm_says_so(tmp_path: Path) -> None:
    from launcher.clusters.registry import detect

    with pytest.raises(TransportError, match="no Slurm here"):
        detect(
            LocalTransport(), {"PATH": "/nowhere", "USER": "u", "XDG_CONFIG_HOME": str(tmp_path)}, tmp_path
        )


def test_commands_that_know_no_cluster_are_no_slurm_either(tmp_path: Path) -> None:
    from launcher.clusters.registry import detect

    sinfo = tmp_path / "sinfo"
    sinfo.write_text(
        "#!/bin/bash\n[[ $1 != --version ]] || { echo slurm 22.05.8; exit 0; }\n"
        "echo 'sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host' >&2\n"
        "echo 'sinfo: fatal: Could not establish a configuration source' >&2\nexit 1\n"
    )
    sinfo.chmod(0o755)
    with pytest.raises(TransportError, match="no Slurm here") as raised:
        detect(
            LocalTransport(),
            {"PATH": f"{tmp_path}:/usr/bin:/bin", "USER": "u", "XDG_CONFIG_HOME": str(tmp_path)},
            tmp_path,
        )
    assert "login node" in raised.value.fix
