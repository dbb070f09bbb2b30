"""The table of commands: examples that work, handlers that exist, help and reference made from it."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from pathlib import Path

import pytest

import recipes.library
from launcher.logs.events import Role
from tests.driver_text import LAUNCHER, DriverText, launcher_end
from tui.cli import main, parse
from tui.cli.docs import reference
from tui.cli.parser import resolve_reference
from tui.cli.spec import Subcommand
from tui.cli.subcommands import COMMANDS, GROUPS, ROLES

ROOT = Path(__file__).parent.parent.parent
NEED_CLUSTER_OR_SCREEN = (
    "dashboard",
    "demo",
    "new",
    "edit",
    "recipe edit",
    "detect",
    "submit",
    "fetch",
    "resume",
    "cancel",
    "profile edit",
    "site import",
)

by_name = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name.replace(" ", "-"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, with what the examples name."""
    shutil.copy(Path(recipes.library.__file__).parent / "qwen3-1.7b-from-4b.yaml", tmp_path / "recipe.yaml")
    other = "defaults: recipe.yaml\ndistillation:\n  seed: 42\n  max_num_steps: 7\n"
    (tmp_path / "other.yaml").write_text(other)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "launcher.log").write_text(LAUNCHER + launcher_end(0))
    (logs / "ray-driver.log").write_text(DriverText([0.9, 0.5], save_at=(2,)).text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISTILL_TUI_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HF_HOME", "/nonexistent")
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)
    return tmp_path


@by_name
def test_the_example_parses_to_its_command(command: Subcommand) -> None:
    assert parse("0", shlex.split(command.example)).handler == command.handler


@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command.name not in NEED_CLUSTER_OR_SCREEN],
    ids=lambda command: command.name.replace(" ", "-"),
)
def test_the_example_runs(command: Subcommand, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("0", shlex.split(command.example)) == 0, capsys.readouterr()
    out, err = capsys.readouterr()
    assert out or err


@by_name
def test_the_handler_is_a_function_of_the_options(command: Subcommand) -> None:
    handler = resolve_reference(command.handler)
    assert list(inspect.signature(handler).parameters) in (["options"], ["arguments"])


@by_name
def test_the_help_ends_with_the_example(command: Subcommand, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main("0", [*command.name.split(), "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.endswith(f"\nexample:\n  distill-tui {command.example}\n")


@pytest.mark.parametrize("words", [[], *([group.name] for group in GROUPS)])
def test_help_above_the_commands_lists_them_and_ends_with_an_example(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main("0", [*words, "--help"])
    out = capsys.readouterr().out
    for command in COMMANDS:
        if command.group == " ".join(words):
            assert re.search(rf"^  {command.name.rpartition(' ')[2]}\s", out, re.MULTILINE)
    example = out.rpartition("example:\n  distill-tui ")[2]
    assert parse("0", shlex.split(example)).handler in {command.handler for command in COMMANDS}


def test_names_are_unique_and_groups_are_known() -> None:
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)
    assert {command.group for command in COMMANDS} - {""} == {group.name for group in GROUPS}


def test_roles_are_those_of_the_logs() -> None:
    assert tuple(role.value for role in Role) == ROLES


def test_the_reference_is_up_to_date() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == reference(), (
        "python -m tui.cli.docs > docs/commands.md"
    )


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name != "commands.md"),
    ],
)
def test_command_lines_in_the_documentation_parse(page: str) -> None:
    for line in re.findall(r"^    (?:uv run )?distill-tui +(.*)$", (ROOT / page).read_text(), re.MULTILINE):
        text = re.sub(r" {2,}.*| # .*| > .*|\[.*?\]", "", line)
        if text and "…" not in text:
            assert parse("0", shlex.split(text)).handler


def test_a_file_system_error_is_one_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "file").write_text("")
    assert main("0", ["launcher", "export", str(folder / "file" / "below")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert 1 <= len(err.splitlines()) <= 3
    assert str(folder / "file") in err
