"""A failure names the checks that look for it, wherever it is shown; a run leads to its doctor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from launcher.doctor.doctor_request import DoctorRequest
from launcher.logs.events import FindingSeen, JobState, Role, Source
from launcher.monitor.summary import event_json, finding_json
from launcher.request import SubmitRequest
from launcher.runs import RecipeRef, RunSpec, SlurmRequest
from tui.headless.plain import finding_lines
from tui.opening import RunSummary
from tui.run_view import RunView
from tui.widgets.status_panel import state_lines

FINDING = FindingSeen(
    "venv-build", "An environment could not be built", "fatal", "uv failed",
    Source("ray-driver.log", Role.DRIVER, 7), "Build it.", root=True,
)  # fmt: skip


def test_a_finding_has_the_checks_that_look_for_it() -> None:
    assert finding_json(FINDING)["doctor"] == event_json(FINDING)["doctor"] == ["D10", "D18"]
    assert finding_json(replace(FINDING, id="nobody-looks"))["doctor"] == []


def test_the_end_of_a_run_names_them() -> None:
    told = "`distill-tui doctor` looks for it before a run: D10, D18"
    assert told in "\n".join(finding_lines([finding_json(FINDING)]))
    assert "doctor" not in "\n".join(finding_lines([finding_json(replace(FINDING, id="nobody-looks"))]))
    older = {key: value for key, value in finding_json(FINDING).items() if key != "doctor"}
    assert "doctor" not in "\n".join(finding_lines([older]))  # the summary of a run of an earlier version


@pytest.mark.parametrize("width", [40, 80])
def test_the_monitor_names_them(width: int) -> None:
    view = RunView(RunSummary("r"), JobState.FAILED, "uv failed", findings=(FINDING,))
    lines = [line.plain for line in state_lines(view, 0.0, width)]
    assert any(line.startswith("   F9 doctor: D10, D18 look") for line in lines)
    assert max(map(len, lines)) <= width


def spec_of(**changes: Any) -> RunSpec:
    values = {
        "id": "20261128-x", "name": "x", "kind": "training", "created": "2026-11-28T00:00:00Z", "user": "u",
        "host": "h", "recipe": RecipeRef(source="/r/a.yaml", overrides=("a.b=1",)), "cluster": "slurm",
        "nodes": 2, "gpus_per_node": 4, "checkout": "/c", "schema": 1,
        "slurm": SlurmRequest(partition="booster", account="first", time_s=3600), **changes,
    }  # fmt: skip
    return RunSpec.model_validate(values)


def test_the_doctor_of_a_run_examines_the_place_of_another_one_like_it() -> None:
    request = DoctorRequest.of_run(spec_of())
    assert request == DoctorRequest(
        Path("/r/a.yaml"), ("a.b=1",), "training", 2, 3600, "booster", "first", checkout="/c"
    )
    assert DoctorRequest.of_run(spec_of(slurm=None, kind="smoke")) is not None
    for other in ({"kind": "rehearsal"}, {"kind": "doctor"}, {"recipe": RecipeRef(source="a.yaml")}):
        assert DoctorRequest.of_run(spec_of(**other)) is None


def test_the_doctor_of_a_submission_is_asked_for_the_same() -> None:
    request = SubmitRequest(
        Path("/r/a.yaml"), 2, "1:00:00", overrides=("a=1",), kind="smoke", partition="p", account="q",
        checkout="/c", modules="m", container="i.sqsh",
    )  # fmt: skip
    asked = DoctorRequest.of_submission(request)
    again = asked.as_submit()
    names = ("recipe", "nodes", "time", "overrides", "kind", "partition", "account", "checkout", "modules")
    assert [getattr(again, name) for name in names] == [getattr(request, name) for name in names]
    assert asked.container == "i.sqsh"
    assert DoctorRequest.of_submission(replace(request, kind="rehearsal")) == DoctorRequest()
