"""A user's shell as at JSC, on the test cluster: project storage, small home, a module's Python, a checkout.

Home, project and scratch are file systems of their own, which all machines mount. The Python of the
checkout's `.venv` finds its library through LD_LIBRARY_PATH alone, as one that a module provides does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.checks.world import TOKENIZER, WORKERS
from tests.cluster.cluster import Cluster
from tests.cluster.machines import CHECKOUT, Machine, call

TOP = Path("/p")
HOME_MB, STORAGE_MB = 200, 300_000
RECIPE = "qwen3-1.7b-mine.yaml"
MODULES = "Stages/2025:GCCcore/.13.3.0:Python/3.11.7"
_RECIPE = """\
# The student that the project wants, taught by a larger one.
defaults: ../examples/configs/distillation_math.yaml

policy:
  max_total_sequence_length: 4096

teacher:
  dtensor_cfg:
    context_parallel_size: 1

distillation:
  max_num_steps: 200

checkpointing:
  checkpoint_dir: /p/scratch/envcomp/checkpoints/qwen3-1.7b-mine

cluster:
  gpus_per_node: 4
  num_nodes: 2
"""
_STAND_IN = '''\
"""Runs in place of NeMo-RL's driver: the steps, sizes and directories of its recipe, with stand-in models."""

import os
import sys

_KEYS = (
    "distillation.max_num_steps", "checkpointing.checkpoint_dir", "checkpointing.save_period",
    "checkpointing.keep_top_k", "logger.log_dir", "cluster.num_nodes", "cluster.gpus_per_node",
)


