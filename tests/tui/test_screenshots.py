"""The pictures in `screenshots/` are what the app paints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(900)  # 160 s on two quiet cores
def test_the_pictures_are_of_this_app() -> None:
    command = [sys.executable, str(ROOT / "screenshots" / "make.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=850)
    assert done.returncode == 0, done.stderr
