"""Jobs that wait on the test cluster: held, in a reservation, before a maintenance, above a limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.slurm.user import User

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(240)]
State = dict[str, Any]


@pytest.fixture
def admin(user: User) -> Iterator[Callable[..., str]]:
    """Return a command that runs as root; afterwards reservations and limits of the test are gone."""
    yield user.cluster.login.run
    user.cluster.cancel_all()
    for name in ("dtmaint", "dtcourse"):
        user.cluster.login.run("scontrol", "delete", f"ReservationName={name}", check=False)
    limit(user, "-1")


def limit(user: User, nodes: str) -> None:
    """Set how many nodes a job of the user's account may have; -1 for no limit."""
    name = user.cluster.settings.user
    user.cluster.login.run(
        "sacctmgr", "-iQ", "modify", "user", name, "where", "account=distill", "set",
        f"MaxTRES=node={nodes}", check=False,
    )  # fmt: skip


def submit(user: User, *options: str) -> str:
    argv = ("sbatch", "--parsable", "-A", "distill", "-p", "booster", *options, "--wrap", "sleep 300")
    return user.cluster.as_user(*argv).strip()


def waits(user: User, job: str, says: str) -> State:
    """Watch a job once a second until its reason says something."""
    end = time.monotonic() + 75
    while True:
        done = user("watch", "--once", "--json", job)
        assert done.stdout, done.stderr
        state: State = json.loads(done.stdout)
        if says in state["reason"]:
            return state
        assert time.monotonic() < end, (state["reason"], state["job"])
        time.sleep(1)


def notices(state: State) -> list[State]:
    return [item for item in state["findings"] if item["id"] == "stuck-pending"]


def test_a_held_job(user: User, admin: Callable[..., str]) -> None:
    job = submit(user, "-N1", "--hold")
    state = waits(user, job, "held by you")
    assert f"scontrol release {job}" in notices(state)[0]["fix"]
    admin("scontrol", "hold", job)
    state = waits(user, job, "held by the site")
    assert "support" in notices(state)[0]["fix"]
    admin("scontrol", "release", job)
    end = time.monotonic() + 60
    while notices(state) and time.monotonic() < end:
        state = json.loads(user("watch", "--once", "--json", job).stdout)
    assert not notices(state)


def test_a_reservation_ahead(user: User, admin: Callable[..., str]) -> None:
    name = user.cluster.settings.user
    admin(
        "scontrol", "create", "reservation", "ReservationName=dtcourse", "StartTime=now+2hours",
        "Duration=60", "Nodes=node01", f"Users={name}",
    )  # fmt: skip
    job = submit(user, "-N1", "--time=10", "--reservation=dtcourse")
    assert notices(waits(user, job, "waiting for its reservation to begin")) == []


def test_a_maintenance_ahead(user: User, admin: Callable[..., str]) -> None:
    admin(
        "scontrol", "create", "reservation", "ReservationName=dtmaint", "StartTime=now+3hours",
        "Duration=120", "Nodes=ALL", "Flags=MAINT,IGNORE_JOBS", "Users=root",
    )  # fmt: skip
    begun = time.time()
    job = submit(user, "-N1", "--time=06:00:00")
    state = waits(user, job, "reserved for maintenance from")
    assert notices(state) == []
    assert time.strftime("until %b %d %H:", time.localtime(begun + 5 * 3600)) in state["reason"]
    limit_text = state["job"]["fix"].partition("--time=")[2].split()[0]
    hours, minutes, _ = (int(part) for part in limit_text.split(":"))
    assert 160 <= hours * 60 + minutes <= 180
    user.cluster.as_user("scontrol", "update", f"job={job}", f"timelimit={limit_text}")
    end = time.monotonic() + 90
    while user.cluster.as_user("squeue", "-h", "-j", job, "-o", "%T").strip() != "RUNNING":
        assert time.monotonic() < end  # with that limit it starts before the maintenance
        time.sleep(1)


def test_an_accounts_limit_per_job(user: User, admin: Callable[..., str]) -> None:
    limit(user, "1")
    job = submit(user, "-N2", "--time=10")
    state = waits(user, job, "will never start")
    assert state["job"]["waits_for"] == "AssocMaxNodePerJobLimit"
    assert "fewer --nodes" in notices(state)[0]["fix"]
    assert "limit of the account" not in state["reason"]
