"""A shell on a node of a running job: srun's command line, and running it on the terminal."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping

from launcher.errors import InputError

_JOB = re.compile(r"\d+(?:_\d+)?(?:\+\d+)?")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TOOLS = "nvidia-smi py-spy nvtop htop"
_HELLO = (
    f'echo "$(hostname): $(for tool in {_TOOLS}; do command -v $tool >/dev/null && printf "%s " $tool; done)'
    '(exit leaves)"; exec bash -i'
)
"""Names the tools of the node, then the shell."""


def is_job_id(job: str) -> bool:
    """Return whether a text is the id of a Slurm job: `41`, `41_3` or `41+1`."""
    return _JOB.fullmatch(job) is not None


def shell_command(job: str, node: str = "") -> list[str]:
    """Return the arguments that open a shell beside a job's processes, on a node or on the first one.

    `--overlap`: without it the step waits until the job's own step ends (srun(1)).

    Raises:
        InputError: the job's id or the node's name is none.
    """
    if not is_job_id(job) or (node and not _NODE.fullmatch(node)):
        raise InputError(f"no shell: job '{job}' on node '{node}' cannot be named to srun")
    place = [f"--nodelist={node}"] if node else []
    return [
        "srun",
        f"--jobid={job}",
        "--overlap",
        "--nodes=1",
        "--ntasks=1",
        *place,
        "--pty",
        "bash",
        "-c",
        _HELLO,
    ]


def over_ssh(host: str, command: list[str]) -> list[str]:
    """Return the arguments that run a command on a host's terminal, by the ssh client.

    The host is one that the ssh configuration named before; a login shell has its PATH as it is there.
    """
    return ["ssh", "-t", "--", host, f"exec $SHELL -lc {shlex.quote(shlex.join(command))}"]


def login_shell(host: str, directory: str) -> list[str]:
    """Return the arguments that open a login shell in a directory of a host."""
    return ["ssh", "-t", "--", host, f"cd -- {shlex.quote(directory)} && exec $SHELL -l"]


def copyable(command: list[str]) -> str:
    """Return the command as a line for a shell."""
    if command[0] == "ssh":
        return shlex.join(command)
    return shlex.join([*command[: command.index("bash")], "bash"])


def open_shell(command: list[str], environ: Mapping[str, str]) -> int:
    """Run the shell on the terminal; returns its exit code.

    Raises:
        InputError: srun, or ssh for a host, is not installed, or cannot be started.
    """
    if shutil.which(command[0]) is None:
        fix = (
            "Install an ssh client."
            if command[0] == "ssh"
            else "Open the shell from a login node of the cluster."
        )
        raise InputError(f"{command[0]} is not installed here", fix=fix)
    # Slurm's own variables of an allocation around this program would name another job.
    env = {name: value for name, value in environ.items() if not _of_allocation(name)}
    try:
        return subprocess.run(command, env=env, check=False).returncode
    except OSError as error:
        raise InputError(f"{command[0]} cannot be started: {error.strerror}") from error


def _of_allocation(name: str) -> bool:
    return name.startswith(("SLURM_", "SBATCH_", "SRUN_")) and name != "SLURM_CONF"
