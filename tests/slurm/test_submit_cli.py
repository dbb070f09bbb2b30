"""`submit` and `detect` as scripts and people use them, with commands that stand for Slurm's."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import distill_tui
from tests.launcher.ordering import Desk
from tests.slurm.commands import install
from tui.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk.at(tmp_path)
    at_home(desk, monkeypatch)
    return desk


def at_home(desk: Desk, monkeypatch: pytest.MonkeyPatch, **more: str) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "RAY_BARE_VENV", "SLURM_CONF", "HF_TOKEN", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in install(desk, **more).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(desk: Desk, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        basic = ["submit", str(desk.recipe), *arguments, "--nodes", "1", "--time", "2:00:00"]
        code = main(distill_tui.__version__, basic)
        out, err = capsys.readouterr()
        return code, out, err

    return command


def test_a_dry_run_has_cost_checks_and_memory(desk: Desk, run: Run) -> None:
    code, out, said = run("--dry-run", "--json")
    assert code == 0, said
    printed = json.loads(out)
    assert printed["cost"] == {"node_hours": 2.0, "gpu_hours": 8.0, "core_hours": 96.0}
    assert {item["id"] for item in printed["checks"]} >= {"C1", "C34", "C69"}
    assert printed["memory"]["gpu_gib"] == 40.0
    assert {phase["id"] for phase in printed["memory"]["phases"]} >= {"student-train", "generation"}
    assert (printed["skipped_checks"], printed["jobs"], printed["starts"]) == ([], [], None)
    assert said.startswith("1 node x 4 GPUs, at most 2 node-hours, 8 GPU-hours, 96 core-hours")
    assert not Path(desk.store.root).exists()


def test_what_would_fail_is_not_submitted(desk: Desk, run: Run) -> None:
    wrong = "loss_fn.kl_type=revers"
    code, out, said = run(wrong, "--json")
    assert (code, out) == (1, "")
    assert "FAIL C16" in said
    assert "<override>" in said
    assert "fix: loss_fn.kl_type: revers -> " in said
    assert "not submitted: C16 would fail" in said
    assert not Path(desk.store.root).exists()
    assert run(wrong, "--dry-run")[0] == 1
    assert run(wrong, "--skip-check", "C999")[0] == 2
    code, out, said = run(wrong, "--skip-check", "c16", "--json")
    assert code == 0, said
    assert "skipped C16" in said
    printed = json.loads(out)
    assert (printed["skipped_checks"], printed["jobs"][0]["id"]) == (["C16"], "4711")
    kept = json.loads(Path(printed["dir"], "run.json").read_text())["skipped_checks"]
    assert [item["id"] for item in kept] == ["C16"]


class Terminal(io.StringIO):
    """Someone at a terminal."""

    def isatty(self) -> bool:
        return True


def test_memory_that_may_not_suffice_is_asked_about(
    desk: Desk, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.world.root / "config" / "distill-tui" / "site.toml").write_text("[gpu_memory_gib]\na100 = 2\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    code, _, said = run()
    assert code == 2
    assert "student-train needs about" in said
    assert "--yes submits all the same" in said
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert run()[0] == 2
    assert not Path(desk.store.root).exists()
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    code, out, said = run()
    assert code == 0, said
    assert "Submit anyway? [y/N]" in said
    assert out.startswith("job 4711\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run("--yes")[0] == 0


def in_(seconds: float) -> str:
    return (datetime.now() + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def test_a_shorter_time_would_start_now(desk: Desk, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    later, now = in_(7200), in_(1)
    words = "using 8 processors on nodes n1 in partition booster"
    at_home(
        desk,
        monkeypatch,
        sbatch=f'case "$*" in *--time=01:00:00*) start={now} ;; *) start={later} ;; esac\n'
        f'echo "sbatch: Job 7 to start at $start {words}" >&2',
    )
    code, out, said = run("--test-only")
    assert code == 0, said
    assert out.splitlines()[-2:] == [f"would start at {later}", "01:00:00 would start now"]
    printed: dict[str, Any] = json.loads(run("--test-only", "--json")[1])
    assert (printed["starts"], printed["starts_now"]) == (later, False)
    assert printed["sooner"] == [{"time_s": 3600, "starts": now, "now": True}]
    assert not Path(desk.store.root).exists()


JUTIL = r"""printf '%s\n' "$*" >>"$0.asked"
cat <<'END'
project    unixgroup  PI-uid      project-type  budget-accounts
training1  training1  someone1    C             training1
cother     cother     someone2    C             other
data5      data5      someone3    D             -
END"""


def test_budgets_where_there_is_jutil(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(distill_tui.__version__, ["detect", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["budgets"] is None
    at_home(desk, monkeypatch, jutil=JUTIL, sacctmgr="true")
    assert main(distill_tui.__version__, ["detect", "--json", "--refresh"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["budgets"] == [
        {"project": "training1", "account": "training1"},
        {"project": "cother", "account": "other"},
    ]
    assert (printed["partitions"][0]["cpus_per_node"], printed["partitions"][0]["cores_per_node"]) == (96, 48)
    assert "jutil lists the budgets training1, other" in printed["problems"][0]["what"]
    assert main(distill_tui.__version__, ["detect"]) == 0
    assert "budget  other            of project cother" in capsys.readouterr().out
    asked = desk.world.root / "bin" / "jutil.asked"
    assert asked.read_text().splitlines() == [  # once: then the answers are kept
        "user projects -o columns",
        "project cpuquota -o json -p training1",
        "project cpuquota -o json -p cother",
    ]


QUOTA = r"""case "$*" in
  *"cpuquota"*"training1") echo '[{"project":"training1","budget-account":"training1",' \
    '"coreh-total":"100000","coreh-used":"99,950.5","cont-state":"normal"}]' ;;
  *"cpuquota"*) exec sleep 60 ;;
  *) printf '%s\n' 'project budget-accounts' 'training1 training1' 'slow slow' ;;
