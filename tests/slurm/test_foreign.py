"""Jobs that something else submitted, on the test cluster: their logs are found, their state is told."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any

import pytest

from tests.driver_text import DriverText
from tests.slurm.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]
DRIVER = DriverText([0.9, 0.7, 0.5], save_at=(3,)).text()
# What the launchers have in common: the programs of head and workers are text that the shell traces.
TRACED = r"""
set -eoux pipefail
head_cmd=$(cat <<EOF
while true; do
  if [[ \$units -eq $NUM_ACTORS ]]; then
    echo "All workers connected!"
    break
  fi
  echo "[ERROR] Timed out waiting for all workers to connect"
done
EOF
)
"""


def submit(user: User, script: str, *options: str, root: bool = False) -> str:
    """Submit a script as somebody without this program does; returns the number."""
    file = user.place / "job.sh"
    file.write_text(f"#!/bin/bash\n{script}\n")
    argv = ("sbatch", "--parsable", "-D", str(user.place), "--time=5", *options)
    if root:
        return user.cluster.login.run(*argv, "-A", "root", str(file)).strip()
    return user.cluster.as_user(*argv, "-A", "distill", str(file)).strip()


def over(user: User, job: str) -> None:
    end = time.monotonic() + 60
    while user.cluster.as_user("squeue", "-h", "-j", job, check=False).strip():
        assert time.monotonic() < end
        time.sleep(0.5)
    # Accounting learns of a job's end at once, and of its directory a second or two later.
    asked = ("sacct", "-XnPj", job, "-o", "WorkDir,End")
    while not re.fullmatch(r"/.*\|20.*", user.cluster.as_user(*asked).strip()):
        assert time.monotonic() < end
        time.sleep(0.5)


def look(user: User, job: str) -> dict[str, Any]:
    done = user("watch", "--once", "--json", job)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def places(state: dict[str, Any]) -> dict[str, str]:
    return {item["id"]: item["log"] for item in state["milestones"]}


def write_driver(user: User) -> str:
    (user.place / "driver.txt").write_text(DRIVER)
    return f"cat {user.place}/driver.txt"


def test_an_older_ray_sub_of_nemo_rl(user: User) -> None:
    """The batch script says that the workers are there; its trace said so long before."""
    job = submit(
        user,
        f"""NUM_ACTORS=8{TRACED}
L=$PWD/$SLURM_JOB_ID-logs; mkdir -p $L
echo "Ray runtime started." >$L/ray-head.log; echo "Ray runtime started." >$L/ray-worker-1.log
sleep 8
echo "[INFO] Number of actors online: 8/8"; echo "All workers connected!"
{write_driver(user)} >$L/ray-driver.log
sleep 300""",
    )
    end = time.monotonic() + 40
    while "head-up" not in places(state := look(user, job)):
        assert time.monotonic() < end, state
        time.sleep(0.5)
    assert "workers-connected" not in places(state)  # only traced so far
    assert state["state"] == "starting"
    while "completed" not in places(state := look(user, job)):
        assert time.monotonic() < end, state
        time.sleep(0.5)
    assert places(state)["workers-connected"] == f"slurm-{job}.out"
    assert places(state)["first-step"] == f"{job}-logs/ray-driver.log"
    assert state["findings"] == []
    assert (state["job"]["id"], state["job"]["word"]) == (job, "RUNNING")


def test_a_newer_ray_sub_of_nemo_rl_that_is_over_and_left_the_queue(user: User) -> None:
    """The head says that the workers are there; the log directory is found through accounting alone."""
    head = (
        'echo "[NRL_PHASE][2026-11-28T03:00:00+0000][+9s] head: Ray GCS listening (STARTED)"; '
        'echo "[INFO][2026-11-28T03:00:09+0000] All workers connected!"'
    )
    job = submit(
        user,
        f"""L=$PWD/$SLURM_JOB_ID-logs; mkdir -p $L
