"""Submitting on the test cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.slurm.user import RECIPE, User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]
MILESTONES = {
    **dict.fromkeys(("head-up", "workers-connected", "driver-started"), "launcher.log"),
    **dict.fromkeys(
        ("ray-attached", "data-loaded", "teacher-ready", "generation-ready", "student-ready",
         "setup-complete", "first-step", "first-validation", "first-checkpoint", "completed"),
        "ray-driver.log",
    ),
}  # fmt: skip
CANARY = "hf_canary_0123456789"


def test_detect_says_what_the_cluster_was_configured_with(user: User) -> None:
    found = json.loads(user("detect", "--json").stdout)
    assert (found["site"], found["slurm_version"], found["cluster"]) == ("generic", "22.05.8", "testbooster")
    by_name = {item["name"]: item for item in found["partitions"]}
    assert list(by_name) == ["booster", "develbooster", "capped", "mixed", "low", "closed"]
    limits = {
        name: (item["max_time_s"], item["default_time_s"], item["max_nodes"])
        for name, item in by_name.items()
    }
    assert limits == {
        "booster": (86400, 3600, None), "develbooster": (7200, 1800, 2), "capped": (43200, 3600, 2),
        "mixed": (14400, None, None), "low": (86400, None, None), "closed": (3600, None, None),
    }  # fmt: skip
    assert [item["name"] for item in by_name.values() if item["default"]] == ["booster"]
    assert {name: item["state"] for name, item in by_name.items() if item["state"] != "up"} == {
        "closed": "down"
    }
    assert {(item["gpus_per_node"], item["gpu_type"]) for item in by_name.values()} == {(4, "a100")}
    assert by_name["mixed"]["nodes"] == 4
    assert by_name["mixed"]["gpu_mix"] == [
        {"count": 4, "type": "a100", "nodes": 3}, {"count": 0, "type": None, "nodes": 1},
    ]  # fmt: skip
    assert by_name["capped"]["qos"] == "part_capped"
    assert sorted(by_name["booster"]["accounts"]) == ["distill", "other"]
    assert by_name["develbooster"]["accounts"] == ["distill"]
    assert by_name["closed"]["accounts"] == ["other"]
    assert {(item["account"], item["default"]) for item in found["accounts"]} == {
        ("distill", True),
        ("other", False),
    }
    assert found["problems"] == []


def test_a_second_detect_asks_nothing(user: User) -> None:
    assert user("detect").returncode == 0
    path = user.put_before("sinfo", "exit 1")
    assert user("detect", PATH=path).returncode == 0
    assert "booster" in user("detect", PATH=path).stdout
    refreshed = user("detect", "--refresh", "--json", PATH=path)
    assert json.loads(refreshed.stdout)["problems"]


REFUSED = {
    "account": (("--account", "nosuch"), "Invalid account", "account"),
    "partition": (("--partition", "nosuch"), "nvalid partition", "detect"),
    "nodes": (("--nodes", "9"), "Node count specification invalid", "--nodes"),
    "time": (("--partition", "develbooster", "--time", "3:00:00"), "time limit is invalid", "--time"),
    "closed": (("--partition", "closed", "--account", "distill"), "nvalid account", "account"),
    "qos": (("--qos", "nosuch"), "Invalid qos", "QoS"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_come_in_the_sites_words_with_what_to_do(user: User, case: str) -> None:
    arguments, says, fix = REFUSED[case]
    basic = ("submit", RECIPE, "--rehearse", "--nodes", "2", "--time", "10", "--account", "distill")
    tested = user(*basic, *arguments, "--test-only")
    assert (tested.returncode, user.runs.exists()) == (1, False), tested.stderr
    assert says in tested.stderr
    done = user(*basic, *arguments, "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
    assert fix in done.stderr
    assert len(done.stderr.splitlines()) <= 4
    assert user.jobs() == []
    (run,) = user.runs.glob("2*")
    state = user.state(str(run))
    assert state["state"] == "failed"
    assert says in state["reason"]


def test_a_limit_of_jobs(user: User) -> None:
    user.submit("--qos", "one", "--sbatch-arg=--hold")
    done = user("submit", RECIPE, "--rehearse", "--nodes", "1", "--time", "10", "--qos", "one", "--json")
    assert done.returncode == 1
    assert "QOSMaxSubmitJobPerUserLimit" in done.stderr
    assert len(user.jobs()) == 1


def test_wrong_usage_and_dry_run_make_nothing(user: User) -> None:
    basic = ("submit", RECIPE, "--rehearse", "--nodes", "2")
    for arguments in (("--time", "soon"), ("--time", "10", "--profile", "no"), ("--time", "0")):
        assert user(*basic, *arguments).returncode == 2
    dirty = {"VIRTUAL_ENV": "/v", "UV_CACHE_DIR": "/u", "PYTHONPATH": "", "RAY_ADDRESS": "1.2.3.4:5",
             "CUDA_VISIBLE_DEVICES": "7", "SBATCH_ACCOUNT": "nosuch", "SLURM_JOB_ID": "1",
             "HF_TOKEN": CANARY}  # fmt: skip
    done = user(*basic, "--time", "1:30:00", "--json", "--dry-run", **dirty)
    printed = json.loads(done.stdout)
    assert CANARY not in done.stdout
    assert not user.runs.exists()
    argv, environment = printed["plan"]["argv"], printed["plan"]["env"]
    assert {
        "--nodes=2",
        "--gres=gpu:4",
        "--time=01:30:00",
        "--partition=booster",
        "--account=distill",
    } <= set(argv)
    assert environment["UV_CACHE_DIR"] == "/u"
    assert [name for name in dirty if name in environment] == ["UV_CACHE_DIR"]
    assert environment["GPUS_PER_NODE"] == "4"
    assert "num_nodes: 2" in printed["effective"]
    assert "gpus_per_node: 4" in printed["effective"]
    assert printed["cost"] == {"node_hours": 3.0, "gpu_hours": 12.0, "core_hours": 24.0}
    assert "secrets.env" in printed["plan"]["files"]


def test_on_a_site_with_a_fast_network_and_no_internet(user: User) -> None:
    done = user("submit", RECIPE, "--rehearse", "--nodes", "2", "--time", "10", "--dry-run", "--json",
                SYSTEMNAME="juwelsbooster")  # fmt: skip
    environment = json.loads(done.stdout)["plan"]["env"]
    assert environment["RAY_BARE_HOST_SUFFIX"] == "i"
    assert environment["NCCL_SOCKET_IFNAME"] == "ib0"
    assert {environment[name] for name in ("HF_HUB_OFFLINE", "UV_OFFLINE", "HF_DATASETS_OFFLINE")} == {"1"}
    assert environment["WANDB_MODE"] == "offline"


def test_test_only_tells_when_it_would_start(user: User) -> None:
    done = user("submit", RECIPE, "--rehearse", "--nodes", "2", "--time", "10", "--test-only", "--json")
    assert json.loads(done.stdout)["starts"].startswith("20")
    assert not user.runs.exists()
    assert user.jobs() == []


@pytest.fixture(scope="module")
def finished(cluster: Cluster) -> Iterator[tuple[User, dict[str, Any]]]:
    """Run a rehearsal on two nodes to its end, watched."""
    user = User.of(cluster, "finished")
    submitted = user.submit(HF_TOKEN=CANARY)
    watched = user("watch", "--plain", submitted["run"])
    assert watched.returncode == 0, watched.stdout + watched.stderr
    yield user, submitted
    user.clean_up()


@pytest.mark.ray
def test_a_rehearsal_on_two_nodes(finished: tuple[User, dict[str, Any]]) -> None:
    user, submitted = finished
    state = user.state(submitted["run"])
    assert state["state"] == "completed"
    assert {item["id"]: Path(item["log"]).name for item in state["milestones"]} == MILESTONES
    losses = state["metrics"]["loss"]
    assert len(losses) == 30
    assert sum(losses[-3:]) < sum(losses[:3]) / 2
    (job,) = submitted["jobs"]
    assert {Path(item["log"]).parent.name for item in state["milestones"]} == {f"{job['id']}-logs"}
    driver = (user.runs / submitted["run"] / "logs" / f"{job['id']}-logs" / "ray-driver.log").read_text()
    assert "8" in driver
    said = user.cluster.as_user(
        "sacct", "-X", "-n", "-P", "-j", job["id"], "-o", "State,ExitCode,NNodes,AllocTRES"
    )
    assert said.startswith("COMPLETED|0:0|2|")
    assert "gres/gpu=8" in said
    assert ray_processes(user.cluster) == {}


@pytest.mark.ray
def test_a_key_is_in_no_file_but_one_that_only_the_user_reads(finished: tuple[User, dict[str, Any]]) -> None:
    user, submitted = finished
    holding = [
        path for path in user.place.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    assert [(path.name, path.stat().st_mode & 0o777) for path in holding] == [("secrets.env", 0o600)]
    shown = user.cluster.as_user("scontrol", "show", "job", submitted["jobs"][0]["id"])
    assert CANARY not in shown
    state = user.cluster.settings.state
    for path in (*(state / "spool").rglob("*"), *(state / "log").rglob("*")):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path


@pytest.mark.ray
def test_cancel_leaves_no_process_on_any_node(user: User) -> None:
    submitted = user.submit()
    user.wait(submitted["run"], lambda state: any(m["id"] == "first-step" for m in state["milestones"]), 120)
    assert len(ray_processes(user.cluster)) == 2
    done = user("cancel", submitted["run"])
    assert done.returncode == 0, done.stderr
    assert ray_processes(user.cluster) == {}
    state = user.state(submitted["run"])
    assert (state["state"], state["reason"]) == ("cancelled", "cancelled by you")
    for node in user.cluster.nodes:
        assert "rb-" not in node.run("ls", "/tmp")