esac"""


def test_what_is_left_of_a_budget(
    desk: Desk, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("launcher.clusters.slurm.detect.QUOTAS_WITHIN_S", 1.0)
    at_home(desk, monkeypatch, jutil=QUOTA, sacctmgr='echo "c|training1||normal|normal|training1"')
    begun = time.monotonic()
    assert main(distill_tui.__version__, ["detect", "--json", "--refresh"]) == 0
    assert time.monotonic() - begun < 10
    known, slow = json.loads(capsys.readouterr().out)["budgets"]
    assert (known["core_h_left"], known["core_h_total"]) == (49.5, 100000.0)
    assert slow == {"project": "slow", "account": "slow"}  # unknown: it did not answer in time
    assert main(distill_tui.__version__, ["detect"]) == 0
    assert "50 of 100,000 core-hours left" in capsys.readouterr().out
    code, _, said = run("--dry-run", "--account", "training1")
    assert code == 0, said
    assert "the job may cost 96 core-hours; the budget training1 has 50 left" in said


OFF = [
    "You are not running a supported accounting_storage plugin\n"
    "Only 'accounting_storage/slurmdbd' is supported.",
    "You are not running a supported accounting_storage plugin\n(accounting_storage/none).",
    "SLURM accounting storage is disabled",
    "Slurm accounting storage is disabled",
    "Slurm accounting storage is disabled. Could not query the following: [associations].",
]


@pytest.mark.parametrize("words", OFF)
def test_a_cluster_without_accounts(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    script = f"printf '%s\\n' \"$*\" >>\"$0.asked\"; cat >&2 <<'END'\n{words}\nEND\nexit 1"
    at_home(desk, monkeypatch, sacctmgr=script)
    for refresh in (["--refresh"], []):
        assert main(distill_tui.__version__, ["detect", "--json", *refresh]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["accounts"] is None
        (problem,) = printed["problems"]
        assert "keeps no accounts" in problem["what"]
        assert problem["fix"] == "Submit without --account."
    asked = desk.world.root / "bin" / "sacctmgr.asked"
    assert len(asked.read_text().splitlines()) == 1  # that is an answer, which is kept


def test_nodes_that_are_down(
    desk: Desk, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        (9, "down~"), (2, "drained*"), (1, "draining"), (3, "maint"), (4, "idle~"), (1, "mixed$"),
    ]  # fmt: skip
    text = "\n".join(f"booster*|up|1-00:00:00|{count}|gpu:a100:4|96|2|24|{state}" for count, state in rows)
    at_home(
        desk, monkeypatch, sinfo=f'case "$*" in --version) echo slurm 23.11.4 ;; *) echo "{text}" ;; esac'
    )
    assert main(distill_tui.__version__, ["detect", "--json", "--refresh"]) == 0
    (booster,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (booster["nodes"], booster["nodes_down"], booster["nodes_usable"]) == (20, 12, 4)
    assert main(distill_tui.__version__, ["detect"]) == 0
    assert "(12 down or drained, 4 in maintenance, 4 usable)" in capsys.readouterr().out
    code, _, said = run("--dry-run")
    assert code == 0, said
    assert "can be used now" not in said


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'error: no such user' >&2; exit 1", "no such user"),
        ("echo 'Welcome to jutil'", "list of projects"),
    ],
)
def test_a_jutil_that_says_something_else(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], script: str, says: str
) -> None:
    at_home(desk, monkeypatch, jutil=script)
    assert main(distill_tui.__version__, ["detect", "--json", "--refresh"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["budgets"] is None
    assert any(says in problem["what"] for problem in printed["problems"])
    assert printed["partitions"]
