"""Files and environment of a job: its script, the launcher, the driver's command.

Two launchers: our `ray_bare.sub`, and NeMo-RL's own `ray.sub`, which runs in a container (see `containers`).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.checkout import VENV, driver_venv
from launcher.clusters.slurm.client import conf
from launcher.clusters.slurm.module_loading import loading_lines
from launcher.request import JobOptions
from launcher.runs import SECRETS
from launcher.scripts import script_files, script_path
from launcher.sites import Site
from launcher.transports.base import Transport


@dataclass(frozen=True, slots=True)
class Batch:
    """Files, environment and working directory of a job."""

    files: Mapping[str, bytes]
    """Scripts in the run's directory; `job.sh` is what Slurm starts."""
    environment: Mapping[str, str]
    """The whole environment; without secrets."""
    cwd: str
    """Where sbatch is called, which is the job's SLURM_SUBMIT_DIR."""


def bare_batch(
    transport: Transport,
    environment: Mapping[str, str],
    site: Site,
    options: JobOptions,
    directory: Path,
    *,
    saves: bool,
) -> Batch:
    """Return the files and the environment of a job with `ray_bare.sub`; `saves`: set the save deadline.

    Whether there is a Python environment with Ray is left to the plan's obstacle.
    """
    venv = _venv(transport, environment, options)
    script = str(directory / "rehearsal.py") if options.checkout is None else options.checkout.driver
    argv = [str(venv / "bin" / "python"), script]
    return Batch(
        {
            **_launcher_files(options),
            "chain.sh": script_path("chain.sh").read_bytes(),
            "job.sh": job_script(environment, site, options, "ray_bare.sub"),
        },
        {
            **common_environment(environment, options),
            "BASE_LOG_DIR": str(directory / "logs"),
            "COMMAND": driver_command(argv, options, directory, saves=saves),
            "GPUS_PER_NODE": str(options.gpus_per_node),
            "NEMO_RL_ROOT": options.checkout.path if options.checkout is not None else str(directory),
            "RAY_BARE_VENV": str(venv),
            "RUN_DIR": str(directory),
        },
        str(directory),
    )


def common_environment(environment: Mapping[str, str], options: JobOptions) -> dict[str, str]:
    """Return the variables of every job, and where Slurm's commands find their configuration."""
    return {
        **(options.environment.variables if options.environment is not None else {}),
        **conf(environment),
    }


def job_script(
    environment: Mapping[str, str],
    site: Site,
    options: JobOptions,
    launcher: str,
    before: Sequence[str] = (),
) -> bytes:
    """Return `job.sh`: modules, the launcher, the end of a chain's link; `environment` is this program's."""
    lines = ["#!/bin/bash", f"# The job: what comes before {launcher}."]
    if site.modules:
        variables = options.environment.variables if options.environment is not None else {}
        lines += loading_lines(site.modules, environment, variables)
    lines += before
    if options.slurm_request.chain == 1:
        lines.append(f'exec bash "$RUN_DIR/{launcher}"')
    else:
        lines += [
            "trap : TERM INT HUP",
            f'bash "$RUN_DIR/{launcher}" &',
            'while wait "$!"; code=$?; kill -0 "$!" 2>/dev/null; do :; done',
            'bash "$RUN_DIR/chain.sh" end "$code"',
            'exit "$code"',
        ]
    return ("\n".join(lines) + "\n").encode()


def driver_command(argv: Sequence[str], options: JobOptions, directory: Path, *, saves: bool) -> str:
    """Return the shell command of the driver."""
    command = shlex.join([*argv, "--config", str(directory / "effective.yaml")])
    if saves:
        # Computed when the driver starts: only then is it known how much of the job's time is left.
        command += """ "checkpointing.checkpoint_must_save_by='$(bash "$RUN_DIR/chain.sh" save-by)'\""""
    if not options.keys:
        return command
    return f". {shlex.quote(str(directory / SECRETS))} && exec {command}"


def key_file(keys: Mapping[str, str]) -> bytes:
    """Return the file of the driver's keys."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in keys.items()).encode()


def _venv(transport: Transport, environment: Mapping[str, str], options: JobOptions) -> Path:
    job = options.environment.variables if options.environment is not None else environment
    if options.checkout is None:
        return Path(job.get(VENV) or sys.prefix)
    return driver_venv(transport, options.checkout.path, job, environment)


def _launcher_files(options: JobOptions) -> dict[str, bytes]:
    scripts = script_files()
    if options.kind == "rehearsal":
        return scripts
    return {name: data for name, data in scripts.items() if name.endswith(".sub")}
