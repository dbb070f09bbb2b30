"""Failure across processes as a graph, and the choice of its root.

Nodes are processes; each has what went wrong in it: the first exception of its own, with a signature or
without. Edges are what a process prints about another one: what it saw of its death (`Nature.SEEN`: a
connection closed, a collective that timed out) or what it passes on (`Nature.RELAYED`: RayTaskError,
ActorDied, the engine is dead). The root is what one process has of its own. An edge is the root only where no
process has anything of its own; then it names the process that died, and the file to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from launcher.logs.events import ExceptionSeen, FindingSeen, Role
from launcher.logs.exception_kinds import exception_kind, exception_kinds
from launcher.logs.signatures import Nature, catalogue
from launcher.monitor.chronology import ENDS, Chronology, source_order
from launcher.monitor.odd_rank import WAITS, odd_rank

UNKNOWN = "exception"
"""Id of an exception without a signature."""
_DRIVERS = (Role.DRIVER, Role.SLURM)
"""Roles of logs that a driver may own: a plain job has one log for everything."""
_SHORTEST_MESSAGE = 8
"""A shorter message may stand in another one by chance."""
_NAMES_NODE = re.compile(r"\bon node (?P<node>[\w.-]+) was started with")
"""Later line of Ray's message about versions that differ."""
_MESSAGE_LINES = 6
"""Lines below an exception in which its message tells why."""
_KILLED = re.compile(
    r"\(SIGKILL\) received by PID|failed \(exitcode: -9\)|is killed by signal: Killed|proc\(s\): \{.*: -9\b"
)
_KILLED_FIX = (
    "Mostly the node's memory was full: compare MaxRSS of `sacct -j JOB` with the memory of the job, "
    "and look for `oom` in the batch script's log."
)
_RAY_PREFIX = re.compile(r"ray[.-]")


@dataclass(frozen=True, slots=True)
class Failure:
    """Evidence of a failure, and its part in the graph."""

    finding: FindingSeen
    nature: Nature
    reached: bool = False
    """Whether it reached the top of the driver, so that nothing caught it."""
    named: bool = False
    """Whether another process names its process as the one that failed."""
    names_silent: bool = False
    """Whether it names a process that printed nothing itself: one that was killed."""

    @property
    def generic(self) -> bool:
        """True if another signature of its tier is more specific."""
        signature = catalogue().signatures.get(self.finding.id)
        return signature is not None and signature.generic

    @property
    def certain(self) -> bool:
        """True if it has certainly ended something: no process goes on after it."""
        from_launcher = not is_exception(self.finding) and self.finding.id not in catalogue().signatures
        return self.finding.tier == 1 or self.reached or from_launcher


