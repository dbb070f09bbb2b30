"""Checks of the login node: each names its planted fault with the command that helps; its twin passes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.runner import examine
from launcher.doctor.subject import Subject
from tests.checks.test_models import cache
from tests.doctor.faults import FAULTS
from tests.doctor.place import Place, judged
from tests.doctor.service import service


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return the place where nothing is wrong, which no test changes."""
    return Place.at(tmp_path_factory.mktemp("place") / "p", with_git=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.at(tmp_path / "p")


def prepared(place: Place, check: str) -> Place:
    """Make the place one to which a check applies."""
    if check == "D13":
        (place.root / ".gitmodules").write_text('[submodule "m"]\n\tpath = 3rdparty/Megatron-LM\n')
        (place.root / "3rdparty" / "Megatron-LM").mkdir(parents=True)
        (place.root / "3rdparty" / "Megatron-LM" / "setup.py").touch()
    if check == "D06":
        place.overrides = ()  # a student of some megabytes
    if check == "D23":
        place.overrides += ("policy.tokenizer.name=Qwen/Qwen3-4B",)
        cache(place.root / "hf", "Qwen/Qwen3-4B", {"tokenizer.json": {}})
    if check == "D28":
        place.overrides += ("logger.wandb_enabled=true",)
    if check in ("D34", "D35"):
        place.request["container"] = str(place.root / "nemo.sqsh")
        (place.root / "nemo.sqsh").write_bytes(b"x")
    if check == "D38":
        subject = place.subject()
        from launcher.doctor.node_results import NodeRecord, save_record

        save_record(subject, NodeRecord("/runs/r", "booster", {"n1": {"schema": 1}}))
    return place


def examined(place: Place, check: str) -> Subject:
    """Return the subject; a container service is named by a profile, which is not what is tested here."""
    subject = place.subject()
    if check == "D36":
        return replace(subject, job={**subject.job, "DOCKER_HOST": f"unix://{place.root}/s"})
    return subject


def _cases() -> Iterator[object]:
    """Yield the faults; the second one of a check is slow, since each takes 0.05 s."""
    checks: set[str] = set()
    for name in FAULTS:
        check = name.partition(" ")[0]
        yield pytest.param(name, marks=[pytest.mark.slow] if check in checks else [])
        checks.add(check)


@pytest.mark.parametrize("name", _cases())
def test_a_planted_fault_is_named_with_what_helps(
    name: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, plant, evidence, command = FAULTS[name]
    check = name.partition(" ")[0]
    prepared(place, check)
    if check == "D13":
        shutil.rmtree(place.root / "3rdparty" / "Megatron-LM")
    if check == "D36":
        (place.root / "s").touch()
    plant(place, monkeypatch)
    verdict = judged(examined(place, check), check)
    assert verdict is not None
    assert (verdict.outcome, evidence in verdict.evidence) == (outcome, True), verdict.evidence
    assert verdict.remedy is not None
    assert command in verdict.remedy.command


APPLIES_TO_FEW = {"D04": "a budget", "D37": "a container service"}
"""Checks with a test of their own below."""


PREPARED = ("D06", "D13", "D23", "D28", "D34", "D35", "D36", "D38")
"""Checks that apply to no place as it is: something must be added."""


def test_the_healthy_twins_pass(original: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 1048576))
    report = examine(LOGIN_CHECKS, original.subject(), limit_s=60)
    verdicts = {item.check.id: item.verdict for item in report.examinations if item.check.id not in PREPARED}
    assert {check: verdict for check, verdict in verdicts.items() if verdict.outcome != "pass"} == {}
    assert verdicts.keys() == {item.id for item in LOGIN_CHECKS} - {*PREPARED, *APPLIES_TO_FEW}


@pytest.mark.parametrize("check", PREPARED)
def test_the_healthy_twin_of_a_prepared_place_passes(check: str, place: Place) -> None:
    twin = prepared(place, check)
    with service(twin.root / "s", 1) if check == "D36" else nullcontext():
        verdict = judged(examined(twin, check), check)
    assert verdict is not None
    assert verdict.outcome == "pass", verdict


def test_every_check_of_the_login_node_has_a_planted_fault() -> None:
    planted = {name.partition(" ")[0] for name in FAULTS} | APPLIES_TO_FEW.keys()
    assert planted == {item.id for item in LOGIN_CHECKS}
