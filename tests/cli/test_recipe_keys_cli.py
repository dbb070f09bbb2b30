"""`recipe find`, `explain`, `new`, `derive`, `comment-out`, and `insert` with a dotted path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recipes.inheritance import resolve
from tests.editing.conftest import BASE, CHILD
from tui.cli import main


class Command:
    """The command line in a directory with a base and a child recipe."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.capsys = capsys
        (directory / "base.yaml").write_text(BASE)
        (directory / "child.yaml").write_text(CHILD)

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        code = main("0", ["recipe", *arguments])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def json(self, *arguments: str) -> Any:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        data = json.loads(out)
        assert data["schema"] == 1
        return data

    @property
    def child(self) -> str:
        return (self.directory / "child.yaml").read_text()


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)
    return Command(tmp_path, capsys)


def test_find_lists_the_best_match_first(command: Command) -> None:
    matches = command.json("find", "child.yaml", "lr")["matches"]
    assert matches[0] == {
        "key": "policy.optimizer.kwargs.lr", "value": 2.0e-5, "written": "2.0e-5", "state": "inherited",
        "reason": "key", "file": "base.yaml", "line": 11, "help": "",
    }  # fmt: skip
    code, out, _ = command("find", "child.yaml", "max_num_steps", "distillation.max_num_steps=3")
    assert code == 0
    assert out.startswith("distillation.max_num_steps: 3  [<override>:1]")


def test_find_says_what_is_not_set_and_what_is_commented_out(command: Command) -> None:
    states = {match["key"]: match["state"] for match in command.json("find", "child.yaml", "val")["matches"]}
    assert states["distillation.val_period"] == "commented"
    assert "unset" in states.values()
    assert command("find", "child.yaml", "nowhere to be found") == (1, "", "")
    assert len(command.json("find", "child.yaml", "e", "--limit", "3")["matches"]) == 3


def test_find_of_a_recipe_without_its_parent_names_the_parent(command: Command) -> None:
    (command.directory / "base.yaml").unlink()
    code, out, err = command("find", "child.yaml", "lr")
    assert (code, out) == (2, "")
    assert "base.yaml does not exist" in err


def test_explain_says_what_a_key_takes(command: Command) -> None:
    data = command.json("explain", "policy.max_total_sequence_length")
    assert (data["type"], data["unit"]) == ("int", "tokens")
    assert data["examples"]
    assert "model_name" in command.json("explain", "policy")["keys"]
    code, out, _ = command("explain", "policy.dtensor_cfg.cpu_offload")
    assert code == 0
    assert "true, false" in out
    code, _, err = command("explain", "policy.max_total_sequence_lenght")
    assert code == 1
    assert "Did you mean policy.max_total_sequence_length?" in err
    code, _, err = command("explain", "policy.model_name", "--checkout", "nowhere")
    assert code == 2
    assert "no such NeMo-RL checkout" in err


def test_a_derived_recipe_means_the_same_as_its_parent(command: Command) -> None:
    (command.directory / "below").mkdir()
    assert command("derive", "child.yaml", "below/new.yaml")[0] == 0
    new = command.directory / "below" / "new.yaml"
    assert (
        new.read_text()
        == "# Based on child.yaml: write only what differs from it.\ndefaults: ../child.yaml\n"
    )
    assert resolve(new).values == resolve(command.directory / "child.yaml").values
    code, _, err = command("derive", "child.yaml", "below/new.yaml")
    assert code == 2
    assert "exists already" in err


