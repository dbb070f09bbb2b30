"""Quotas of bytes and files by each command that tells them: a shortage is named, its twin passes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from launcher.storage import quotas
from launcher.submit import doctor_subject
from tests.doctor.place import Place, judged

GPFS = (
    "mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:"
    "blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:"
)


@dataclass(frozen=True)
class Left:
    """What is left, in KiB and files, of limits that are much larger."""

    kib: int = 900_000_000
    files: int = 900_000

    @property
    def kib_used(self) -> int:
        return 1_000_000_000 - self.kib

    @property
    def files_used(self) -> int:
        return 1_000_000 - self.files


def columns(left: Left) -> str:
    """Return use, soft and hard limit of bytes and files, as `quota` and `lfs` have them."""
    files = f"{left.files_used} 1000000 1100000"
    return f"{left.kib_used} 1000000000 1100000000 - {files} -"


def unix(left: Left) -> str:
    return columns(left).replace(" - ", " ")


def gpfs(left: Left) -> str:
    blocks = f"{left.kib_used}:1000000000:1100000000:0:none"
    return f"mmlsquota::0:1:::fs:USR:1:u:{blocks}:{left.files_used}:1000000:1100000:0:none:"


def jutil(left: Left, directory: Path) -> str:
    row = {
        "project": "p",
        "project-dir": str(directory),
        "data-usage": f"{left.kib_used}KB",
        "data-soft-limit": "1000000000KB",
        "data-hard-limit": "1100000000KB",
        "inode-usage": str(left.files_used),
        "inode-soft-limit": "1000000",
        "inode-hard-limit": "1100000",
    }
    return json.dumps([row])


def commands_of(source: str, place: Place, left: Left) -> Mapping[str, str]:
    """Return the kind of file system that a source belongs to, and the commands of this machine."""
    fileset, nothing = place.root.name, "exit 0"
    return {
        "quota": {"quota": f"echo '{place.root.parent} {unix(left)}'; exit 1"},
        "lfs user": {"lfs": f'[[ "$*" != *" -u "* ]] || echo "/lus {columns(left)}"'},
        "lfs group": {"lfs": f'[[ "$*" != *" -g "* ]] || echo "/lus {columns(left)}"'},
        "mmlsquota user": {"mmlsquota": f'[[ "$*" != *" -u "* ]] || printf "%s\\n" "{GPFS}" "{gpfs(left)}"'},
        "mmlsquota fileset": {
            "mmlsquota": f'[[ "$*" != *" -j {fileset} fs" ]] || printf "%s\\n" "{GPFS}" "{gpfs(left)}"'
        },
        "jutil": {
            "mmlsquota": nothing,
            "jutil": f'case "$*" in "user dataquota "*) echo \'{jutil(left, place.root / "home")}\' ;;\n'
            f"\"project dataquota -p {fileset} \"*) echo '{jutil(left, place.root)}' ;; esac",
        },
        "df": {},
    }[source]


KINDS = {
    "quota": "nfs",
    "lfs user": "lustre",
    "lfs group": "lustre",
    "mmlsquota user": "gpfs",
    "mmlsquota fileset": "gpfs",
    "jutil": "gpfs",
    "df": "ext4",
}


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Left], Place]:
    """Return what makes a place on a file system with little left, by one of the sources."""

    def at(source: str, left: Left) -> Place:
        place = Place.at(tmp_path / "p")
        table = place.root / "mounts"
        table.write_text(f"/dev/vda / ext4 rw 0 0\n/dev/fs {tmp_path} {KINDS[source]} rw 0 0\n")
        monkeypatch.setattr(quotas, "_MOUNTS", table)
        for name, text in commands_of(source, place, left).items():
            place.command(name, text)
        monkeypatch.setenv("PATH", place.environment["PATH"])
        if source == "df":
            usage = SimpleNamespace(free=left.kib * 1024)
            monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
            files = SimpleNamespace(f_favail=left.files, f_files=1)
            monkeypatch.setattr(os, "statvfs", lambda _: files)
        else:
            monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 50))
            monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_favail=0, f_files=0))
        return place

    return at


Plant = Callable[[str, Left], Place]


@pytest.mark.parametrize(
    "source",
    [pytest.param(name, marks=[pytest.mark.slow] if name.endswith("user") else []) for name in KINDS],
)
def test_a_shortage_is_named_by_each_source_and_its_twin_passes(source: str, plant: Plant) -> None:
    place = plant(source, Left(kib=30_000, files=100))
    place.overrides = ()  # a student of some megabytes, whose checkpoints are saved
    subject = place.subject()
    outcome = "warn" if source == "jutil" else "fail"  # its counters are of an earlier count
    for check, evidence in (("D05", "30.7 MB free"), ("D06", "30.7 MB free"), ("D07", "100 more files")):
        verdict = judged(subject, check)
        assert verdict is not None
        assert (verdict.outcome, evidence in verdict.evidence) == (outcome, True), (check, verdict)
        assert ("may be days old" in verdict.evidence) == (source == "jutil"), verdict
        assert verdict.remedy is not None
    shutil.rmtree(place.root)
    twin = plant(source, Left())
    twin.overrides = ()
    for check in ("D05", "D06", "D07"):
        verdict = judged(twin.subject(), check)
        assert verdict is not None
        assert verdict.outcome == "pass", (check, verdict)


def test_a_command_that_hangs_costs_no_other_answer(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    place = plant("df", Left(kib=30_000, files=100))
    place.command("jutil", "exec sleep 60")
    table = place.root / "mounts"
    table.write_text(f"/dev/fs {place.root.parent} gpfs rw 0 0\n")
    monkeypatch.setattr(quotas, "JUTIL_S", 0.05)
    monkeypatch.setattr(doctor_subject, "_JUTIL_S", 0.05)
    subject = place.subject()
    outcomes = {}
    for check in ("D01", "D02", "D04", "D05"):
        verdict = judged(subject, check)
        assert verdict is not None
        outcomes[check] = verdict.outcome
    # Slurm has answered, and the file system: jutil costs the budget's verdict alone.
    assert outcomes == {"D01": "pass", "D02": "pass", "D04": "unknown", "D05": "fail"}


def test_each_command_is_asked_once(plant: Plant) -> None:
    place = plant("quota", Left())
    script = (place.root / "bin" / "quota").read_text()
    place.command("quota", f"echo x >> {place.root}/asked\n{script.partition(chr(10))[2]}")
    subject = place.subject()
    for check in ("D05", "D06", "D07"):
        judged(subject, check)
    assert (place.root / "asked").read_text() == "x\n"
