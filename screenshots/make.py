"""Make the screenshots: `uv run python screenshots/make.py [--png DIR] [--check]`.

The real app runs without a terminal on a copy of a recorded rehearsal (`sample/`), at a fixed time, and its
wizard on a login node whose Slurm commands are scripts. Its screens are written as SVG beside this file;
`--check` compares them with the existing files instead. `--png` also writes PNG files for a quick look, in
this machine's fonts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import adler32

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from textual.pilot import Pilot  # noqa: E402 - the project is found first
from textual.widgets import Input  # noqa: E402

import launcher.submit.doctor_subject  # noqa: E402
import tui.usage_lines  # noqa: E402
from launcher.doctor.last_report import KeptReport  # noqa: E402
from tests.tui.fakeslurm import LoginNode  # noqa: E402
from tui.app import DistillApp  # noqa: E402
from tui.app_settings import AppSettings, EditStart  # noqa: E402
from tui.screens.wizard.model import WizardState  # noqa: E402

SAMPLE = HERE / "sample" / "20261128-042356-demo-fcd1"
NOW = datetime(2026, 11, 28, 4, 24, 36, tzinfo=UTC).timestamp()
SIZES = ((80, 24), (160, 48))
LIMIT_S = 60.0
_DIRECTORY = "/p/project/carla"
_RUN_ID = re.compile(r"\d{8}-\d{6}(-[a-z-]+)-[0-9a-f]{4}")
_TOKEN = re.compile(r"dt-[0-9a-f]{16}")
_BLANK = "(?: |&#160;)"
_PICTURE_ID = re.compile(r"terminal-\d+")
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/alic/examples/run_distillation.py", line 203, in main
    distillation_train(
  File "/home/alic/nemo_rl/algorithms/distillation.py", line 611, in distillation_train
    teacher_topk = teacher_policy.get_topk_logits(train_data, k=topk)
ValueError: topk_logits_k=64 is larger than the vocabulary (28)
"""


@dataclass(frozen=True)
class Shot:
    """A screenshot: keys to press, and texts to wait for."""

    name: str
    keys: tuple[str, ...]
    shows: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...] = SIZES