def _run(recipe):
    import yaml

    with open(recipe, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    overrides = [f"{key}={config[key.partition('.')[0]][key.partition('.')[2]]}" for key in _KEYS]
    overrides.append(f"distillation.val_period={config['checkpointing']['save_period']}")
    program = ["PACKAGES/launcher/scripts/rehearsal.py", "--config"]
    program.append("PACKAGES/recipes/library/rehearsal.yaml")
    os.execv(sys.executable, [sys.executable, *program, *overrides])


if sys.orig_argv[1:3] == ["examples/run_distillation.py", "--config"]:
    _run(sys.orig_argv[3])
'''
_MODELS = ("Qwen/Qwen3-1.7B-Base", "Qwen/Qwen3-4B")
_DATA = ("agentica-org/DeepScaleR-Preview-Dataset", "HuggingFaceH4/aime_2024")


@dataclass(frozen=True)
class JscShell:
    """A user's shell at JSC."""

    cluster: Cluster

    @property
    def home(self) -> Path:
        """The home directory, of 200 MB."""
        return TOP / "home/jusers" / self.cluster.settings.user / "juwels"

    @property
    def project(self) -> Path:
        """The project's storage."""
        return TOP / "project1/envcomp"

    @property
    def scratch(self) -> Path:
        """The project's scratch."""
        return TOP / "scratch/envcomp"

    @property
    def checkout(self) -> Path:
        """The clone of NeMo-RL."""
        return self.project / "NeMo-RL"

    @property
    def runs(self) -> Path:
        """Where the runs go when scratch is chosen for them."""
        return self.scratch / self.cluster.settings.user / "distill-tui" / "runs"

    @property
    def software(self) -> Path:
        """Where the modules' software is."""
        return TOP / "project1/software/Python/3.11.7"

    @property
    def variables(self) -> dict[str, str]:
        """The variables that the shell has besides those of every shell."""
        return {
            "HOME": str(self.home),
            "SYSTEMNAME": "juwelsbooster",
            "PROJECT": str(self.project),
            "SCRATCH": str(self.scratch),
            "HF_HOME": str(self.project / "huggingface"),
            "UV_CACHE_DIR": str(self.project / "uv-cache"),
            "NEMO_RL_VENV_DIR": str(self.project / "venvs"),
            "LOADEDMODULES": MODULES,
            "MODULEPATH": "/p/software/juwelsbooster/stages/2025/modules/all",
            "LD_LIBRARY_PATH": str(self.software / "lib"),
            "HF_TOKEN": "hf_canary",
            "VIRTUAL_ENV": str(self.project / "another-venv"),
            # The pretended CPUs and memory are not there.
            "RAY_BARE_CPUS": "12",
            "RAY_BARE_OBJECT_STORE_MEMORY": "100000000",
            "RAY_BARE_DASHBOARD": "0",
        }

    def argv(self, *command: str, directory: Path | None = None, without: str = "") -> list[str]:
        """Return the command that runs one as the user on the login node, in the checkout's `recipes`."""
        environment = {name: value for name, value in self.variables.items() if name != without}
        path = f"{Path(sys.prefix, 'bin')}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return self.cluster.user_command(
            *command,
            environment={"PATH": path, **environment},
            directory=directory or self.checkout / "recipes",
        )

    def __call__(
        self, *command: str, without: str = "", check: bool = True, input_: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as the user on the login node."""
        done = subprocess.run(
            self.argv(*command, without=without),
            input=input_, capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def files_of_home(self) -> dict[str, int]:
        """Return what lies in the home directory, with sizes."""
        found = self("find", str(self.home), "-type", "f", "-printf", "%P %s\n").stdout
        return {name: int(size) for name, _, size in (line.rpartition(" ") for line in found.splitlines())}


@contextmanager
def opened(cluster: Cluster, releases: Path) -> Iterator[JscShell]:
    """Mount the file systems on all machines and fill them; afterwards nothing is left of them."""
    shell = JscShell(cluster)
    sizes = {shell.home: HOME_MB, TOP / "project1": STORAGE_MB, TOP / "scratch": STORAGE_MB}
    machines = [machine for machine in (cluster.login, *cluster.nodes) if machine.pid is not None]
    devices: dict[str, Path] = {}
    try:
        for number, (point, megabytes) in enumerate(sizes.items()):
            devices[_device(cluster.settings.state / f"jsc-{number}.img", megabytes)] = point
        for machine in machines:
            machine.run("mkdir", "-p", str(TOP))
            machine.run("mount", "-t", "tmpfs", "-o", "mode=755,size=1m", "p", str(TOP))
            for device, point in devices.items():
                machine.run("mkdir", "-p", str(point))
                # One device, one super block: the machines share the file system.
                machine.run("mount", "-t", "ext4", device, str(point))
        _fill(shell, cluster.login, releases, tuple(sizes))
        yield shell
    finally:
        cluster.cancel_all()
        for machine in machines:
            for point in (*devices.values(), TOP):
                machine.run("umount", "--lazy", str(point), check=False)
        for device in devices:
            call("losetup", "--detach", device, check=False)
        for image in cluster.settings.state.glob("jsc-*.img"):
            image.unlink()
        TOP.rmdir()


def _device(image: Path, megabytes: int) -> str:
    """Return a loop device with an empty file system of its own."""
    image.unlink(missing_ok=True)
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    call("mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image))
    return call("losetup", "--find", "--show", str(image)).strip()


def _fill(shell: JscShell, login: Machine, releases: Path, points: tuple[Path, ...]) -> None:
    """Write what the user and the site have put there, and give it to the user."""
    user = f"{login.settings.uid}:{login.settings.uid}"
    root = Path(f"/proc/{login.pid}/root")
    for point in points:
        (root / point.relative_to("/") / "lost+found").rmdir()
    for directory in (shell.project, shell.scratch):
        _in(root, directory).mkdir(parents=True)
    _unpack(_in(root, shell.checkout), releases / "v0.7.0.tar.gz")
    _add_own_files(_in(root, shell.checkout))
    _install_python(root, shell)
    _cache_models(_in(root, shell.project))
    login.run("chown", "-R", user, *(str(point) for point in points))
    git = ("git", "-C", str(shell.checkout), "-c", "user.name=a", "-c", "user.email=a@b.c")
    for arguments in (("init", "-q"), ("add", "examples", "nemo_rl"), ("commit", "-qm", "v0.7.0")):
        shell(*git, *arguments)


def _in(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _unpack(checkout: Path, release: Path) -> None:
    with tarfile.open(release) as archive:
        archive.extractall(checkout.parent, filter="data")
    (checkout.parent / "v0.7.0").rename(checkout)


def _add_own_files(checkout: Path) -> None:
    (checkout / "recipes").mkdir()
    (checkout / "recipes" / RECIPE).write_text(_RECIPE)


def _install_python(root: Path, shell: JscShell) -> None:
    """Install an interpreter without a path to its library, and the checkout's environment with it."""
    base, version = Path(sys.base_prefix), f"python{sys.version_info.major}.{sys.version_info.minor}"
    software = _in(root, shell.software)
    (software / "bin").mkdir(parents=True)
    (software / "lib").mkdir()
    binary = (base / "bin" / version).read_bytes()
    own, library = f"{base}/lib".encode(), f"lib{version}.so.1.0"
    # A name of its own, since the system may have such a library, too.
    module = library.replace("python", "module", 1)
    assert own in binary, "this interpreter has no path to its library"
    changed = binary.replace(own, b"/nowhere".ljust(len(own), b"/"))
    (software / "bin" / version).write_bytes(changed.replace(library.encode(), module.encode()))
    (software / "bin" / version).chmod(0o755)
    shutil.copy(base / "lib" / library, software / "lib" / module)
    (software / "lib" / version).symlink_to(base / "lib" / version)
    venv, site_packages = (
        _in(root, shell.checkout / ".venv"),
        Path(sys.prefix, "lib", version, "site-packages"),
    )
    (venv / "bin").mkdir(parents=True)
    own_packages = venv / "lib" / version / "site-packages"
    own_packages.mkdir(parents=True)
    (own_packages / "packages.pth").write_text(f"{site_packages}\nimport stand_in\n")
    (own_packages / "stand_in.py").write_text(_STAND_IN.replace("PACKAGES", str(CHECKOUT)))
    (venv / "pyvenv.cfg").write_text(f"home = {shell.software}/bin\n")
    (venv / "bin" / "python").symlink_to(shell.software / "bin" / version)
    (venv / "bin" / "ray").write_text(
        f"#!{shell.checkout}/.venv/bin/python\n"
        "import sys\nfrom ray.scripts.scripts import main\nsys.exit(main())\n"
    )
    (venv / "bin" / "ray").chmod(0o755)


def _cache_models(project: Path) -> None:
    """Put models, data and worker environments where an online login node would have put them."""
    hub = project / "huggingface" / "hub"
    for kind, names in (("models", _MODELS), ("datasets", _DATA)):
        for name in names:
            snapshot = hub / f"{kind}--{name.replace('/', '--')}" / "snapshots" / "0"
            snapshot.mkdir(parents=True)
            (snapshot.parent.parent / "refs").mkdir()
            (snapshot.parent.parent / "refs" / "main").write_text("0")
            (snapshot / "model.safetensors").write_bytes(b"")
            (snapshot / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    for worker in WORKERS:
        (project / "venvs" / worker / "bin").mkdir(parents=True)
        (project / "venvs" / worker / "bin" / "python").touch()
    (project / "uv-cache").mkdir()
