"""Which finding is the cause: evidence of all logs in, one root and its consequences out.

The cause is the earliest finding that explains the failure. Tier 1 explains, tier 2 explains where no log
holds a tier 1, tier 3 only reports; a finding that another one brings about (`Signature.causes`) is no cause.
Ray relays what workers print late, so the place in a log is weaker than the time a line tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.logs.events import ExceptionSeen, FindingSeen, JobChanged, Role, Source
from launcher.logs.signatures import Catalogue, catalogue

UNKNOWN = "exception"
"""Id of an exception that no signature knows."""
_ROLE_ORDER = {role: place for place, role in enumerate(Role)}
_RELAY_S = 90.0
"""Ray relays a line up to about a minute late, so a cause may bear a later time than its consequence."""
_ENDS = frozenset({"slurm-timeout", "slurm-preempt"})
"""Nothing that happens after these matters."""
# Slurm's words for how a job ended (sacct, State), and which signature says the same.
_SLURM_WORDS = {
    "OUT_OF_MEMORY": "slurm-oom-kill",
    "TIMEOUT": "slurm-timeout",
    "NODE_FAIL": "slurm-node-fail",
    "PREEMPTED": "slurm-preempt",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings in order: the root first, if any, then the others by time, warnings last."""

    findings: tuple[FindingSeen, ...] = ()

    @property
    def root(self) -> FindingSeen | None:
        """The cause."""
        return self.findings[0] if self.findings and self.findings[0].root else None


def diagnose(
    seen: Iterable[FindingSeen],
    exceptions: Sequence[ExceptionSeen] = (),
    *,
    job: JobChanged | None = None,
    failed: bool = False,
    completed: bool = False,
    stopped: bool = False,
) -> Diagnosis:
    """Order findings, the cause first.

    `failed`: the run is known to have failed; `completed`: to be fine; `stopped`: it was ended from outside,
    so what merely reports that something died says nothing.
    """
    findings = sorted([*seen, *_from_cluster(job)], key=lambda item: place(item.source))
    warnings = [item for item in findings if item.severity != "fatal"]
    if completed:
        return Diagnosis(tuple(warnings))
    fatal = [item for item in findings if item.severity == "fatal"]
    fatal += _unknown([item for item in exceptions if not is_interrupt(item)], fatal, failed=failed)
    if stopped and all(item.tier == 3 for item in fatal):
        fatal = []
    order = _Order(fatal)
    root = _root(fatal, order)
    if root is None:
        return Diagnosis(tuple(_with_consequences(warnings)))
    others = sorted((item for item in fatal if item is not root), key=order.key)
    confidence = _confidence(root, fatal, failed=failed)
    ordered = _with_consequences([root, *others, *warnings], root)
    return Diagnosis((replace(ordered[0], root=True, confidence=confidence), *ordered[1:]))


def is_interrupt(exception: ExceptionSeen) -> bool:
    """Tell whether a person or a signal ended the process, not an error."""
    return exception.message.startswith("KeyboardInterrupt")


def place(source: Source) -> tuple[int, str, int]:
    """Return an order of sources that does not depend on which log was read first."""
    return (_ROLE_ORDER[source.role], source.log, source.line)


class _Order:
    """Orders findings by time. One without a time takes that of the last timed one before it in its log."""

    def __init__(self, findings: Sequence[FindingSeen]) -> None:
        self._times: dict[Source, float] = {}
        by_log: dict[str, list[FindingSeen]] = {}
        for item in findings:
            by_log.setdefault(item.source.log, []).append(item)
        for items in by_log.values():
            items.sort(key=lambda item: item.source.line)
            known = [item.stamp for item in items if item.stamp is not None]
            if not known:
                continue
            time = known[0]
            for item in items:
                time = item.stamp if item.stamp is not None else time
                self._times[item.source] = time

    def time(self, item: FindingSeen) -> float | None:
        """Return when a finding happened, where that is known."""
        return self._times.get(item.source)

    def key(self, item: FindingSeen) -> tuple[bool, float, tuple[int, str, int]]:
        """Sort by this."""
        time = self.time(item)
        return (time is None, time or 0.0, place(item.source))

    def explains(self, cause: FindingSeen, other: FindingSeen, graph: Mapping[str, frozenset[str]]) -> bool:
        """Tell whether one finding brings the other about."""
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
        beside = cause.source.log == other.source.log
        if cause.tier > other.tier:  # a weak finding explains a strong one only where it is surely earlier
            if first is not None and second is not None and first != second:
                return first < second
            return beside and cause.source.line < other.source.line
        if first is not None and second is not None and first > second + _RELAY_S:
            return False
        mutual = cause.id in graph.get(other.id, ())
        return not mutual or self.key(cause) < self.key(other)


def _root(fatal: Sequence[FindingSeen], order: _Order) -> FindingSeen | None:
    known = catalogue()
    graph = known.consequences
    unexplained = [
        item for item in fatal if not any(order.explains(other, item, graph) for other in fatal)
    ] or list(fatal)
    return min(
        unexplained,
        key=lambda item: (item.tier, _is_generic(item, known), order.key(item)),
        default=None,
    )


def _is_generic(item: FindingSeen, known: Catalogue) -> bool:
    signature = known.signatures.get(item.id)
    return signature is not None and signature.generic


def _unknown(
    exceptions: Sequence[ExceptionSeen], fatal: Sequence[FindingSeen], *, failed: bool
) -> list[FindingSeen]:
    """Return the exception to name where no signature explains: the first of the first process that failed.

    A worker's traceback alone is no failure: it may have been caught and printed.
    """
    own = sorted((item for item in exceptions if item.own), key=lambda item: place(item.source))
    if any(item.tier < 3 for item in fatal) or not (own or failed or fatal):
        return []
    recognised = {item.source for item in fatal}
    raised = [item for item in exceptions if not item.wrapper and item.source not in recognised]
    told = next((item for item in own if item in raised), None)
    if told is not None:
        same = [item for item in raised if item.message == told.message]
        raised = same or [told]
    first = min(raised, key=lambda item: place(item.source), default=None)
    if first is None:
        return []
    name = first.message.partition(":")[0]
    return [
        FindingSeen(
            UNKNOWN, f"An error that is not in the catalogue: {name}", "fatal", first.message, first.source,
            "Read the traceback above this line.", first.node, first.rank,
            tier=2, stamp=first.stamp, pid=first.pid,
        )
    ]  # fmt: skip


def _from_cluster(job: JobChanged | None) -> list[FindingSeen]:
    """Return what the scheduler's own verdict says: evidence like a line of a log."""
    identity = _SLURM_WORDS.get(job.word) if job is not None else None
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
    """Say how sure the cause is: `high` for one clear cause, `low` where only symptoms were seen."""
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
    """Fill in which of the present findings each one brought about; a root, also all that only report."""
    graph = catalogue().consequences
    present = list(dict.fromkeys(item.id for item in findings))
    reports = {item.id for item in findings if item.tier == 3}
    result = []
    for item in findings:
        brought = graph.get(item.id, frozenset()) | (reports if item is root else frozenset())
        causes = tuple(name for name in present if name in brought and name != item.id)
        result.append(replace(item, causes=causes) if causes else item)
    return result
