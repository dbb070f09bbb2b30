"""Commands on a login node one of whose directories lies on a mount that gives no answer, in processes of their own."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.attempts import DEADLINE_S, ROOT
from tests.hostile.pressure import waited_s
from tests.tui.fakeslurm import LoginNode

RUN = "20261128-042356-demo-fcd1"
SAMPLE = ROOT / "screenshots" / "sample" / RUN
_START_S = 5.0
"""Time for starting, and for what a command does where everything answers, on a machine with other work."""
_LOOK_S, _MOST_S = 0.5, 600.0
PLACES: Mapping[str, str] = {
    "runs": "runs",
    "one run": f"runs/{RUN}",
    "logs of a run": f"runs/{RUN}/logs",
    "state": "state",
    "settings": "config",
    "cache": "cache",
    "checkout": "nemo-rl",
    "sources of the checkout": "nemo-rl/nemo_rl",
    "models": "nemo-rl/models",
    "data": "nemo-rl/data",
    "parents of a recipe": "parents",
    "prompts": "nemo-rl/prompts",
    "model cache": "hf",
    "target": "target",
    "scratch": "scratch",
    "home": "home",
}
"""What the mount holds -> the directory that it lies over."""
_RECIPE = "nemo-rl/recipe.yaml"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("runs",), ("runs", "--json"), ("runs", "--disk-use"), ("watch", "--once", RUN), ("watch", "--once", f"runs/{RUN}/logs"),
    ("report", RUN), ("report", RUN, "--tar", "target/x.tgz"), ("cancel", RUN), ("resume", RUN, "--dry-run"), ("compare", RUN, "other"),
    ("check", _RECIPE), ("check", "child.yaml"), ("memory", _RECIPE), ("scale", _RECIPE, "--nodes", "2", "--dry-run"),
    ("scale", _RECIPE, "--run", RUN, "--nodes", "2", "--dry-run"), ("submit", _RECIPE, "--dry-run", "--time", "30"),
    ("submit", _RECIPE, "--time", "30"), ("recipe", "resolve", "child.yaml"), ("recipe", "lint", "child.yaml"),
    ("recipe", "origin", "child.yaml", "cluster"), ("recipe", "set", "child.yaml", "distillation.max_num_steps", "2"),
    ("recipe", "set", "target/r.yaml", "distillation.max_num_steps", "2"), ("recipe", "diff", "child.yaml", _RECIPE),
    ("recipe", "new", "target/new.yaml", "--from", _RECIPE), ("recipe", "find", "child.yaml", "lr"), ("recipe", "explain", "policy.model_name"),
    ("settings",), ("settings", "notify", "bell"), ("settings", "storage.runs", "target"), ("detect",), ("detect", "--json"),
    ("doctor",), ("doctor", _RECIPE), ("site", "show"), ("site", "export"), ("profile", "show"), ("profile", "check"),
    ("runs", "--move", "target"), ("runs", "--remove-checkpoints", RUN), ("models", "Qwen/Qwen3-8B"), ("launcher", "export", "target"),
)  # fmt: skip


@dataclass(frozen=True)
class MountAttempt:
    """Command, and the directory that gives no answer."""

    place: str
    argv: tuple[str, ...]


def mount_attempts() -> Iterator[MountAttempt]:
    """Yield every command with every place."""
    for place in PLACES:
        for argv in COMMANDS:
            yield MountAttempt(place, argv)


def make_node(root: Path) -> Mapping[str, str]:
    """Make a login node with runs, recipes and every other directory; return the environment there."""
    root.mkdir()
    node = LoginNode.at(root)
    for name in ("state", "cache", "hf/hub", "target", "scratch", "home", "parents"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(SAMPLE, root / "runs" / RUN)
    shutil.copytree(SAMPLE / "logs", root / "other")
    shutil.copy(node.recipe, root / "parents" / "base.yaml")
    for folder in (root, root / "target"):
        (folder / ("child.yaml" if folder == root else "r.yaml")).write_text(
            f"defaults: {root / 'parents' / 'base.yaml'}\ngrpo: {{x: 1}}\n"
        )
    return {
        **node.environment,
        "HOME": str(root / "home"),
        "XDG_STATE_HOME": str(root / "state"),
        "HF_HOME": str(root / "hf"),
        "HF_HUB_OFFLINE": "1",
        "SCRATCH": str(root / "scratch"),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
    }


def wrong_with_mount(attempt: MountAttempt, root: Path, environment: Mapping[str, str]) -> str:
    """Run a command where its mount gives no answer; return what is wrong with it."""
    program = [sys.executable, str(ROOT / "distill_tui.py")]
    begun, before_s, waited = time.monotonic(), _cpu_s(), waited_s()
    with subprocess.Popen(
        [*program, *attempt.argv], cwd=root, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace",
    ) as process:  # fmt: skip
        err = ""
        while process.returncode is None:
            try:
                _, err = process.communicate(timeout=_LOOK_S)
            except subprocess.TimeoutExpired:
                wall_s = time.monotonic() - begun
                if wall_s - (waited_s() - waited) > DEADLINE_S + _START_S + 60 or wall_s > _MOST_S:
                    process.kill()
                    return "no end"
    wall_s = time.monotonic() - begun - (waited_s() - waited)
    cpu_s = _cpu_s() - before_s
    if "Traceback" in err or process.returncode not in (0, 1, 2, 3):
        return f"code {process.returncode}: {err[-400:]}"
    # Others use the machine, too: at most eight of these at once, and as much again.
    return f"{wall_s:.1f} s: {err[-300:]!r}" if wall_s > DEADLINE_S + _START_S + 4 * cpu_s else ""


def _cpu_s() -> float:
    """Return the CPU time of all commands that have ended so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
