"""The command: JSON, exit codes, the script, what hangs, fixing, and the report that keeps its verdicts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from launcher.clusters.registry import detect
from launcher.doctor import check_docs, fixing
from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.last_report import latest_report
from launcher.doctor.node_job import imports_of, plan_examination
from launcher.doctor.runner import examine
from launcher.errors import InputError
from launcher.paths import cache_root
from launcher.request import SubmitRequest
from launcher.runs import RunStore
from launcher.submit.doctor_subject import ready_report
from launcher.submit.submit import plan_submission
from launcher.transports.local import LocalTransport
from tests.doctor.hanging import hanging_file_system
from tests.doctor.place import FROM_HUB, MODEL, VLLM, Place

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(sys.executable).parent / "distill-tui"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.at(tmp_path / "p", with_git=True)


def doctor(place: Place, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a user does."""
    return subprocess.run(
        [PROGRAM, "doctor", *arguments],
        env={**place.environment, "DISTILL_TUI_RUNS": str(place.root / "runs"), **environment},
        cwd=place.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )


def by_id(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return {item["id"]: item for item in json.loads(done.stdout)["checks"]}


@pytest.mark.slow
def test_json_has_every_verdict_with_its_fix(place: Place) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}")
    done = doctor(place, "recipe.yaml", *FROM_HUB, "checkpointing.enabled=false", "--json")
    assert done.returncode == 1, done.stderr
    value = json.loads(done.stdout)
    assert (value["schema"], value["ok"]) == (1, False)
    checks = by_id(done)
    assert {key for item in checks.values() for key in item} == {
        "id", "title", "where", "outcome", "evidence", "fix", "foretells", "seconds",
    }  # fmt: skip
    model = checks["D22"]
    assert (model["outcome"], model["where"]) == ("fail", "login")
    assert model["fix"]["command"] == f"hf download {MODEL}"
    assert "hf-offline" in model["foretells"]
    assert [check for check, item in checks.items() if item["outcome"] == "fail"] == ["D22"]
    kept = latest_report(place.environment)
    assert kept is not None
    assert [item["id"] for item in kept.checks] == list(checks)
    script = fixing.script(examine(LOGIN_CHECKS, place.subject(), limit_s=20))
    assert f"\nhf download {MODEL}\n" in script
    assert "# D22 Models are in the cache" in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.slow
def test_fixing_runs_the_offered_commands_and_examines_again(place: Place) -> None:
    hub = place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}"
    hub.rename(place.root / "elsewhere")
    (place.root / "venvs" / VLLM).rename(place.root / "venv-elsewhere")
    place.command("hf", f'echo "fetching $*"; mv {place.root}/elsewhere {hub}')
    build = f"mv {place.root}/venv-elsewhere {place.root}/venvs/{VLLM}"
    place.command("uv", f'case "$*" in run*) {build} ;; *) echo uv 1 ;; esac')
    arguments = ("recipe.yaml", *FROM_HUB, "checkpointing.enabled=false")
    asked = doctor(place, *arguments, "--fix")
    assert asked.returncode == 1
    assert "--yes runs the commands without a question" in asked.stderr
    done = doctor(place, *arguments, "--fix", "--yes", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert f"fetching download {MODEL}" in done.stderr
    assert "2 of 2 commands succeeded" in done.stderr
    assert by_id(done)["D18"]["outcome"] == by_id(done)["D22"]["outcome"] == "pass"


@pytest.mark.slow
def test_slurm_that_hangs_costs_its_verdict_not_the_run(place: Place) -> None:
    place.command("sinfo", "exec sleep 60")
    done = doctor(place, "recipe.yaml", *FROM_HUB, "--json")
    checks = by_id(done)
    assert checks["D01"]["outcome"] == "unknown"
    assert "Slurm gave no answer within" in checks["D01"]["evidence"]
    assert "D02" not in checks
    assert checks["D14"]["outcome"] == checks["D22"]["outcome"] == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "hang", "answer"),
    [
        ("hf", {"D22", "D24"}, {"D01", "D12", "D14", "D18", "D20"}),
        ("venvs", {"D18", "D20"}, {"D01", "D12", "D14", "D22", "D24"}),
        ("runs", {"D08"}, {"D01", "D12", "D14", "D18", "D22"}),
    ],
)
def test_a_file_system_that_hangs_costs_its_verdicts_not_the_run(
    place: Place, folder: str, hang: set[str], answer: set[str]
) -> None:
    (place.root / folder).mkdir(exist_ok=True)
    with hanging_file_system(place.root / folder):
        begun = time.monotonic()
        done = doctor(place, "recipe.yaml", *FROM_HUB, "--json")
        print(f"{folder}: {time.monotonic() - begun:.1f} s")
    assert done.returncode in (0, 1), done.stderr
    checks = {check: (item["outcome"], item["evidence"]) for check, item in by_id(done).items()}
    for check in hang:
        assert checks[check][0] == "unknown", (check, checks[check])
        assert "no answer" in checks[check][1]
    assert {check: checks[check] for check in answer if checks[check][0] != "pass"} == {}


