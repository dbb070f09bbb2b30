"""Which log is of which node and ranks, and which of hundreds fail, are silent or missing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from launcher.logs.events import FindingSeen, Role, Source
from launcher.logs.log_survey import LogHealth, ranks_text, read_entries, read_hints, survey
from launcher.logs.node_names import expanded, node_of_log, worker_number
from launcher.logs.sources import LogFile, discover
from launcher.transports.local import LocalTransport


def test_ranks_in_words() -> None:
    assert [ranks_text(ranks) for ranks in ((), (3,), (4, 5, 6, 7), (0, 2, 4, 5))] == [
        "", "rank 3", "ranks 4-7", "ranks 0, 2, 4-5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "role", "node"),
    [
        ("ray-worker-2.log", Role.WORKER, "jwb0003"),
        ("41-logs/ray-worker-1.log", Role.WORKER, "jwb0002"),
        ("ray-head.log", Role.HEAD, "jwb0001"),
        ("worker_jwb0003.out", Role.WORKER, "jwb0003"),
        ("ray-worker-9.log", Role.WORKER, ""),
        ("ray-driver.log", Role.DRIVER, ""),
        ("worker.log", Role.WORKER, ""),
    ],
)
def test_the_node_of_a_log(name: str, role: Role, node: str) -> None:
    assert node_of_log(name, role, expanded("jwb[0001-0003]")) == node
    assert node_of_log(name, role, ()) == ""


def test_the_number_of_a_worker() -> None:
    names = (
        "ray-worker-12.log",
        "ray-workers-3.log",
        "worker_007.out",
        "x-worker5.err",
        "worker.log",
        "head-1.log",
    )
    assert [worker_number(name) for name in names] == [12, 3, 7, 5, None, None]


def address_of(worker: int) -> str:
    return f"10.0.{(worker + 1) // 256}.{(worker + 1) % 256}"


def workers(directory: Path, count: int, *, form: str = "ray-worker-{}.log") -> None:
    """Write logs of a driver, a head and many workers, as on nodes with four GPUs."""
    directory.mkdir(exist_ok=True)
    (directory / "ray-head.log").write_text("Local node IP: \x1b[1m10.0.0.1\x1b[22m\n")
    driver = [
        f"\x1b[36m(Policy[rank={rank}] pid={rank + 70}, ip={address_of(rank // 4 + 1)})\x1b[0m ok\n"
        for rank in range(count * 4)
    ]
    (directory / "ray-driver.log").write_text("".join(driver))
    for number in range(1, count + 1):
        text = f"INFO scripts.py:1234 -- Local node IP: {address_of(number)}\nRay runtime started.\n"
        (directory / form.format(number)).write_text(text)


def surveyed(
    directory: Path, findings: list[FindingSeen], nodes: tuple[str, ...] = ()
) -> list[tuple[str, ...]]:
    """Return name, place and condition of each log that is not well, and of the first that is."""
    transport = LocalTransport()
    files = [log for log, _ in discover(transport, str(directory)).logs]
    logs = survey(files, read_entries(transport, files), findings, nodes, read_hints(transport, files))
    unwell = [log for log in logs if log.health is not LogHealth.WELL]
    well = [log for log in logs if log.health is LogHealth.WELL and log.role is Role.WORKER][:1]
    return [(log.name, f"{log.node} {log.ranks}".strip(), log.health.name) for log in [*unwell, *well]]


def test_the_ones_of_four_hundred(tmp_path: Path) -> None:
    workers(tmp_path, 400)
    (tmp_path / "ray-worker-237.log").unlink()
    (tmp_path / "ray-worker-12.log").write_text("")
    old = time.time() - 3600
    os.utime(tmp_path / "ray-worker-99.log", (old, old))
    cause = FindingSeen(
        "oom", "GPU out of memory", "fatal", "x", Source("ray-worker-311.log", Role.WORKER, 3), root=True
    )
    nodes = expanded("jwb[0000-0400]")
    found = surveyed(tmp_path, [cause], nodes)
    assert found[0] == ("ray-worker-311.log", "jwb0311 ranks 1240-1243", "FAILING")
    assert found[1] == ("ray-worker-237.log", "jwb0237", "MISSING")
    assert {(name, health) for name, _, health in found[2:4]} == {
        ("ray-worker-12.log", "SILENT"), ("ray-worker-99.log", "SILENT"),
    }  # fmt: skip
    assert len(found) == 5


@pytest.mark.parametrize(
    ("form", "missing"), [("ray-worker-{}.log", "ray-worker-7.log"), ("worker_{:03d}.out", "worker_007.out")]
)
def test_a_gap_in_the_numbers_is_a_missing_log(tmp_path: Path, form: str, missing: str) -> None:
    workers(tmp_path, 20, form=form)
    (tmp_path / missing).unlink()
    found = surveyed(tmp_path, [])
    assert found[0] == (missing, "", "MISSING")
    assert len(found) == 2


def test_nodes_after_the_last_log_are_missing_too(tmp_path: Path) -> None:
    workers(tmp_path, 2)
    found = surveyed(tmp_path, [], expanded("n[0-4]"))
    missing = [name for name, _, health in found if health == "MISSING"]
    assert missing == ["ray-worker-3.log", "ray-worker-4.log"]


def test_nothing_is_missing_where_nothing_is_known() -> None:
    logs = [
        LogFile("slurm-41.out", "/x/slurm-41.out", Role.SLURM),
        LogFile("worker.log", "/x/worker.log", Role.WORKER),
    ]
    assert [log.health for log in survey(logs, None, [])] == [LogHealth.WELL, LogHealth.WELL]