def test_a_copy_names_its_parents_from_its_own_place(command: Command) -> None:
    (command.directory / "below").mkdir()
    assert command("new", "below/copy.yaml", "--from", "child")[0] == 0
    copy = command.directory / "below" / "copy.yaml"
    assert copy.read_text() == "# Copied from child.yaml.\n" + CHILD.replace("base.yaml", "../base.yaml")
    assert resolve(copy).values == resolve(command.directory / "child.yaml").values
    assert command("new", "packaged.yaml", "--from", "qwen3-1.7b-from-4b")[0] == 0
    code, out, _ = command("new", "other.yaml", "--from", "child", "--dry-run")
    assert code == 0
    assert out.endswith(CHILD)
    assert not (command.directory / "other.yaml").exists()
    code, _, err = command("new", "other.yaml", "--from", "nothing")
    assert code == 2
    assert "no such recipe: 'nothing'" in err


def test_a_key_is_commented_out_and_taken_back(command: Command) -> None:
    assert command("comment-out", "child.yaml", "distillation.max_num_steps")[0] == 0
    assert command.child == CHILD.replace(
        "distillation:\n  max_num_steps: 20  # enough", "distillation: {}\n  # max_num_steps: 20  # enough"
    )
    assert command("comment-out", "child.yaml", "distillation.max_num_steps", "--undo")[0] == 0
    assert command.child == CHILD
    assert command("comment-out", "child.yaml", "distillation.val_period", "--undo")[0] == 0
    assert command.child == CHILD.replace("# val_period", "val_period")
    code, _, err = command("comment-out", "child.yaml", "policy.nothing")
    assert code == 1
    assert "not written" in err


def test_a_key_on_several_commented_lines_is_taken_back_by_its_line(command: Command) -> None:
    text = "# seed: 1\nseed: 2\nother: 3\n"
    path = command.directory / "twins.yaml"
    path.write_text(text)
    assert command("comment-out", "twins.yaml", "seed")[0] == 0
    code, _, err = command("comment-out", "twins.yaml", "seed", "--undo")
    assert code == 1
    assert "'seed' is commented out more than once (lines 1, 2)" in err
    assert command("comment-out", "twins.yaml", "seed", "--undo", "--line", "2")[0] == 0
    assert path.read_text() == text
    code, _, err = command("comment-out", "twins.yaml", "seed", "--line", "2")
    assert code == 2
    assert "--line says which line --undo takes back in" in err


def test_insert_takes_a_dotted_path(command: Command) -> None:
    assert command("insert", "child.yaml", "policy.optimizer.kwargs.lr", "1e-6")[0] == 0
    assert command.child == CHILD + "  optimizer:\n    kwargs:\n      lr: 1.0e-6\n"
    assert command("insert", "child.yaml", "stages.1", "{name: mid}")[0] == 0
    assert [stage["name"] for stage in resolve(command.directory / "child.yaml").values["stages"]] == [
        "warm", "mid", "main",
    ]  # fmt: skip
    code, _, err = command("insert", "child.yaml", "policy.model_name", "x")
    assert code == 1
    assert "already exists" in err


def test_no_control_character_reaches_the_terminal(command: Command) -> None:
    escape = '"k\\e]52;c;x\\a": "\\e[31mred"\n"\\e[2Jsection":\n  below: 1\n'
    (command.directory / "hostile.yaml").write_text(escape)
    for arguments in (
        ("find", "hostile.yaml", "k"),
        ("find", "hostile.yaml", "red"),
        ("find", "hostile.yaml", "e"),
    ):
        code, out, err = command(*arguments)
        assert code == 0
        assert not set(out + err) & {"\x1b", "\x07", "\x9b"}
        assert "\x1b" not in command(*arguments, "--json")[1]
    code, out, err = command("explain", "a.\x1b[31mb")
    assert code == 1
    assert "\x1b" not in out + err
    code, _, err = command("new", "copy.yaml", "--from", "\x1b[31mx")
    assert code == 2
    assert "\x1b" not in err


def test_a_followed_value_is_shown_with_what_it_follows(command: Command) -> None:
    _, out, _ = command("find", "child.yaml", "policy.generation.max_new_tokens")
    assert out.startswith("policy.generation.max_new_tokens: 4096 (from ${policy.max_total_sequence_length})")
