"""Slurm's commands, and a site's, as scripts that answer what they are told to."""

from __future__ import annotations

from tests.launcher.ordering import Desk

ANSWERS = {
    "sinfo": 'case "$*" in --version) echo slurm 22.05.8 ;; *)\n'
    'echo "booster*|up|1-00:00:00|8|gpu:a100:4|96|2|24"\n'
    'echo "devel|up|2:00:00|2|gpu:a100:4|96|2|24" ;; esac',
    "scontrol": 'echo "PartitionName=booster"; echo "   Default=YES MaxTime=1-00:00:00 State=UP QoS=N/A"',
    "sacctmgr": 'echo "c|first||normal|normal|first"',
    "squeue": "true",
    "sacct": "true",
    "sbatch": "echo 4711",
}
SITE = "[gpu_memory_gib]\na100 = 40\n"


def install(desk: Desk, **more: str) -> dict[str, str]:
    """Write the commands; returns the environment of a user whose PATH has them first."""
    folder = desk.world.root / "bin"
    folder.mkdir(exist_ok=True)
    for name, script in {**ANSWERS, **more}.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    config = desk.world.root / "config" / "distill-tui"
    config.mkdir(parents=True, exist_ok=True)
    (config / "site.toml").write_text(SITE)
    return {
        **desk.environment,
        "PATH": f"{folder}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(desk.world.root / "cache"),
        "DISTILL_TUI_RUNS": desk.store.root,
    }
