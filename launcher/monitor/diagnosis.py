"""Diagnosis of a failure: evidence of all logs in, one cause and its consequences out.

The cause is the earliest finding that explains the failure. Tier 1 explains, tier 2 explains where no log
holds a tier 1, tier 3 only reports; a finding that is a consequence of another one (`Signature.causes`) is
not the cause. Ray relays what workers print late, so a line's own time outweighs its position in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.logs.events import ExceptionSeen, FindingSeen, JobChanged, Role, Source
from launcher.logs.signatures import catalogue

UNKNOWN = "exception"
"""Id of an exception without a signature."""
_ROLE_ORDER = {role: index for index, role in enumerate(Role)}
_RELAY_S = 90.0
"""Ray relays a line up to about a minute late, so a cause may have a later time than its consequence."""
_ENDS = frozenset({"slurm-timeout", "slurm-preempt"})
"""Failures after these are their consequences."""
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
) -> Diagnosis:
    """Order findings, the cause first.

    `failed`: the run has failed; `completed`: it has succeeded, so that only warnings count;
    `stopped`: it was ended from outside, so that findings of tier 3 do not count.
    """
    findings = sorted([*reported, *_from_cluster(job)], key=lambda item: source_order(item.source))
    warnings = [item for item in findings if item.severity != "fatal"]
    if completed:
        return Diagnosis(tuple(warnings))
    fatal = [item for item in findings if item.severity == "fatal"]
    fatal += _unrecognised([item for item in exceptions if not is_interrupt(item)], fatal, failed=failed)
    if stopped and all(item.tier == 3 for item in fatal):
        fatal = []
    chronology = _Chronology(fatal)
    root = _root(fatal, chronology)
    if root is None:
        return Diagnosis(tuple(_with_consequences(warnings)))
    others = sorted((item for item in fatal if item is not root), key=chronology.key)
    confidence = _confidence(root, fatal, failed=failed)
    ordered = _with_consequences([root, *others, *warnings], root)
    return Diagnosis((replace(ordered[0], root=True, confidence=confidence), *ordered[1:]))


def is_interrupt(exception: ExceptionSeen) -> bool:
    """Return True if a person or a signal ended the process, not an error."""
    return exception.message.startswith("KeyboardInterrupt")


def source_order(source: Source) -> tuple[int, str, int]:
    """Return a sort key for sources: by role, log and line, whichever log was read first."""
    return (_ROLE_ORDER[source.role], source.log, source.line)


class _Chronology:
    """Times of findings. One without a time has that of the last timed one before it in its log."""

    def __init__(self, findings: Sequence[FindingSeen]) -> None:
        self._times: dict[Source, float] = {}
        by_log: dict[str, list[FindingSeen]] = {}
        for item in findings:
            by_log.setdefault(item.source.log, []).append(item)
        for items in by_log.values():
            items.sort(key=lambda item: item.source.line)
            times = [item.stamp for item in items if item.stamp is not None]
            if not times:
                continue
            time = times[0]
            for item in items:
                time = item.stamp if item.stamp is not None else time
                self._times[item.source] = time

    def time(self, item: FindingSeen) -> float | None:
        """Return the time of a finding; None where its log holds no times."""
        return self._times.get(item.source)

    def key(self, item: FindingSeen) -> tuple[bool, float, tuple[int, str, int]]:
        """Return a sort key: by time, findings without a time last, then by source."""
        time = self.time(item)
        return (time is None, time or 0.0, source_order(item.source))

    def explains(self, cause: FindingSeen, other: FindingSeen, graph: Mapping[str, frozenset[str]]) -> bool:
        """Return True if `other` is a consequence of `cause`."""
        if cause is other:
            return False
        first, second = self.time(cause), self.time(other)
        if first is not None and second is not None and first != second:
            if cause.id in _ENDS and first < second:
                return True
            if other.id in _ENDS and second < first:
                return False
        if other.id not in graph.get(cause.id, ()):
            return False
        same_log = cause.source.log == other.source.log
        if cause.tier > other.tier:  # a weak finding explains a strong one only where it is certainly earlier
            if first is not None and second is not None and first != second:
                return first < second
            return same_log and cause.source.line < other.source.line
        if first is not None and second is not None and first > second + _RELAY_S:
            return False
        mutual = cause.id in graph.get(other.id, ())
        return not mutual or self.key(cause) < self.key(other)


def _root(fatal: Sequence[FindingSeen], chronology: _Chronology) -> FindingSeen | None:
    graph = catalogue().consequences
    unexplained = [
        item for item in fatal if not any(chronology.explains(other, item, graph) for other in fatal)
    ] or list(fatal)
    return min(
        unexplained,
        key=lambda item: (item.tier, _is_generic(item), chronology.key(item)),
        default=None,
    )


def _is_generic(item: FindingSeen) -> bool:
    signature = catalogue().signatures.get(item.id)
    return signature is not None and signature.generic


def _unrecognised(
    exceptions: Sequence[ExceptionSeen], fatal: Sequence[FindingSeen], *, failed: bool
) -> list[FindingSeen]:
    """Return the exception to report where no signature explains: the first of the first process that failed.

    A worker's traceback alone is not a failure: it may have been caught and printed.
    """
    own = sorted((item for item in exceptions if item.own), key=lambda item: source_order(item.source))
    if any(item.tier < 3 for item in fatal) or not (own or failed or fatal):
        return []
    recognised = {item.source for item in fatal}
    raised = [item for item in exceptions if not item.wrapper and item.source not in recognised]
    top_level = next((item for item in own if item in raised), None)
    if top_level is not None:
        raised = [item for item in raised if item.message == top_level.message]
    first = min(raised, key=lambda item: source_order(item.source), default=None)
    if first is None:
        return []
    name = first.message.partition(":")[0]
    return [
        FindingSeen(
            UNKNOWN, f"Unrecognised error: {name}", "fatal", first.message, first.source,
            "Read the traceback above this line.", first.node, first.rank,
            tier=2, stamp=first.stamp, pid=first.pid,
        )
    ]  # fmt: skip


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


def _confidence(root: FindingSeen, fatal: Sequence[FindingSeen], *, failed: bool) -> str:
    """Return the confidence: `high` for one clear cause, `low` where there are only symptoms."""
    if root.tier == 3:
        return "low"
    graph = catalogue().consequences.get(root.id, frozenset())
    rivals = {
        item.id for item in fatal if item.tier == root.tier and item.id != root.id and item.id not in graph
    }
    if root.tier == 2 or rivals or (root.retried and not failed):
        return "medium"
    return "high"


def _with_consequences(findings: list[FindingSeen], root: FindingSeen | None = None) -> list[FindingSeen]:
    """Fill in the consequences of each finding among those present; a root's include all of tier 3."""
    graph = catalogue().consequences
    present = list(dict.fromkeys(item.id for item in findings))
    reports = {item.id for item in findings if item.tier == 3}
    result = []
    for item in findings:
        consequences = graph.get(item.id, frozenset()) | (reports if item is root else frozenset())
        causes = tuple(name for name in present if name in consequences and name != item.id)
        result.append(replace(item, causes=causes) if causes else item)
    return result
