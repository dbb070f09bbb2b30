"""What a number on the command line refers to: a job first, then a run in full, then a path."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import distill_tui
from launcher.job_records import record_job
from launcher.runs import Job, RecipeRef, RunSpec, RunStore
from launcher.transports.local import LocalTransport
from tui.cli import main


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no Slurm
    monkeypatch.chdir(tmp_path)
    one = RunStore(LocalTransport(), str(tmp_path / "runs"))
    now = datetime(2026, 11, 28, tzinfo=UTC)
    spec = RunSpec(
        schema=1, id="20261128-010000-demo-ab14", name="demo", kind="rehearsal", created=now, user="u",
        cluster="local", host=LocalTransport().host, recipe=RecipeRef(source="/r"), nodes=1, gpus_per_node=1,
    )  # fmt: skip
    one.create(spec, {})
    run = one.create(spec.model_copy(update={"id": "20261128-020000-demo-cd14"}), {})
    record_job(one.transport, run, Job(id="14", submitted=now))
    return one


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(distill_tui.__version__, list(arguments))
    out, err = capsys.readouterr()
    return code, out + err


def test_a_job_comes_before_a_directory_of_its_number(
    store: RunStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in ("14", "15"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "ray-driver.log").write_text("x\n")
    assert said(capsys, "watch", "--once", "14")[1].startswith("20261128-020000-demo-cd14: ")
    assert said(capsys, "report", "14")[1].startswith("# 20261128-020000-demo-cd14: ")
    assert said(capsys, "watch", "--once", "15")[1].startswith("15: ")  # no such job
    assert said(capsys, "report", "15")[1].startswith("# 15: ")


@pytest.mark.parametrize("command", [("watch", "--once"), ("cancel",), ("report",), ("resume",)])
def test_a_number_is_no_part_of_a_name(
    store: RunStore, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    code, text = said(capsys, *command, "20261128")
    assert code == 2, text
    assert "20261128" in text
    code, text = said(capsys, *command, "demo")
    assert code == 2
    assert "ambiguous run 'demo': it could be 20261128-020000-demo-cd14, 20261128-010000-demo-ab14" in text