def test_the_wizard_s_question_is_answered_from_its_plan(place: Place) -> None:
    environment = place.environment
    transport = LocalTransport()
    store = RunStore(transport, str(place.root / "runs"))
    detection = detect(transport, environment, cache_root(environment))
    overrides = (*FROM_HUB, "checkpointing.enabled=false")
    request = SubmitRequest(place.root / "recipe.yaml", 1, "1:00:00", overrides=overrides)
    plan = plan_submission(request, detection, store, environment)
    assert plan.obstacle is None
    report = ready_report(plan, detection, store, environment)
    assert [(item["id"], item["evidence"]) for item in report.with_outcome("fail")] == []
    good = {item["id"] for item in report.with_outcome("pass")}
    assert {"D01", "D02", "D03", "D14", "D18", "D22"} <= good
    shutil.rmtree(place.root / "venvs" / VLLM)
    report = ready_report(plan, detection, store, environment)
    assert [item["id"] for item in report.with_outcome("fail")] == ["D18"]
    assert latest_report(environment) == report


def test_the_job_of_an_examination_is_planned_and_nothing_written(place: Place) -> None:
    (place.root / "home" / ".config" / "distill-tui" / "site.toml").write_text('[job]\nhost_suffix = "i"\n')
    subject = place.subject()
    store = RunStore(subject.transport, str(place.root / "runs"))
    examination = plan_examination(subject, store, place.environment)
    assert not (place.root / "runs").exists()
    (plan,) = examination.jobs.plans
    assert {"--nodes=2", "--partition=booster", "--account=first", "--time=00:15:00"} <= set(plan.argv)
    assert plan.environment["DOCTOR_PYTHON"] == str(place.root / ".venv" / "bin" / "python")
    spec = json.loads(examination.files["spec.json"])
    assert spec["suffix"] == "i"
    assert spec["canary"]["text"] == examination.files["canary.txt"].decode()
    assert set(spec["venvs"]) == {"driver", "VllmGenerationWorker", "DTensorPolicyWorkerV2"}
    assert imports_of(subject)["VllmGenerationWorker"]["imports"] == ["torch", "transformers", "vllm"]


def test_nodes_are_not_examined_without_slurm(place: Place) -> None:
    (place.root / "bin" / "sinfo").unlink()
    subject = place.subject()
    with pytest.raises(InputError, match="no partition"):
        plan_examination(subject, RunStore(subject.transport, str(place.root / "runs")), place.environment)


def test_the_documentation_lists_the_checks_that_there_are() -> None:
    text = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    table = text.partition("<!-- table: python -m launcher.doctor.check_docs -->\n")[2]
    assert table.partition("<!-- end of table -->")[0] == check_docs.table()
