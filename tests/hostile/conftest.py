"""What the tests of hostile input share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tui.cli import main


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command in a directory of its own: exit code, output, messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEMO_RL_ROOT", raising=False)

    def run_command(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main("0", list(argv))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_command
