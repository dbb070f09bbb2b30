"""Why a job waits, whether it is stuck, and how a maintenance ends, with commands that stand for Slurm's."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import distill_tui
from launcher.clusters.slurm.maintenance import (
    Maintenance,
    explain_maintenance,
    next_maintenance,
    read_reservations,
)
from tests.launcher.ordering import Desk
from tests.slurm.commands import install
from tests.slurm.samples import output
from tui.cli import main

Watch = Callable[[str], dict[str, Any]]
HOUR = 3600.0
JOB = "JobId=4711 JobName=kd UserId=u(1000) JobState=PENDING WorkDir=/nowhere StdOut=/nowhere/slurm-4711.out"
PARTITIONS = "PartitionName=gpu\n   Nodes=n[1-4] State=UP\nPartitionName=cpu\n   Nodes=c[1-9] State=UP"


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Watch:
    """Return a command that watches a job that waits for a reason; scontrol shows `reservations.txt`."""
    desk = Desk.at(tmp_path)
    scontrol = (
        f'echo "$*" >>"$0.asked"\ncase "$*" in "show job"*) echo "{JOB}" ;;'
        f' "show partition"*) echo "{PARTITIONS}" ;;'
        f' "show reservation"*) cat {tmp_path}/reservations.txt ;; esac'
    )
    squeue = (
        'case "$*" in *"%i|%P"*) echo "4711|gpu" ;;'
        f' *) echo "4711|PENDING|$(date +%s)|0|0||$(cat {tmp_path}/reason.txt)|kd" ;; esac'
    )
    for name, value in install(desk, scontrol=scontrol, squeue=squeue).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "reservations.txt").write_text("No reservations in the system\n")

    def run(reason: str) -> dict[str, Any]:
        (tmp_path / "reason.txt").write_text(reason + "\n")
        main(distill_tui.__version__, ["watch", "--once", "--json", "4711"])
        printed: dict[str, Any] = json.loads(capsys.readouterr().out)
        return printed

    return run


def notices(printed: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in printed["findings"] if item["id"] == "stuck-pending"]


@pytest.mark.parametrize(
    ("reason", "says", "fix"),
    [
        ("launch_failed_requeued_held", "could not be launched", "scontrol release 4711"),
        ("JobHoldMaxRequeue", "held", "scontrol release 4711"),
        ("Reservation maint_2 was deleted", "deleted", "without --reservation"),
        ("QOSMaxGRESPerJob", "more GPUs", "fewer --nodes"),
        ("QOSMinGRES", "less", "more --nodes"),
        ("AccountNotAllowed", "account", "another --account"),
        ("PartitionDown", "closed", "another partition"),
        ("BadConstraints", "no node", "detect"),
        ("MaxMemPerLimit", "memory", "--mem"),
    ],
)
def test_a_job_that_never_starts_by_itself(watch: Watch, reason: str, says: str, fix: str) -> None:
    printed = watch(reason)
    (notice,) = notices(printed)
    assert says in notice["text"]
    assert fix in notice["fix"]
    assert (printed["job"]["stuck"], printed["job"]["fix"]) == (True, notice["fix"])


def test_a_job_that_waits(watch: Watch) -> None:
    printed = watch("ReqNodeNotAvail, UnavailableNodes:n[1-2]")
    assert notices(printed) == []
    assert (printed["job"]["stuck"], printed["job"]["unavailable_nodes"]) == (False, "n[1-2]")
    assert "maintenance" not in printed["reason"]


def reservation(name: str, start: float, end: float, nodes: str, flags: str = "MAINT,SPEC_NODES") -> str:
    return (
        f"ReservationName={name} StartTime={start:.0f} EndTime={end:.0f} Duration=1-00:00:00\n"
        f"   Nodes={nodes} NodeCnt=2 CoreCnt=8 PartitionName=(null) Flags={flags}\n   State=INACTIVE\n\n"
    )


def test_a_maintenance_is_told_with_its_end_and_the_time_that_fits(watch: Watch, tmp_path: Path) -> None:
    now = time.time()
    (tmp_path / "reservations.txt").write_text(
        reservation("others", now + HOUR, now + 2 * HOUR, "c[1-3]")
        + reservation("course", now + HOUR, now + 2 * HOUR, "n[1-4]", "SPEC_NODES")
        + reservation("later", now + 50 * HOUR, now + 60 * HOUR, "n[1-4]")
        + reservation("next", now + 10.2 * HOUR, now + 20 * HOUR, "n[3-9]")
    )
    printed = watch("ReqNodeNotAvail, Reserved for maintenance")
    assert notices(printed) == []
    end = time.strftime("%b %d %H:%M", time.localtime(now + 20 * HOUR))
    assert f"until {end}" in printed["reason"]
    assert "--time=10:00:00 or less" in printed["reason"]
    assert "timelimit=10:00:00" in printed["job"]["fix"]
    asked = (tmp_path / "bin" / "scontrol.asked").read_text().splitlines()
    assert asked.count("show reservation") == 1


def test_reservations_that_are_hidden_leave_the_advice(watch: Watch, tmp_path: Path) -> None:
    assert "a shorter --time may start" in watch("(ReqNodeNotAvail,_Reserved_for_maintenance)")["reason"]
    (tmp_path / "reservations.txt").unlink()
    assert "a shorter --time may start" in watch("Reserved for maintenance")["reason"]


def test_reservations_of_jupiter(samples: Path) -> None:
    develop, test = read_reservations(output(samples, "jsc-jupiter-scontrol-reservations"))
    assert (develop.name, develop.nodes, test.flags) == ("develbooster", "jpbo-101-[01-08]", ("SPEC_NODES",))
    assert develop.end - develop.start == 365 * 24 * HOUR
    assert next_maintenance([develop, test], (), 0.0) is None


def test_a_maintenance_under_way() -> None:
    text = reservation("m", 100, 9000, "(null)", "MAINT,IGNORE_JOBS,ALL_NODES")
    maintenance = next_maintenance(read_reservations(text), ("n1",), 5000.0)
    assert maintenance == Maintenance("m", 100.0, 9000.0, 0)
    explained = explain_maintenance(maintenance)
    assert "--time" not in explained.text
    assert not explained.stuck


# ------------------------------------------------------------ public reports


@pytest.mark.long
def test_public_reports(shared: Path, tmp_path: Path) -> None:
    """Run the cases that wait in the queue, each of their reasons in turn."""
    cases = sorted((shared / "public-cases").glob("slurm-*"))
    if not cases:
        pytest.skip("no public cases")
    for source in cases:
        case = tmp_path / source.name
        shutil.copytree(source, case)
        case.chmod(0o755)
        expected = tomllib.loads((case / "expected.toml").read_text())
        if expected["kind"] == "squeue-reason":
            for item in expected["reasons"]:
                (case / "reason.txt").write_text(item["reason"])
                _check_reason(json.loads(_command(case, "watch", "--once", "--json", "4711")), item)
        elif expected["kind"] == "detect":
            text = _command(case, "detect", "--refresh")
            _check_partitions(text, json.loads(_command(case, "detect", "--refresh", "--json")), expected)


def _command(case: Path, *arguments: str) -> str:
    program = str(Path(sys.prefix) / "bin" / "distill-tui")
    environment = {
        "PATH": f"{case / 'bin'}:/usr/bin:/bin",
        "HOME": str(case),
        "USER": "u",
        "XDG_CACHE_HOME": str(case / "cache"),
        "XDG_CONFIG_HOME": str(case / "config"),
        "DISTILL_TUI_RUNS": str(case / "runs"),
    }
    done = subprocess.run(
        [program, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout, done.stderr
    return done.stdout


def _check_reason(printed: dict[str, Any], item: dict[str, Any]) -> None:
    found = notices(printed)
    assert bool(found) == item["notice"], printed
    said = " ".join([printed["reason"], *(f"{one['text']} {one['fix']}" for one in found)]).lower()
    said = said.replace(item["reason"].lower(), "")
    for words in item.get("told", ()):
        assert any(word in said for word in ([words] if isinstance(words, str) else words)), said
    assert not any(word in said for word in item.get("told_not", ())), said


def _check_partitions(text: str, printed: dict[str, Any], expected: dict[str, Any]) -> None:
    by_name = {item["name"]: item for item in printed["partitions"]}
    for name, wanted in expected["expect"]["partitions"].items():
        counts = wanted.pop("counts", ())
        assert {key: by_name[name][key] for key in wanted} == wanted
        line = next(line for line in text.splitlines() if line.startswith(name))
        if counts:
            assert any(f" {count} " in line.replace("(", " ") for count in counts), line
            others = [value for key, value in by_name[name].items() if key not in wanted]
            assert any(count in others for count in counts)
