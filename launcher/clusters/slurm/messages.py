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

ACCOUNTING_OFF = re.compile(
    r"supported accounting_storage plugin|accounting[ _]storage is disabled|accounting storage disabled"
    r"|accounting_storage/(?:none|filetxt)|accounting_storage.{0,40}(?:not supported|unsupported)",
    re.IGNORECASE,
)
"""Wordings of sacctmgr, sreport, sacct and the data parsers."""

_RETRYING = re.compile(r"(?:sleeping and retrying|temporarily disabled, retrying)\.?$")
"""sbatch says so before it sleeps; what became of it is on the lines after (src/sbatch/sbatch.c)."""

_BUSY = re.compile(
    r"MaxJobCount limit reached|[Jj]ob queue full|Requested nodes are busy|Required ports are in use"
    r"|PrologSlurmctld is still running"
    r"|Requested operation is presently disabled|Slurm backup controller in standby mode"
    r"|Job can not be altered now"
)
"""Refusals that pass by themselves; the same submission may be accepted later."""

_GAVE_UP = re.compile(r"Batch job submission failed: Resource temporarily unavailable")
"""The controller was too busy, or the connection was: only a look at the queue tells."""

_BUSY_FIX = "Nothing was submitted; this passes by itself: submit again in some minutes."

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
        r"Assoc(?:Max|Grp)Submit",
        "The account has too many queued jobs: wait for one to end, or give another --account.",
    ),
    (
        r"MaxSubmitJob|GrpSubmitJob",
        "The QoS allows no more queued jobs: wait for one to end, or give another --qos.",
    ),
    (r"AssocMaxWall", "Give a shorter --time: the account has a lower limit than the partition."),
    (
        r"Assoc(?:Max|Grp)\w*Minutes",
        "The account's budget does not suffice: request less --time, or give another --account.",
    ),
    (r"AssocMax\w*(?:Node|TRES|Cpu|GRES|Billing|Mem)", "Change --nodes: the account has its own limit."),
    (r"QOSMaxWall", "Give a shorter --time: the QoS has a lower limit than the partition."),
    (r"QOSGrp\w*Minutes|QOSGrpWall", "The budget of the QoS is used up: give another --qos or --account."),
    (r"QOSMax\w*(Node|TRES|Cpu|GRES|Billing|Mem)|QOSMin", "Change --nodes: the QoS has its own limit."),
    (
        r"accounting/QOS policy",
        "Either too many of your jobs are queued (wait until one has ended), or the job asks for more time or"
        " nodes than the account or QoS allows (request less).",
    ),
    (
        r"(?:specify|require|need|request)\w* .{0,40}(?:gpu.{0,20}type|type of (?:the )?gpu)|gpu type",
        "Give the type: --sbatch-arg=--gres=gpu:TYPE:N; `distill-tui detect` lists the types.",
    ),
    (
        r"(?:^|\s|')--?(?P<option>exclusive|mem|requeue|export)\b.{0,30}"
        r"(?:not (?:allowed|permitted|supported|accepted)|forbidden|disallowed)",
        'Leave it out: sbatch_without = ["exclusive"] (or what it names) in [job] of your site.toml.',
    ),
    (r"generic resource|gres", "The partition has no such GPUs; `distill-tui detect` lists its GPUs."),
    (
        r"Requested node configuration is not available|CPU count per node|Memory specification",
        "No node of the partition meets the request; `distill-tui detect` lists its nodes.",
    ),
    (
        r"Memory required by task",
        "No node has so much memory free: give less by --sbatch-arg=--mem=….",
    ),
    (r"feature specification", "Correct --constraint; `sinfo -o '%P %f'` lists the features of nodes."),
    (r"TRES\) specification", "Correct the --sbatch-arg that asks for resources."),
    (
        r"partition configuration not available",
        "The job is above a limit of the partition, or it is closed; `distill-tui detect` lists both.",
    ),
    (r"Invalid node name", "Correct --nodelist or --exclude; `sinfo -N` lists the nodes."),
    (
        r"can't be reached now, or it is an invalid entry",
        "SLURM_CLUSTERS of your shell names the cluster; `sacctmgr list clusters` lists them.",
    ),
    (r"writing script/environment", "The controller cannot store jobs; tell the site's support."),
    (r"license", "Correct --licenses; `scontrol show licenses` lists them."),
    (
        r"group not permitted|Access/permission denied|not allowed in this partition",
        "Another --partition: this one does not admit you.",
    ),
    (r"Partition in DOWN state", "The partition is closed at the moment; use another one, or wait."),
    (r"Required node not available", "Nodes it names are down, drained or reserved; name others, or wait."),
    (r"maintenance reservation", "Give a shorter --time, so that it ends before the maintenance, or wait."),
    (r"Required partition not available", "The partition is closed at the moment; use another one, or wait."),
    (r"Requested reservation", "The reservation does not exist, is not active, or is not yours."),
    (r"unrecognized option|Invalid --|invalid option", "Correct the --sbatch-arg that the message names."),
    (r"DOS line breaks|This does not look like a batch script|Batch script is empty", "Correct the script."),
    (r"user not found|Invalid user", "Slurm does not know this user; ask the site's support."),
    (r"\b(?:project|account|budget|allocation)s?\b(?! manager)", "Give another --account."),
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


