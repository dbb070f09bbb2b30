"""The doctor on the test cluster: a real job measures two nodes, and its verdicts come back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.slurm.jsc_shell import RECIPE, JscShell

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
