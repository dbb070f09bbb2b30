"""Slurm's commands as small scripts on PATH, a checkout, models and recipes: a login node for the wizard."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.checks.world import World

SITE = """\
[gpu_memory_gib]
a100 = 40

[profiles.light.environment]
RAY_BARE_CPUS = 2
"""
SINFO = """\
booster*|up|1-00:00:00|8|gpu:a100:4(S:0-1)|96|2|24
devel|up|2:00:00|2|gpu:a100:4(S:0-1)|96|2|24
closed|down|1:00:00|2|gpu:a100:4|96|2|24
"""
PARTITIONS = """\
PartitionName=booster AllowAccounts=ALL State=UP MaxTime=1-00:00:00 DefaultTime=01:00:00 MaxNodes=UNLIMITED
PartitionName=devel AllowAccounts=distill State=UP MaxTime=02:00:00 MaxNodes=2
PartitionName=closed AllowAccounts=none State=DOWN MaxTime=01:00:00
"""
ACCOUNTS = "c|distill||normal|normal|distill\nc|other||normal,low|normal|distill\n"
WRITE = '#!/bin/sh\nprintf \'%s\\n\' "$0 $*" >> "{log}"\n{script}\n'


@dataclass(frozen=True)
class LoginNode:
    """A place with a Slurm of scripts; what they were asked is in a file."""

    root: Path

    @classmethod
    def at(cls, root: Path, *, slurm: bool = True) -> LoginNode:
        """Make one."""
        checkout = root / "nemo-rl"
        checkout.mkdir(parents=True)
        World.at(checkout)
        (checkout / "examples").mkdir()
        (checkout / "examples" / "run_distillation.py").touch()
        (checkout / "nemo_rl").mkdir()
        (checkout / "nemo_rl" / "package_info.py").write_text(
            'MAJOR = 0\nMINOR = 4\nPATCH = 0\nPRE_RELEASE = ""\n'
        )
        (checkout / ".venv" / "bin").mkdir(parents=True)
        for program in ("python", "ray"):
            (checkout / ".venv" / "bin" / program).touch()
        (root / "config" / "distill-tui").mkdir(parents=True)
        (root / "config" / "distill-tui" / "site.toml").write_text(SITE)
        (root / "bin").mkdir()
        node = cls(root)
        if slurm:
            node.answer(
                "sinfo", f"case $1 in --version) echo slurm 22.05.8;; *) cat <<'X'\n{SINFO}X\n;; esac"
            )
            node.answer("scontrol", f"cat <<'X'\n{PARTITIONS}X\n")
            node.answer("sacctmgr", f"cat <<'X'\n{ACCOUNTS}X\n")
            node.answer("squeue", "echo '4711|PENDING|Priority'")
            node.answer("sacct", "")
            node.takes("4711")
        return node

    def answer(self, command: str, script: str) -> None:
        """Let a command do something."""
        path = self.root / "bin" / command
        path.write_text(WRITE.format(log=self.log, script=script))
        path.chmod(0o755)

    def takes(self, job: str) -> None:
        """Let sbatch take jobs, and foretell that they start soon."""
        told = "Job 7 to start at 2030-01-01T08:00:00 using 8 processors on nodes n1 in partition booster"
        self.answer("sbatch", f'case "$*" in *--test-only*) echo "sbatch: {told}" >&2;; *) echo {job};; esac')

    def refuses(self, message: str) -> None:
        """Let sbatch refuse."""
        self.answer("sbatch", f"echo 'sbatch: error: {message}' >&2; exit 1")

    @property
    def log(self) -> Path:
        """What the commands were asked."""
        return self.root / "asked.txt"

    def asked(self, command: str) -> list[str]:
        """Return the arguments that a command was called with."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if line.partition(" ")[0].endswith(f"/{command}")]

    @property
    def runs(self) -> Path:
        """Where the runs are."""
        return self.root / "runs"

    @property
    def checkout(self) -> Path:
        """The NeMo-RL checkout, which holds a legal recipe for one node, too."""
        return self.root / "nemo-rl"

    @property
    def recipe(self) -> Path:
        """A legal recipe for one node."""
        return self.checkout / "recipe.yaml"

    @property
    def environment(self) -> Mapping[str, str]:
        """What differs from this process's environment."""
        return {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.root),
            "USER": "carla",
            "NEMO_RL_ROOT": str(self.checkout),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "DISTILL_TUI_RUNS": str(self.runs),
            "RAY_BARE_VENV": sys.prefix,
        }