bash -xc '{head}' >$L/ray-head.log 2>&1
{write_driver(user)} >$L/ray-driver.log
echo "[NRL_PHASE][2026-11-28T03:09:00+0000][+99s] ray.sub exiting (exit_code=0)" """,
        "--output=out-%j.txt",
    )
    over(user, job)
    path = user.put_before("scontrol", 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1')
    user.put_before("squeue", 'echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1')
    done = user("watch", "--once", "--json", job, PATH=path)
    assert done.returncode == 0, done.stderr
    state = json.loads(done.stdout)
    assert state["state"] == "completed"
    assert places(state)["workers-connected"] == f"{job}-logs/ray-head.log"
    assert (state["job"]["word"], state["job"]["exit_code"]) == ("COMPLETED", "0:0")
    names = {f"{job}-logs/ray-head.log", f"{job}-logs/ray-driver.log", f"out-{job}.txt"}
    assert {log["name"] for log in state["logs"]} == names


def test_nemo_run_s_launcher(user: User) -> None:
    """Everything lies beside Slurm's output file, and the driver is called a job."""
    logs = user.place / "exp" / "logs"
    logs.mkdir(parents=True)
    os.chown(logs, user.cluster.settings.uid, user.cluster.settings.uid)
    job = submit(
        user,
        f"""L={logs}
echo "Ray runtime started." >$L/ray-head.log
echo "All workers connected!"
{write_driver(user)} >$L/ray-job.log; exit 3""",
        f"--output={logs}/sbatch_exp_%j.out",
    )
    over(user, job)
    state = look(user, job)
    assert places(state)["workers-connected"] == f"sbatch_exp_{job}.out"
    assert places(state)["first-checkpoint"] == "ray-job.log"
    assert (state["job"]["word"], state["job"]["exit_code"]) == ("FAILED", "3:0")


def test_a_requeued_job(user: User) -> None:
    job = submit(
        user,
        """L=$PWD/$SLURM_JOB_ID${SLURM_RESTART_COUNT:+-$SLURM_RESTART_COUNT}-logs; mkdir -p $L
echo "Ray runtime started." >$L/ray-head.log; sleep 300""",
    )
    end = time.monotonic() + 90
    while "head-up" not in places(state := look(user, job)):
        assert time.monotonic() < end, state
    assert places(state)["head-up"] == f"{job}-logs/ray-head.log"
    user.cluster.as_user("scontrol", "requeue", job)
    while (state := look(user, job))["state"] != "queued":
        assert time.monotonic() < end, state
    user.cluster.as_user("scontrol", "update", f"jobid={job}", "StartTime=now")
    while places(state := look(user, job)).get("head-up") != f"{job}-1-logs/ray-head.log":
        assert time.monotonic() < end, state
        time.sleep(0.5)


def test_another_user_s_job_whose_logs_are_closed(user: User) -> None:
    job = submit(user, "echo hello; sleep 300", "-p", "booster", "--output=/root/closed-%j.out", root=True)
    try:
        state = look(user, job)
        (notice,) = state["findings"]
        assert (notice["id"], notice["severity"]) == ("no-logs", "warning")
        assert f"/root/closed-{job}.out" in notice["text"]
        assert "Ask root to let you read them" in notice["fix"]
        assert "distill-tui watch DIRECTORY" in user("watch", "--once", job).stdout
        assert state["job"]["id"] == job
    finally:
        user.cluster.login.run("scancel", job)


def test_no_such_job(user: User) -> None:
    done = user("watch", "--once", "--json", "999999")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Slurm knows no job 999999" in done.stderr


def test_the_number_of_a_job_of_a_run_is_the_run(user: User) -> None:
    submitted = user.submit("--sbatch-arg=--hold", nodes=1)
    (job,) = submitted["jobs"]
    state = look(user, job["id"])
    assert state["run"] == submitted["run"]
    (notice,) = state["findings"]
    assert (notice["id"], notice["title"]) == ("stuck-pending", "The job will not start by itself")