SHOTS = (
    Shot("home", (), ("3 runs", "● running", "✓ completed", "✗ failed")),
    Shot("monitor", ("enter",), ("● running", "✓ First checkpoint saving", "at step 17")),
    Shot("logs", ("3", "slash", *"loss", "enter"), ("paused", "Loss: "), ((80, 24),)),
    Shot("panes", ("p",), ("▸driver",)),
    Shot("picker", ("l",), ("enter opens", "launcher.log")),
    Shot("help", ("escape", "1", "f1"), ("Help", "Monitor")),
    Shot("failed", ("q", "b", "down", "enter"), ("✗ reason: ValueError", "not reached")),
)
"""In this order, in one session for each size."""
WIZARD_SIZES = ((80, 24), (120, 40), (160, 48))
WIZARD_SHOTS = (
    Shot("wizard-cluster", (), ("▸ booster", "node-h", "GiB")),
    Shot("wizard-models", ("pagedown", *["down"] * 3), ("NeMo-RL checkout", "vocabulary")),
    Shot(
        "wizard-parallelism", ("pagedown", "down", "down", "2"), ("Student TP", "● Teacher TP", "2 copies of")
    ),
    Shot("wizard-batches", ("pagedown", "down", "down", *"30"), ("● Global batch", "✗ C22")),
    Shot("wizard-data", ("backspace", "backspace", *"16", "pagedown"), ("Data set", "Log directory")),
    Shot("wizard-job", ("pagedown", "2", "down", "down", *"2h30"), ("each node", "02:30:00")),
    Shot("wizard-review", ("pagedown",), ("Job", "resources", "press t", "1 not ready")),
    Shot("wizard-saving", ("w", "down"), ("Your choices", "save into"), ((80, 24),)),
)
"""Each step of the wizard, with typed values, one of which would fail; and what becomes of them."""
EDITOR_SHOTS = (
    Shot("editor", ("slash", *"tensor_parallel", "enter"), ("_parallel_size", "this file, line", "C37")),
    Shot("editor-value", ("enter",), ("present value",)),
    Shot("editor-checks", ("escape", "3"), ("World size",), ((80, 24),)),
    Shot("editor-text", ("1", "f", "2", "enter"), ("text mode", "no failure predicted"), ((80, 24),)),
    Shot("editor-diff", ("escape", "D"), ("what would be saved", "+1"), ((80, 24),)),
)
"""The recipe editor: a size that would fail, its legal values, the checks, the text, the fix as a diff."""
OVERVIEW_SHOTS = (
    Shot("jobs", (), ("other-train", "◌ queued", "✓ completed", "✗ failed")),
    Shot("jobs-grouped", ("v",), ("▾ rehearsal.yaml", "by recipe")),
    Shot("jobs-marked", ("v", "o", "o", "home", "space", "space"), ("● 2 marked", "by name")),
    Shot("comparison", ("D",), ("A demo", "B first-try", "loss")),
    Shot("comparison-figures", ("2",), ("step, median", "until Driver started")),
    Shot("charts", ("b", "escape", "home", "m"), ("▸loss", "2 of 4 GPUs of jwb0001 idle")),
    Shot("chart", ("enter", "L", "s"), ("log scale, mean of 5",)),
    Shot("jobs-down", ("b", "b", "f5"), ("! Slurm gives no answer", "● running~")),
)
"""The list with jobs of other programs, runs beside each other, charts; at last Slurm gives no answer."""
SQUEUE = """\
#!/bin/sh
[ -e asked ] && { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }
touch asked
echo '4711|RUNNING|1795839000|1795839000|1795846200|jwb[0001-0002]|None|x||booster|2|other-train'
echo '4712|PENDING|1795839060|1795846200|0||Priority|x||booster|4|waits'
"""
EDITED = """\
# Qwen3 1.7B from 8B, on our A100 nodes.
defaults: ./distillation.yaml

distillation:
  max_num_steps: 500   # twice the usual
policy:
  train_global_batch_size: 16
  dtensor_cfg:
    tensor_parallel_size: 3
  # generation:
  #   temperature: 0.8
  optimizer:
    kwargs:
      lr: 2.0e-5
logger:
  log_dir: logs/mine
"""


def write_run(
    root: Path, identity: str, name: str, lines: int, *, end: str = "", code: int | None = None
) -> None:
    """Write a run whose driver wrote `lines` of the sample's lines, then `end`; None: it runs."""
    directory = root / identity
    shutil.copytree(SAMPLE, directory)
    spec = directory / "run.json"
    spec.write_text(spec.read_text().replace(SAMPLE.name, identity).replace('"demo"', f'"{name}"'))
    logs = directory / "logs" / "local-94b165-logs"
    driver, launcher = logs / "ray-driver.log", logs / "launcher.log"
    driver.write_bytes(b"".join(driver.read_bytes().splitlines(keepends=True)[:lines]) + end.encode())
    text = launcher.read_text().replace("(exit_code=0)", f"(exit_code={code})")
    launcher.write_text(text if code is not None else "".join(text.splitlines(keepends=True)[:-2]))


@contextmanager
def sample_runs() -> Iterator[Path]:
    """Make the sample runs; yields their root, a path that is the same everywhere."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        for name in ("CONFIG", "STATE", "CACHE"):  # layout of panes, remembered jobs, rows of runs
            os.environ[f"XDG_{name}_HOME"] = str(Path(directory, name.lower()))
        root = Path("runs")
        write_run(root, "20261128-042356-demo-fcd1", "demo", 474)
        write_run(root, "20261128-042341-topk-64-7a1c", "topk-64", 120, end=TRACEBACK, code=1)
        write_run(root, "20261128-042310-first-try-09be", "first-try", 10**6, code=0)
        try:
            yield root
        finally:
            os.chdir(before)


def add_gpu_table(directory: Path) -> None:
    """Write a table of GPU use beside a run's logs: two of four GPUs work."""
    heading = "timestamp,index,utilization.gpu [%],memory.used [MiB],memory.total [MiB],power.draw [W],"
    rows = [
        f"2026-11-28T04:2{minute}:{second:02d}+0000,{gpu},{90 if gpu < 2 else 0},{30000 + 200 * minute},"
        f"40960,{310 if gpu < 2 else 60},9000"
        for minute in range(5)
        for second in (0, 15, 30, 45)
        for gpu in range(4)
    ]
    logs = directory / "logs" / "local-94b165-logs"
    (logs / "gpu-jwb0001.csv").write_text(f"{heading}host.memory.used [MiB]\n" + "\n".join(rows) + "\n")


