"""Slurm's messages: refusals, unreachable controllers, start estimates; and how to fix their causes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from launcher.clusters.slurm.parse import ParseError
from launcher.errors import NotConfiguredError, RefusedError, UnreachableError

UNREACHABLE = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection refused|Protocol authentication error"
    r"|Zero Bytes were transmitted|Rate limit exceeded|Unable to process configuration file|Connection reset"
    r"|temporarily unable to accept|Resource temporarily unavailable|Problem talking to the database"
    r"|Unexpected message received|Communication connection failure|Invalid authentication credential"
)
"""Not an answer: the command may still have been carried out."""

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
    (r"Invalid qos", "Give a QoS that the account may use, or none; `distill-tui detect` lists them."),
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
        "The account has too many queued jobs, is missing, or is used up: wait, or give another --account.",
    ),
    (
        r"MaxSubmitJob",
        "The QoS allows no more queued jobs: wait for one to end, or give another --qos.",
    ),
    (r"QOSMaxWall", "Give a shorter --time: the QoS has a lower limit than the partition."),
    (r"QOSMax\w*(Node|TRES|Cpu|GRES)|QOSMin", "Change --nodes: the QoS has its own limit."),
    (r"accounting/QOS policy", "A limit of the account or QoS is reached: request less, or wait."),
    (r"generic resource|gres", "The partition has no such GPUs; `distill-tui detect` lists its GPUs."),
    (
        r"Requested node configuration is not available|CPU count per node|Memory specification",
        "No node of the partition meets the request; `distill-tui detect` lists its nodes.",
    ),
    (r"Required partition not available", "The partition is closed at the moment; use another one, or wait."),
    (r"Requested reservation", "The reservation does not exist, is not active, or is not yours."),
    (r"unrecognized option|Invalid --|invalid option", "Correct the --sbatch-arg that the message names."),
    (r"DOS line breaks|This does not look like a batch script|Batch script is empty", "Correct the script."),
    (r"user not found|Invalid user", "Slurm does not know this user; ask the site's support."),
    (r"project|account", "Give another --account."),
)  # fmt: skip

_TEST_ONLY_ANSWER = re.compile(
    r"Job (?P<job>\d+) to start at (?P<start>\S+?)(?: on cluster (?P<cluster>\S+))?(?: a)?"
    r" using (?P<cpus>\d+) processors on (?:nodes )?(?P<nodes>\S+) in partition (?P<partition>\S+)"
)


@dataclass(frozen=True, slots=True)
class TestOnlyAnswer:
    """Start estimate of `sbatch --test-only`."""

    start: str
    """As Slurm prints it: local time, `YYYY-MM-DDTHH:MM:SS`."""
    cpus: int
    nodes: str
    partition: str
    cluster: str | None = None


def read_test_only(text: str) -> TestOnlyAnswer:
    """Read the answer of `sbatch --test-only` (on stderr); both wordings, and lines that were broken in two.

    Raises:
        ParseError: the text is no such answer.
    """
    match = _TEST_ONLY_ANSWER.search(" ".join(text.split()))
    if match is None:
        raise ParseError("answer of sbatch --test-only", text)
    return TestOnlyAnswer(
        match["start"], int(match["cpus"]), match["nodes"], match["partition"], match["cluster"]
    )


def read_job_id(text: str) -> str:
    """Read the answer of `sbatch` (with or without `--parsable`, also `ID;CLUSTER`).

    Raises:
        ParseError: the text is no such answer.
    """
    for line in text.splitlines():
        match = re.fullmatch(r"(?:[Ss]ubmitted batch job )?(\d+)(?:;\S+)?(?: on cluster \S+)?", line.strip())
        if match is not None:
            return match[1]
    raise ParseError("answer of sbatch", text)


def message_of(stderr: str) -> str:
    """Return Slurm's message without command names and lines of dashes."""
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
    """Return the fix for a refusal; empty where none is known."""
    return next((fix for pattern, fix in _FIXES if re.search(pattern, stderr, re.IGNORECASE)), "")


def failure(command: str, code: int, stderr: str) -> UnreachableError | RefusedError:
    """Return the error of a failed command."""
    if NOT_CONFIGURED.search(stderr):
        return NotConfiguredError(
            "Slurm's commands find no cluster", fix="Log in to the cluster's login node and try again."
        )
    if UNREACHABLE.search(stderr) or not stderr.strip():
        detail = message_of(stderr) or f"no message, exit code {code}"
        return UnreachableError(
            f"Slurm gave no answer to {command}: {detail}",
            fix="Running jobs are not affected; try again later.",
        )
    return RefusedError(f"Slurm refused: {message_of(stderr)}", fix=fix_for(stderr))
