"""What Slurm says when it refuses, is not there, or foretells; with what a user can do about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from launcher.clusters.slurm.parse import ParseError
from launcher.errors import LaunchError, TransportError

UNREACHABLE = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection refused|Protocol authentication error"
    r"|Zero Bytes were transmitted|Rate limit exceeded|Unable to process configuration file|Connection reset"
    r"|temporarily unable to accept|Resource temporarily unavailable|Problem talking to the database"
    r"|Unexpected message received|Communication connection failure|Invalid authentication credential"
)
"""Not an answer: the command may have been carried out all the same."""

NOT_CONFIGURED = re.compile(r"Could not establish a configuration source|DNS SRV lookup failed")
"""Neither a slurm.conf nor a controller (src/common/read_config.c)."""

# Parts of Slurm's messages (src/common/slurm_errno.c and reasons of limits) -> what to do.
_FIXES: tuple[tuple[str, str], ...] = (
    (
        r"Invalid account or account/partition combination",
        "Give an account that may use this partition; `distill-tui detect` lists them.",
    ),
    (r"invalid partition|Invalid partition name", "`distill-tui detect` lists the partitions."),
    (r"No partition specified", "Name a partition; `distill-tui detect` lists them."),
    (r"Invalid qos", "Give a QoS that the account has, or none; `distill-tui detect` lists them."),
    (
        r"Requested time limit is invalid|no time specification",
        "Give a shorter --time; `distill-tui detect` lists the partitions' limits.",
    ),
    (
        r"Node count specification invalid|More processors requested",
        "Give fewer --nodes; `distill-tui detect` lists the partitions' nodes and limits.",
    ),
    (
        r"AssocMaxSubmitJobLimit",
        "Too many jobs of this account are queued, or it is missing or used up: wait, or give another one.",
    ),
    (
        r"MaxSubmitJob",
        "As many jobs are queued as the QoS lets you have: wait for one to end, or give another --qos.",
    ),
    (r"QOSMaxWall", "Give a shorter --time: the QoS allows less than the partition."),
    (r"QOSMax\w*(Node|TRES|Cpu|GRES)|QOSMin", "Give other --nodes: the QoS has a limit of its own."),
    (r"accounting/QOS policy", "A limit of the account or QoS is reached: ask for less, or wait."),
    (r"generic resource|gres", "This partition has not these GPUs; `distill-tui detect` lists what it has."),
    (
        r"Requested node configuration is not available|CPU count per node|Memory specification",
        "No node of the partition has what is asked for; `distill-tui detect` lists what they have.",
    ),
    (r"Required partition not available", "The partition is closed at the moment; take another one or wait."),
    (r"Requested reservation", "The reservation does not exist, is not active, or is not yours."),
    (r"unrecognized option|Invalid --|invalid option", "Correct the --sbatch-arg it names."),
    (r"DOS line breaks|This does not look like a batch script|Batch script is empty", "Correct the script."),
    (r"user not found|Invalid user", "Slurm does not know this user; ask the site's support."),
    (r"project|account", "Give another --account."),
)  # fmt: skip

_VERDICT = re.compile(
    r"Job (?P<job>\d+) to start at (?P<start>\S+?)(?: on cluster (?P<cluster>\S+))?(?: a)?"
    r" using (?P<cpus>\d+) processors on (?:nodes )?(?P<nodes>\S+) in partition (?P<partition>\S+)"
)


class UnreachableError(TransportError):
    """Slurm gave no answer; what was asked of it may have been done."""


class RefusedError(LaunchError):
    """Slurm refused."""


class NotConfiguredError(RefusedError):
    """Slurm's commands are here, but this machine belongs to no cluster."""


@dataclass(frozen=True, slots=True)
class TestOnlyAnswer:
    """What `sbatch --test-only` foretells."""

    start: str
    """As Slurm prints it: local time, `YYYY-MM-DDTHH:MM:SS`."""
    cpus: int
    nodes: str
    partition: str
    cluster: str | None = None


def read_test_only(text: str) -> TestOnlyAnswer:
    """Read the answer of `sbatch --test-only` (on stderr); both wordings, and lines that were broken in two.

    Raises:
        CannotReadError: it is none.
    """
    match = _VERDICT.search(" ".join(text.split()))
    if match is None:
        raise ParseError("answer of sbatch --test-only", text)
    return TestOnlyAnswer(
        match["start"], int(match["cpus"]), match["nodes"], match["partition"], match["cluster"]
    )


def read_job_id(text: str) -> str:
    """Read the answer of `sbatch` (with or without `--parsable`, also `ID;CLUSTER`).

    Raises:
        CannotReadError: it is none.
    """
    for line in text.splitlines():
        match = re.fullmatch(r"(?:[Ss]ubmitted batch job )?(\d+)(?:;\S+)?(?: on cluster \S+)?", line.strip())
        if match is not None:
            return match[1]
    raise ParseError("answer of sbatch", text)


def told(stderr: str) -> str:
    """Return what Slurm's message says, without the command's name before each line and lines of dashes."""
    lines = []
    for line in stderr.splitlines():
        bare = re.sub(r"^(?:s\w+: )?(?:error: )?", "", line.strip())
        bare = re.sub(
            r"^(?:Batch job submission|Job submit/allocate) failed: |^allocation failure: ", "", bare
        )
        if bare and set(bare) != {"-"} and bare not in lines:
            lines.append(bare)
    if len(lines) > 1:
        lines = [line for line in lines if line != "Unspecified error"]
    return " ".join(lines)


def fix_for(stderr: str) -> str:
    """Return what a user can do about a refusal; empty where nothing is known."""
    return next((fix for pattern, fix in _FIXES if re.search(pattern, stderr, re.IGNORECASE)), "")


def failure(command: str, code: int, stderr: str) -> UnreachableError | RefusedError:
    """Return the error that a failed command means."""
    if NOT_CONFIGURED.search(stderr):
        return NotConfiguredError(
            "Slurm's commands find no cluster", fix="Log in to the cluster's login node and try again."
        )
    if UNREACHABLE.search(stderr) or not stderr.strip():
        said = told(stderr) or f"no message, exit code {code}"
        return UnreachableError(
            f"Slurm gave no answer to {command}: {said}",
            fix="Running jobs are not touched by this; it is asked again later.",
        )
    return RefusedError(f"Slurm refused: {told(stderr)}", fix=fix_for(stderr))
