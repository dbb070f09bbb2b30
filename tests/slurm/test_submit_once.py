"""Submitting, following, stopping without a Slurm: whatever the answer, a job is sent once, none is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from launcher.clusters.base import RenderedJobs, RunLayout
from launcher.clusters.inventory import Partition
from launcher.clusters.slurm import cluster as cluster_module
from launcher.clusters.slurm.client import QUERY_TIMEOUT_S, SUBMIT_TIMEOUT_S
from launcher.clusters.slurm.cluster import SlurmCluster
from launcher.errors import LaunchError, RefusedError, TransportError, UnreachableError
from launcher.fields import FIELDS
from launcher.logs.events import JobState
from launcher.plan import LaunchPlan
from launcher.request import JobOptions, Kind, SubmitRequest
from launcher.runs import SUMMARY, Job, Launcher, Run, SlurmRequest, load, record_job
from launcher.sites import Site
from launcher.transports.base import Completed
from launcher.transports.local import LocalTransport
from recipes.inheritance import Resolver
from tests.slurm.records import job, run_of

DOWN = Completed(1, "", "sbatch: error: Unable to contact slurm controller (connect failure)")
DOWN_WITH_A_HINT = Completed(1, "", "sbatch: error: Problem talking to the database: no such account")
SILENT = Completed(1, "", "  \n")
REFUSED = Completed(1, "", "sbatch: error: Batch job submission failed: Invalid qos specification")
STRANGE = Completed(1, "", "sbatch: error: the moon is full")
TIMES_OUT = "'sbatch' did not end within 150 s"
Answer = Completed | str | Callable[[Sequence[str]], Completed]
"""What a command answers: what it printed, or the transport's error."""


class Machine(LocalTransport):
    """A machine whose commands answer what they are told to; the last answer is given again and again."""

    def __init__(self, **answers: list[Answer]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []
        self.with_environment: list[Mapping[str, str] | None] = []
        self.limits: dict[str, float] = {}
        self.directories: dict[str, str | None] = {}

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float = 30,
    ) -> Completed:
        self.asked.append(tuple(argv))
        self.with_environment.append(env)
        self.limits[argv[0]], self.directories[argv[0]] = timeout_s, cwd
        waiting = self.answers.get(argv[0], [Completed(0, "", "")])
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, str):
            raise TransportError(answer)
        return answer if isinstance(answer, Completed) else answer(argv)

    def count(self, command: str) -> int:
        """Return how often a command was run."""
        return sum(argv[0] == command for argv in self.asked)


