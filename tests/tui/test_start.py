"""The start: what is imported before the first paint, and what it costs; and idle means idle."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor

from tests.tui.pilot import shown
from tests.tui.replay import running

ROOT = Path(__file__).parents[2]
HEAVY = (
    "ray",
    "paramiko",
    "pydantic",
    "omegaconf",
    "hydra",
    "ruamel",
    "numpy",
    "launcher.runs",
    "launcher.monitor.watch_run",
)

FIRST_PAINT = """
import json, resource, sys
from pathlib import Path
from tui.app import DistillApp
from tui.app_settings import AppSettings

class Probe(DistillApp):
    async def on_mount(self):
        await super().on_mount()
        self.call_after_refresh(self.report)

    def report(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        strips = self.screen._compositor.render_strips()
        text = "".join(segment.text for strip in strips for segment in strip)
        modules = sorted(sys.modules)
        told = {"cpu": used.ru_utime + used.ru_stime, "modules": modules, "text": text}
        Path(sys.argv[1]).write_text(json.dumps(told))
        self.exit()

Probe(AppSettings(Path(sys.argv[2]))).run(headless=True, size=(80, 24))
"""
BARE = """
import json, resource, sys
from pathlib import Path
from textual.app import App
from textual.widgets import Static

class Bare(App):
    def compose(self):
        yield Static("hello")

    def on_mount(self):
        self.call_after_refresh(self.report)

    def report(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        Path(sys.argv[1]).write_text(json.dumps({"cpu": used.ru_utime + used.ru_stime}))
        self.exit()

Bare().run(headless=True, size=(80, 24))
"""


def run(code: str, out: Path, runs: Path) -> dict[str, object]:
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    # Where it is set, each start compiles our modules anew, and only ours.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code, str(out), str(runs)]
    subprocess.run(command, check=True, env=environment, timeout=60, capture_output=True)
    told: dict[str, object] = json.loads(out.read_text())
    return told


def test_first_paint_imports_nothing_heavy_and_shows_the_frame(tmp_path: Path) -> None:
    running(tmp_path / "runs", host="elsewhere")
    told = run(FIRST_PAINT, tmp_path / "out", tmp_path / "runs")
    modules = told["modules"]
    assert isinstance(modules, list)
    assert not [name for name in HEAVY if name in modules]
    assert "Reading runs …" in str(told["text"])
    assert "F1 help" in str(told["text"])


@pytest.mark.slow
def test_first_paint_costs_little_more_than_an_empty_app(tmp_path: Path) -> None:
    """Compare with an empty app at the same moment: the machine's own speed varies too much."""

    def cost(code: str) -> float:
        value = run(code, tmp_path / "out", tmp_path)["cpu"]
        assert isinstance(value, float)
        return value

    cost(FIRST_PAINT)  # writes the bytecode
    # In turns, so that what else the machine does falls on both.
    costs = [(cost(BARE), cost(FIRST_PAINT)) for _ in range(3)]
    bare, ours = (min(values) for values in zip(*costs, strict=True))
    assert ours < bare * 1.6 + 0.03


async def test_nothing_is_painted_when_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running(tmp_path, "", host="elsewhere").finish(0)
    painted: list[bool] = []
    paint = Compositor.render_update

    def counted(self: Compositor, *args: Any, **options: Any) -> Any:
        painted.append(True)
        return paint(self, *args, **options)

    monkeypatch.setattr(Compositor, "render_update", counted)
    async with shown(tmp_path) as screen:
        for opened in ("✓ completed", "run completed"):
            await screen.see(opened)
            await asyncio.sleep(0.7)
            painted.clear()
            await asyncio.sleep(1.5)
            assert not painted
            await screen.press("enter")
