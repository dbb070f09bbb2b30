"""Diagnosis of a failure: evidence of all logs in, one cause and its consequences out.

The cause is what went wrong in one process and explains the rest (`failure_graph.py`). Tier 1 explains, tier
2 explains where no log holds a tier 1, tier 3 only reports; a finding that is a consequence of another one
(`Signature.causes`) is not the cause. Ray relays what workers print late, so a line's own time outweighs its
position in the log (`chronology.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from launcher.logs.events import ExceptionSeen, FindingSeen, JobChanged, Role, Source
from launcher.logs.signatures import Nature, catalogue
from launcher.monitor.chronology import source_order
from launcher.monitor.failure_graph import UNKNOWN, FailureGraph, is_exception

__all__ = [
    "UNKNOWN",
    "Diagnosis",
    "diagnose",
    "is_exception",
    "is_failed_step",
    "is_interrupt",
    "is_latent",
    "source_order",
]
CANCELLED = "slurm-scancel"
"""Signature of a job that was cancelled; it says who told the processes to stop."""
_STOPPED = "sigterm"
"""Signature of a process that was told to stop."""
_STEP_ENDED = "slurm-exit"
_TASKS_ENDED = re.compile(
    r"^srun: error: (?P<node>[\w.-]+): tasks? (?P<tasks>\d{1,7}(?:[,-]\d{1,7})*): (?!Terminated)"
)
"""The end of tasks on a node; those that were terminated did not fail themselves."""
# Final states of a job (sacct, State) -> id of the signature with the same meaning.
_SLURM_STATES = {
    "OUT_OF_MEMORY": "slurm-oom-kill",
    "TIMEOUT": "slurm-timeout",
    "NODE_FAIL": "slurm-node-fail",
    "PREEMPTED": "slurm-preempt",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Findings in order: the root first, if any, then the others by time, warnings last."""

    findings: tuple[FindingSeen, ...] = ()

    @property
    def root(self) -> FindingSeen | None:
        """The cause; None where none is known."""
        return self.findings[0] if self.findings and self.findings[0].root else None


def diagnose(
    reported: Iterable[FindingSeen],
    exceptions: Sequence[ExceptionSeen] = (),
    *,
    job: JobChanged | None = None,
    failed: bool = False,
    completed: bool = False,
    stopped: bool = False,
    silent_after: Sequence[ExceptionSeen | FindingSeen] = (),
) -> Diagnosis:
    """Order findings, the cause first.

    `failed`: the run has failed; `completed`: it has succeeded, so that only warnings count;
    `stopped`: it was ended from outside, so that findings of tier 3 do not count; `silent_after`: exceptions
    of its workers, and warnings that explain failures, after which it wrote nothing more: they are suspected.
    """
    findings = sorted([*reported, *_from_cluster(job)], key=lambda item: source_order(item.source))
    warnings = [item for item in findings if item.severity != "fatal"]
    if completed:
        return Diagnosis(tuple(_once_per_log(warnings)))
    fatal = [item for item in findings if item.severity == "fatal"]
    raised = [item for item in exceptions if not is_interrupt(item)]
    if any(item.id == CANCELLED for item in warnings):
        others = [item for item in fatal if item.id != _STOPPED]
        failed_before = any(item.own for item in raised) or any(item.tier < 3 for item in others)
        fatal = others if failed_before else []
    # A worker's traceback alone is not a failure: it may have been caught and printed.
    has_failed = failed or bool(fatal) or any(item.own for item in raised)
    if has_failed:
        latent = [item for item in warnings if is_latent(item)]
        fatal += latent
        warnings = [item for item in warnings if item not in latent]
    if stopped and all(item.tier == 3 or item.id == _STOPPED for item in fatal):
        fatal = []
    graph = FailureGraph(fatal, raised if has_failed and (fatal or not stopped) else ())
    root = graph.root() or _suspect(silent_after)
    if root is None:
        return Diagnosis(tuple(_with_consequences(_once_per_log(warnings))))
    root = _with_node(root, fatal)
    others = [
        item.finding
        for item in graph.failures
        if not is_exception(item.finding) and item.finding.source != root.source
    ]
    others = _once_per_log(sorted(others, key=graph.chronology.key), root)
    confidence = _confidence(root, others, failed=failed)
    ordered = _with_consequences([root, *others, *_once_per_log(warnings)], root)
    return Diagnosis((replace(ordered[0], root=True, confidence=confidence), *ordered[1:]))


