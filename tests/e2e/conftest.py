"""The built wheel in an environment of its own, as a stranger installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command import Command

ROOT = Path(__file__).parent.parent.parent


def run(*arguments: str | Path, cwd: Path) -> str:
    """Run a step of the installation, return its output; all of it is shown when it fails."""
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def uv() -> str:
    """Return the `uv` that runs these tests."""
    found = os.environ.get("UV") or shutil.which("uv")
    assert found, "uv is needed; it comes from the Python package index"
    return found


@pytest.fixture(scope="session")
def wheel(uv: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from this tree. What it needs is in uv's cache: `uv run` has fetched it."""
    out = tmp_path_factory.mktemp("wheel")
    run(uv, "build", "--offline", "--wheel", "--out-dir", out, cwd=ROOT)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(uv: str, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return the command of a clean environment that has the wheel and what it requires, nothing else."""
    home = tmp_path_factory.mktemp("clean")
    versions = home / "versions.txt"
    # The versions that are in uv's cache, so that nothing is downloaded; without those for development.
    export = ("--offline", "--frozen", "--no-dev", "--no-hashes", "--no-emit-project", "--no-header")
    versions.write_text(run(uv, "export", "--quiet", *export, cwd=ROOT))
    run(uv, "venv", "--quiet", home / "venv", cwd=home)
    python = home / "venv" / "bin" / "python"
    quiet = ("--quiet", "--offline", "--compile-bytecode", "--python", python)
    run(uv, "pip", "install", *quiet, "--no-deps", "--requirement", versions, wheel, cwd=home)
    run(uv, "pip", "check", "--quiet", "--python", python, cwd=home)
    return Command(home / "runs", home / "venv" / "bin" / "distill-tui")
