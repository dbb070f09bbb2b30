"""What goes wrong with jobs, on the test cluster: right state, right words, and the watch goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.slurm.following import LONG, Watching, hurry, watching
from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.timeout(420)]
UP_S = 90.0


@pytest.fixture
def patient(user: User) -> Iterator[User]:
    """Return the user; afterwards the cluster is whole again, whatever was done to it."""
    hurry(user)
    yield user
    user.cluster.up()


def begin(user: User, *arguments: str, nodes: int = 2, time_: str = "10") -> dict[str, Any]:
    return user.submit(*LONG, *arguments, nodes=nodes, time_=time_)


def training(watch: Watching) -> None:
    watch.milestone("first-step", UP_S)


def known_to_run(watch: Watching) -> None:
    """Wait until the watch has heard from Slurm that the job runs."""
    if watch.jobs()[-1][1] != "RUNNING":
        watch.job(lambda event: event["word"] == "RUNNING", 40, "RUNNING")


def ended(user: User, watch: Watching, run: str, within_s: float) -> dict[str, Any]:
    """Wait until the watch has ended by itself, the run not well; returns the run's state."""
    assert watch.end(within_s) == 1, watch.said
    end = time.monotonic() + 40
    while found := ray_processes(user.cluster):
        assert time.monotonic() < end, found
        time.sleep(1)
    return user.state(run)


def roots(state: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["id"], item["text"]) for item in state["findings"] if item["root"]]


@pytest.mark.slow
def test_the_time_limit(patient: User) -> None:
    # Its own time for stopping would come first.
    submitted = begin(patient, "checkpointing.checkpoint_must_save_by=00:02:00:00", time_="1")
    run = submitted["run"]
    with watching(patient, run) as watch:
        training(watch)
        known_to_run(watch)
        state = patient.state(run)
        assert state["metrics"]["left_s"] is not None, state["job"]
        assert 0 < state["metrics"]["left_s"] < 60
        assert state["metrics"]["steps_that_fit"] is not None
        state = ended(patient, watch, run, 150)
    assert (state["state"], state["job"]["word"], state["job"]["exit_code"]) == ("failed", "TIMEOUT", "0:0")
    assert "time limit" in state["job"]["reason"]
    assert [identity for identity, _ in roots(state)] == ["slurm-timeout"]
    assert state["metrics"]["checkpoints"]
    report = json.loads(patient("report", "--json", run).stdout)
    (attempt,) = report["jobs"][0]["slurm"]
    assert (attempt["State"], attempt["Timelimit"], attempt["NNodes"]) == ("TIMEOUT", "00:01:00", "2")


def test_a_node_dies(patient: User) -> None:
    submitted = begin(patient, "--sbatch-arg=--no-requeue")
    run = submitted["run"]
    with watching(patient, run) as watch:
        training(watch)
        victim = next(node for node in patient.cluster.nodes if node.name == "node02")
        victim.power_off()
        state = ended(patient, watch, run, 150)
    assert state["state"] == "failed"
    # Ray notices it first mostly: the driver then ends by itself within a second.
    assert (state["job"]["word"], state["job"]["exit_code"]) in (("FAILED", "1:0"), ("NODE_FAIL", "1:0"))
    assert state["job"]["nodes"] == "node[01-02]"
    # Slurm's states of nodes name it whichever of the two noticed first.
    ((identity, text),) = roots(state)
    assert identity == "slurm-node-fail", state["findings"]
    assert state["findings"][0]["node"] == "node02"
    assert text.startswith("node02 went down at "), text
    assert [node["name"] for node in state["job"]["lost_nodes"]] == ["node02"]
    assert "node02" in state["reason"]
    (line,) = [line for line in patient("runs").stdout.splitlines() if run in line]
    assert "node02" in line


def stopped_for(user: User, seconds: float) -> None:
    """Stop controller and accounting under a watched run."""
    submitted = begin(user)
    run, cluster = submitted["run"], user.cluster
    with watching(user, run) as watch:
        training(watch)
        known_to_run(watch)
        cluster.stop("slurmctld")
        cluster.stop("slurmdbd")
        begun = time.monotonic()
        told = watch.job(lambda event: event["unanswered"] != "", 60, "word of no answer")
        assert (told["state"], told["word"]) == ("running", "RUNNING")
        assert "no answer" in told["reason"]
        watch.metrics(3, 30)  # the run goes on, and so does the watch
        time.sleep(max(seconds - (time.monotonic() - begun), 0))
        assert user.state(run)["state"] == "running"
        cluster.start("slurmdbd")
        cluster.start("slurmctld")
        back = watch.job(lambda event: event["unanswered"] == "", 200, "an answer again")
        assert (back["state"], back["word"]) == ("running", "RUNNING")
        assert watch.process.poll() is None
        assert user("cancel", run).returncode == 0
        state = ended(user, watch, run, 60)
    assert (state["state"], state["reason"]) == ("cancelled", "cancelled by you")
    assert [words for words in watch.jobs() if words[0] not in ("queued", "running", "cancelled")] == []


