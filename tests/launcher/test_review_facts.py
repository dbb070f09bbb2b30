"""What a submission would do, as one value: for the review, and for a dry run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from launcher.clusters.registry import detect
from launcher.request import SubmitRequest
from launcher.runs import RunStore
from launcher.submit.review_facts import ReviewFacts
from launcher.submit.submit import plan_submission, storage_of
from launcher.transports.local import LocalTransport
from recipes.inheritance import resolve
from tests.tui.fakeslurm import LoginNode
from tui import cli


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginNode:
    node = LoginNode.at(tmp_path / "node")
    for name, value in node.environment.items():
        monkeypatch.setenv(name, value)
    return node


def test_everything_that_would_happen_is_in_it(node: LoginNode, tmp_path: Path) -> None:
    store = RunStore(LocalTransport(), str(node.runs))
    overrides = ("distillation.max_num_steps=7", "++logger.wandb.name='${oc.env:MY_API_KEY,none}'")
    request = SubmitRequest(node.recipe, 2, "30", overrides=overrides)
    environment = {**os.environ, "MY_API_KEY": "sk-very-secret-0123456789"}
    detection = detect(store.transport, environment, tmp_path / "cache")
    plan = plan_submission(request, detection, store, environment)
    facts = ReviewFacts.of(plan, resolve(node.recipe), storage_of(plan, store, environment))
    changes = {item.key: (item.a, item.b) for item in facts.changes}
    assert changes["distillation.max_num_steps"] == (100, 7)
    assert changes["cluster.num_nodes"] == (1, 2)
    assert "sk-very-secret" not in json.dumps(facts.changes_json(), default=str)
    assert facts.command.startswith("sbatch ")
    assert "--nodes=2" in facts.command
    assert facts.script.startswith("#!")
    assert facts.cost.node_hours == 1.0
    assert facts.storage is not None
    assert facts.storage.root.path == node.runs
    assert any(item.name == "HF_HOME" or item.value for item in facts.environment)


@pytest.mark.long
def test_a_dry_run_shows_the_changes(node: LoginNode, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["submit", str(node.recipe), "--time", "30", "--set", "steps=7", "--dry-run"]
    cli.main("0", arguments)
    shown = capsys.readouterr().out
    assert "distillation.max_num_steps: 100 -> 7\n" in shown
    cli.main("0", [*arguments, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert {"key": "distillation.max_num_steps", "from": 100, "to": 7, "removed": False} in result["changes"]
    assert result["script"].startswith("#!")
    assert node.asked("sbatch") == []
