"""The doctor on the test cluster: a real job measures two nodes, and its verdicts come back."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.checks.world import WORKERS
from tests.slurm.jsc_shell import RECIPE, JscShell
from tests.slurm.tmux import Tmux

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]
NO_TRAFFIC = ("env", "HF_ENDPOINT=http://127.0.0.1:9")
"""Whether there is internet is measured at this address, where nothing listens."""


def doctor(shell: JscShell, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    """Run the doctor; return what it printed."""
    done = shell(*NO_TRAFFIC, "distill-tui", "doctor", *arguments, "--json", check=False)
    assert done.returncode in codes, (done.stdout, done.stderr)
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def outcomes(printed: dict[str, Any]) -> dict[str, str]:
    """Return the outcomes by check."""
    return {item["id"]: item["outcome"] for item in printed["checks"]}


def test_nodes_are_measured_by_a_job_and_remembered(shell: JscShell) -> None:
    shell("distill-tui", "settings", "storage.runs", str(shell.runs))
    first = doctor(shell, RECIPE, codes=(0, 1))
    assert outcomes(first)["D01"] == "pass"
    assert outcomes(first)["D02"] == "pass"
    assert outcomes(first)["D38"] == "unknown"
    assert not [item for item in first["checks"] if item["where"] != "login"]

    printed = doctor(shell, RECIPE, "--on", "devel", "--yes", codes=(0, 1))
    assert printed["nodes"] == ["node01", "node02"]
    measured = outcomes(printed)
    expected = ("D53", "D54", "D57", "D58", "D59", "D60", "D62", "D63")
    assert {check: measured.get(check) for check in expected if measured.get(check) == "fail"} == {}
    assert measured["D54"] == "pass", printed
    assert measured["D59"] == "pass", printed
    by_id = {item["id"]: item for item in printed["checks"]}
    assert "2 connections" in by_id["D54"]["evidence"]
    # The environments of this checkout are stand-ins: what they lack is named.
    assert measured["D41"] == "fail"

    state = json.loads(shell("distill-tui", "watch", "--once", "--json", printed["run"]).stdout)
    assert state["state"] in ("completed", "running"), state
    again = outcomes(doctor(shell, RECIPE, codes=(0, 1)))
    assert again["D38"] == "pass"
    assert again["D54"] == "pass"
    refused = shell("distill-tui", "resume", printed["run"], check=False)
    assert refused.returncode != 0


def test_the_login_node_answers_and_slurm_that_hangs_costs_its_verdict(shell: JscShell) -> None:
    walls = {}
    found: dict[str, str] = {}
    for name in ("the first time", "with Slurm's answers at hand"):
        begun = time.monotonic()
        found = outcomes(doctor(shell, RECIPE, codes=(0, 1)))
        walls[name] = time.monotonic() - begun
    assert found["D01"] == found["D02"] == found["D18"] == "pass", found

    root = Path(f"/proc/{shell.cluster.login.pid}/root")
    programs = shell.project / "programs"
    _in(root, programs).mkdir()
    _in(root, programs / "sinfo").write_text("#!/bin/bash\nexec sleep 300\n")
    _in(root, programs / "sinfo").chmod(0o755)
    path = f"PATH={programs}:{Path(shutil.which('distill-tui') or '/').parent}:/usr/bin:/bin"
    begun = time.monotonic()
    command = ("distill-tui", "doctor", RECIPE, "--json")
    done = shell(*NO_TRAFFIC, path, f"XDG_CACHE_HOME={shell.scratch}/other", *command, check=False)
    walls["with a sinfo that hangs"] = time.monotonic() - begun
    hanging = outcomes(json.loads(done.stdout))
    assert hanging["D01"] == "unknown", done.stdout
    assert {check: found[check] for check in hanging if hanging[check] != found[check]} == {
        "D01": "pass", **({"D38": found["D38"]} if "D38" in hanging else {}),
    }  # fmt: skip
    print({name: f"{seconds:.1f} s" for name, seconds in walls.items()}, f"load {os.getloadavg()[0]:.0f}")


def set_aside(shell: JscShell) -> Path:
    """Take a model and a worker's environment away; return the directory of programs that bring them back.

    They stand for `hf` and `uv`, of which nothing is fetched here.
    """
    root = Path(f"/proc/{shell.cluster.login.pid}/root")
    stash, programs = shell.project / "stash", shell.project / "programs"
    hub, venvs = shell.project / "huggingface" / "hub", shell.project / "venvs"
    model = "models--Qwen--Qwen3-4B"
    worker = next(name for name in WORKERS if name.endswith(".VllmGenerationWorker"))
    scripts = {
        "hf": f"echo Fetching $*\n[[ $* != *Qwen3-4B* ]] || mv {stash}/{model} {hub}",
        "uv": f"case $1 in run) echo Creating; mv {stash}/{worker} {venvs} ;; *) echo uv 0.9 ;; esac",
    }
    for folder in (stash, programs):
        _in(root, folder).mkdir()
    for folder, name in ((hub, model), (venvs, worker)):
        _in(root, folder / name).rename(_in(root, stash / name))
    for name, script in scripts.items():
        _in(root, programs / name).write_text(f"#!/bin/bash\n{script}\n")
        _in(root, programs / name).chmod(0o755)
    uid = shell.cluster.settings.uid
    for path in (stash, programs):
        os.chown(_in(root, path), uid, uid)
    return programs


def _in(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def test_from_not_ready_to_a_submitted_run_by_the_offered_commands(shell: JscShell, tmux: Tmux) -> None:
    programs = set_aside(shell)
    shell("distill-tui", "settings", "storage.runs", str(shell.runs))
    path = f"PATH={programs}:{Path(shutil.which('distill-tui') or '/').parent}:/usr/bin:/bin"
    tmux.start(shell.argv(*NO_TRAFFIC, path, "distill-tui", "doctor", RECIPE, "--screen", "--smoke"))
    tmux.see("✗ not ready", "D18", "D22", limit_s=60)
    tmux.press("F")
    tmux.see("commands?", "hf download Qwen/Qwen3-4B", "run in this terminal")
    tmux.press("y")
    tmux.see("✓ ready", "commands succeeded", limit_s=60)
    tmux.press("b")
    tmux.see("n new")
    tmux.press("n")
    tmux.see("JUWELS Booster", "distill", "‹ booster ›")
    tmux.press("NPage")
    tmux.see("‹ training ›", "Qwen/Qwen3-1.7B-Base")
    tmux.press("Right", "Down")
    tmux("send-keys", "-l", RECIPE)
    tmux.see("‹ smoke ›", "this direc", "5 steps")
    tmux.press("F8")
    tmux.see("smoke of", f"{shell.checkout}/recipes/{RECIPE[:12]}", "develbooster")
    tmux.press("s")
    tmux.see("Submit?", "y  submit")
    tmux.press("y")
    tmux.see("timeline", "Ray head up", limit_s=120)
    (run,) = json.loads(shell("distill-tui", "runs", "--json").stdout)["runs"]
    assert run["kind"] == "smoke"
