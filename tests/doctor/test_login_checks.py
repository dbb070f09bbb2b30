"""Verdicts of the login node: budgets, networks, what applies, names that reach no shell."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.clusters.inventory import Budget
from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.fixing import script, steps
from launcher.doctor.runner import examine
from tests.doctor.faults import lock_from_index
from tests.doctor.place import BASE, VLLM, Place, judged
from tests.doctor.service import service


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return the place where nothing is wrong, which no test changes."""
    return Place.at(tmp_path_factory.mktemp("place") / "p", with_git=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.at(tmp_path / "p")


@pytest.mark.parametrize(
    ("left", "outcome"), [(1000.0, "pass"), (50.0, "warn"), (-5.0, "warn"), (None, "unknown")]
)
def test_what_is_left_of_a_budget_is_compared_with_the_cost(
    left: float | None, outcome: str, original: Place
) -> None:
    original.request["time"] = "2:00:00"
    subject = original.subject()
    del original.request["time"]
    assert subject.detection is not None
    budget = Budget("project", "first", left, 5000.0)
    subject = replace(subject, detection=replace(subject.detection, budgets=(budget,)))
    verdict = judged(subject, "D04")
    assert verdict is not None
    assert verdict.outcome == outcome, verdict
    assert judged(original.subject(), "D04") is None


@pytest.mark.parametrize(("networks", "outcome"), [(1, "pass"), (6, "warn"), (8, "fail")])
def test_container_networks_that_are_left_are_counted(networks: int, outcome: str, place: Place) -> None:
    subject = place.subject()
    assert judged(subject, "D37") is None
    with service(place.root / "s", networks):
        job = {**subject.job, "DOCKER_HOST": f"unix://{place.root}/s"}
        verdict = judged(replace(subject, job=job), "D37")
    assert verdict is not None
    assert (verdict.outcome, f"{networks} of 8" in verdict.evidence) == (outcome, True), verdict
    assert outcome == "pass" or (
        verdict.remedy is not None and "docker network prune" in verdict.remedy.command
    )


def test_only_what_every_run_needs_is_examined_without_a_recipe(original: Place) -> None:
    report = examine(LOGIN_CHECKS, original.subject(with_recipe=False), limit_s=20)
    ids = {item.check.id for item in report.examinations}
    assert not {"D06", "D18", "D22", "D24"} & ids
    assert {"D01", "D05", "D12", "D14", "D16", "D29"} <= ids


def test_a_cache_with_all_that_is_locked_builds_what_is_missing(place: Place) -> None:
    lock_from_index(place)
    for name, version in {**BASE, "vllm": "0.19.0"}.items():
        (place.root / "uv-cache" / "wheels-v6" / "pypi" / name / f"{version}-py3-none-any").mkdir(
            parents=True
        )
    shutil.rmtree(place.root / "venvs" / VLLM)
    verdict = judged(place.subject(), "D11")
    assert verdict is not None
    assert verdict.outcome == "pass", verdict


def test_links_to_an_environment_do_not_count_as_another_place(place: Place) -> None:
    (place.root / "link").symlink_to(place.root)
    (place.root / ".venv" / "bin" / "ray").write_text(f"#!{place.root}/link/.venv/bin/python\n")
    verdict = judged(place.subject(), "D17")
    assert verdict is not None
    assert verdict.outcome == "pass"


def test_an_untracked_file_is_told(place: Place) -> None:
    place.commit()
    (place.root / "nemo_rl" / "mine.py").touch()
    verdict = judged(place.subject(), "D12")
    assert verdict is not None
    assert "1 untracked file" in verdict.evidence


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["a; touch x", "$(touch x)", "a b", "--help", "a\ntouch x", "../../a", "`x`", "a/b/c"]
)
def test_names_of_somebody_s_recipe_reach_no_shell(name: str, place: Place) -> None:
    place.overrides = (
        f"++policy.model_name={json.dumps(name)}",
        f"++data.train.data_path={json.dumps(name)}",
    )
    report = examine(LOGIN_CHECKS, place.subject(), limit_s=20)
    offered = [step.command for step in steps(report) if step.automatic]
    assert not [command for command in offered if "touch" in command or "--help" in command or "`" in command]
    for item in report.examinations:
        if item.verdict.remedy is not None and item.check.id in ("D22", "D23", "D24"):
            assert "touch x" not in " ".join(shlex.split(item.verdict.remedy.command)[:1])
    text = script(report)
    assert not [line for line in text.splitlines() if "touch x" in line and not line.startswith("#")]
