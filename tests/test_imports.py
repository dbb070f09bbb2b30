"""What is imported when, and from where."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
HEAVY = ("textual", "ray", "paramiko", "pydantic", "omegaconf", "hydra", "ruamel", "numpy", "yaml", "asyncio")
PROBE = """
import json, sys, time
sys.argv = ["distill-tui", *sys.argv[1:]]
try:
    import distill_tui
    code = distill_tui.main()
except SystemExit as end:
    code = end.code
loaded = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([code, time.process_time(), loaded]), file=sys.stderr)
"""


def run_probe(*arguments: str, **environment: str) -> tuple[int, float, set[str]]:
    """Run the command in a process of its own; return its exit code, CPU seconds and what it imported."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    code, cpu, loaded = json.loads(done.stderr.splitlines()[-1])
    return code, cpu, set(loaded)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy_and_are_quick(option: str) -> None:
    run_probe(option)
    runs = [run_probe(option) for _ in range(3)]
    assert all(code == 0 for code, _, _ in runs)
    assert not runs[0][2] & set(HEAVY)
    # The aim is 0.12 s of CPU on a quiet machine (docs/architecture.md); a loaded one gets some room.
    assert min(cpu for _, cpu, _ in runs) < 0.2


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (("runs", "--json"), ("textual", "ray", "paramiko", "omegaconf", "numpy")),
        (
            ("watch", "--once", "--json", str(ROOT)),
            ("textual", "ray", "paramiko", "omegaconf", "numpy", "pydantic"),
        ),
        (("launcher", "--help"), HEAVY),
    ],
)
def test_commands_import_only_what_they_need(
    arguments: tuple[str, ...], unneeded: tuple[str, ...], tmp_path: Path
) -> None:
    _, _, loaded = run_probe(*arguments, DISTILL_TUI_RUNS=str(tmp_path))
    assert not loaded & set(unneeded)


def test_the_list_of_runs_begins_without_what_only_other_screens_need() -> None:
    code = "import json, sys, tui.app; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    unneeded = {
        *(
            "pydantic",
            "numpy",
            "tomllib",
            "re2",
            "hyperscan",
            "launcher.logs.events",
            "launcher.logs.signatures",
        ),
        *("launcher.runs", "launcher.monitor.usual", "tui.screens.home_actions", "tui.screens.dialogs"),
    }
    assert not unneeded & set(json.loads(done.stdout))


def test_the_import_rule_holds() -> None:
    done = subprocess.run([BIN / "lint-imports"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_import_rule_is_one_that_can_be_broken(tmp_path: Path) -> None:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    names = (name for rule in rules for key in ("layers", "source_modules") for name in rule.get(key, ()))
    for name in (
        "recipes",
        "launcher",
        "tui",
        "launcher.clusters.slurm",
        *re.findall(r"[\w.]+", " ".join(names)),
    ):
        package = tmp_path / name.replace(".", "/")
        package.mkdir(parents=True, exist_ok=True)
        for folder in (package, *package.parents[: name.count(".")]):
            (folder / "__init__.py").touch()
    (tmp_path / "recipes" / "__init__.py").write_text("import launcher\n")
    (tmp_path / "launcher" / "__init__.py").write_text("import rich\n")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    done = subprocess.run(
        [BIN / "lint-imports", "--no-cache"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode != 0
    assert "recipes -> launcher" in done.stdout
    assert "launcher -> rich" in done.stdout


@pytest.mark.parametrize("name", ["tui", "recipes", "launcher"])
def test_a_shadowed_package_is_named_and_nothing_of_it_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise SystemExit('foreign code ran')\n")
    command = BIN / "distill-tui"
    done = subprocess.run(
        [command, "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"package '{name}' would come from {tmp_path}" in done.stderr
    assert "PYTHONPATH" in done.stderr
    assert "foreign code ran" not in done.stderr
    assert done.stdout == ""


def test_an_unshadowed_command_runs(tmp_path: Path) -> None:
    command = BIN / "distill-tui"
    done = subprocess.run(
        [command, "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("distill-tui ")