class Clock:
    """Time that passes while one sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = 1000.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr(cluster_module, "time", SimpleNamespace(monotonic=lambda: one.now, sleep=one.sleep))
    return one


def at(tmp_path: Path, machine: Machine, clock: Clock) -> SlurmCluster:
    return SlurmCluster(machine, str(tmp_path), {"USER": "u"}, sleep=clock.sleep)


def plan_of(run: Run, token: str = "dt-abc") -> LaunchPlan:
    argv = ("sbatch", "--parsable", f"--comment=distill-tui {token}", "job.sh")
    return LaunchPlan(token, argv, run.directory, {"A": "1"}, (), "out")


def printed(text: str) -> Completed:
    return Completed(0, text, "")


def listed(identity: str, token: str = "dt-abc", state: str = "PENDING") -> Completed:
    return printed(f"{identity}|{state}|1|N/A|N/A||Priority|distill-tui {token}\n")


def recorded(run: Run) -> tuple[Job, ...]:
    again = load(LocalTransport(), run.directory)
    assert isinstance(again, Run)
    return again.jobs


def new(tmp_path: Path, machine: Machine, *jobs: Job, name: str = "r") -> Run:
    run = run_of(tmp_path, machine, (), name)
    for item in jobs:
        run = record_job(machine, run, item)
    return run


# ---------------------------------------------------------------- submitting


def test_a_job_that_is_taken_is_recorded_before_and_after(tmp_path: Path, clock: Clock) -> None:
    begun = datetime.now(UTC)

    def sbatch(argv: Sequence[str]) -> Completed:
        (intent,) = recorded(run)
        assert (intent.id, intent.token, intent.link, intent.refused) == ("dt-abc", "dt-abc", 1, "")
        return printed("4711;cluster\n")

    machine = Machine(sbatch=[sbatch])
    run = new(tmp_path, machine)
    plan = plan_of(run)
    submitted = at(tmp_path, machine, clock).submit(run, plan)
    (one,) = submitted.jobs
    assert recorded(run) == (one,)
    assert (one.id, one.token, one.link, one.refused) == ("4711", "dt-abc", 1, "")
    assert begun <= one.submitted <= datetime.now(UTC)
    assert machine.asked == [plan.argv]
    assert machine.with_environment == [{"A": "1"}]
    assert machine.limits["sbatch"] == SUBMIT_TIMEOUT_S
    assert machine.directories["sbatch"] == run.directory
    assert clock.slept == []


def test_links_of_a_chain_are_counted(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[printed("1\n"), printed("2\n")])
    run = new(tmp_path, machine)
    for token in ("dt-a", "dt-b"):
        run = at(tmp_path, machine, clock).submit(run, plan_of(run, token))
    assert [(one.id, one.link, one.token) for one in run.jobs] == [("1", 1, "dt-a"), ("2", 2, "dt-b")]


def test_an_interrupt_waits_until_the_answer_is_recorded(tmp_path: Path, clock: Clock) -> None:
    def sbatch(argv: Sequence[str]) -> Completed:
        signal.raise_signal(signal.SIGINT)
        return printed("4711\n")

    machine = Machine(sbatch=[sbatch])
    run = new(tmp_path, machine)
    with pytest.raises(KeyboardInterrupt):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert [one.id for one in recorded(run)] == ["4711"]


@pytest.mark.parametrize(
    "answer", [DOWN, DOWN_WITH_A_HINT, SILENT, STRANGE, TIMES_OUT, printed("hm\n"), printed("")]
)
@pytest.mark.parametrize("after", [0, 1, 5])
def test_after_an_unclear_answer_the_job_is_found_by_its_token(
    tmp_path: Path, clock: Clock, answer: Answer, after: int
) -> None:
    """It is found however often the controller gives no answer before it does."""
    machine = Machine(sbatch=[answer], squeue=[*[DOWN] * after, listed("4711")])
    run = new(tmp_path, machine)
    submitted = at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert [(one.id, one.token) for one in submitted.jobs] == [("4711", "dt-abc")]
    assert recorded(run) == submitted.jobs
    assert (machine.count("sbatch"), machine.count("squeue")) == (1, after + 1)
    assert clock.slept == [3.0] * after


def test_a_job_that_is_listed_a_little_later_is_found(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[TIMES_OUT], squeue=[listed("1", "dt-other"), listed("4711")])
    run = new(tmp_path, machine)
    assert at(tmp_path, machine, clock).submit(run, plan_of(run)).jobs[0].id == "4711"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (DOWN, "Slurm gave no answer to sbatch: Unable to contact slurm controller (connect failure)"),
        (SILENT, "Slurm gave no answer to sbatch: no message, exit code 1"),
        (TIMES_OUT, "sbatch gave no clear answer"),
        (printed("hm\n"), "sbatch gave no clear answer"),
    ],
)
def test_what_stays_unclear_is_an_intent_not_a_failure(
    tmp_path: Path, clock: Clock, answer: Answer, says: str
) -> None:
    machine = Machine(sbatch=[answer], squeue=[printed("")])
    run = new(tmp_path, machine)
    with pytest.raises(UnreachableError) as raised:
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert raised.value.what == f"it is not clear whether Slurm accepted the job: {says}"
    assert raised.value.where == Path(run.directory)
    assert raised.value.fix == "Do not submit again: `distill-tui watch r` shows whether it runs."
    (one,) = recorded(run)
    assert (one.id, one.token, one.refused) == ("dt-abc", "dt-abc", "")
    assert machine.count("sbatch") == 1
    assert clock.slept == [3.0, 3.0]  # told twice that there is none


def test_a_controller_that_never_answers_is_not_waited_for_for_ever(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[DOWN], squeue=[DOWN])
    run = new(tmp_path, machine)
    with pytest.raises(UnreachableError):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert clock.slept == [3.0] * 15  # 45 s
    assert machine.count("sbatch") == 1


def test_one_answer_that_there_is_none_is_not_enough(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[DOWN], squeue=[printed(""), DOWN, DOWN, printed("")])
    run = new(tmp_path, machine)
    with pytest.raises(UnreachableError):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert machine.count("squeue") == 4


def test_a_clear_refusal_is_recorded_and_not_looked_up(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[REFUSED])
    run = new(tmp_path, machine)
    with pytest.raises(RefusedError) as raised:
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert raised.value.what == "Slurm refused: Invalid qos specification"
    assert "Give a QoS" in raised.value.fix
    assert raised.value.where == Path(run.directory)
    (one,) = recorded(run)
    assert (one.id, one.refused) == ("dt-abc", "Slurm refused: Invalid qos specification")
    assert machine.count("squeue") == 0


def test_a_message_that_nobody_knows_is_a_refusal_once_no_job_is_found(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=[STRANGE], squeue=[printed("")])
    run = new(tmp_path, machine)
    with pytest.raises(RefusedError, match="the moon is full"):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert machine.count("squeue") == 2
    assert recorded(run)[0].refused == "Slurm refused: the moon is full"


def test_a_machine_without_sbatch(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(sbatch=["'sbatch' cannot be run: No such file or directory"])
    run = new(tmp_path, machine)
    with pytest.raises(TransportError, match="cannot be run"):
        at(tmp_path, machine, clock).submit(run, plan_of(run))
    assert machine.count("squeue") == 0


# ---------------------------------------------------------------- following


def test_a_run_whose_jobs_were_all_refused(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine, job("dt-1").model_copy(update={"refused": "no"}))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.reason) == (JobState.FAILED, "no")


def test_a_run_without_a_job(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine)
    assert at(tmp_path, machine, clock).state(run, job("1")) is None
    assert at(tmp_path, machine, clock).state(run, job("1")) is None


def test_a_refused_link_does_not_count(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[listed("1", "dt-a", "RUNNING")])
    refused = job("dt-b", "dt-b").model_copy(update={"refused": "no"})
    run = new(tmp_path, machine, job("1", "dt-a"), refused)
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.job) == (JobState.RUNNING, "1")
    assert machine.count("sacct") == 0


def test_a_token_is_taken_for_its_job_only(tmp_path: Path, clock: Clock) -> None:
    """Neither a number that is known nor what was refused is given another number."""
    machine = Machine(squeue=[printed("9|RUNNING|1|1|1|n|None|dt-a dt-b dt-c\n")])
    refused = job("dt-b", "dt-b").model_copy(update={"refused": "no"})
    old = job("5", "dt-a")
    run = new(tmp_path, machine, old, refused, job("dt-c", "dt-c"))
    at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert [one.id for one in recorded(run)] == ["5", "dt-b", "9"]
    nameless = new(tmp_path, machine, job("", ""), name="nameless")
    at(tmp_path, machine, clock).state(nameless, nameless.jobs[0])
    assert [one.id for one in recorded(nameless)] == [""]


def test_accounting_is_asked_for_what_left_the_queue_of_every_open_run(tmp_path: Path, clock: Clock) -> None:
    rows = "5|TIMEOUT|1|1|9|n1|0:0|sbatch\n6|COMPLETED|1|1|9|n1|0:0|sbatch\n"
    machine = Machine(squeue=[printed("8|RUNNING|1|1|1|n|None|x\n")], sacct=[printed(rows)])
    run = new(tmp_path, machine, job("5", "dt-5"), name="one")
    new(tmp_path, machine, job("6", "dt-6"), name="two")
    new(tmp_path, machine, job("8", "dt-8"), name="running")
    new(tmp_path, machine, job("dt-7", "dt-7").model_copy(update={"refused": "no"}), name="refused")
    done = new(tmp_path, machine, job("9", "dt-9"), name="done")
    Path(done.directory, SUMMARY).write_text("{}")
    for name in ("a-done", "zz-done"):
        again = new(tmp_path, machine, job("9", "dt-9"), name=name)
        Path(again.directory, SUMMARY).write_text("{}")
    broken = new(tmp_path, machine, job("11", "dt-11"), name="broken")
    Path(broken.directory, "run.json").write_text("{")
    local = new(tmp_path, machine, job("10", "dt-10"), name="local")
    text = Path(local.directory, "run.json").read_text()
    Path(local.directory, "run.json").write_text(text.replace('"slurm"', '"local"', 1))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.word) == (JobState.FAILED, "TIMEOUT")
    (asked,) = [argv for argv in machine.asked if argv[0] == "sacct"]
    assert sorted(asked[asked.index("-j") + 1].split(",")) == ["5", "6"]


def test_a_run_whose_jobs_are_listed_is_no_reason_to_ask_accounting(tmp_path: Path, clock: Clock) -> None:
    """Also where another run has jobs that left the queue: who looks at that one asks."""
    machine = Machine(squeue=[printed("8|RUNNING|1|1|1|n|None|x\n")])
    new(tmp_path, machine, job("5", "dt-5"), name="left")
    run = new(tmp_path, machine, job("8", "dt-8"), name="running")
    at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert machine.count("sacct") == 0


def test_a_run_that_has_a_summary_is_asked_for_when_it_is_looked_at(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[printed("")], sacct=[printed("5|FAILED|1|1|9|n1|3:0|sbatch\n")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    Path(run.directory, SUMMARY).write_text("{}")
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert answer.exit_code == "3:0"


def test_accounting_finds_a_token_that_left_the_queue(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(
        squeue=[printed("")], sacct=[printed("5|COMPLETED|1|1|9|n1|0:0|sbatch --comment=distill-tui dt-x\n")]
    )
    lost = Job(id="dt-x", token="dt-x", submitted=datetime.now(UTC))
    run = new(tmp_path, machine, lost)
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.job) == (JobState.COMPLETED, "5")
    assert recorded(run)[0].id == "5"


def test_accounting_that_is_down_does_not_make_a_lost_submission_a_failure(
    tmp_path: Path, clock: Clock
) -> None:
    """Submitting once depends on it: the job may be there all the same."""
    machine = Machine(squeue=[printed("")], sacct=[DOWN])
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert (answer.state, answer.over) == (JobState.UNKNOWN, False)


def test_a_controller_without_an_answer_is_no_reason_to_ask_accounting(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[DOWN])
    run = new(tmp_path, machine, job("5", "dt-5"))
    answer = at(tmp_path, machine, clock).state(run, run.jobs[0])
    assert answer is not None
    assert answer.state is JobState.UNKNOWN
    assert machine.count("sacct") == 0


def test_what_was_submitted_after_the_last_question_is_asked_for_at_once(
    tmp_path: Path, clock: Clock
) -> None:
    machine = Machine(squeue=[printed(""), listed("6", "dt-6")])
    slurm = at(tmp_path, machine, clock)
    first = new(tmp_path, machine, job("5", "dt-5"), name="first")
    slurm.state(first, first.jobs[0])
    later = Job(id="6", token="dt-6", submitted=datetime.now(UTC))
    second = new(tmp_path, machine, job("5", "dt-5"), later, name="second")
    answer = slurm.state(second, second.jobs[0])
    assert answer is not None
    assert (answer.state, answer.job) == (JobState.QUEUED, "6")
    slurm.state(first, first.jobs[0])
    assert machine.count("squeue") == 2


def test_how_often_slurm_is_asked_is_told_to_the_queue(tmp_path: Path) -> None:
    slurm = SlurmCluster(Machine(), str(tmp_path), {"USER": "someone"}, every_s=15.0)
    assert (slurm.queue.every_s, slurm.queue.root) == (15.0, str(tmp_path))
    assert (slurm.client.user, slurm.client.transport) == ("someone", slurm.transport)
    assert SlurmCluster(Machine(), str(tmp_path)).every_s == 30.0


# ---------------------------------------------------------------- stopping


def test_all_jobs_of_a_run_are_stopped_and_waited_for(tmp_path: Path, clock: Clock) -> None:
    running = printed("5|RUNNING|1|1|1|n|None|x\n6|PENDING|1|1|1||None|x\n")
    half = printed("5|CANCELLED|1|1|1|n|None|x\n6|PENDING|1|1|1||None|x\n")
    over = printed("5|CANCELLED|1|1|1|n|None|x\n")
    machine = Machine(squeue=[running, running, DOWN, half, over])
    refused = job("7", "dt-7").model_copy(update={"refused": "no"})
    run = new(tmp_path, machine, job("5", "dt-5"), job("6", "dt-6"), refused)
    stopped = at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert ("scancel", "5", "6") in machine.asked
    assert machine.count("scancel") == 1
    assert [one.cancel_requested is not None for one in stopped.jobs] == [True, True, False]
    assert all(one.cancel_requested.tzinfo is UTC for one in stopped.jobs if one.cancel_requested)
    assert recorded(run) == stopped.jobs
    assert clock.slept == [2.0] * 3


def test_no_answer_is_not_that_a_job_has_ended(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[DOWN, DOWN, DOWN, printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert clock.slept == [2.0] * 2


def test_a_job_that_is_known_by_its_token_alone_is_looked_for_and_stopped(
    tmp_path: Path, clock: Clock
) -> None:
    machine = Machine(squeue=[listed("9", "dt-x"), printed("")])
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert ("scancel", "9") in machine.asked


def test_nothing_to_stop(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    run = new(tmp_path, machine, job("dt-x", "dt-x"))
    assert at(tmp_path, machine, clock).cancel(run, run.jobs[0]).jobs == run.jobs
    assert machine.count("scancel") == 0


def test_without_an_answer_to_scancel_nothing_is_recorded(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(scancel=[DOWN])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(UnreachableError, match="no answer to scancel"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert recorded(run)[0].cancel_requested is None
    machine.answers["scancel"] = [SILENT]
    with pytest.raises(UnreachableError, match="scancel: no message, exit code 1"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])


def test_what_scancel_refuses_is_told(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(scancel=[Completed(1, "", "scancel: error: Kill job error: Access denied")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(RefusedError, match="Access denied"):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])


def test_an_interrupt_waits_until_the_stop_is_recorded(tmp_path: Path, clock: Clock) -> None:
    def scancel(argv: Sequence[str]) -> Completed:
        signal.raise_signal(signal.SIGINT)
        return printed("")

    machine = Machine(scancel=[scancel], squeue=[printed("")])
    run = new(tmp_path, machine, job("5", "dt-5"))
    with pytest.raises(KeyboardInterrupt):
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert recorded(run)[0].cancel_requested is not None


def test_a_job_that_does_not_end(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(squeue=[printed("5|RUNNING|1|1|1|n|None|x\n6|COMPLETING|1|1|1|n|None|x\n")])
    run = new(tmp_path, machine, job("5", "dt-5"), job("6", "dt-6"))
    with pytest.raises(LaunchError) as raised:
        at(tmp_path, machine, clock).cancel(run, run.jobs[0])
    assert raised.value.what == "job 5, 6 did not end within 90 s of scancel"
    assert raised.value.where == Path(run.directory)
    assert "squeue" in raised.value.fix
    assert clock.slept == [2.0] * 46


# ---------------------------------------------------------------- when it would start

OPTIONS = JobOptions(
    SubmitRequest(Path("r.yaml"), 2, 60, kind="smoke", sbatch_args=("--exclusive=user",)),
    2,
    4,
    "u",
    SlurmRequest(partition="p", time_s=60),
)


def test_the_start_is_asked_for_without_submitting(tmp_path: Path) -> None:
    answer = "sbatch: Job 7 to start at 2026-01-01T00:00:00 using 8 processors on nodes n1 in partition p"
    machine = Machine(sbatch=[Completed(0, "", answer)])
    environment = {"USER": "u", "PATH": "/bin", "SLURM_CONF": "/c", "SBATCH_QOS": "x"}
    slurm = SlurmCluster(machine, "/runs", environment)
    assert slurm.estimate_start(OPTIONS) == "2026-01-01T00:00:00"
    (argv,) = machine.asked
    assert argv[:2] == ("sbatch", "--test-only")
    assert argv[-2] == "--exclusive=user"
    assert "--job-name=distill-tui" in argv
    assert "--comment=distill-tui test" in argv
    assert "--nodes=2" in argv
    assert Path(argv[-1]).name == "ray_bare.sub"
    assert Path(argv[-1]).is_file()
    assert machine.with_environment == [{"PATH": "/bin", "USER": "u", "SLURM_CONF": "/c"}]
    assert machine.limits == {"sbatch": QUERY_TIMEOUT_S}


@pytest.mark.parametrize(("answer", "error"), [(REFUSED, RefusedError), (DOWN, UnreachableError)])
def test_a_start_that_slurm_does_not_tell(answer: Completed, error: type[Exception]) -> None:
    with pytest.raises(error, match="Slurm"):
        SlurmCluster(Machine(sbatch=[answer]), "/runs", {}).estimate_start(OPTIONS)
    with pytest.raises(UnreachableError, match="sbatch --test-only: no message, exit code 7"):
        SlurmCluster(Machine(sbatch=[replace(SILENT, code=7)]), "/runs", {}).estimate_start(OPTIONS)


# ---------------------------------------------------------------- planning


def layout_of(tmp_path: Path, launcher: Launcher = "ray_bare", kind: Kind = "training") -> RunLayout:
    request = SubmitRequest(Path("r.yaml"), 2, 60, kind=kind, launcher=launcher)
    options = JobOptions(request, 2, 4, "u", SlurmRequest(partition="p", time_s=60))
    file = tmp_path / "r.yaml"
    file.write_text("distillation: {}\n")
    recipe = Resolver().resolve(file)
    return RunLayout("r", tmp_path, recipe, options, Site("s", "S", (), (), ()))


def test_a_run_is_rendered_for_this_machine(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, layout, jobs = Machine(), layout_of(tmp_path), RenderedJobs({}, ())
    calls = list[tuple[object, ...]]()

    def rendered(*arguments: object) -> RenderedJobs:
        calls.append(arguments)
        return jobs

    monkeypatch.setattr(cluster_module, "render", rendered)
    slurm = at(tmp_path, machine, clock)
    assert slurm.plan(layout) is jobs
    assert calls == [(machine, {"USER": "u"}, layout)]
    assert slurm.fields == FIELDS


@pytest.mark.parametrize(
    ("launcher", "kind", "hints"),
    [
        ("ray.sub", "training", ("full",)),
        ("ray.sub", "smoke", ("full",)),
        ("ray.sub", "rehearsal", ()),
        ("ray_bare", "training", ()),
    ],
)
def test_hints_come_with_the_launcher_of_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Launcher, kind: Kind, hints: tuple[str, ...]
) -> None:
    layout, partition = layout_of(tmp_path, launcher, kind), Partition("p", True, "up", 1, ())
    monkeypatch.setattr(
        cluster_module, "container_hints", lambda *given: ("full",) if given == (layout, partition) else ()
    )
    assert SlurmCluster(Machine(), str(tmp_path), {}).hints(layout, partition) == hints


def test_one_more_job_is_planned_from_the_first(tmp_path: Path, clock: Clock) -> None:
    machine = Machine()
    plan = plan_of(new(tmp_path, machine))
    later = at(tmp_path, machine, clock).plan_again(replace(plan, argv=("sbatch", "--time=1", "job.sh")), 60)
    assert later.argv == ("sbatch", "--time=00:01:00", "--dependency=singleton", "job.sh")
    assert later.job_id != plan.job_id
