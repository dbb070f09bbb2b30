"""Faults to plant in a place where everything is ready, each with the verdict that names it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from launcher.doctor import login_node
from launcher.storage import quotas
from launcher.submit import doctor_subject
from tests.doctor.place import BASE, MODEL, VLLM, WORKER, Place, make_venv

Plant = Callable[[Place, pytest.MonkeyPatch], None]
FAULTS: dict[str, tuple[str, Plant, str, str]] = {}
"""Name of the fault -> outcome, planting, part of the evidence, part of the command that helps."""


def fault(name: str, outcome: str, evidence: str, command: str) -> Callable[[Plant], Plant]:
    """Declare a fault; its name begins with the id of the check that names it."""

    def declare(plant: Plant) -> Plant:
        assert name not in FAULTS
        FAULTS[name] = outcome, plant, evidence, command
        return plant

    return declare


@fault("D01 no Slurm", "fail", "there is no Slurm here", "sinfo")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "bin" / "sinfo").unlink()


@fault("D01 no partition", "fail", "wrong login node", "sinfo")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.command("sinfo", 'case "$*" in --version) echo slurm 23.11 ;; esac')
    place.command("sacctmgr", "true")


@fault("D02 partition is down", "fail", "closed is", "distill-tui detect")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["partition"] = "closed"


@fault("D02 no such partition", "fail", "there is no partition boster", "distill-tui detect")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["partition"] = "boster"


@fault("D02 too many nodes", "fail", "9 nodes are asked for", "distill-tui detect")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["nodes"] = 9


@fault("D03 another account", "fail", "second may not use booster; first may", "--account first")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.request["account"] = "second"


@fault("D04 jutil hangs", "unknown", "jutil gave no answer", "distill-tui detect --refresh")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    place.command("jutil", "exec sleep 60")
    patch.setattr(doctor_subject, "_JUTIL_S", 0.2)


@fault("D05 the home is nearly full", "warn", "of a quota of", "sort -h")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    _quota(place, patch, f"{place.root}/home", "900000 1000000 1000000 10 0 0")


@fault("D07 the quota of files is used up", "fail", "100 more files of a quota of 80,000", "--inodes")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    _quota(place, patch, f"{place.root}/home", "10 0 0 79900 80000 80000")


def _quota(place: Place, patch: pytest.MonkeyPatch, point: str, numbers: str) -> None:
    """Make a directory look like a mounted file system with a quota."""
    mounts = place.root / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/home {point} nfs rw 0 0\n")
    patch.setattr(quotas, "_MOUNTS", mounts)
    place.command(
        "quota",
        f"echo ' Filesystem blocks quota limit grace files quota limit grace'\necho {point} {numbers}",
    )
    patch.setenv("PATH", place.environment["PATH"])


@fault("D06 checkpoints do not fit", "fail", "checkpoints do not fit", "distill-tui settings storage.runs")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    _quota(place, patch, str(place.root), "1000 2000 2000 10 0 0")


@fault("D08 a file is in the way", "fail", "is no directory", "mkdir -p")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "runs").write_text("")


@fault("D09 runs in memory", "fail", "is on a tmpfs of this node", "distill-tui settings storage.runs")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    mounts = place.root / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\ntmpfs {place.root}/runs tmpfs rw 0 0\n")
    (place.root / "runs").mkdir()
    patch.setattr(quotas, "_MOUNTS", mounts)


@fault("D10 no uv", "fail", "there is no uv", "pip install --user uv")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "bin" / "uv").unlink()
    shutil.rmtree(place.root / "venvs" / VLLM)


@fault("D11 the cache is empty", "fail", "uv-cache is empty", "prefetch_venvs vllm")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "uv-cache")
    shutil.rmtree(place.root / "venvs" / VLLM)


@fault(
    "D11 the cache lacks what is locked",
    "warn",
    "uv-cache lacks vllm 0.19.0, and nodes",
    "prefetch_venvs vllm",
)
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    lock_from_index(place)
    # Told of, of another version, and there: only a wheel of the locked version counts.
    for name in (
        "pypi/vllm/0.19.0-cp38-abi3.msgpack",
        "pypi/vllm/0.18.0-cp38-abi3",
        "index/x/torch/2.11.0+cu130-cp313",
    ):
        (place.root / "uv-cache" / "wheels-v6" / name).mkdir(parents=True)
    for name in ("colored", "ray"):
        (place.root / "uv-cache" / "sdists-v9" / "pypi" / name / BASE[name]).mkdir(parents=True)
    shutil.rmtree(place.root / "venvs" / VLLM)


def lock_from_index(place: Place) -> None:
    lock = place.root / "uv.lock"
    lock.write_text(
        re.sub(r"^(version = .*)$", r'\1\nsource = { registry = "x" }', lock.read_text(), flags=re.MULTILINE)
    )


@fault("D12 no checkout", "fail", "not a NeMo-RL checkout", "export NEMO_RL_ROOT=")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "examples" / "run_distillation.py").unlink()


@fault("D12 local changes", "warn", "with changes: 1 file changed", "git -C")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.commit()
    (place.root / "nemo_rl" / "distributed" / "virtual_cluster.py").write_text("x = 1\n")


@fault("D13 an empty submodule", "fail", "3rdparty/Megatron-LM", "submodule update --init --recursive")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "3rdparty" / "Megatron-LM" / "Megatron-LM").mkdir(parents=True)
    shutil.rmtree(place.root / "3rdparty" / "Megatron-LM" / "Megatron-LM")


@fault("D14 no ray", "fail", "there is no bin/ray", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / ".venv" / "bin" / "ray").unlink()


@fault("D15 a library is missing", "fail", "libpython3.13.so.1.0", "--modules")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    text = "error while loading shared libraries: libpython3.13.so.1.0: cannot open shared object file"
    python = place.root / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/bash\necho "python: {text}" >&2\nexit 127\n')


@fault("D16 no torch", "fail", "no torch", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(_site(place.root / ".venv") / "torch-2.11.0.dist-info")


@fault("D16 another version", "warn", "colored 1.0, uv.lock has 2.2.3", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (_site(place.root / ".venv") / "colored-2.2.3.dist-info").rename(
        _site(place.root / ".venv") / "colored-1.0.dist-info"
    )


def _site(venv: Path) -> Path:
    return venv / "lib" / "python3.13" / "site-packages"


@fault("D17 built elsewhere", "fail", "it was built as /elsewhere/.venv", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / ".venv" / "bin" / "ray").write_text("#!/elsewhere/.venv/bin/python\n")


@fault("D17 its Python is gone", "fail", "which is gone", "uv sync --locked")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    make_venv(place.root / ".venv", {}, "/gone/python3.13/bin/python3")


@fault("D18 a worker's environment is missing", "fail", "VllmGenerationWorker", "prefetch_venvs vllm")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "venvs" / VLLM)


@fault("D19 building was interrupted", "fail", "begun and never finished", "rm ")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "venvs" / VLLM / "bin")
    (place.root / "venvs" / VLLM / "STARTED_ENV_BUILDER").touch()


@fault(
    "D20 no vllm in its environment",
    "fail",
    "VllmGenerationWorker (vllm): no vllm",
    "prefetch_venvs vllm_worker.VllmGenerationWorker",
)
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(_site(place.root / "venvs" / VLLM) / "vllm-0.19.0.dist-info")


@fault("D19 a mark is left", "warn", "VllmGenerationWorker", f"{VLLM}/STARTED_ENV_BUILDER")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "venvs" / VLLM / "STARTED_ENV_BUILDER").touch()


@fault("D21 a worker's Python is gone", "fail", "DTensorPolicyWorkerV2: its Python", f"{WORKER}.old && cd ")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    make_venv(place.root / "venvs" / WORKER, {}, "/gone/bin/python3")


@fault("D22 a model is missing", "fail", f"the model {MODEL}", f"hf download {MODEL}")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}")


@fault("D22 only the configuration is there", "fail", f"the model {MODEL}", f"hf download {MODEL}")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    for path in (place.root / "hf").rglob("*.safetensors"):
        path.unlink()


@fault(
    "D23 a tokenizer is missing", "fail", "the tokenizer Qwen/Qwen3-4B", "hf download Qwen/Qwen3-4B --include"
)
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / "models--Qwen--Qwen3-4B")


@fault("D24 a data set is missing", "fail", "the data set DeepScaler", "--repo-type dataset agentica-org/")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / "datasets--agentica-org--DeepScaleR-Preview-Dataset")


@fault("D25 a prompt is missing", "fail", "there is no", "distill-tui edit")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.overrides += ("++data.default.prompt_file=prompts/gone.txt",)


@fault("D26 a download was interrupted", "warn", "begun and not finished", f"hf download {MODEL}")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    blobs = place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}" / "blobs"
    blobs.mkdir()
    (blobs / "abc.incomplete").touch()


@fault("D27 a cache on this node's disk", "warn", "TORCH_HOME does not reach the job", "export TORCH_HOME=")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.environment["TORCH_HOME"] = "/dev/shm/torch"


@fault("D28 wandb without internet", "fail", "waits 90 s", "export WANDB_MODE=offline")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.environment["HF_HUB_OFFLINE"] = "1"
    site = place.root / "home" / ".config" / "distill-tui" / "site.toml"
    site.write_text("[job]\noffline = false\n")


@fault("D29 a long directory", "fail", "Ray's sockets leave", "export RAY_TMPDIR=/tmp")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.environment["RAY_TMPDIR"] = "/local/scratch/of/the/user/with/a/long/name"


@fault("D29 a shared directory", "fail", "which all nodes share", "export RAY_TMPDIR=/tmp")
def _(place: Place, patch: pytest.MonkeyPatch) -> None:
    mounts = place.root / "mounts"
    mounts.write_text("/dev/vda / ext4 rw 0 0\nserver:/r /run nfs4 rw 0 0\n")
    patch.setattr(quotas, "_MOUNTS", mounts)
    place.environment["RAY_TMPDIR"] = "/run/r"


@fault("D30 few open files", "warn", "at most 4,096 files", "ulimit -Hn")
def _(_place: Place, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("resource.getrlimit", lambda _: (1024, 4096))


@fault("D31 the clock is ahead", "warn", "ahead of the file server's", "timedatectl")
def _(_place: Place, patch: pytest.MonkeyPatch) -> None:
    ahead = SimpleNamespace(time=lambda: __import__("time").time() + 3600)
    patch.setattr(login_node, "time", ahead)


@fault("D32 neither tmux nor screen", "warn", "ends with its connection", "tmux new")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    del place.environment["TMUX"]


@fault("D33 Ray is left", "warn", "of job 4711: raylet (812)", "kill 812")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    process = place.root / "proc" / "812"
    process.mkdir(parents=True)
    line = b"/venv/lib/ray/core/raylet\0--session_dir=/tmp/rb-1000-4711/r/session_1\0"
    (process / "cmdline").write_bytes(line)


@fault("D34 no image", "fail", "there is no", "enroot import")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "nemo.sqsh").unlink()


@fault("D35 no Pyxis", "fail", "no --container-image", "--launcher ray_bare")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    place.command("srun", "echo '  --help'")


@fault("D36 the service does not answer", "fail", "DOCKER_HOST=unix:", "podman.socket")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    (place.root / "s").unlink()


@fault("D38 nodes were never examined", "unknown", "was never measured", "doctor --on devel")
def _(place: Place, _patch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(place.root / "home" / ".cache")
