"""A submission happens once, whatever becomes of the answer, the controller or the program."""

from __future__ import annotations

import contextlib
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
    forget_answers(user)  # the next question would wait for the back-off
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
    assert "gave no answer" in before["reason"]
    running.start("slurmctld")
    forget_answers(user)
    assert [run["state"] for run in listed(user)] == ["unknown", "queued"]
    assert numbers(user) == [submitted["jobs"][0]["id"]]


LOSE = """
/usr/bin/sbatch "$@" >/dev/null 2>&1 &
sleep 0.$((RANDOM % 9)); [[ $((RANDOM % 2)) == 0 ]] && wait
echo "{said}" >&2; exit 1"""
FAULTS = ("killed", "client killed", "answer lost", "hung", "stopped") * 4
"""What happens at each of the random points."""


def submitting(user: User, **changes: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(user.argv(*HELD, **changes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def children_of(process: subprocess.Popen[bytes]) -> list[int]:
    """Return the program that runs in the user's namespace, behind the command that entered it."""
    try:
        return [int(pid) for pid in _children(process.pid)]
    except FileNotFoundError:
        return []


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def strike(user: User, cluster: Cluster, fault: str, chance: random.Random) -> int | None:
    """Submit, and let a fault happen at a random moment; returns the program's exit code, None if killed."""
    lost = user.put_before("sbatch", LOSE.replace("{said}", TIMED_OUT)) if fault == "answer lost" else ""
    process = submitting(user, **({"PATH": lost} if lost else {}))
    # From the program's start (about 0.6 s), over sbatch, to after its end.
    time.sleep(chance.uniform(0.2, 2.5))
    match fault:
        case "killed":
            for pid in children_of(process):
                os.kill(pid, signal.SIGKILL)
        case "client killed":
            end = time.monotonic() + 2
            while process.poll() is None and time.monotonic() < end:
                for pid in children_of(process):
                    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                        for inner in _children(pid):
                            os.kill(int(inner), signal.SIGKILL)
                time.sleep(0.05)
        case "hung":
            cluster.signal("slurmctld", "STOP")
            time.sleep(chance.uniform(0.5, 14))
            cluster.signal("slurmctld", "CONT")
        case "stopped":
            cluster.stop("slurmctld")
            time.sleep(chance.uniform(0, 6))
            cluster.start("slurmctld")
        case _:
            pass  # the answer is lost by itself
    code = process.wait(timeout=150)
    return None if fault == "killed" else code


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_random_points_never_two_jobs_never_a_lost_one(user: User, running: Cluster) -> None:
    user("detect")
    seed = time.time_ns()
    chance = random.Random(seed)
    codes = [strike(user, running, fault, chance) for fault in chance.sample(FAULTS, len(FAULTS))]
    assert set(codes) <= {None, 0, 1, 3}, f"seed {seed}: {codes}"
    time.sleep(12)  # an sbatch that outlived its program gives up after 10 s
    forget_answers(user)
    listed(user)  # finds the jobs; the second look tells their state
    forget_answers(user)
    runs = listed(user)
    adopted = sorted(job["id"] for run in runs for job in run["jobs"] if job["id"].isdecimal())
    assert adopted == numbers(user), f"seed {seed}"
    tokens = [line.rpartition("|")[2] for line in user.jobs()]
    assert len(set(tokens)) == len(tokens), f"seed {seed}"
    assert all(len(run["jobs"]) <= 1 for run in runs), f"seed {seed}"
    assert len(adopted) >= codes.count(0) >= 4, f"seed {seed}: {codes}"
    for run in runs:
        queued = [job for job in run["jobs"] if job["id"].isdecimal()]
        assert (run["state"] == "queued") is bool(queued), f"seed {seed}: {run}"


def forget_answers(user: User) -> None:
    """Remove the last answers of Slurm's commands."""
    for path in (user.place / "cache" / "distill-tui" / "slurm-queue").glob("*.json"):
        path.unlink()