class FailureGraph:
    """Evidence of one run's failure: signatures and exceptions of all processes, in all logs."""

    def __init__(self, fatal: Sequence[FindingSeen], exceptions: Sequence[ExceptionSeen]) -> None:
        self._exceptions = sorted(exceptions, key=lambda item: source_order(item.source))
        by_line = {item.source: item for item in self._exceptions}
        top = [
            item
            for item in self._exceptions
            if item.own and not item.wrapper and not item.chained and item.source.role in _DRIVERS
        ]
        self._top_sources = {item.source for item in top}
        self._top_messages = tuple(dict.fromkeys(item.message for item in top))
        self._named = {(item.pid, item.node) for item in self._exceptions if item.wrapper and item.pid}
        self._wrappers = {item.source for item in self._exceptions if item.wrapper}
        self._printers = {_process(item) for item in fatal if _nature(item) is not Nature.RELAYED} | {
            _process(item) for item in self._exceptions if not item.wrapper
        }
        recognised = [_completed(item, by_line.get(item.source)) for item in fatal]
        findings = [*recognised, *self._unknown({item.source for item in fatal})]
        self.failures = tuple(self._failure(item) for item in findings)
        self.chronology = Chronology(findings)

    def _unknown(self, recognised: set[object]) -> Iterator[FindingSeen]:
        """Yield the exceptions that no signature recognises, as findings of tier 2."""
        for item in self._exceptions:
            if item.wrapper or item.chained or item.signature or item.source in recognised:
                continue
            yield _finding_of(item)

    def _failure(self, finding: FindingSeen) -> Failure:
        nature = _nature(finding)
        reached = finding.source in self._top_sources or any(
            _same_message(finding.text, message) for message in self._top_messages
        )
        pid, node = finding.pid, finding.node
        named = not self._named.isdisjoint(((pid, node), (pid, None)))
        names_silent = (
            nature is Nature.RELAYED and finding.pid is not None
            and finding.source in self._wrappers and not self._printed(finding)
        )  # fmt: skip
        return Failure(finding, nature, reached, named, names_silent)

    def _printed(self, named: FindingSeen) -> bool:
        """Return True if the process that a relay names printed something about itself."""
        pid, rank = named.pid, named.rank
        return any(
            (pid is not None and printer == pid) or (printer is None and rank is not None and printed == rank)
            for printer, printed in self._printers
        )

    def root(self) -> FindingSeen | None:
        """Return the cause; None where there is no failure."""
        root = self._root()
        if root is not None and root.node is None and root.rank is not None:
            # torchrun's report names the host of the rank that it saw fail.
            reports = (item for item in self._exceptions if item.wrapper and item.rank == root.rank)
            hosts = {item.node for item in reports} - {None}
            root = replace(root, node=hosts.pop()) if len(hosts) == 1 else root
        return root if root is None else _with_node_in_fix(root)

    def _root(self) -> FindingSeen | None:
        own = [item for item in self.failures if item.nature is Nature.OWN]
        edges = [item for item in self.failures if item.nature is not Nature.OWN]
        # What others saw of a death explains no error, only that a run did not end in time.
        hung = [item for item in own if item.finding.id in ENDS]
        unexplained = self._unexplained(own, [item.finding for item in own])
        unexplained = [item for item in unexplained if item not in hung] + self._unexplained(
            [item for item in unexplained if item in hung], [item.finding for item in edges]
        )
        if unexplained:
            return min(unexplained, key=self._order_of_own).finding
        if not edges:
            return min(own, key=self._order_of_own).finding if own else None
        candidates = [item for item in edges if item.names_silent]
        candidates += self._unexplained(edges, [item.finding for item in self.failures])
        edge = min(candidates or edges, key=self._order_of_edge).finding
        odd = odd_rank([item.finding for item in edges]) if edge.id in WAITS else None
        return _with_what_to_read(edge) if odd is None else odd.as_cause()

    def _unexplained(self, items: Iterable[Failure], others: Sequence[FindingSeen]) -> list[Failure]:
        graph = catalogue().consequences
        first: dict[tuple[str, str], FindingSeen] = {}  # an earlier one explains all that a later one does
        for other in sorted(others, key=self.chronology.key):
            first.setdefault((other.id, other.source.log), other)
        return [
            item
            for item in items
            if not any(
                self.chronology.explains(other, item.finding, graph) or _leads_to(other, item.finding)
                for other in first.values()
            )
        ]

    def _order_of_own(self, item: Failure) -> tuple[object, ...]:
        finding = item.finding
        return (
            finding.tier, item.generic, finding.tier > 1 and finding.retried, not item.certain,
            finding.tier > 1 and not item.named, self.chronology.key(finding),
        )  # fmt: skip

    def _order_of_edge(self, item: Failure) -> tuple[object, ...]:
        finding = item.finding
        holds_error = item.nature is Nature.RELAYED and finding.tier < 3
        return (not holds_error, not item.names_silent, finding.tier, self.chronology.key(finding))


def _leads_to(cause: FindingSeen, other: FindingSeen) -> bool:
    """Return True for an exception of a class that an earlier failure of another process leads to."""
    if not is_exception(other) or cause.id not in catalogue().signatures:
        return False
    if other.text.partition(":")[0].rpartition(".")[2] not in catalogue().signatures[cause.id].raises:
        return False
    if cause.source.log == other.source.log:
        return cause.source.line < other.source.line + _MESSAGE_LINES
    return cause.source.role is Role.SLURM


def is_exception(finding: FindingSeen) -> bool:
    """Return True for an exception that no signature recognises."""
    return finding.id == UNKNOWN or finding.id in exception_kinds()


