"""The recipe commands: their results, JSON, exit codes and messages."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tui.cli import main

BASE = """\
# base
policy: &P
  size: 64  # how many
  name: 'x'
  deep: {a: 1}
teacher:
  <<: *P
  name: t
distillation:
  topk_logits_k: 64
  twice: ${mul:${policy.size}, 2}
"""
CHILD = "defaults: base.yaml\npolicy:\n  size: 32\ndistillation:\n  topk_logit_k: 3\n"


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        data = json.loads(self.out)
        assert data["schema"] == 1
        return data


class Runner:
    def __init__(self, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
        self.capsys = capsys
        self.directory = directory

    def __call__(self, *arguments: str) -> Ran:
        code = main("0", ["recipe", *arguments])
        captured = self.capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    @property
    def child(self) -> str:
        return str(self.directory / "child.yaml")

    @property
    def base(self) -> str:
        return str(self.directory / "base.yaml")


@pytest.fixture
def recipe(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "child.yaml").write_text(CHILD)
    return Runner(capsys, tmp_path)


def test_get(recipe: Runner) -> None:
    assert recipe("get", recipe.base, "policy.name") == (0, "x\n", "")
    assert recipe("get", recipe.base, "policy.deep").out == "a: 1\n"
    assert recipe("get", recipe.base, "distillation.twice").out == "${mul:${policy.size}, 2}\n"
    assert recipe("get", recipe.child, "distillation.twice", "--effective").out == "64\n"
    assert recipe("get", recipe.child, "teacher", "--effective", "--json").json() == {
        "schema": 1,
        "key": "teacher",
        "value": {"size": 64, "name": "t", "deep": {"a": 1}},
    }
    missing = recipe("get", recipe.child, "teacher.size")
    assert (missing.code, missing.out) == (1, "")
    assert "--effective" in missing.err
    assert recipe("get", recipe.child, "none.size", "--effective").err.count("policy.size") == 1


def test_set(recipe: Runner) -> None:
    dry = recipe("set", recipe.base, "policy.size", "128", "policy.name", "y", "--dry-run")
    assert "-  size: 64  # how many\n-  name: 'x'\n+  size: 128  # how many\n+  name: 'y'\n" in dry.out
    assert Path(recipe.base).read_text() == BASE
    done = recipe("set", recipe.base, "policy.size", "128", "new.key", "[1, yes]")
    assert (done.code, done.out) == (0, "")
    assert "teacher.size" in done.err
    expected = BASE.replace("64  #", "128  #") + "new:\n  key:\n    - 1\n    - true\n"
    assert Path(recipe.base).read_text() == expected
    assert recipe("set", recipe.base, "policy.size").code == 2
    assert recipe("set", recipe.base, "policy.size", "[").code == 2
    assert recipe("set", recipe.base, "teacher.deep.a", "2").code == 1
    assert recipe("set", recipe.base, "teacher.deep.a", "2", "--copy").code == 0
    assert recipe("get", recipe.base, "teacher.deep.a").out == "2\n"


def test_set_in_both(recipe: Runner) -> None:
    assert recipe("set", recipe.child, "--both", "size", "16").code == 0
    assert Path(recipe.child).read_text() == CHILD.replace("32", "16") + "teacher:\n  size: 16\n"
    assert recipe("lint", recipe.child, "--json").json()["drift"] == []


def test_insert_and_unset(recipe: Runner) -> None:
    assert recipe("insert", recipe.base, "policy", "size", "1").code == 1
    assert recipe("insert", recipe.base, ".", "logger", "{log_dir: logs}").code == 0
    assert recipe("unset", recipe.base, "logger.log_dir").code == 0
    assert Path(recipe.base).read_text() == BASE + "logger: {}\n"
    assert recipe("unset", recipe.base, "logger").code == 0
    refused = recipe("unset", recipe.base, "teacher.size")
    assert refused.code == 1
    assert "&P" in refused.err
    assert Path(recipe.base).read_text() == BASE
    assert recipe("unset", recipe.base, "nothing").code == 1


@pytest.mark.parametrize(
    ("command", "key", "fix"),
    [
        ("get", "polcy.size", "Did you mean policy.size?"),
        ("get", "policy.name", "A parent has it: --effective shows it."),
        ("get", "policy.deep.size", "Did you mean policy.size?"),  # written here, under another section
        ("get", "logger", ""),
        ("origin", "policy.siz", "Did you mean policy.size?"),
        ("origin", "distilation", "Did you mean distillation?"),
        ("unset", "policy.sise", "Did you mean policy.size?"),
        ("unset", "logger.log_dir", ""),
    ],
)
def test_a_misspelt_key_is_answered_with_the_likely_one(
    recipe: Runner, command: str, key: str, fix: str
) -> None:
    refused = recipe(command, recipe.child, key)
    assert refused.code == 1
    assert refused.err.splitlines()[2:] == ([f"  {fix}"] if fix else [])


def test_a_misspelt_override_is_answered_with_the_likely_key(recipe: Runner) -> None:
    refused = recipe("resolve", recipe.child, "policy.sise=3", "--json")
    assert refused.code == 2
    assert "Could not override 'policy.sise'" in refused.err
    assert "Did you mean policy.size? Write KEY=VALUE" in refused.err


def test_insert_says_what_it_wrote(recipe: Runner) -> None:
    said = recipe("insert", recipe.base, "policy", "sise", "3").err
    assert said.startswith(f"policy.sise: (not set) -> 3 ({recipe.base}:")


def test_diff_and_resolve(recipe: Runner) -> None:
    found = recipe("diff", recipe.base, recipe.child, "--json").json()
    assert found["changed"] == [
        {"key": "policy.size", "a": 64, "b": 32},
        {"key": "distillation.twice", "a": 128, "b": 64},
    ]
    assert found["only_b"] == [{"key": "distillation.topk_logit_k", "value": 3}]
    assert "policy.size: 64 -> 32\n" in recipe("diff", recipe.base, recipe.child).out
    resolved = recipe("resolve", recipe.child, "policy.size=8", "+x=.inf", "--json").json()["recipe"]
    assert (resolved["distillation"]["twice"], resolved["teacher"]["size"]) == (16, 64)
    bad = recipe("resolve", recipe.child, "nope=1", "--json")
    assert (bad.code, bad.out) == (2, "")
    assert len(bad.err.splitlines()) <= 3


def test_origin(recipe: Runner) -> None:
    found = recipe("origin", recipe.child, "distillation.twice", "--json").json()
    assert found["value"] == 64
    assert found["origin"] == {"file": recipe.base, "line": 11, "how": "interpolation"}
    assert [(link["key"], link["how"], link["line"]) for link in found["chain"]] == [
        ("distillation.twice", "interpolation", 11),
        ("policy.size", "own", 3),
    ]
    found = recipe("origin", recipe.child, "policy.size", "--json").json()
    assert found["followers"] == ["distillation.twice"]
    assert [link["written"] for link in found["replaced"]] == [64]
    assert recipe("origin", recipe.child, "teacher.size", "--json").json()["origin"]["how"] == "merge"
    assert recipe("origin", recipe.child, "policy.size", "policy.size=1", "--json").json()["origin"] == {
        "file": "<override>",
        "line": 1,
        "how": "override",
    }
    assert "replaces" in recipe("origin", recipe.child, "policy.size").out
    assert recipe("origin", recipe.child, "nothing", "--json").code == 1


def test_lint(recipe: Runner) -> None:
    found = recipe("lint", recipe.child, "--json").json()
    unknown = {"key": "distillation.topk_logit_k", "line": 5, "did_you_mean": "distillation.topk_logits_k"}
    assert found["unknown"] == [unknown]
    assert [(item["key"], item["policy"], item["teacher"]) for item in found["drift"]] == [("size", 32, 64)]
    text = recipe("lint", recipe.child)
    assert "did you mean distillation.topk_logits_k?" in text.out
    assert text.code == 1
    assert recipe("lint", recipe.child, "--exit-zero").code == 0


CHECKOUT = Path(__file__).parents[1] / "cases" / "schema" / "models"


def test_set_warns_and_lint_takes_the_checkout_that_holds_the_file(
    recipe: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)
    root = tmp_path / "RL"
    shutil.copytree(CHECKOUT, root)
    file = root / "examples" / "configs" / "mine.yaml"
    file.parent.mkdir()
    file.write_text((CHECKOUT / "recipe.yaml").read_text())
    assert recipe("lint", str(file)).code == 0
    done = recipe(
        "set", str(file), "policy.dtensor_cfg.plann", "x", "policy.dtensor_cfg.tensor_parallel_size", "two"
    )
    assert done.code == 0
    assert "unknown key policy.dtensor_cfg.plann; did you mean policy.dtensor_cfg.plan?" in done.err
    assert "policy.dtensor_cfg.tensor_parallel_size is two, it must be a whole number" in done.err
    assert "nemo_rl/models/policy.py:" in done.err
    assert done.out == ""
    assert recipe("set", str(file), "policy.dtensor_cfg.tensor_parallel_size", "2").err.count("warning") == 0
    found = recipe("lint", str(file))
    assert found.code == 1
    assert "policy.dtensor_cfg.plann" in found.out
    assert recipe("lint", str(file), "--exit-zero").code == 0
    monkeypatch.setenv("NEMO_RL_ROOT", str(tmp_path / "nowhere"))
    assert "policy.dtensor_cfg.plann" in recipe("lint", str(file)).out


def test_show_minimise_and_comment(recipe: Runner) -> None:
    assert recipe("show", recipe.child).out == CHILD
    assert "size: 32 # how many" in recipe("show", recipe.child, "--expand").out
    assert "twice: 16" in recipe("show", recipe.child, "policy.size=8", "--effective").out
    recipe("set", recipe.child, "policy.deep.a", "1")
    assert recipe("minimise", recipe.child, "--check").code == 1
    assert recipe("minimise", recipe.child, "--json").json()["removed"] == ["policy.deep"]
    assert Path(recipe.child).read_text() == CHILD
    assert recipe("minimise", recipe.child, "--check").code == 0
    assert recipe("comment", recipe.base, "policy.size").out == "how many\n"
    assert recipe("comment", recipe.base, "policy.name", "who", "--above").code == 0
    assert recipe("comment", recipe.base, "policy.name", "--json").json()["above"] == "who"
    assert recipe("comment", recipe.base, "policy.name", "", "--above").code == 0
    assert Path(recipe.base).read_text() == BASE


def test_standard_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    monkeypatch.chdir(tmp_path)
    windows = CHILD.replace("\n", "\r\n").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(windows)))
    assert main("0", ["recipe", "set", "-", "policy.size", "1"]) == 0
    assert capfdbinary.readouterr().out == windows.replace(b"32", b"1")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(windows)))
    assert main("0", ["recipe", "get", "-", "teacher.name", "--effective"]) == 0
    assert capfdbinary.readouterr().out == b"t\n"


@pytest.mark.parametrize(
    "command", [["get", "none.yaml", "a"], ["resolve", "none.yaml"], ["set", "none.yaml", "a", "1"]]
)
def test_a_missing_file_is_one_clear_message(command: list[str], recipe: Runner) -> None:
    ran = recipe(*command)
    assert (ran.code, ran.out) == (2, "")
    assert "no recipe file" in ran.err
    assert len(ran.err.splitlines()) <= 3


def test_set_takes_key_and_value_joined(recipe: Runner) -> None:
    done = recipe("set", recipe.base, "policy.size=128", "teacher.name=a=b", "new.key=")
    assert (done.code, done.out) == (0, "")
    text = BASE.replace("64  #", "128  #").replace("name: t", "name: a=b") + "new:\n  key: null\n"
    assert Path(recipe.base).read_text() == text
    assert recipe("set", recipe.base, "policy.name", "k=v").code == 0
    assert recipe("get", recipe.base, "policy.name").out == "k=v\n"
    assert recipe("set", recipe.base, '"odd=key"=1').code == 0
    assert Path(recipe.base).read_text().endswith("odd=key: 1\n")


@pytest.mark.parametrize(
    "pairs",
    [
        ("policy.size=1", "policy.name"),
        ("policy.size=1", "policy.name", "x"),
        ("policy.size", "1", "policy.name=x"),
        ("policy.size", "1", "policy.name=x", "y"),
        ("policy.size",),
        ("=1",),
    ],
)
def test_set_refuses_mixed_pairs(recipe: Runner, pairs: tuple[str, ...]) -> None:
    done = recipe("set", recipe.base, *pairs)
    assert done.code == 2 if pairs != ("=1",) else done.code != 0
    assert len(done.err.splitlines()) <= 3
    assert Path(recipe.base).read_text() == BASE


@pytest.mark.parametrize("value", ["-5e-6", "-1", "-.5", "-.inf", "-1_000", "-0x10", "-1:30"])
def test_set_takes_negative_numbers(recipe: Runner, value: str) -> None:
    assert recipe("set", recipe.base, "policy.size", value).code == 0
    assert Path(recipe.base).read_text() == BASE.replace("64  #", f"{value}  #")
    assert recipe("set", recipe.base, "--dry-run", f"policy.size={value}").code == 0
    assert recipe("insert", recipe.base, "policy", "more", value).code == 0
    assert recipe("get", recipe.base, "policy.more").out == f"{value}\n"


def test_set_says_what_changed(recipe: Runner) -> None:
    done = recipe(
        "set",
        recipe.base,
        "policy.size",
        "1.0e-06",
        "policy.deep.a",
        "[1, 2]",
        "new",
        "x",
        "policy.name",
        "x",
    )
    lines = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
    assert lines == [
        f"policy.size: 64 -> 1.0e-06 ({recipe.base}:3)",
        f"policy.deep.a: 1 -> [1, 2] ({recipe.base}:5)",
        f"new: (not set) -> x ({recipe.base}:12)",
        f"policy.name: x (unchanged, {recipe.base}:4)",
        "policy.size is anchored; these keys change with it: teacher.size",
        "policy.deep.a is anchored; these keys change with it: "
        "teacher.deep.a.0, teacher.deep.a.1, teacher.deep.a",
    ]


def test_what_changes_with_a_list_item_is_never_the_item(recipe: Runner) -> None:
    Path(recipe.base).write_text("s:\n  - k: {t: 1}\n1: {yes: a}\n")
    for key in ("s.0.k.t", "1.true", "s.0.k"):
        assert "also" not in recipe("set", recipe.base, key, "7").err
