"""The doctor of a host: each check says over SSH what it says on the host itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.runner import examine
from launcher.doctor.verdict import Verdict
from launcher.transports.base import Transport
from launcher.transports.ssh.transport import SshTransport
from tests.doctor.faults import FAULTS
from tests.doctor.place import Place, judged
from tests.doctor.test_login_faults import prepared
from tests.ssh.server import Server

LIMIT_S = 200.0
ONLY_HERE = ("D32",)
"""Checks of the program's own session."""
PLANTED_HERE = (*ONLY_HERE, "D30", "D31", "D33", "D36", "D37")
"""Checks whose faults are planted in the process that examines, or that are not made over SSH."""
USUAL = ("D14", "D17", "D18", "D22")
"""Checks whose first fault is planted in the usual set; all are in the slow one."""


@pytest.fixture(scope="module")
def connected(server: Server) -> Iterator[SshTransport]:
    """Return a transport to the server, whose connection all tests share."""
    far = SshTransport(server.host())
    yield far
    far.close()


def far_of(connected: SshTransport, place: Place) -> Transport:
    """Return a transport to the host, whose login shell has the variables of a place."""
    far = connected.beside()
    far._environment = place.environment
    return far


def verdicts(place: Place, transport: Transport | None = None) -> dict[str, Verdict]:
    report = examine(LOGIN_CHECKS, place.subject(transport=transport), limit_s=LIMIT_S)
    return {item.check.id: item.verdict for item in report.examinations}


@pytest.mark.long
def test_a_host_is_examined_as_it_would_be_there(connected: SshTransport, tmp_path: Path) -> None:
    place = Place.at(tmp_path / "p", with_git=True)
    here, there = verdicts(place), verdicts(place, far_of(connected, place))
    assert there.keys() == here.keys() - set(ONLY_HERE)
    for check in there.keys() - {"D05", "D06", "D07"}:  # figures that change meanwhile
        assert there[check] == here[check]
    assert {there[check].outcome for check in ("D05", "D07")} == {"pass"}


def _cases() -> Iterator[object]:
    checks: set[str] = set()
    for name in FAULTS:
        check = name.partition(" ")[0]
        if check in PLANTED_HERE:
            continue
        usual = check in USUAL and check not in checks
        yield pytest.param(name, marks=pytest.mark.long if usual else pytest.mark.slow)
        checks.add(check)


@pytest.mark.parametrize("name", _cases())
def test_a_planted_fault_is_named_over_ssh(
    name: str, connected: SshTransport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, plant, evidence, command = FAULTS[name]
    check = name.partition(" ")[0]
    place = prepared(Place.at(tmp_path / "p"), check)
    if check == "D13":
        shutil.rmtree(place.root / "3rdparty" / "Megatron-LM")
    plant(place, monkeypatch)
    verdict = judged(place.subject(transport=far_of(connected, place)), check, LIMIT_S)
    assert verdict is not None
    assert (verdict.outcome, evidence in verdict.evidence) == (outcome, True), verdict.evidence
    assert verdict.remedy is not None
    assert command in verdict.remedy.command


@pytest.mark.long
def test_what_belongs_to_the_host_alone(connected: SshTransport, tmp_path: Path) -> None:
    place = Place.at(tmp_path / "p")
    raylet = tmp_path / "rb-7-4711" / "raylet"
    raylet.parent.mkdir()
    shutil.copy("/bin/sleep", raylet)
    left = subprocess.Popen([str(raylet), "300"])
    try:
        subject = place.subject(transport=far_of(connected, place))
        verdict = judged(subject, "D33", LIMIT_S)
        assert verdict is not None
        assert verdict.remedy is not None
        assert f"of job 4711: raylet ({left.pid})" in verdict.evidence
        assert str(left.pid) in verdict.remedy.command
        clock, files = judged(subject, "D31", LIMIT_S), judged(subject, "D30", LIMIT_S)
        assert clock is not None
        assert clock.outcome == "pass"
        assert not list((place.root / "runs").glob(".distill-tui*"))
        assert files is not None
        assert re.search(r"at most [\d,]+ files|raises it", files.evidence)
        service = replace(subject, job={**subject.job, "DOCKER_HOST": "unix:///s"})
        for check in ("D36", "D37"):
            not_asked = judged(service, check, LIMIT_S)
            assert not_asked is not None
            assert (not_asked.outcome, "not asked over SSH" in not_asked.evidence) == ("unknown", True)
    finally:
        left.kill()
        left.wait()
