"""Outputs of Slurm at many sites about partitions and their GPUs, each read to the right values."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from launcher.clusters.inventory import Cpus, Gpus, gpu_memory_gib
from launcher.clusters.slurm.gres import gpus_of, read_gres
from launcher.clusters.slurm.parse import read_records, read_table
from launcher.clusters.slurm.partitions import (
    merge,
    read_partition_records,
    read_qos,
    read_sinfo,
    with_qos_limits,
)
from tests.slurm.samples import output

DAY = 86400


def partitions_of(
    text: str, columns: list[str] | None = None
) -> list[tuple[str, bool, str, int, int | None]]:
    """Return name, default, state, nodes and limit of the partitions in sinfo's output."""
    rows, _ = read_sinfo(text, columns)
    return [(item.name, item.default, item.state, item.nodes, item.max_time_s) for item in merge(rows, ())]


SINFO: dict[str, list[tuple[str, bool, str, int, int | None]]] = {
    "sinfo-default-archer2": [("standard", False, "up", 1021, DAY)],
    "sinfo-default-cirrus": [("Compute", True, "up", 256, None)],
    "sinfo-default-cirrus-old": [
        ("standard", False, "up", 280, 4 * DAY),
        ("gpu-skylake", False, "up", 2, 1200),
        ("gpu-cascade", False, "up", 36, 1200),
        ("tds", False, "up", 4, 4 * DAY),
        ("gpu-tds", False, "up", 2, 600),
    ],
    "sinfo-default-graham": [("compute", True, "up", 1043, 7 * DAY)],
    "sinfo-default-magiccastle": [
        ("cpubase_bycore_b1", True, "up", 4, None),
        ("node", False, "up", 2, None),
        ("smnode", False, "up", 2, None),
    ],
    "sinfo-default-nist-ctcms": [
        ("rack1", False, "up", 12, 30 * DAY),
        ("rack2", False, "up", 10, 30 * DAY),
        ("rack3", False, "up", 7, 30 * DAY),
        ("rack4", False, "up", 11, 30 * DAY),
        ("rack4e", False, "up", 8, 30 * DAY),
        ("rack5", False, "up", 11, 30 * DAY),
        ("rack6i", False, "up", 2, 30 * DAY),
        ("rack6", False, "up", 7, 30 * DAY),
        ("gpu", False, "up", 5, 7 * DAY),
    ],
    "sinfo-default-rackham-uppmax": [
        ("all", False, "down", 630, 10 * DAY),
        ("core", True, "up", 588, 10 * DAY),
        ("node", False, "up", 482, 10 * DAY),
    ],
    "cscs-sinfo-known-issue": [
        ("debug", False, "up", 0, 5400),
        ("normal", True, "up", 1, 43200),
        ("xfer", False, "up", 0, DAY),
    ],
    "clariden-sinfo-format": [
        ("debug", False, "up", 1384, 5400),
        ("normal", False, "up", 1359, 43200),
        ("low", False, "up", 1359, DAY),
        ("xfer", False, "up", 2, DAY),
    ],
    "sinfo-PGDN-generic": [
        ("partition_1_name", False, "up", 4, None),
        ("partition_2_name", False, "up", 14, None),
        ("partition_3_name", False, "up", 10, None),
        ("partition_4_name", False, "up", 1, None),
    ],
}


@pytest.mark.parametrize("name", SINFO)
def test_sinfo(samples: Path, name: str) -> None:
    assert sorted(partitions_of(output(samples, name))) == sorted(SINFO[name])


def test_a_partition_whose_name_holds_blanks_is_reported_not_misread(samples: Path) -> None:
    _, table = read_sinfo(output(samples, "sinfo-default-nist-ctcms"), None)
    assert [line.split()[1] for line in table.unread] == [
        "site.sched.queue.testing",
        "site.sched.queue.debug",
    ]


def test_sinfo_without_a_header(samples: Path) -> None:
    columns = ["PARTITION", "AVAIL", "NODES", "STATE", "CPUS", "GRES", "TIMELIMIT", "MEMORY"]
    rows, _ = read_sinfo(output(samples, "sinfo-caslake-secret-partition"), columns)
    records = read_partition_records(output(samples, "scontrol-partition-allowaccounts"))
    found = {item.name: item for item in merge(rows, records)}
    assert {name: (item.nodes, item.max_time_s) for name, item in found.items()} == {
        "caslake": (10, DAY),
        "test": (5, DAY),
        "pi-secret": (4, DAY),
    }
    assert [item.name for item in found.values() if item.admits("mine")] == ["caslake"]
    assert found["test"].admits("rcc-staff")


def test_gres_of_partitions(samples: Path) -> None:
    rows, _ = read_sinfo(output(samples, "sinfo-PGDN-generic"), None)
    assert [row.gpus for row in rows] == [Gpus(1, ""), Gpus(1, ""), Gpus(0, ""), Gpus(8, "")]


