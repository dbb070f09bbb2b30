"""A place where everything is ready for a run, to plant faults in."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.doctor.check_table import CHECKS
from launcher.doctor.doctor_request import DoctorRequest
from launcher.doctor.runner import examine
from launcher.doctor.subject import Subject
from launcher.doctor.verdict import Verdict
from launcher.submit.doctor_subject import subject_of
from launcher.transports.base import Transport
from launcher.transports.local import LocalTransport
from tests.checks.test_models import cache
from tests.checks.world import World

MODEL = "Qwen/Qwen3-1.7B"
FROM_HUB = (
    f"policy.model_name={MODEL}",
    f"policy.tokenizer.name={MODEL}",
    "data.train.dataset_name=DeepScaler",
    "~data.train.data_path",
)
VLLM = "nemo_rl.models.generation.vllm.vllm_worker.VllmGenerationWorker"
WORKER = "nemo_rl.models.policy.workers.dtensor_policy_worker_v2.DTensorPolicyWorkerV2"
PYPROJECT = """\
[project]
name = "nemo-rl"
dependencies = ["torch==2.11.0", "ray[default]>=2.55", "colored==2.2.3", "mac-only; sys_platform == 'darwin'"]

[project.optional-dependencies]
vllm = ["vllm==0.19.0", "deep_ep @ git+https://example.org/e ; platform_machine == 'sparc'"]
automodel = ["nemo-automodel[moe]"]
"""
LOCK = """\
[[package]]
name = "torch"
version = "2.11.0"

[[package]]
name = "ray"
version = "2.55.1"

[[package]]
name = "colored"
version = "2.2.3"

[[package]]
name = "vllm"
version = "0.19.0"

[[package]]
name = "nemo-automodel"
version = "0.4.0"
"""
REGISTRY = """\
VLLM_EXECUTABLE = (
    PY_EXECUTABLES.SYSTEM if USE_SYSTEM_EXECUTABLE else PY_EXECUTABLES.VLLM
)
ACTOR_ENVIRONMENT_REGISTRY: dict[str, str] = {
    "%s": VLLM_EXECUTABLE,
    "%s": PY_EXECUTABLES.AUTOMODEL,
}
""" % (VLLM, WORKER)  # noqa: UP031 - it has braces
EXECUTABLES = """\
class PY_EXECUTABLES:
    SYSTEM = sys.executable
    VLLM = f"uv run --locked --extra vllm --directory {git_root}"
    AUTOMODEL = f"uv run --locked --extra automodel --directory {git_root}"
"""
BASE = {"torch": "2.11.0", "ray": "2.55.1", "colored": "2.2.3"}
COMMANDS = {
    "sinfo": 'case "$*" in --version) echo slurm 22.05.8 ;; *)\n'
    'echo "booster*|up|1-00:00:00|8|gpu:a100:4|96|2|24"\n'
    'echo "closed|down|1-00:00:00|8|gpu:a100:4|96|2|24" ;; esac',
    "scontrol": 'echo "PartitionName=booster"; echo "   Default=YES MaxTime=1-00:00:00 State=UP QoS=N/A"\n'
    'echo "PartitionName=closed"; echo "   Default=NO MaxTime=1-00:00:00 State=DOWN QoS=N/A"',
    "sacctmgr": 'echo "c|first||normal|normal|first"',
    "srun": "echo '  --container-image=IMAGE'",
    "uv": "echo uv 0.9.0",
    "hf": "true",
    "tmux": "true",
    "quota": "true",
}
SITE = """\
[job]
offline = true

