"""Outputs of Slurm at many sites about accounts, QoS, jobs: read to the right values, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launcher.clusters.inventory import Account
from launcher.clusters.slurm.accounts import read_accounts
from launcher.clusters.slurm.jobs import base_state, read_queue
from launcher.clusters.slurm.parse import ParseError, read_duration, read_records, read_table
from launcher.clusters.slurm.partitions import (
    read_qos,
)
from tests.slurm.samples import output

DAY = 86400


JUPITER = ["Cluster", "Account", "User", "Partition", "QOS", "a", "b", "c", "d"]
OSC = ["Account", "QOS"]
ACCOUNTS: dict[str, tuple[list[str] | None, list[Account], int]] = {
    "jsc-jupiter-sacctmgr-assoc": (
        JUPITER,
        [
            Account("acct01", "booster", ("normal",), cluster="jupiter"),
            Account("acct01", "largebooster", ("normal",), cluster="jupiter"),
        ],
        0,
    ),
    "sacctmgr-assoc-empty": (None, [], 0),
    "sacctmgr-assoc-format-jupiter": (None, [Account("acct01", "booster", ("normal",))], 0),
    "sacctmgr-assoc-lawrencium-p": (
        None,
        [
            Account("acctJ", "ood_inter", ("lr_interactive",), cluster="perceus-00"),
            Account("acctJ", "jgi", ("normal",), cluster="perceus-00"),
            Account("lr_acctJ", "lr3", ("condo_acctJ",), cluster="perceus-00"),
            Account("pc_acctB", "cm1", ("cm1_debug", "cm1_normal"), cluster="perceus-00"),
            Account("pc_acctB", "lr6", ("lr_debug", "lr_normal"), cluster="perceus-00"),
        ],
        0,
    ),
    "sacctmgr-assoc-no-partition": (
        None,
        [
            *(Account(f"acct_{letter}", None, ("pli-low",)) for letter in "abc"),
            Account(
                "acct_d",
                None,
                ("gpu-long", "gpu-medium", "gpu-short", "gpu-test", "medium", "short", "test", "vlong"),
            ),
        ],
        0,
    ),
    # Rows of two Slurm versions under one header: those that do not fit it are reported.
    "sacctmgr-assoc-savio-p": (
        None,
        [
            Account("co_acctA", f"savio2_{kind}", ("savio_lowprio",), cluster="brc")
            for kind in ("1080ti", "knl", "bigmem")
        ],
        3,
    ),
    "sacctmgr-assoc-single-p": (None, [Account("acct1", None, ("debug", "low", "standard"))], 0),
    "sacctmgr-accts-osc": (
        OSC,
        [
            Account("pxx0001", None, ("owens-default", "staff", "phoenix", "geophys", "hal", "gpt")),
            *(Account(f"pxx000{number}", None, ("owens-default",)) for number in range(2, 9)),
        ],
        0,
    ),
    "sacctmgr-assoc-noheader-limits": (
        ["User", "Account", "GrpCPU", "GrpMem", "GrpJobs", "GrpSubmit"],
        [Account("account5", None, ())],
        0,
    ),
}


@pytest.mark.parametrize("name", ACCOUNTS)
def test_accounts(samples: Path, name: str) -> None:
    columns, expected, unread = ACCOUNTS[name]
    found, table = read_accounts(output(samples, name), columns)
    assert (found, len(table.unread)) == (expected, unread)


def test_qos(samples: Path) -> None:
    aau = read_qos(output(samples, "sacctmgr-qos-aau"), None)
    assert {name: item.max_jobs_user for name, item in aau.items()} == {"normal": 500, "highprio": 2000}
    icm = read_qos(output(samples, "sacctmgr-qos-icm"), None)
    assert {name: item.max_time_s for name, item in icm.items()} == {
        "normal": None,
        "hpc": 7 * DAY,
        "plgrid": 7 * DAY,
        "egi": 7 * DAY,
        "meteo": None,
    }
    assert list(read_qos(output(samples, "sacctmgr-qos-stas"), None)) == ["low", "high"]


QUEUE: dict[str, tuple[list[str] | None, list[tuple[str, str]]]] = {
    "sacct-array-states": (
        ["JobID", "State"],
        [("10000_0", "CANCELLED"), ("10000_1", "COMPLETED"), ("10000_2", "FAILED"), ("10000_3", "TIMEOUT")],
    ),
    "sacct-stas": (None, [("22171", "COMPLETED")]),
    "jsc-jupiter-sacct-P": (None, [("1618998", "COMPLETED"), ("1618999", "COMPLETED")]),
    "sacct-nesi": (None, [(f"31060451{step}", "CANCELLED") for step in ("", ".batch", ".extern")]),
}


@pytest.mark.parametrize("name", QUEUE)
def test_jobs(samples: Path, name: str) -> None:
    columns, expected = QUEUE[name]
    found, table = read_queue(output(samples, name), columns)
    assert [(job.id, base_state(job.state)) for job in found] == expected
    assert table.unread == ()


def test_many_states(samples: Path) -> None:
    text = output(samples, "squeue-states-prom").replace(",", "|")
    found, _ = read_queue(text, ["JobID", "State"])
    assert len(found) == 25
    by_id = {job.id: job.state for job in found}
    assert (by_id["15452431"], by_id["15452448"], by_id["15452466"]) == (
        "CONFIGURING",
        "PREEMPTED",
        "SUSPENDED",
    )


SQUEUE: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "jsc-juwels-squeue-develbooster": (["JOBID", "NODELIST(REASON)"], [("6525353", "jwb[0129,0149]")]),
    "squeue-hpc3-maintenance": (
        ["JOBID", "NODELIST(REASON)"],
        [
            ("92005", "(ReqNodeNotAvail,Reserved for maintenance)"),
            ("92008", "(ReqNodeNotAvail,Reserved for maintenance)"),
            ("95475", "(QOSMaxJobsPerUserLimit)"),
        ],
    ),
    "squeue-lumi-array": (
        ["JOBID", "ST"],
        [("123456_[3-16]", "PD"), ("123456_1", "R"), ("123456_2", "R")],
    ),
    "squeue-nesi": (["JOBID", "STATE"], [("231964", "PENDING")]),
}


@pytest.mark.parametrize("name", SQUEUE)
def test_squeue_with_a_header(samples: Path, name: str) -> None:
    columns, expected = SQUEUE[name]
    table = read_table(output(samples, name))
    assert [tuple(row[column] for column in columns) for row in table.rows] == expected
    assert table.unread == ()


def not_a_table(text: str) -> Any:
    return read_table(text)


UNREADABLE: dict[str, Callable[[str], Any]] = {
    "cscs-sinfo-features": not_a_table,
    "sinfo-json-21.08": not_a_table,
    "sinfo-json-lines-fallback": not_a_table,
    "squeue-json-21.08": not_a_table,
    "squeue-json-lines-fallback": not_a_table,
    "sacct-json-state-object": not_a_table,
    "sacct-nesi-oom": not_a_table,
    "jsc-inode-quota-error": not_a_table,
    "jsc-jupiter-chdir-error": not_a_table,
    "step-node-failure-archer2": not_a_table,
    "srun-err-step-busy": not_a_table,
    "salloc-queued-archer2": not_a_table,
    "scontrol-job-qtoolkit": read_records,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_said_with_its_text(samples: Path, name: str) -> None:
    text = output(samples, name)
    with pytest.raises(ParseError) as caught:
        UNREADABLE[name](text)
    first = next(line for line in text.splitlines() if line.strip()).strip()
    assert "cannot read this" in caught.value.what
    assert first[:60] in caught.value.what


def test_rows_that_do_not_fit_are_kept_apart(samples: Path) -> None:
    gcm = output(samples, "sacct-all-fields-multiline-gcm").splitlines()
    table = read_table("\n".join(gcm[1:]).replace("|#", "|"), gcm[0].split("|#"))
    assert [(row["JobID"], row["NNodes"]) for row in table.rows] == [("201729", "128"), ("201729.batch", "1")]
    assert len(table.unread) == 3  # a newline within a command line makes two lines; one is cut
    for name in ("squeue-hetjob-archer2", "squeue-savio-qos-wall", "jsc-juwels-gpu-topo"):
        text = output(samples, name)
        found, table = read_queue(text, ["JobID", "State"])
        assert found == []
        assert list(table.unread) == text.splitlines()


def test_every_sample_is_looked_at(samples: Path) -> None:
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_samples*.py"))
    known = {
        "jsc-jupiter-scontrol-partition-booster",
        "jsc-jupiter-scontrol-partition-largebooster-down",
    }
    assert [
        path.stem
        for path in samples.glob("*.txt")
        if f'"{path.stem}"' not in source and path.stem not in known
    ] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 1800),
        ("30:00", 1800),
        ("4:00:00", 14400),
        ("1-00", DAY),
        ("1-12:30", 131400),
        ("7-00:00:0", 7 * DAY),
        ("10-00:00:0", 10 * DAY),
        ("infinite", None),
        ("UNLIMITED", None),
        ("N/A", None),
        ("", None),
    ],
)
def test_durations(text: str, value: int | None) -> None:
    assert read_duration(text) == value


@pytest.mark.parametrize("text", ["1x", "a:b", "1:2:3:4", "-3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ParseError, match=re.escape(text)):
        read_duration(text)