@contextmanager
def overview_runs() -> Iterator[Path]:
    """Make the sample runs with a table of GPU use, and a squeue that answers once."""
    before = dict(os.environ)
    with sample_runs() as root:
        here = Path.cwd()
        add_gpu_table(root / "20261128-042356-demo-fcd1")
        (here / "bin").mkdir()
        for name, text in (("squeue", SQUEUE), ("sacct", "#!/bin/sh\n")):
            (here / "bin" / name).write_text(text)
            (here / "bin" / name).chmod(0o755)
        os.environ["PATH"] = f"{here / 'bin'}:/usr/bin:/bin"
        os.environ["USER"] = "alice"
        try:
            yield root
        finally:
            os.environ.clear()
            os.environ.update(before)


async def take_overview(
    root: Path, size: tuple[int, int], settled_s: float = 1.0
) -> dict[str, tuple[str, str]]:
    """Take the pictures of list, charts and comparison of one size; returns name, SVG and text of each."""
    taken = {}
    app = DistillApp(AppSettings(root, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        for shot in OVERVIEW_SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: all(part in painted(app) for part in shot.shows), shot.name)  # type: ignore[misc]
            await settle(pilot, app, settled_s)
            svg = app.export_screenshot(title="distill-tui")
            taken[f"{shot.name}-{size[0]}x{size[1]}"] = (svg, _same_each_time(painted(app)))
    return taken


def _same_each_time(text: str) -> str:
    """Replace what differs each time, in text or SVG: the moment of the last answer, and sizes on disk."""
    text = re.sub(
        rf"(?:since|as{_BLANK}of){_BLANK}\d\d:\d\d:\d\d", lambda match: match[0][:-8] + "04:24:36", text
    )
    text = re.sub(rf"{_BLANK}*\d+(?:\.\d)?(?P<blank>{_BLANK})kB", _same_size, text)
    return "\n".join(line.rstrip() for line in text.split("\n")) + "\n"


def _same_size(match: re.Match[str]) -> str:
    """Return a size that takes as many columns as the one that was there."""
    columns = len(match[0].replace("&#160;", " "))
    return "80.0 kB".rjust(columns).replace(" ", match["blank"])


@contextmanager
def usage_of_another_day() -> Iterator[None]:
    """Let the help show the same figures on every machine."""
    lines = ["Terminal: 310 bytes/s, 41.2 kB in all", "Slurm and other commands: 4 in the last minute"]
    lines.append("This app: 1 process, 71.3 MB; you: 3 processes of 20, 112 MB of 128 GB")
    original = tui.usage_lines.usage_lines
    tui.usage_lines.usage_lines = lambda *_: lines
    try:
        yield
    finally:
        tui.usage_lines.usage_lines = original


def painted(app: DistillApp) -> str:
    """Return the screen as text."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def until(pilot: Pilot[Any], shown: Callable[[], bool], what: str) -> None:
    """Wait until a text is on the screen."""
    deadline = time.monotonic() + LIMIT_S
    while not shown():
        if time.monotonic() > deadline:
            raise SystemExit(f"not on the screen: {what}\n{painted(pilot.app)}")  # type: ignore[arg-type]
        await pilot.pause(0.05)


async def settle(pilot: Pilot[Any], app: DistillApp, settled_s: float = 1.0) -> None:
    """Wait until the screen stops changing: a log's lines arrive later."""
    text = ""
    while text != (text := painted(app)):
        await pilot.pause(settled_s)


async def take(root: Path, size: tuple[int, int]) -> dict[str, str]:
    """Take all pictures of one size; returns name and SVG of each."""
    taken = {}
    app = DistillApp(AppSettings(root, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        for shot in SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: all(part in painted(app) for part in shot.shows), shot.name)  # type: ignore[misc]
            await settle(pilot, app)
            if size in shot.sizes:
                taken[f"{shot.name}-{size[0]}x{size[1]}.svg"] = app.export_screenshot(title="distill-tui")
    return taken


@contextmanager
def login_node() -> Iterator[LoginNode]:
    """Make a login node with scripts for Slurm's commands, and its environment."""
    before, here = dict(os.environ), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="tmp", dir="/tmp") as directory:
        node = LoginNode.at(Path(directory) / "node")
        node.recipe.rename(node.checkout / "distillation.yaml")
        os.environ.clear()
        os.environ.update(node.environment, TZ="UTC", TERM="xterm-256color", LANG="C.UTF-8")
        del os.environ["RAY_BARE_VENV"]
        os.chdir(node.checkout)
        try:
            yield node
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def doctor_of_another_day() -> Iterator[None]:
    """Let the doctor say the same on every machine."""
    missing = {
        "id": "D18",
        "title": "Workers' environments are built",
        "where": "login",
        "outcome": "fail",
        "evidence": "not in /p/project1/me/venvs: the environment of VllmGenerationWorker",
    }
    passed = [{"id": f"D{number:02}", "title": "", "where": "login", "outcome": "pass", "evidence": ""}
              for number in range(1, 18)]  # fmt: skip
    original = launcher.submit.doctor_subject.ready_report
    report = KeptReport(NOW - 180, "jwlogin01", "", (missing, *passed))
    launcher.submit.doctor_subject.ready_report = lambda *_: report
    try:
        yield
    finally:
        launcher.submit.doctor_subject.ready_report = original


@contextmanager
def disk_of_another_day() -> Iterator[None]:
    """Let the disk have the same room on every machine."""
    original = shutil.disk_usage
    shutil.disk_usage = lambda _: original("/")._replace(free=80_300_000_000)  # type: ignore[assignment]
    try:
        yield
    finally:
        shutil.disk_usage = original


async def take_wizard(node: LoginNode, size: tuple[int, int]) -> dict[str, str]:
    """Take the pictures of the wizard in one size; nothing is submitted."""
    taken = {}
    state = WizardState({"recipe": "distillation.yaml"})
    os.environ["XDG_STATE_HOME"] = str(node.root / "state")
    app = DistillApp(AppSettings(node.runs, wizard_state=state, now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        for shot in WIZARD_SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: all(part in painted(app) for part in shot.shows), shot.name)  # type: ignore[misc]
            for entry in app.screen.query(Input):
                entry.cursor_blink = False
            await settle(pilot, app)
            if shot.sizes == SIZES or size in shot.sizes:
                name = f"{shot.name}-{size[0]}x{size[1]}.svg"
                picture = app.export_screenshot(title="distill-tui")
                taken[name] = _reproducible(picture, name, node.root.parent)
    return taken


async def take_editor(node: LoginNode, size: tuple[int, int]) -> dict[str, str]:
    """Take the pictures of the editor in one size; nothing is saved."""
    taken = {}
    recipe = node.checkout / "mine.yaml"
    recipe.write_text(EDITED)
    os.environ["XDG_STATE_HOME"] = str(node.root / "state")
    app = DistillApp(AppSettings(node.runs, edit=EditStart(recipe), now=lambda: NOW))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "would fail" in painted(app), "the recipe")
        for shot in EDITOR_SHOTS:
            await pilot.press(*shot.keys)
            await until(pilot, lambda shot=shot: all(part in painted(app) for part in shot.shows), shot.name)  # type: ignore[misc]
            await settle(pilot, app)
            if size in shot.sizes:
                name = f"{shot.name}-{size[0]}x{size[1]}.svg"
                svg = app.export_screenshot(title="distill-tui")
                taken[name] = _reproducible(svg, name, node.root.parent)
    return taken


def _reproducible(svg: str, name: str, directory: Path) -> str:
    """Replace what differs each time by texts of the same length: directory, ids of run, job and picture."""
    path = str(directory)
    stand_in = _DIRECTORY.ljust(len(path), "x")
    svg = svg.replace(path, stand_in)
    for start in range(1, len(path) - 2):  # a field that is too short shows the path's end
        svg = svg.replace(f"{path[start:]}/node", f"{stand_in[start:]}/node")
    svg = _RUN_ID.sub(r"20261128-042436\1-1a2b", svg)
    svg = _TOKEN.sub("dt-1a2b3c4d5e6f7a8b", svg)
    return _PICTURE_ID.sub(f"terminal-{adler32(name.encode())}", svg)


def take_all() -> dict[str, str]:
    """Take all pictures."""
    os.environ["TZ"] = "UTC"
    os.environ.pop("NO_COLOR", None)
    time.tzset()
    taken: dict[str, str] = {}
    with sample_runs() as root, usage_of_another_day():
        for size in SIZES:
            taken |= asyncio.run(take(root, size))
    for size in SIZES:
        with overview_runs() as root:
            for name, (svg, text) in asyncio.run(take_overview(root, size)).items():
                svg = _PICTURE_ID.sub(f"terminal-{adler32(name.encode())}", _same_each_time(svg))
                taken |= {f"{name}.svg": svg, f"text/{name}.txt": text}
    for size in WIZARD_SIZES:
        with login_node() as node, disk_of_another_day(), doctor_of_another_day():
            taken |= asyncio.run(take_wizard(node, size))
    for size in SIZES:
        with login_node() as node:
            taken |= asyncio.run(take_editor(node, size))
    return taken


# Rich writes each run of equal style as one element with its length; braille is all that a curve has.
_BRAILLE = re.compile(
    r'<text (?P<class>class="[^"]*") x="(?P<x>[\d.]+)" y="(?P<y>[\d.]+)" textLength="(?P<length>[\d.]+)"'
    r"(?P<rest>[^>]*)>(?P<text>[^<]*[\u2800-\u28ff][^<]*)</text>"
)


def _spaced(element: re.Match[str]) -> str:
    """Place each character of a curve: the font that has braille is no monospaced one."""
    text = element["text"].replace("&#160;", "\u00a0")
    step = float(element["length"]) / len(text)
    positions = " ".join(f"{float(element['x']) + step * index:.1f}" for index in range(len(text)))
    style = 'style="font-family: DejaVu Sans"'
    return f'<text {element["class"]} {style} x="{positions}" y="{element["y"]}">{text}</text>'


def write_png(svg: str, path: Path) -> None:
    """Write a picture with this machine's fonts: DejaVu Sans Mono lacks braille, and none has the emoji."""
    import cairosvg  # type: ignore[import-untyped]

    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg).replace("Fira Code", "DejaVu Sans Mono")
    svg = _BRAILLE.sub(_spaced, svg)
    svg = re.sub("[\U0001f300-\U0001faff\u23f1]\ufe0f?", "▪", svg)
    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(path))


def main() -> int:
    """Make the pictures, or compare; returns 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", metavar="DIR", type=Path, help="also write PNG files there")
    parser.add_argument("--only", metavar="NAME", default="", help="only pictures whose names begin so")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the pictures differ")
    options = parser.parse_args()
    differing = []
    for name, svg in take_all().items():
        if not Path(name).name.startswith(options.only):
            continue
        path = HERE / name
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != svg:
                differing.append(name)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg, encoding="utf-8")
        if options.png is not None and path.suffix == ".svg":
            options.png.mkdir(parents=True, exist_ok=True)
            write_png(svg, options.png / f"{path.stem}.png")
    if differing:
        print(f"these pictures differ: {', '.join(differing)}", file=sys.stderr)
        print("  Look at what changed; `uv run python screenshots/make.py` makes them anew.", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