[gpu_memory_gib]
a100 = 40
"""


@dataclass
class Place:
    """A login node with a checkout, environments, caches and a Slurm of scripts."""

    root: Path
    world: World
    environment: dict[str, str]
    overrides: tuple[str, ...] = FROM_HUB
    request: dict[str, object] = field(default_factory=dict)

    @classmethod
    def at(cls, root: Path, *, with_git: bool = False) -> Place:
        """Make one; with a commit where the test asks for it, which takes four processes."""
        world = World.at(root)
        home, bin_ = root / "home", root / "bin"
        home.mkdir()
        for name, text in (("pyproject.toml", PYPROJECT), ("uv.lock", LOCK)):
            (root / name).write_text(text)
        (root / "nemo_rl" / "distributed").mkdir(parents=True)
        (root / "nemo_rl" / "distributed" / "ray_actor_environment_registry.py").write_text(REGISTRY)
        (root / "nemo_rl" / "distributed" / "virtual_cluster.py").write_text(EXECUTABLES)
        (root / "examples").mkdir()
        (root / "examples" / "run_distillation.py").write_text("")
        make_venv(root / ".venv", BASE)
        make_venv(root / "venvs" / VLLM, {**BASE, "vllm": "0.19.0"})
        make_venv(root / "venvs" / WORKER, {**BASE, "nemo_automodel": "0.4.0"})
        files: dict[str, object] = {"config.json": {}, "model.safetensors": "x", "tokenizer.json": {}}
        cache(root / "hf", MODEL, files)
        cache(root / "hf", "agentica-org/DeepScaleR-Preview-Dataset", {"x.parquet": "x"}, kind="datasets")
        (root / "uv-cache" / "archive-v0" / "x").mkdir(parents=True)
        config = home / ".config" / "distill-tui"
        config.mkdir(parents=True)
        (config / "site.toml").write_text(SITE)
        place = cls(
            root,
            world,
            {
                "HOME": str(home),
                "USER": "u",
                "PATH": f"{bin_}:/usr/bin:/bin",
                "NEMO_RL_ROOT": str(root),
                "NEMO_RL_VENV_DIR": str(root / "venvs"),
                "HF_HOME": str(root / "hf"),
                "UV_CACHE_DIR": str(root / "uv-cache"),
                "TMUX": "/run/tmux",
                "SSH_TTY": "/dev/pts/1",
            },
        )
        for name, script in COMMANDS.items():
            place.command(name, script)
        if with_git:
            place.commit()
        return place

    def command(self, name: str, script: str) -> None:
        """Write a command of the PATH."""
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def commit(self) -> None:
        """Commit the checkout's own files."""
        git(self.root, "init", "-q", "-b", "main")
        (self.root / ".gitignore").write_text("/*\n!/.gitignore\n!/nemo_rl/\n")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "x")

    def subject(self, *, with_recipe: bool = True, transport: Transport | None = None) -> Subject:
        """Return what is examined, by a transport; None: as this machine's."""
        transport = transport or LocalTransport(2.0)
        request = DoctorRequest(
            transport.path(str(self.root / "recipe.yaml")) if with_recipe else None,
            self.overrides if with_recipe else (),
            **self.request,  # type: ignore[arg-type]
        )
        runs = transport.path(self.environment.get("RUNS", str(self.root / "runs")))
        subject = subject_of(request, transport, runs, self.environment)
        proc = self.root / "proc"
        proc.mkdir(exist_ok=True)
        object.__setattr__(subject, "proc", proc)  # processes of this machine are no part of the place
        return subject


