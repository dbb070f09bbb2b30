"""Completion scripts in a real shell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from launcher.transports.ssh.ssh_config import host_names
from tui.cli import main
from tui.cli.subcommands import SHELLS


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main("0", ["completion", "bash"]) == 0
    path = tmp_path / "completion.bash"
    path.write_text(capsys.readouterr().out)
    return path


def complete(script: Path, *words: str, **environment: str) -> set[str]:
    """Return what bash completes the last word to, as its tab key would."""
    program = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        function=$(complete -p distill-tui | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        "$function" distill-tui "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>/dev/null
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", script, "distill-tui", *words],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", **environment},
    )
    return {line.strip() for line in done.stdout.splitlines() if line.strip()}


def test_the_bash_script_is_valid(script: Path) -> None:
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_and_options(script: Path) -> None:
    assert complete(script, "che") == {"check"}
    assert complete(script, "re") == {"recipe", "report", "resume"}
    assert complete(script, "recipe", "or") == {"origin"}
    assert complete(script, "check", "--gpu") == {"--gpus-per-node", "--gpu-memory"}
    assert complete(script, "submit", "--rehe") == {"--rehearse"}
    assert complete(script, "watch", "--role", "dr") == {"driver"}
    assert complete(script, "completion", "z") == {"zsh"}


def test_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("")
    assert complete(script, "check", f"{tmp_path}/rec") == {f"{tmp_path}/recipe.yaml"}


def test_runs(script: Path, tmp_path: Path) -> None:
    (tmp_path / "runs" / "20261128-a").mkdir(parents=True)
    (tmp_path / "runs" / "20261127-b").mkdir()
    assert complete(script, "resume", "20261128", DISTILL_TUI_RUNS=str(tmp_path / "runs")) == {"20261128-a"}
    config = tmp_path / "config" / "distill-tui"
    config.mkdir(parents=True)
    (config / "settings.toml").write_text(f'[storage]\nruns = "{tmp_path}/runs"  # mine\n')
    own = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "DISTILL_TUI_RUNS": ""}
    assert complete(script, "resume", "20261127", **own) == {"20261127-b"}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script_that_names_the_commands(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("0", ["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "minimise" in script
    assert shell == "tcsh" or "--gpus-per-node" in script  # shtab completes no options in tcsh


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_the_zsh_script_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("0", ["completion", "zsh"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    subprocess.run(["zsh", "-n", tmp_path / "script"], check=True)


def test_hosts_of_the_ssh_configuration(script: Path, tmp_path: Path) -> None:
    ssh = tmp_path / ".ssh"
    (ssh / "more.d").mkdir(parents=True)
    (ssh / "config").write_text("Include more.d/*\nHost juwels jureca\n  User me\nhost *.de !no\nHost=jedi\n")
    (ssh / "more.d" / "one").write_text("  HOST ferro\n\tHost\tfar away\n")
    every = {"juwels", "jureca", "jedi", "far", "away"}
    assert complete(script, "runs", "--host", "", HOME=str(tmp_path)) >= every
    assert complete(script, "runs", "--host", "ju", HOME=str(tmp_path)) == {"juwels", "jureca"}
    assert complete(script, "--host", "je", HOME=str(tmp_path)) == {"jedi"}
    assert complete(script, "runs", "--host", "x", HOME=str(tmp_path / "none")) == set()
    assert set(host_names(ssh / "config")) >= every
