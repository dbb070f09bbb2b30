"""A submission happens once, whatever becomes of the answer, the controller or the program."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.slurm.user import RECIPE, User

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]
HELD = ("submit", RECIPE, "--rehearse", "--nodes", "1", "--time", "10", "--account", "distill",
        "--sbatch-arg=--hold", "--json")  # fmt: skip
TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


@pytest.fixture
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Return the cluster; afterwards its controller runs, whatever was done to it."""
    yield cluster
    if cluster.running("slurmctld"):
        cluster.signal("slurmctld", "CONT")
    cluster.up()


def listed(user: User) -> list[dict[str, Any]]:
    done = user("runs", "--json")
    assert done.returncode == 0, done.stderr
    runs: list[dict[str, Any]] = json.loads(done.stdout)["runs"]
    return runs


def numbers(user: User) -> list[str]:
    """Return the numbers of the jobs that Slurm has."""
    return sorted(line.partition("|")[0] for line in user.jobs())


def test_an_answer_that_is_lost_is_looked_up(user: User) -> None:
    path = user.put_before("sbatch", f'/usr/bin/sbatch "$@" >/dev/null; echo "{TIMED_OUT}" >&2; exit 1')
    done = user(*HELD, PATH=path)
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert numbers(user) == [job["id"]]


def test_a_garbled_answer_is_looked_up(user: User) -> None:
    path = user.put_before("sbatch", '/usr/bin/sbatch "$@" >/dev/null; echo "thank you"')
    done = user(*HELD, PATH=path)
    assert done.returncode == 0, done.stderr
    assert numbers(user) == [json.loads(done.stdout)["jobs"][0]["id"]]


def test_a_refusal_of_unknown_words_that_was_none(user: User) -> None:
    path = user.put_before("sbatch", '/usr/bin/sbatch "$@" >/dev/null; echo "plugin: hiccup" >&2; exit 1')
    done = user(*HELD, PATH=path)
    assert done.returncode == 0, done.stderr
    assert len(numbers(user)) == 1


def test_a_refusal_of_unknown_words(user: User) -> None:
    path = user.put_before("sbatch", 'echo "sbatch: error: moon in the wrong house" >&2; exit 1')
    done = user(*HELD, PATH=path)
    assert done.returncode == 1
    assert "moon in the wrong house" in done.stderr
    assert numbers(user) == []
    (run,) = listed(user)
    assert (run["state"], "moon" in run["reason"]) == ("failed", True)


def test_lost_while_the_controller_says_nothing_and_found_afterwards(user: User) -> None:
    path = user.put_before("sbatch", f'/usr/bin/sbatch "$@" >/dev/null; echo "{TIMED_OUT}" >&2; exit 1')
    user.put_before("squeue", 'echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1')
    done = user(*HELD, PATH=path)
    assert done.returncode == 3
    assert "not clear" in done.stderr
    assert "Do not submit again" in done.stderr
    (run,) = listed(user)
    assert run["state"] == "unknown"
    (user.runs / ".slurm-queue.json").unlink()  # the next question would wait for the back-off
    (run,) = listed(user)
    assert run["state"] == "queued"
    assert [job["id"] for job in run["jobs"]] == numbers(user)


def test_a_controller_that_hangs_in_the_middle(user: User, running: Cluster) -> None:
    """Debian's sbatch gives up after 10 s; what it sent is carried out when the controller goes on."""
    user("detect")
    running.signal("slurmctld", "STOP")
    process = subprocess.Popen(user.argv(*HELD), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(14)
    running.signal("slurmctld", "CONT")
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert numbers(user) == [json.loads(out)["jobs"][0]["id"]]


def test_a_controller_that_is_stopped_and_comes_back(user: User, running: Cluster) -> None:
    submitted = user.submit("--sbatch-arg=--hold")
    assert [run["state"] for run in listed(user)] == ["queued"]
    running.stop("slurmctld")
    done = user(*HELD)
    assert done.returncode == 3
    assert "Slurm gave no answer" in done.stderr
    (_, before) = listed(user)
    assert before["run"] == submitted["run"]
    assert before["state"] == "queued"
    assert "gives no answer" in before["reason"]
    running.start("slurmctld")
    (user.runs / ".slurm-queue.json").unlink()
    assert [run["state"] for run in listed(user)] == ["unknown", "queued"]
    assert numbers(user) == [submitted["jobs"][0]["id"]]


@pytest.mark.slow
def test_killed_at_random_points(user: User) -> None:
    user("detect")
    seed = time.time_ns()
    chance = random.Random(seed)
    for _ in range(20):
        process = subprocess.Popen(user.argv(*HELD), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.0, 2.0))
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        process.wait()
    time.sleep(3)  # an sbatch that outlived its program
    (user.runs / ".slurm-queue.json").unlink(missing_ok=True)
    listed(user)
    runs = listed(user)
    jobs = numbers(user)
    adopted = sorted(job["id"] for run in runs for job in run["jobs"] if job["id"].isdecimal())
    assert adopted == jobs, f"seed {seed}"
    comments = [line.rpartition("|")[2] for line in user.jobs()]
    assert len(set(comments)) == len(comments), f"seed {seed}"
