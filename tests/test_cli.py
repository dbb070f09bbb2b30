"""The command line: input, output, errors, exit codes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes.library import DIRECTORY
from tests.command import Command, processes_of
from tests.driver_text import LAUNCHER, DriverText, launcher_end


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path / "runs")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "41-logs"
    directory.mkdir()
    (directory / "launcher.log").write_text(LAUNCHER + launcher_end(0))
    (directory / "ray-driver.log").write_text(DriverText([0.9, 0.5], save_at=(2,)).text())
    return directory


def test_the_state_of_plain_logs_as_json(command: Command, logs: Path) -> None:
    done = command("watch", "--once", "--json", str(logs))
    assert (done.returncode, done.stderr) == (0, "")
    state = json.loads(done.stdout)
    assert (state["schema"], state["state"], state["metrics"]["loss"]) == (1, "completed", [0.9, 0.5])
    assert state["milestones"][0] == {
        "id": "head-up",
        "title": "Ray head up",
        "log": "launcher.log",
        "line": 3,
        "time": 1795831205.0,
    }
    assert state["findings"] == []


def test_the_state_of_plain_logs_as_text(command: Command, logs: Path) -> None:
    done = command("watch", "--once", str(logs))
    assert f"{logs}: completed" in done.stdout
    assert "Ray head up" in done.stdout
    assert "loss 0.9 -> 0.5" in done.stdout


def test_files_with_roles(command: Command, logs: Path) -> None:
    driver, batch = logs / "ray-driver.log", logs / "launcher.log"
    one = json.loads(command("watch", "--once", "--json", "--role", "driver", str(driver)).stdout)
    assert one["milestones"][0]["id"] == "driver-started"
    both = command("watch", "--once", "--json", "--log", f"driver={driver}", "--log", f"slurm={batch}")
    assert {log["role"] for log in json.loads(both.stdout)["logs"]} == {"driver", "slurm"}


def test_events_as_json_are_one_a_line(command: Command, logs: Path) -> None:
    done = command("watch", "--json", str(logs))
    assert done.returncode == 0
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(event["schema"] == 1 for event in events)
    assert [event["id"] for event in events if event["event"] == "milestone"][-1] == "completed"
    assert [event["value"] for event in events if event["event"] == "metric" and event["name"] == "loss"] == [
        0.9,
        0.5,
    ]


def test_watching_a_failed_run_to_its_end_fails(command: Command, logs: Path) -> None:
    (logs / "launcher.log").write_text(LAUNCHER + launcher_end(1))
    done = command("watch", "--plain", str(logs))
    assert done.returncode == 1
    assert "failed: the driver exited with 1" in done.stdout
    assert "\x1b" not in done.stdout


def test_text_of_a_log_cannot_reach_the_terminal(command: Command, logs: Path) -> None:
    hostile = "[ERROR][x] \x1b]52;c;ZXZpbA==\x07bad \x9b2J thing\n"
    (logs / "launcher.log").write_text(LAUNCHER + hostile + launcher_end(3))
    done = command("watch", "--plain", str(logs))
    assert "bad  thing" in done.stdout
    assert not [char for char in done.stdout if char != "\n" and (ord(char) < 32 or 127 <= ord(char) < 160)]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("watch", "--once"), 2, "nothing to watch"),
        (("watch", "--once", "no-such-run"), 2, "no run 'no-such-run'"),
        (("watch", "--once", "/no/such/dir"), 2, "no such file or directory"),
        (("watch", "--once", str(DIRECTORY / "smoke.yaml")), 2, "is a recipe, not a log"),
        (("watch", "--once", "--log", "driver"), 2, "invalid --log 'driver' (expected ROLE=FILE)"),
        (("watch", "--once", "--log", "driver=/none"), 2, "no such file: /none"),
        (("cancel", "nothing"), 2, "no run 'nothing'"),
        (("cancel", "14"), 2, "job 14 belongs to no run here"),
        (("frobnicate",), 2, "unknown command 'frobnicate'"),
        (("launcher",), 2, "required"),
        ((), 2, "terminal"),
        (("demo",), 2, "terminal"),
        (("watch", "."), 2, "terminal"),
    ],
)
def test_wrong_usage_is_told_in_few_words(
    command: Command, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = command(*arguments)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 3
    assert done.stdout == ""


def test_no_runs(command: Command) -> None:
    done = command("runs")
    assert (done.returncode, done.stdout) == (0, "")
    assert "`distill-tui demo` makes one" in done.stderr
    assert json.loads(command("runs", "--json").stdout)["runs"] == []


def test_exported_scripts_are_the_packaged_ones(command: Command, tmp_path: Path) -> None:
    done = command("launcher", "export", str(tmp_path / "out"))
    assert done.returncode == 0
    script = tmp_path / "out" / "ray_bare.sub"
    assert str(script) in done.stdout
    assert os.access(script, os.X_OK)
    packaged = Path(__file__).parent.parent / "launcher" / "scripts" / "ray_bare.sub"
    assert script.read_bytes() == packaged.read_bytes()
    assert (tmp_path / "out" / "rehearsal.py").exists()


class TestDemoRefusals:
    """What the demo cannot do is told in one message, and nothing half-made is left."""

    @pytest.fixture(autouse=True)
    def nothing_is_left(self, command: Command) -> Iterator[None]:
        yield
        assert not command.runs.is_dir() or os.listdir(command.runs) == []
        assert processes_of(command.runs) == {}

    def refuse(self, command: Command, *arguments: str, code: int, **changes: str) -> str:
        done = command("demo", "--plain", *arguments, **changes)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert 1 <= len(done.stderr.splitlines()) <= 3
        assert done.stdout == ""
        return done.stderr

    def test_unknown_recipe(self, command: Command) -> None:
        assert "/no/such.yaml" in self.refuse(command, "/no/such.yaml", code=2)

    def test_a_recipe_that_is_no_yaml(self, command: Command, tmp_path: Path) -> None:
        recipe = tmp_path / "bad.yaml"
        recipe.write_text("distillation:\n  max_num_steps: [1\npolicy: {}\n")
        assert f"{recipe}:3" in self.refuse(command, str(recipe), code=2)

    def test_a_recipe_of_another_algorithm(self, command: Command, tmp_path: Path) -> None:
        recipe = tmp_path / "grpo.yaml"
        recipe.write_text("grpo:\n  max_num_steps: 1\n")
        assert "not a recipe of an on-policy distillation" in self.refuse(command, str(recipe), code=2)

    def test_an_override_that_hits_nothing(self, command: Command) -> None:
        assert "distillation.max_steps" in self.refuse(command, "distillation.max_steps=3", code=2)

    def test_more_gpus_than_there_are(self, command: Command) -> None:
        said = self.refuse(command, "cluster.gpus_per_node=64", code=2)
        assert "1 x 64 = 64 GPUs" in said
        assert "cluster.gpus_per_node=" in said

    def test_a_number_of_gpus_that_is_none(self, command: Command) -> None:
        assert "cluster.gpus_per_node must be a whole number" in self.refuse(
            command, "cluster.gpus_per_node=many", code=2
        )

    def test_a_runs_root_that_cannot_be_written(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        said = self.refuse(command, code=3, DISTILL_TUI_RUNS=str(tmp_path / "file" / "runs"))
        assert "runs cannot be kept in" in said
        assert "DISTILL_TUI_RUNS" in said

    @pytest.mark.parametrize("variable", ["RAY_PORT", "RAY_DASHBOARD_PORT"])
    def test_a_port_in_use(self, command: Command, variable: str) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            said = self.refuse(command, code=3, **{variable: str(taken.getsockname()[1])})
        assert f"({variable}) cannot be used here: Address already in use" in said

    def test_a_port_that_is_none(self, command: Command) -> None:
        assert "RAY_PORT=http is not a port number" in self.refuse(command, code=2, RAY_PORT="http")

    def test_an_environment_without_ray(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "venv" / "bin").mkdir(parents=True)
        (tmp_path / "venv" / "bin" / "python").write_text("")
        said = self.refuse(command, code=3, RAY_BARE_VENV=str(tmp_path / "venv"))
        assert "there is no bin/ray" in said
        assert "RAY_BARE_VENV" in said

    def test_a_shared_login_node(self, command: Command, tmp_path: Path) -> None:
        for name, text in (("sbatch", ""), ("who", "#!/bin/sh\necho 'bob pts/0 2026-11-28 02:00'\n")):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        (tmp_path / "slurm.conf").write_text("")
        said = self.refuse(
            command, code=2, PATH=f"{tmp_path}:{os.environ['PATH']}", SLURM_CONF=str(tmp_path / "slurm.conf")
        )
        assert "someone else is logged in" in said
        assert "--yes" in said


def test_a_reader_that_leaves_is_no_crash(command: Command, logs: Path) -> None:
    process = command.start("watch", "--json", str(logs))
    assert process.stdout is not None
    process.stdout.close()
    _, said = process.communicate(timeout=30)
    assert "Traceback" not in said
    assert process.returncode == 141


def test_a_current_directory_that_was_removed_is_named(command: Command, tmp_path: Path) -> None:
    gone, recipe = tmp_path / "gone", tmp_path / "recipe.yaml"
    gone.mkdir()
    recipe.write_text("distillation: {}\n")
    script = 'cd "$1" && rmdir "$1" && exec "$2" check "$3"'
    argv = ["bash", "-c", script, "x", str(gone), str(command.program), str(recipe)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "the current directory was removed" in done.stderr