GRES: dict[str, list[Gpus]] = {
    "sinfo-features-gres-mila": [
        Gpus(8, "a6000"),
        Gpus(4, "a100"),
        Gpus(8, "a100l"),
        Gpus(8, "h100"),
        Gpus(4, "l40s"),
        Gpus(8, "rtx8000"),
        Gpus(8, "v100"),
        Gpus(0, ""),
    ],
    "sinfo-features-gres-narval-mig": [
        Gpus(0, ""),
        Gpus(15, "a100_3g.20gb+a100_4g.20gb+a100_2g.10gb+a100_1g.5gb"),
        Gpus(4, "a100"),
        Gpus(0, ""),
    ],
    "sinfo-features-gres-rorqual-mig": [
        Gpus(4, "h100"),
        Gpus(12, "nvidia_h100_80gb_hbm3_3g.40gb+nvidia_h100_80gb_hbm3_2g.20gb+nvidia_h100_80gb_hbm3_1g.10gb"),
        Gpus(16, "nvidia_h100_80gb_hbm3_3g.40gb+nvidia_h100_80gb_hbm3_2g.20gb+nvidia_h100_80gb_hbm3_1g.10gb"),
        Gpus(0, ""),
    ],
    "sinfo-features-gres-tamia": [Gpus(4, "h100"), Gpus(8, "h200"), Gpus(0, "")],
}


@pytest.mark.parametrize("name", GRES)
def test_gres(samples: Path, name: str) -> None:
    cells = [line.split("|")[1] for line in output(samples, name).splitlines()]
    assert [gpus_of(read_gres(cell)) for cell in cells] == GRES[name]


def test_gres_beside_gpus(samples: Path) -> None:
    cell = output(samples, "sinfo-gres-mps-shard-nvme").split("|")[2]
    assert [(item.name, item.type, item.count) for item in read_gres(cell)] == [
        ("gpu", "a100", 4),
        ("mps", "a100", 400),
        ("shard", "a100", 32),
        ("nvme", "", 1600),
    ]
    ascend = [read_gres(line.split()[1]) for line in output(samples, "sinfo-gres-osc-ascend").splitlines()]
    assert {gpus_of(item) for item in ascend} == {Gpus(4, "a100")}
    assert ("pfsdir", "scratch", 1) in {(item.name, item.type, item.count) for item in ascend[0]}
    long = [line.split() for line in output(samples, "sinfo-gres-long-hostnames").splitlines()]
    assert [gpus_of(read_gres(cells[1])) for cells in long] == [Gpus(8, "tesla")] * 3
    nesi = read_table(output(samples, "sinfo-N-O-nesi"))
    by_node = {row["NODELIST"]: gpus_of(read_gres(row["GRES"])) for row in nesi.rows}
    assert nesi.unread == ()
    assert (by_node["c001"], by_node["g01"]) == (Gpus(0, ""), Gpus(2, "a100"))
    assert Counter(row["STATE"] for row in nesi.rows)["mixed"] >= 12


def test_gpu_memory_is_in_the_name_of_a_part_of_a_gpu_else_the_sites() -> None:
    assert gpu_memory_gib("nvidia_h100_80gb_hbm3_3g.40gb", {}) == 40
    assert gpu_memory_gib("a100_1g.5gb", {}) == 5
    assert gpu_memory_gib("A100", {"a100": 40}) == 40
    assert gpu_memory_gib("a100_3g.20gb+a100_1g.5gb", {}) is None


def test_a_broken_gpu_does_not_speak_for_its_partition() -> None:
    text = "\n".join(
        f"large|up|infinite|{nodes}|gpu:gh200:{gres}|288|4|72"
        for nodes, gres in ((1, "3(S:0,2-3)"), (5600, "4(S:0-3)"), (1, "1(S:0)"), (2, "4"))
    )
    (partition,) = merge(read_sinfo(text)[0], ())
    assert partition.gpus == Gpus(4, "gh200")
    assert partition.cpus == Cpus(288, 288)
    assert [(mix.gpus.count, mix.nodes) for mix in partition.mix] == [(4, 5602), (3, 1), (1, 1)]


def test_a_limit_that_only_the_qos_knows(samples: Path) -> None:
    rows, _ = read_sinfo(
        "booster*|up|infinite|5643|gpu:gh200:4|288|4|72\nlargebooster|up|infinite|5884|gpu:gh200:4|288|4|72"
    )
    text = "\n".join(
        output(samples, f"jsc-jupiter-scontrol-partition-{name}") for name in ("booster", "largebooster-down")
    )
    booster, large = merge(rows, read_partition_records(text))
    assert (booster.max_time_s, booster.default_time_s, booster.max_nodes) == (None, 3600, None)
    assert (booster.qos, large.qos, large.state) == ("part_booster", "part_largebooster", "down")
    qos = read_qos("part_booster|12:00:00|node=512|||")
    assert (with_qos_limits(booster, qos).max_time_s, with_qos_limits(booster, qos).max_nodes) == (43200, 512)
    assert with_qos_limits(large, qos).max_time_s is None


def test_partitions_with_denied_accounts(samples: Path) -> None:
    records = read_partition_records(output(samples, "scontrol-partition-o-osc"))
    by_name = {record["PartitionName"]: record for record in records}
    rows, _ = read_sinfo(
        "batch*|up|7-00:00:00|810|gpu:p100:1|28|2|14\ngpudebug|up|1:00:00|154|gpu:p100:1|28|2|14"
    )
    batch, debug = merge(rows, records)
    assert batch.state == "inactive"
    assert not batch.admits("pxx0001")
    assert batch.admits("pxx9999")
    assert (debug.max_nodes, debug.max_time_s, debug.qos) == (2, 3600, "gpudebug")
    assert by_name["batch"]["TotalNodes"] == "810"


def test_reservations(samples: Path) -> None:
    devel, test = read_records(output(samples, "jsc-jupiter-scontrol-reservations"))
    assert (devel["ReservationName"], devel["NodeCnt"], devel["PartitionName"]) == (
        "develbooster",
        "8",
        "booster",
    )
    assert (test["ReservationName"], test["State"]) == ("parastation-test", "ACTIVE")
