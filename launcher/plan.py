"""The launch plan: command, environment and files of one job, as data."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

# What a job gets from the environment the program was started in. Everything else in it (VIRTUAL_ENV, UV_*,
# PYTHONPATH, RAY_*, CUDA_VISIBLE_DEVICES, SLURM_*, tokens …) stays out unless a plan names it.
PASSED_ON = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The command of a job, its directory, environment and files."""

    job_id: str
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    """The job's whole environment."""
    files: tuple[str, ...]
    """Files written into the run's directory, relative to it."""
    output: str
    """File of the job's own output."""

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `submit --dry-run --json` prints it."""
        return {
            "argv": list(self.argv),
            "cwd": self.cwd,
            "env": dict(self.environment),
            "files": list(self.files),
            "output": self.output,
        }

    def as_bytes(self) -> bytes:
        """Return the plan as `plan.json`."""
        return (json.dumps({"schema": 1, **self.as_json()}, indent=1) + "\n").encode()


class PlanRecord(BaseModel):
    """The part of `plan.json` that is read again; nothing of it is executed."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = Field(default_factory=dict)


def new_token() -> str:
    """Return a new token for a job's comment, by which the job is found if sbatch's answer is lost."""
    return f"dt-{secrets.token_hex(8)}"


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that a job gets."""
    return {name: environment[name] for name in PASSED_ON if name in environment}