def git(root: Path, *arguments: str) -> None:
    """Run git in a directory, without the settings of whoever runs the tests."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=root, env=environment, check=True, capture_output=True)


def make_venv(path: Path, packages: dict[str, str], python: str = "/usr/bin/env") -> None:
    """Write the files of a Python environment; its Python starts anything without a word."""
    (path / "bin").mkdir(parents=True, exist_ok=True)
    interpreter = path / "bin" / "python"
    interpreter.unlink(missing_ok=True)
    interpreter.write_text("#!/bin/bash\nexit 0\n")
    interpreter.chmod(0o755)
    ray = path / "bin" / "ray"
    ray.write_text(f"#!{interpreter}\n")
    ray.chmod(0o755)
    (path / "pyvenv.cfg").write_text(f"home = {Path(python).parent}\nversion_info = 3.13.13\n")
    for name, version in packages.items():
        (path / "lib" / "python3.13" / "site-packages" / f"{name}-{version}.dist-info").mkdir(parents=True)


def judged(subject: Subject, check: str, limit_s: float = 20.0) -> Verdict | None:
    """Return the verdict of one check; None where it does not apply."""
    (chosen,) = (item for item in CHECKS if item.id == check)
    report = examine([chosen], subject, limit_s=limit_s)
    return report.examinations[0].verdict if report.examinations else None


def node(name: str = "n1", **changes: object) -> dict[str, object]:
    """Return what a healthy node measures, with changes by dotted keys (`network__default`)."""
    data: dict[str, object] = json.loads(json.dumps(_NODE))
    data["node"] = name
    for key, value in changes.items():
        part: dict[str, object] = data
        *path, last = key.split("__")
        for step in path:
            inner = part[step]
            assert isinstance(inner, dict)
            part = inner
        part[last] = value
    return data


def gpu(index: int, **changes: str) -> dict[str, str]:
    """Return a healthy GPU as nvidia-smi lists it."""
    return {
        "index": str(index),
        "name": "NVIDIA A100-SXM4-40GB",
        "uuid": f"GPU-{index}",
        "memory": "40960",
        "used": "4",
        "mig": "Disabled",
        "ecc": "0",
        "driver_version": "580.82.07",
        **changes,
    }


def gpus(count: int = 4, **changes: str) -> list[dict[str, str]]:
    """Return GPUs; the changes are those of the first."""
    return [gpu(number, **(changes if number == 0 else {})) for number in range(count)]


def family(
    wheel: str, wheel_version: str, loaded: Sequence[str] = (), **changes: object
) -> dict[str, object]:
    """Return a family of libraries as the probe reports it."""
    files = [f"/venv/lib/{wheel}.so"]
    return {
        "wheel": wheel,
        "wheel_version": wheel_version,
        "files": files,
        "loaded": list(loaded) or files,
        "version": wheel_version,
        "errors": [],
        **changes,
    }


TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \t{link}\t0-23\nGPU1\t{link}\t X \t0-23\n"
TORCH = {
    "version": "2.11.0",
    "cuda": "13.0",
    "available": True,
    "device": "NVIDIA A100-SXM4-40GB",
    "arch": "sm_80",
    "arch_list": ["sm_75", "sm_80", "sm_90"],
}
_NODE: dict[str, object] = {
    "schema": 1,
    "machine": {
        "time": 1000.0,
        "open_files": 1048576,
        "space": {
            "/dev/shm": {"total": 1 << 40, "free": 1 << 38},
            "/tmp": {"total": 1 << 40, "free": 1 << 38},
        },
        "tmp": "/tmp",
        "verbs_header": True,
        "verbs_library": "libibverbs.so.1",
        "modules": ["Stages/2025", "cuDNN/9.1.0.70-CUDA-12", "NCCL/2.20"],
        "library_path": "",
        "roots": {"EBROOTNCCL": "/software/NCCL/2.20"},
        "socket_interfaces": {"NCCL_SOCKET_IFNAME": "ib0"},
        "canary": True,
    },
    "gpu": {
        "gpus": gpus(),
        "processes": [],
        "instances": 0,
        "cuda": "13.0",
        "topology": TOPOLOGY.format(link="NV4"),
        "failed": False,
    },
    "network": {
        "default": "eth0",
        "interfaces": {
            "lo": {"state": "up", "address": "127.0.0.1"},
            "ib0": {"state": "up", "address": "10.0.0.1"},
            "eth0": {"state": "up", "address": "192.0.2.1"},
        },
        "infiniband": [{"port": "mlx5_0/1", "state": "ACTIVE", "rate": "200 Gb/sec"}],
        "names": {"n1": ["10.0.0.1"], "n2": ["10.0.0.2"]},
        "internet": {"huggingface.co:443": False},
        "proxy": None,
    },
    "late": [],
    "peers": {},
    "listener": "",
    "venvs": {
        "driver": {
            "path": "/venv",
            "imports": [{"name": "torch", "seconds": 4.0, "version": "2.11.0"}],
            "libraries": {
                "torch": TORCH,
                "families": {
                    "cudnn": family("nvidia-cudnn-cu13", "9.20.0"),
                    "nccl": family("nvidia-nccl-cu13", "2.28.9"),
                    "cudart": family("nvidia-cuda-runtime", "13.0"),
                },
            },
        }
    },
    "gloo": {"ok": True, "seconds": 1.0},
    "nccl": {"ok": True, "seconds": 2.0},
}
