"""What the pictures are of: a recorded rehearsal at a fixed time, a login node whose Slurm is scripts."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import launcher.submit.doctor_subject
import tui.screens.wizard.draft_keeping
import tui.usage_lines
from launcher.doctor.last_report import KeptReport
from launcher.doctor.verdict import DoctorCheck, Examination, HealthReport, failed, passed, warned
from launcher.storage.drafts import DraftStore
from launcher.storage.wizard_drafts import RunDraft, RunDrafts
from launcher.transports.ssh.authentication import LoginPrompt
from tests.tui.fakeslurm import LoginNode
from tui.screens.wizard.wizard_state import WizardState

SAMPLE = Path(__file__).parent / "sample" / "20261128-042356-demo-fcd1"
NOW = datetime(2026, 11, 28, 4, 24, 36, tzinfo=UTC).timestamp()
TRACEBACK = """\
Traceback (most recent call last):
  File "/home/alic/examples/run_distillation.py", line 203, in main
    distillation_train(
  File "/home/alic/nemo_rl/algorithms/distillation.py", line 611, in distillation_train
    teacher_topk = teacher_policy.get_topk_logits(train_data, k=topk)
ValueError: topk_logits_k=64 is larger than the vocabulary (28)
"""
SQUEUE = """\
#!/bin/sh
[ -e idle ] && exit 0
[ -e down ] && { echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1; }
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


EFFECTIVE = """\
policy:
  model_name: {student}
  train_global_batch_size: {batch}
  optimizer:
    kwargs:
      lr: {lr}
teacher:
  model_name: models/Qwen3-8B
"""
LOGIN = LoginPrompt("juwels", "Verification code: ", "The code of your app, please.")


def add_recipes(root: Path) -> None:
    """Write the effective recipe of each run."""
    recipes = (("demo", 16, "2e-05"), ("first-try", 16, "1e-05"), ("topk-64", 32, "1e-05"))
    for name, batch, rate in recipes:
        (directory,) = root.glob(f"*-{name}-*")
        text = EFFECTIVE.format(student="models/Qwen3-1.7B", batch=batch, lr=rate)
        (directory / "effective.yaml").write_text(text)


def add_drafts() -> None:
    """Leave a recipe with unsaved edits, and a run that is being prepared."""
    recipe = Path("mine.yaml")
    recipe.write_text(EDITED)
    DraftStore.of(os.environ).save("t", recipe, EDITED + "# more\n", EDITED.encode(), closed=True)
    writer = RunDrafts.of(os.environ).writer()
    writer.put(RunDraft(WizardState({"nodes": "2"}).as_json(), "job", "Qwen3-1.7B from Qwen3-8B on 2 nodes"))
    writer.leave()
    writer._writer.close()  # else it is written once more, for good
    for file in Path(os.environ["XDG_STATE_HOME"]).glob("*/*drafts/*"):
        text = re.sub(rb'"saved_at":[0-9.]+', f'"saved_at":{NOW - 300}'.encode(), file.read_bytes())
        file.write_bytes(text)


@contextmanager
def examined_another_day() -> Iterator[None]:
    """Let the doctor find the same on every machine, and drafts have the same age."""
    lacking = failed(
        "not in /p/project1/me/venvs: the environment of VllmGenerationWorker",
        "cd /p/project1/me/nemo-rl && uv run nemo_rl/utils/prefetch_venvs.py vllm",
        changes="/p/project1/me/venvs",
        automatic=True,
    )
    verdicts = {"D18": lacking, "D22": failed("models/Qwen3-8B is not in /p/project1/me/hf"),
                "D04": warned("82 % of the quota of project1 is used")}  # fmt: skip

    def report(checks: Iterable[DoctorCheck], *_: object, **__: object) -> HealthReport:
        return HealthReport(
            tuple(Examination(check, verdicts.get(check.id, passed(check.title))) for check in checks)
        )

    examine, duration = launcher.submit.doctor_subject.examine, tui.screens.wizard.draft_keeping.duration
    launcher.submit.doctor_subject.examine = report
    tui.screens.wizard.draft_keeping.duration = lambda *_, **__: "5m00s"
    try:
        yield
    finally:
        launcher.submit.doctor_subject.examine = examine
        tui.screens.wizard.draft_keeping.duration = duration


def let_squeue(condition: Literal["down", "idle"]) -> None:
    """Let the squeue of `overview_runs` give no answer, or list no jobs, from here on."""
    Path(condition).touch()


@contextmanager
def overview_runs() -> Iterator[Path]:
    """Make the sample runs with a table of GPU use, and a squeue that answers; `let_squeue` changes that."""
    before = dict(os.environ)
    with sample_runs() as root:
        here = Path.cwd()
        add_gpu_table(root / "20261128-042356-demo-fcd1")
        add_recipes(root)
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
