"""Choices of the command line saved as a recipe: `submit --save-child`, `--save-into`, `recipe derive`."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.request import SubmitRequest
from recipes.inheritance import resolve
from recipes.library import DIRECTORY
from tui import cli
from tui.headless.saving import with_saved_choices

STARTING = DIRECTORY / "qwen3-1.7b-from-4b.yaml"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.yaml"
    path.write_text(f"# kept\ndefaults: {STARTING}\ncluster:\n  num_nodes: 1 # one\n")
    return path


def saved(request: SubmitRequest, child: Path | None, *, dry_run: bool = False) -> SubmitRequest:
    name = str(child) if child is not None else None
    return with_saved_choices(request, save_child=name, save_into=child is None, dry_run=dry_run)


def test_the_request_goes_on_with_the_new_recipe(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = SubmitRequest(own, 2, overrides=("distillation.max_num_steps=7",))
    after = saved(request, own.parent)
    assert after.recipe == own.parent / "distillation-qwen3-1.7b-base-from-qwen3-4b-2n4g.yaml"
    assert after.overrides == ()
    recipe = resolve(after.recipe)
    assert (recipe.get("distillation.max_num_steps"), recipe.get("cluster.num_nodes")) == (7, 2)
    assert f"wrote {after.recipe}" in capsys.readouterr().err
    assert own.read_text().startswith("# kept")


def test_saved_into_the_file_nothing_else_changes(own: Path) -> None:
    after = saved(SubmitRequest(own, 2), None)
    assert after.recipe == own
    assert own.read_text() == f"# kept\ndefaults: {STARTING}\ncluster:\n  num_nodes: 2 # one\n"


def test_a_dry_run_prints_the_diff_and_writes_nothing(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = own.read_text()
    request = SubmitRequest(own, 2)
    assert saved(request, None, dry_run=True) == request
    assert "+  num_nodes: 2 # one" in capsys.readouterr().err
    assert saved(request, own.parent / "child.yaml", dry_run=True) == request
    assert (own.read_text(), list(own.parent.iterdir())) == (before, [own])


def test_what_cannot_be_saved_is_refused(own: Path) -> None:
    with pytest.raises(InputError, match="nothing to save"):
        saved(SubmitRequest(own, 1), None)
    with pytest.raises(InputError, match="packaged"):
        saved(SubmitRequest(STARTING, 2), None)


def test_derive_takes_fields_and_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)
    arguments = [
        "recipe", "derive", STARTING.name, "new.yaml", "--set", "kl_type=reverse", "--set", "warmup=3",
        "distillation.max_num_steps=9",
    ]  # fmt: skip
    assert cli.main("0", arguments) == 0
    recipe = resolve(tmp_path / "new.yaml")
    assert recipe.get("loss_fn.kl_type") == "reverse"
    assert recipe.get("policy.scheduler.2.milestones") == [3]
    assert recipe.get("distillation.max_num_steps") == 9
