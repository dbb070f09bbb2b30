"""The rehearsal as users start it: the copied script on a real Ray cluster."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
RAY = Path(sys.executable).parent / "ray"
UNITS = 2
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONPATH"))}
PREFIX = re.compile(
    r"^\((?:(?P<sys>raylet|autoscaler[^,)]*)|(?:(?P<actor>[A-Za-z_][\w.]*)(?:\[rank=(?P<rank>\d+)\])?\s+)?"
    r"pid=(?P<pid>\d+))(?:, ip=(?P<ip>[\d.]+))?\)\s?"
)
# In the order in which a run first prints them.
LINES = (
    r"^REHEARSAL with stand-in models",
    r"^Applied CLI overrides$",
    r"Connected to Ray cluster",
    r"Connected to existing Ray cluster",
    r"^▶ Setting up data\.\.\.$",
    r"^\s*✓ Training dataset loaded with \d+ samples\.$",
    r"^\s*✓ Validation dataset loaded with \d+ samples\.$",
    r"^\s*✓ Training dataloader loaded with \d+ samples$",
    r"^\s*✓ Ray cluster initialized with 1 nodes$",
    r"^▶ Setting up teacher policy\.\.\.$",
    r"^Initializing teacher workers:\s+0%.*?0/2 ",
    r"^Initializing teacher workers:\s+100%.*?2/2 ",
    r"^\s*✓ 2 workers initialized in [\d.]+s$",
    r"^Initializing vllm_policy workers:\s+100%.*?2/2 ",
    r"^\s*✓ Using vLLM backend for generation with rehearsal/student-mlp$",
    r"^▶ Setting up student policy\.\.\.$",
    r"^Initializing student workers:\s+100%.*?2/2 ",
    r"^\s+SETUP COMPLETE$",
    r"^=+ Epoch 1/10 =+$",
    r"^=+ Step 1/6 =+$",
    r"^▶ Preparing batch\.\.\.$",
    r"^▶ Generating responses for batch of size 768\.\.\.$",
    r"^▶ Computing teacher logprobs\.\.\.$",
    r"^▶ Training policy\.\.\.$",
    r"^Logged data to logs/rehearsal/exp_001/?train_data_step1\.jsonl$",
    r"^\s*• Loss: \d+\.\d+$",
    r"^\s*• Mean Generation Length: [\d.]+$",
    r"^\s*• Total step time: [\d.]+s$",
    r"^\s*• policy_training: [\d.]+s \([\d.]+%\)$",
    r"^▶ Starting validation at step 6\.\.\.$",
    r"^\s*• Accuracy: [-\d.]+$",
    r"^\s*• Average response length: [\d.]+ tokens$",
    r"^\s*• Samples processed: \d+$",
    r"^\s*• Total validation time: [\d.]+s$",
    r"^Saving checkpoint for step 6\.\.\.$",
    r"^Max number of steps has been reached, stopping training early$",
)


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a Ray cluster of one node with two worker units."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Ray's sockets lie below it, and their paths may have 107 bytes.
    folder = tempfile.mkdtemp(prefix="reh", dir="/tmp")
    options = ("--num-cpus=2", "--num-gpus=0", f'--resources={{"worker_units": {UNITS}}}', f"--port={port}")
    cheap = ("--include-dashboard=false", "--object-store-memory=100000000", "--disable-usage-stats")
    address = ("--node-ip-address=127.0.0.1", f"--temp-dir={folder}", "--block")
    with Path(folder, "out.log").open("wb") as log:
        head = subprocess.Popen(
            [str(RAY), "start", "--head", *address, *options, *cheap],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=CLEAN,
            start_new_session=True,
        )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        head.terminate()
        try:
            head.wait(30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(head.pid, signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)


def wait_for(address: str) -> None:
    """Wait until the cluster answers."""
    for _ in range(30):
        command = [str(RAY), "health-check", f"--address={address}"]
        if subprocess.run(command, env=CLEAN, capture_output=True, check=False, timeout=60).returncode == 0:
            return
    pytest.fail("Ray does not start")


def rehearse(folder: Path, address: str, *overrides: str) -> tuple[int, list[str], list[str]]:
    """Run the script's copy; return its exit code, its own lines and the actors' lines."""
    recipe = ROOT / "recipes" / "library" / "rehearsal.yaml"
    done = subprocess.run(
        [sys.executable, "-I", str(folder / "rehearsal.py"), "--config", str(recipe), *overrides],
        cwd=folder,
        env=CLEAN | {"RAY_ADDRESS": address, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=100,
    )
    text = re.sub(r"(?=\x1b\[3[36]m\()", "\n", done.stdout.decode().replace("\r", "\n"))
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).splitlines()
    return (
        done.returncode,
        [line for line in lines if not PREFIX.match(line)],
        [PREFIX.sub("", line) for line in lines if (found := PREFIX.match(line)) and found["actor"]],
    )


@pytest.mark.ray
@pytest.mark.slow  # the demo runs it on a real cluster in tests/e2e
def test_a_copy_of_the_script_runs_on_a_real_cluster_and_resumes(tmp_path: Path, address: str) -> None:
    scripts = ROOT / "launcher" / "scripts"
    shutil.copy(scripts / "rehearsal.py", tmp_path)
    shutil.copytree(scripts / "rehearsal_lib", tmp_path / "rehearsal_lib")
    wait_for(address)
    options = (
        f"cluster.gpus_per_node={UNITS}",
        "distillation.val_at_start=false",
        "distillation.val_at_end=true",
    )
    code, own, actors = rehearse(tmp_path, address, *options, "distillation.max_num_steps=6")
    assert code == 0, "\n".join(own)
    rest = iter(own)
    for pattern in LINES:
        assert any(re.search(pattern, line) for line in rest), f"{pattern} is missing or too late"
    losses = [float(line.rpartition(" ")[2]) for line in own if "• Loss: " in line]
    assert len(losses) == 6
    assert losses[-1] < 0.75 * losses[0]
    assert any("Initializing RehearsalWorker" in line for line in actors)
    assert any("No weights path provided" in line for line in actors)

    code, own, actors = rehearse(tmp_path, address, *options, "distillation.max_num_steps=7")
    assert code == 0, "\n".join(own)
    assert "Loading weights from checkpoints/rehearsal/step_6/policy/weights" in "\n".join(actors)
    resumed = [float(line.rpartition(" ")[2]) for line in own if "• Loss: " in line]
    assert len(resumed) == 1
    assert resumed[0] < 0.75 * losses[0]

    code, own, _ = rehearse(tmp_path, address, "cluster.gpus_per_node=3")
    assert code == 1
    assert "Not enough GPUs available. Requested 3 GPUs, but only 2 are available in the cluster." in own
    assert not any("Traceback" in line for line in own)
