"""The doctor of a host: each check says over SSH what it says on the host itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.fixing import FixStep, run_step_there, terminal_opener
from launcher.doctor.runner import examine
from launcher.doctor.verdict import Examination, HealthReport, Verdict, failed
from launcher.transports.base import Transport
from launcher.transports.ssh.transport import SshTransport
from tests.doctor.faults import FAULTS
from tests.doctor.place import FROM_HUB, VLLM, Place, judged
from tests.doctor.test_login_faults import prepared
from tests.ssh.laptop import command, laptop
from tests.ssh.server import SFTP, Server, running

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


@pytest.mark.long
def test_the_command_examines_and_repairs_the_host(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "p")
    shutil.rmtree(place.root / "venvs" / VLLM)
    built = place.root / "venvs" / VLLM / "bin"
    build = f'mkdir -p "{built}"; cp "{place.root}/.venv/bin/python" "{built}"'
    place.command("uv", f'case $1 in run) echo "args $*"; {build} ;; *) echo uv 0.9.0 ;; esac')
    variables = {name: value for name, value in place.environment.items() if name != "PATH"}
    (place.root / "home" / ".bash_profile").write_text(f'export PATH="{place.environment["PATH"]}"\n')
    sshd = tmp_path / "sshd"
    sshd.mkdir()
    set_env = "SetEnv " + " ".join(f"{name}={value}" for name, value in variables.items())
    with running(sshd, SFTP, set_env) as own_server:
        environment = laptop(own_server, tmp_path)
        recipe = (str(place.root / "recipe.yaml"), *FROM_HUB, "checkpointing.enabled=false")
        arguments = ("doctor", "--host", "far", *recipe)
        missing = command(environment, *arguments)
        assert "FAIL D18" in missing.stdout, missing
        assert missing.returncode == 1
        fixed = command(environment, *arguments, "--fix", "--yes", "--json")
        assert "args run python -m nemo_rl.utils.prefetch_venvs" in fixed.stderr, fixed
        assert fixed.returncode == 0, fixed
        outcomes = {item["id"]: item["outcome"] for item in json.loads(fixed.stdout)["checks"]}
        assert outcomes["D18"] == "pass"
        assert not (tmp_path / "laptop" / ".cache").exists() or not list(
            (tmp_path / "laptop" / ".cache").rglob("report-*")
        ), "the report is kept on the host"
        assert list((place.root / "home").rglob("report-*.json"))


def test_remedies_of_a_host_name_it() -> None:
    verdict = failed("x", "distill-tui detect", "hf download a/b", "echo distill-tui x")
    report = HealthReport((Examination(LOGIN_CHECKS[0], verdict),)).for_host("far")
    remedy = report.examinations[0].verdict.remedy
    assert remedy is not None
    assert remedy.commands == ("distill-tui --host far detect", "hf download a/b", "echo distill-tui x")


@pytest.mark.long
def test_an_interrupted_command_on_the_host_ends_with_its_terminal(
    connected: SshTransport, tmp_path: Path
) -> None:
    opener = terminal_opener(connected)
    assert opener is not None
    reader, writer = os.pipe()
    step = FixStep(f"trap 'echo x > {tmp_path}/hup; exit 1' HUP; echo begun; sleep 300 & wait", "", ())

    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        os.read(reader, 5)
        # A signal, as ctrl+c sends: `interrupt_main` does not wake a thread that waits for a lock.
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_step_there(step, opener, writer)
    for _ in range(600):
        if (tmp_path / "hup").exists():
            break
        time.sleep(0.05)
    assert (tmp_path / "hup").exists()
    assert run_step_there(FixStep("exit 7", "", ()), opener, writer) == 7
    os.close(reader)
    os.close(writer)