def _with_node(root: FindingSeen, findings: Sequence[FindingSeen]) -> FindingSeen:
    """Return the cause with the node on which its task, or the only one that failed, ended (srun)."""
    if root.node is not None:
        return root
    ends = [
        match
        for item in findings
        if item.id == _STEP_ENDED and item.source.log == root.source.log
        and (match := _TASKS_ENDED.search(item.text)) is not None
    ]  # fmt: skip
    if root.task is not None:
        ends = [match for match in ends if _is_among(root.task, match["tasks"])]
    nodes = {match["node"] for match in ends}
    return replace(root, node=nodes.pop()) if len(nodes) == 1 else root


def is_failed_step(item: FindingSeen) -> bool:
    """Return True for srun's word that tasks of a step ended with an error of their own."""
    return item.id == _STEP_ENDED and _TASKS_ENDED.search(item.text) is not None


def _is_among(number: int, text: str) -> bool:
    """Return True for a number of a list such as `1,4-6`."""
    ranges = (part.partition("-") for part in text.split(","))
    return any(int(first) <= number <= int(last or first) for first, _, last in ranges)


def _suspect(evidence: Sequence[ExceptionSeen | FindingSeen]) -> FindingSeen | None:
    """Return the last words of a run of which no log shows an end, as a weak finding."""
    warnings = [item for item in evidence if isinstance(item, FindingSeen)]
    suspect = FailureGraph(warnings, [item for item in evidence if isinstance(item, ExceptionSeen)]).root()
    if suspect is None:
        return None
    title = suspect.title.replace("Unrecognised", "Last, an unrecognised", 1)
    harmless = "it may have been caught" if suspect.id == UNKNOWN else "it may not have mattered"
    fix = f"Nothing was written after it, and no log shows an end: {harmless}. {suspect.fix}"
    return replace(suspect, title=title, tier=3, fix=fix)


def is_interrupt(exception: ExceptionSeen) -> bool:
    """Return True if a person or a signal ended the process, not an error."""
    return exception.message.startswith("KeyboardInterrupt")


def is_latent(item: FindingSeen) -> bool:
    """Return True for a warning that explains a run that failed."""
    signature = catalogue().signatures.get(item.id)
    return signature is not None and signature.latent


def _once_per_log(findings: Sequence[FindingSeen], root: FindingSeen | None = None) -> list[FindingSeen]:
    """Return the first finding of each kind in each log; all processes of a run print the same."""
    first: dict[tuple[str, str], FindingSeen] = {}
    if root is not None:
        first[root.source.log, root.id] = root
    for item in findings:
        first.setdefault((item.source.log, item.id), item)
    return [item for item in first.values() if item is not root]


def _from_cluster(job: JobChanged | None) -> list[FindingSeen]:
    """Return the scheduler's final state of the job as a finding, like a line of a log."""
    identity = _SLURM_STATES.get(job.word) if job is not None else None
    if job is None or identity is None:
        return []
    signature = catalogue().signatures[identity]
    advice = signature.advice
    text = f"Slurm: {job.word}"
    text += f", exit code {job.exit_code}" if job.exit_code else ""
    text += f", job {job.job}" if job.job else ""
    text += f" on {job.nodes}" if job.nodes else ""
    return [
        FindingSeen(
            identity, signature.title, "fatal", text, Source("", Role.SLURM, 0), advice.fix,
            time=job.time, tier=signature.tier, edits=advice.edits,
        )
    ]  # fmt: skip


def _confidence(root: FindingSeen, others: Sequence[FindingSeen], *, failed: bool) -> str:
    """Return the confidence: `high` for one clear cause, `low` where there are only symptoms."""
    if root.tier == 3:
        return "low"
    graph = catalogue().consequences.get(root.id, frozenset())
    rivals = {
        item.id
        for item in others
        if item.tier == root.tier and item.id != root.id and item.id not in graph and _is_own(item)
    }
    if root.tier == 2 or rivals or (root.retried and not failed):
        return "medium"
    return "high"


def _is_own(item: FindingSeen) -> bool:
    signature = catalogue().signatures.get(item.id)
    return signature is None or signature.nature is Nature.OWN


def _with_consequences(findings: list[FindingSeen], root: FindingSeen | None = None) -> list[FindingSeen]:
    """Fill in the consequences of each finding among those present; a root's include all edges."""
    graph = catalogue().consequences
    present = list(dict.fromkeys(item.id for item in findings))
    edges = {item.id for item in findings if item.tier == 3 or not _is_own(item)}
    result = []
    for item in findings:
        consequences = graph.get(item.id, frozenset()) | (edges if item is root else frozenset())
        causes = tuple(name for name in present if name in consequences and name != item.id)
        result.append(replace(item, causes=causes) if causes else item)
    return result