_PREFIX = re.compile(
    r"^(?:s(?:batch|alloc|run|info|queue|acct|acctmgr|report|control|cancel|lurm\w*): )?"
    r"(?:(?:error|fatal|warning|info): )?(?:lua: )?",
    re.IGNORECASE,
)
_FAILED = r"(?:Batch job submission failed|Job submit/allocate failed|(?:Job )?[Aa]llocation failure): ?"
_UNSPECIFIED = re.compile(rf"[\s;:,|-]*(?:{_FAILED})?\bUnspecified error\.?\s*$", re.IGNORECASE)
"""The end that Slurm adds where a site's plugin refuses with words of its own."""
_PLUGIN = re.compile(r"cli_filter plugin terminated with error|cli_filter_g_\w+ failed", re.IGNORECASE)


def message_of(stderr: str) -> str:
    """Return Slurm's message, or the site's, without command names, lines of dashes and empty endings."""
    lines: list[str] = []
    rest: list[str] = []
    for line in stderr.splitlines():
        bare = _PREFIX.sub("", line.strip())
        own = _UNSPECIFIED.sub("", bare).strip()
        own = re.sub(rf"^{_FAILED}", "", own)
        if not own or _PLUGIN.search(own):
            rest.append(re.sub(rf"^{_FAILED}", "", bare))
        elif set(own) != {"-"} and own not in lines:
            lines.append(own)
    return " ".join(lines or dict.fromkeys(text for text in rest if text))


def final_message(stderr: str) -> str:
    """Return the lines without sbatch's notes that it tries again, unless there are no others."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return "\n".join([line for line in lines if not _RETRYING.search(line.strip())] or lines)


def is_accounting_off(text: str) -> bool:
    """Return whether a message says that the cluster keeps no accounts."""
    return ACCOUNTING_OFF.search(text) is not None


def fix_for(stderr: str) -> str:
    """Return the fix for a refusal; empty where none is known."""
    return next((fix for pattern, fix in _FIXES if re.search(pattern, stderr, re.IGNORECASE)), "")


def is_busy(stderr: str) -> bool:
    """Return whether sbatch gave up because Slurm takes no job at the moment; nothing was submitted then."""
    return re.search(_FAILED, stderr) is not None and _BUSY.search(final_message(stderr)) is not None


def gave_up(stderr: str) -> bool:
    """Return whether sbatch gave up after it had tried for two minutes; the job may be there all the same."""
    return _GAVE_UP.search(stderr) is not None


def is_unanswered(stderr: str) -> bool:
    """Return whether it is unknown if a failed command was carried out."""
    last = final_message(stderr)
    return not last or UNREACHABLE.search(last) is not None or _RETRYING.search(last) is not None


def busy(stderr: str) -> RefusedError:
    """Return the error of a submission that may be accepted later."""
    return RefusedError(
        f"Slurm takes no jobs at the moment: {message_of(final_message(stderr))}", fix=_BUSY_FIX
    )


def failure(command: str, code: int, stderr: str) -> UnreachableError | RefusedError:
    """Return the error of a failed command."""
    if NOT_CONFIGURED.search(stderr):
        return NotConfiguredError(
            "Slurm's commands find no cluster", fix="Log in to the cluster's login node and try again."
        )
    if is_busy(stderr):
        return busy(stderr)
    last = final_message(stderr)
    if is_unanswered(stderr):
        detail = message_of(last) or f"no message, exit code {code}"
        return UnreachableError(
            f"Slurm gave no answer to {command}: {detail}",
            fix="Running jobs are not affected; try again later.",
        )
    return RefusedError(f"Slurm refused: {message_of(last)}", fix=fix_for(last))