def test_controller_and_accounting_are_gone_for_a_while(patient: User) -> None:
    stopped_for(patient, 20)


@pytest.mark.slow
def test_controller_and_accounting_are_gone_for_two_minutes(patient: User) -> None:
    stopped_for(patient, 120)


def test_a_job_is_requeued_by_hand(patient: User) -> None:
    submitted = begin(patient)
    (job,), run, cluster = submitted["jobs"], submitted["run"], patient.cluster
    with watching(patient, run) as watch:
        training(watch)
        watch.until(lambda event: event["event"] == "checkpoint_saving", 60, "checkpoint")
        watch.metrics(2, 20)
        cluster.as_user("scontrol", "requeue", job["id"])
        waits = watch.job(lambda event: event["state"] == "queued", 60, "the requeued job")
        assert "requeued" in waits["reason"] or "begin time" in waits["reason"], waits
        assert patient.state(run)["state"] == "queued"
        assert watch.process.poll() is None
        cluster.as_user("scontrol", "update", f"jobid={job['id']}", "StartTime=now")
        up = watch.milestone("setup-complete", UP_S)
        assert f"{job['id']}-1-logs" in up["log"]
        training(watch)
        state = patient.state(run)
        assert state["state"] == "running"
        assert {item["log"].split("/")[1] for item in state["milestones"]} == {f"{job['id']}-1-logs"}
        assert roots(state) == []
        assert patient("cancel", run).returncode == 0
        assert ended(patient, watch, run, 60)["state"] == "cancelled"
    steps = state["metrics"]["steps"]
    assert steps == list(range(1, len(steps) + 1))  # one curve: it went on from the checkpoint


def test_a_job_makes_way_for_another_and_comes_back(patient: User) -> None:
    submitted = begin(patient, "--partition", "low", nodes=3)
    (job,), run, cluster = submitted["jobs"], submitted["run"], patient.cluster
    with watching(patient, run) as watch:
        training(watch)
        cluster.as_user("sbatch", "-A", "distill", "-p", "booster", "-N3", "--time=5", "--wrap", "sleep 20")
        waits = watch.job(lambda event: event["state"] == "queued", 90, "the preempted job")
        assert waits["word"] in ("PENDING", "REQUEUED"), waits
        assert watch.process.poll() is None
        cluster.as_user("scontrol", "update", f"jobid={job['id']}", "StartTime=now", check=False)
        up = watch.milestone("setup-complete", UP_S + 60)
        assert f"{job['id']}-1-logs" in up["log"]
        assert patient("cancel", run).returncode == 0
        assert ended(patient, watch, run, 60)["state"] == "cancelled"


def test_a_job_makes_way_for_another_for_good(patient: User) -> None:
    submitted = begin(patient, "--partition", "low", "--sbatch-arg=--no-requeue", nodes=3)
    run, cluster = submitted["run"], patient.cluster
    with watching(patient, run) as watch:
        training(watch)
        cluster.as_user("sbatch", "-A", "distill", "-p", "booster", "-N3", "--time=5", "--wrap", "sleep 5")
        state = ended(patient, watch, run, 120)
    assert (state["state"], state["job"]["word"]) == ("failed", "PREEMPTED")
    assert roots(state)[0][0] == "slurm-preempt"


def test_cancelled_from_outside(patient: User) -> None:
    submitted = begin(patient)
    (job,), run, cluster = submitted["jobs"], submitted["run"], patient.cluster
    with watching(patient, run) as watch:
        training(watch)
        cluster.as_user("scancel", job["id"])
        state = ended(patient, watch, run, 90)
    assert (state["state"], state["job"]["word"]) == ("cancelled", "CANCELLED")
    assert state["reason"] in (f"cancelled by user {cluster.settings.uid}", "cancelled")


def test_nodes_are_left_clean(cluster: Cluster) -> None:
    assert ray_processes(cluster) == {}
    for node in cluster.nodes:
        assert "rb-" not in node.run("ls", "/tmp")