def _finding_of(exception: ExceptionSeen) -> FindingSeen:
    """Return an exception that no signature recognises as a finding of tier 2."""
    name = exception.message.partition(":")[0]
    text = f"{exception.message} {exception.detail}" if exception.detail else exception.message
    kind = exception_kind(text)
    if kind is not None:
        identity, title, fix, edits = kind.id, kind.title, kind.fix, kind.edits
    else:
        identity, title, edits = UNKNOWN, f"Unrecognised error: {name}", ()
        fix = f"Raised in {exception.frame}. " if exception.frame else ""
        fix += "Read the traceback above this line."
    return FindingSeen(
        identity, title, "fatal", text, exception.source, fix, exception.node, exception.rank,
        tier=2, edits=edits, stamp=exception.stamp, pid=exception.pid, task=exception.task,
    )  # fmt: skip


def _process(item: FindingSeen | ExceptionSeen) -> tuple[int | None, int | None]:
    return item.pid, item.rank


def _nature(finding: FindingSeen) -> Nature:
    kind = catalogue().signatures.get(finding.id) or exception_kinds().get(finding.id)
    return kind.nature if kind is not None else Nature.OWN


def _completed(finding: FindingSeen, exception: ExceptionSeen | None) -> FindingSeen:
    """Return a finding with what later lines of its exception's message say of it and of its process."""
    if exception is None:
        return finding
    text = f"{finding.text} {exception.detail}" if exception.detail else finding.text
    finding = _told_by(exception.detail, finding) if exception.detail else finding
    if not exception.wrapper or (exception.node is None and exception.pid is None):
        named = _NAMES_NODE.search(exception.detail) if finding.node is None else None
        return replace(finding, text=text, node=finding.node if named is None else named["node"])
    return replace(finding, text=text, node=exception.node, pid=exception.pid, rank=exception.rank)


def _told_by(detail: str, finding: FindingSeen) -> FindingSeen:
    """Return a finding as what a later line of its message says that it is, or that it only passes on."""
    signature = catalogue().recognise(detail)
    if signature is not None and signature.nature is Nature.RELAYED:
        name, title, advice = signature.id, signature.title, signature.advice
        return replace(finding, id=name, title=title, tier=signature.tier, fix=advice.fix, edits=advice.edits)
    kind = exception_kind(detail) if signature is None else None
    if kind is None:
        return finding
    return replace(finding, id=kind.id, title=kind.title, fix=kind.fix, edits=kind.edits)


def _same_message(text: str, reached: str) -> bool:
    """Return True if an exception that reached the driver's top is another process's, or quotes it."""
    if reached in text or text in reached:
        return True
    name, _, message = text.partition(": ")
    return len(message) > _SHORTEST_MESSAGE and message in reached and name.rpartition(".")[2] in reached


def _with_node_in_fix(finding: FindingSeen) -> FindingSeen:
    """Return a finding whose advice names the node to leave out, where Slurm's name of it is known."""
    name = (finding.node or "").partition(".")[0]
    if not name or name.isdecimal() or ":" in name:
        return finding
    return replace(finding, fix=finding.fix.replace("--exclude=NODE", f"--exclude={name}"))


def _with_what_to_read(finding: FindingSeen) -> FindingSeen:
    """Return an edge with the process that it names, and where that one's last words are."""
    who = [
        f"rank {finding.rank}" if finding.rank is not None else "",
        f"process {finding.pid}" if finding.pid is not None else "",
        f"on {finding.node}" if finding.node is not None else "",
    ]
    names = " ".join(part for part in who if part)
    if _KILLED.search(finding.text):
        return replace(finding, fix=f"SIGKILL ended {names or 'a process'}. {_KILLED_FIX}")
    if not names:
        return finding
    if finding.rank is None and finding.pid is None:
        return replace(finding, fix=f"It is about node {finding.node}. {finding.fix}")
    reading = "its lines in this log"
    if finding.pid is not None and _RAY_PREFIX.match(finding.id):
        reading += f", and /tmp/ray/session_latest/logs/worker-*-{finding.pid}.err on its node"
    return replace(finding, fix=f"It is about {names}: read {reading}. {finding.fix}")
