"""Evidence of failures in one log: signatures and tracebacks, without lines that only look like either.

A line's severity counts before its words: what a logger wrote below ERROR, and what Python's warnings quote,
is no failure. What a process prints when it ends itself (severity FATAL) is one, whatever its words.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from launcher.logs import python_warnings
from launcher.logs.clock import timestamp, wall_clock
from launcher.logs.events import Event, ExceptionSeen, FindingSeen, Role, Source
from launcher.logs.headers import LineSeverity
from launcher.logs.lines import Segment
from launcher.logs.python_warnings import PythonWarnings
from launcher.logs.signatures import Catalogue, Nature, Signature, catalogue
from launcher.logs.tracebacks import (
    ASIDE,
    BEGIN,
    BOXED,
    EVERY_LINE,
    HANDLED,
    UNHANDLED,
    Process,
    Raised,
    Tracebacks,
    is_box,
    key_of,
    marks,
)

_PANEL = ("│", "╭", "╰", "┃")
_ASCII_PANEL = ("|", "+-")
_TEXT_BEGINS = frozenset(("+", *_PANEL))
_SAMPLES_BEGIN, _SAMPLES_END = "Sample Conversations", "End of Samples"
# nemo_rl/algorithms/distillation.py: the driver's activity, and whose memory that needs.
_PHASES = (
    ("Setting up teacher policy...", "teacher"),
    ("Setting up student policy...", "student"),
    ("Generating responses for batch", "generation"),
    ("Preparing for teacher logprob inference...", "teacher"),
    ("Computing teacher logprobs...", "teacher"),
    ("Preparing for training...", "student"),
    ("Training policy...", "student"),
    ("Starting validation at step", "generation"),
)
# NeMo-RL's ray.sub runs under `set -x`: the shell prints the steps' scripts, error messages included.
_SCRIPTS = ("head_cmd='", "worker_cmd='", "bash -x -c '")
_SCRIPT_LINES = 2000
_CODE = re.compile(r"\s+(?:raise |assert |return |await |self\.|logger\.|print\(|echo |#|[frb]?[\"'])")
# A text in the line, and the pattern that captures the node's name.
_NODES = (
    ("CANCELLED", re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON (?P<node>\S+) CANCELLED")),
    ("srun: error: ", re.compile(r"^srun: error: (?:Node failure on (?=\S)|(?=\S+: task))(?P<node>[\w.-]+)")),
    (" failed on node ", re.compile(r" failed on node (?P<node>[\w.-]+)")),
    ("slurm_receive_msgs: [[", re.compile(r"slurm_receive_msgs: \[\[(?P<node>\d+(?:\.\d+){3}|[\w-]+)")),
    ("slurmstepd-", re.compile(r"^slurmstepd-(?P<node>[\w.-]+): ")),
    (" NCCL ", re.compile(r"(?:^|\] )(?P<node>[\w.-]+):\d+:\d+ \[\d+\] .*NCCL ")),
    (", device ", re.compile(r"\bRank \d+, node (?P<node>[\w.-]+), device \d")),
    (", node: ", re.compile(r"\bDevice: \d+, node: (?P<node>[\w.-]+)")),
    ("(ID: ", re.compile(r"\(ID: \w+, IP: (?P<node>[\d.]+)\)")),
    ("marked dead", re.compile(r"\baddress: (?P<node>[\w.:-]+)")),
    ("was started with", re.compile(r"on node (?P<node>[\w.-]+) was started with")),
)
_RANK = re.compile(
    r"\[Rank (?P<rank>\d+)\]|^\w+: Rank (?P<rank4>\d+)[,:] |\[rank=(?P<rank2>\d+)\]|\) Rank (?P<rank3>\d+)\]"
)
# What others saw of a rank that died names it.
_MISSING_RANK = re.compile(
    r"send/recv from rank (?P<rank>\d+)|Ranks? (?P<rank2>\d+)(?:, \d+)* failed to pass"
    r"|(?<!timeout )from rank (?P<rank3>\d+) |process rank (?P<rank4>\d+) with PID"
    r"|retrieving [Nn]cclUniqueId from \[(?P<rank5>\d+)\]|\[(?P<rank6>\d+)[\d, ]*\] finished collective #"
    r"|ranks \[(?P<rank7>\d+)[\d, ]*\] are the lagging ranks"
)
_DEAD_PROCESS = re.compile(r"Worker IP address: (?P<node>[\d.]+).* Worker PID: (?P<pid>\d+)")
_FAILED_PROCESS = re.compile(r"local_rank: \d+ \(pid: (?P<pid>\d{1,10})\) of binary")
_ENGINES = ("Vllm", "EngineCore", "Worker_", "RayWorkerWrapper", "LLM", "SGLang")
"""How the names of the generation engine's processes begin: they need its advice in any phase."""
_TEXT_LIMIT = 2000
_EXCEPTIONS_LIMIT = 256
"""Processes of one log that an exception of one kind is reported of: what 500 ranks see must not hide the one
that failed."""
_ABORTED = "process-aborted"
"""Signature of any line at severity FATAL."""
_TASK_ERROR = "RayTaskError("
_RELAYED = "ray-task-error"
_RAY_SOURCES = ("_manager.cc:", "core_worker", "_client.cc:", "_client.h:", "_server.cc:")
"""Parts of the names of Ray's source files, in the lines with which its processes end themselves."""
_BELOW_ERROR = frozenset((LineSeverity.DEBUG, LineSeverity.INFO, LineSeverity.WARNING))

_CPP_MESSAGE = "what():  "
_CPP_EXCEPTION = re.compile(r"\s*what\(\):  (?P<message>\S.*)")
"""What std::terminate prints of the exception that nothing caught."""
_AWAITED_LINES = 64

_TRACEBACK_LITERALS = frozenset((BEGIN, BOXED, UNHANDLED, *HANDLED, *ASIDE))
_EVIDENCE_LITERALS = frozenset((*_TRACEBACK_LITERALS, python_warnings.LITERAL, _CPP_MESSAGE, *_RAY_SOURCES))
LITERALS = (
    *sorted(_EVIDENCE_LITERALS), _SAMPLES_BEGIN, _SAMPLES_END, *_SCRIPTS, *(text for text, _ in _PHASES),
)  # fmt: skip
_OTHER_LITERALS = frozenset(LITERALS)


class EvidenceMarks(NamedTuple):
    """Kinds of evidence that the literals of a line can mean."""

    signatures: tuple[str, ...]
    """The catalogue's literals among them, sorted."""
    tracebacks: bool = False
    warning: bool = False
    script: bool = False
    samples: bool = False
    phase: str = ""
    relevant: bool = False
    """True for any of them but scripts, samples and phases."""


@dataclass(slots=True)
class Evidence:
    """Reader of the segments of one log, in their order. Holds no more than what is open in it."""

    role: Role
    catalogue: Catalogue = field(default_factory=catalogue)
    tracebacks: Tracebacks = field(default_factory=Tracebacks)
    phase: str = ""
    """The driver's activity, where advice depends on it."""
    _samples: bool = False
    _script: int = 0
    """Lines left in which a script that the shell prints may end; 0 outside a script."""
    _warnings: PythonWarnings = field(default_factory=PythonWarnings)
    _zone_shift: float = 0.0
    """Seconds from the carrier's clock to that of the processes, where lines have the times of both."""
    _year: int = field(default_factory=lambda: datetime.now().astimezone().year)
    _reported: set[tuple[object, ...]] = field(default_factory=set)
    """Processes and kinds of their exceptions."""
    _awaited: tuple[bytes, ...] = ()
    _awaited_until: int = sys.maxsize
    """Line at which `_awaited` is worked out again: something may have expired; 0 after a change."""
    _kinds: Counter[str] = field(default_factory=Counter)
    """Signature of an exception, empty for those without -> processes that it was reported of."""
    _messages: dict[int, tuple[Source, str]] = field(default_factory=dict)
    """Line of a reported exception -> its source, and the id of the signature that recognises it."""
    _silent: dict[int, ExceptionSeen] = field(default_factory=dict)
    """Line of a reported exception without a message -> it."""

    def awaited(self, number: int) -> tuple[bytes, ...]:
        """Return what the lines hold that matter from line `number` on although they hold no literal."""
        if number >= self._awaited_until:
            self._await(number)
        return self._awaited

    def _await(self, number: int) -> None:
        tracebacks, warnings = self.tracebacks, self._warnings
        if self.is_idle:
            self._awaited, self._awaited_until = (), sys.maxsize
            return
        tracebacks.forget_endless(number)
        warnings.forget_old(number)
        self._awaited = EVERY_LINE if self._script else marks((*tracebacks.open_keys, *warnings.open_keys))
        self._awaited_until = number + _AWAITED_LINES if self._awaited else sys.maxsize

    def marks(self, literals: frozenset[str]) -> EvidenceMarks:
        """Return what the literals of a line can be evidence of; each step searches only for what can be."""
        of_catalogue = literals & self.catalogue.literal_set
        if literals.isdisjoint(_OTHER_LITERALS):  # as in most lines
            return EvidenceMarks(tuple(sorted(of_catalogue)), relevant=bool(of_catalogue))
        return EvidenceMarks(
            signatures=tuple(sorted(of_catalogue)),
            tracebacks=not literals.isdisjoint(_TRACEBACK_LITERALS),
            warning=python_warnings.LITERAL in literals,
            script=not literals.isdisjoint(_SCRIPTS),
            samples=not literals.isdisjoint((_SAMPLES_BEGIN, _SAMPLES_END)),
            phase=next((phase for marker, phase in _PHASES if marker in literals), ""),
            relevant=bool(of_catalogue) or not literals.isdisjoint(_EVIDENCE_LITERALS),
        )

    def is_text(self, segment: Segment, marks: EvidenceMarks) -> bool:
        """Return True for the text of a model or of a shell's trace."""
        text = segment.text
        if (marks.script or self._script) and self._in_script(segment):
            return True
        if text[:1] in _TEXT_BEGINS and (segment.traced or text.startswith(_PANEL)):
            return not (marks.tracebacks and is_box(text))
        if not (marks.samples or self._samples) or not segment.own:
            return False
        if _SAMPLES_BEGIN in text:
            self._samples = True
        elif _SAMPLES_END in text:
            self._samples = False
        return self._samples and text.startswith(_ASCII_PANEL)

    def concerns(self, segment: Segment, marks: EvidenceMarks) -> bool:
        """Return True if a line that is not text can be evidence; note the phase that it begins."""
        if segment.text.startswith("▶ ") and segment.own and self.role is Role.DRIVER:
            self.phase = marks.phase
        if marks.relevant:
            return True
        warnings, tracebacks = self._warnings.open_keys, self.tracebacks.open_keys
        if not (warnings or tracebacks):
            return False
        key = key_of(segment)
        return key in warnings or key in tracebacks

    @property
    def is_idle(self) -> bool:
        """True if only lines with a literal can matter: no traceback, warning, script or sample is open."""
        return not (self.tracebacks.any_open or self._warnings.any_open or self._script or self._samples)

    def postpone_warning(self, number: int, raw: bytes) -> bool:
        """Return True if a line with the literal of a warning, and no other, need not be read now."""
        return self.is_idle and self._warnings.postpone(number, raw)

    def progressed(self) -> None:
        """Record that the log's owner went on: what failed before was not the end, and no sample is open."""
        self._samples = False
        self._reported.clear()
        self._kinds.clear()

    def read(
        self, segment: Segment, source: Source, time: float | None, marks: EvidenceMarks
    ) -> Iterator[Event]:
        """Yield the evidence in a line that `concerns` admits."""
        tracebacks = self.tracebacks
        self._awaited_until = 0
        self._warnings.recall(source.line)
        warned = marks.warning or self._warnings.any_open
        if warned and self._warnings.take(segment, source.line, marks.warning):
            return
        signature = self._signature(segment, marks)
        if tracebacks.any_open or marks.tracebacks:
            yield from self._follow_traceback(segment, source, time, signature)
            if tracebacks.inside_frames(segment) and _indentation(segment.body) >= 4:
                return
        if signature is not None and not self._is_harmless(segment, signature):
            yield self._finding(signature, segment, source, time)
        elif signature is None and _CPP_MESSAGE in segment.text:
            yield from self._cpp_exception(segment, source, time)

    def _cpp_exception(self, segment: Segment, source: Source, time: float | None) -> Iterator[ExceptionSeen]:
        """Yield the exception that ended a process outside Python."""
        match = _CPP_EXCEPTION.match(segment.body)
        if match is None:
            return
        process = self.tracebacks.process(segment)
        message = f"C++ exception: {match['message']}"[:_TEXT_LIMIT]
        raised = Raised(
            message, source.line, source.line, segment.own, wrapper=False, chained=False, process=process
        )
        if self._is_first(segment, raised, None):
            yield ExceptionSeen(
                message, source, source.line, segment.own, False,
                process.node, process.rank, process.pid, self._time(segment, time),
            )  # fmt: skip

    def _signature(self, segment: Segment, marks: EvidenceMarks) -> Signature | None:
        """Return the signature of a line, whether or not it is a failure here."""
        text, catalogue = segment.body, self.catalogue
        if not text or (text[0].isspace() and _CODE.match(text)):
            return None
        if _TASK_ERROR in text and "ray::" in text:  # its brackets name the error that follows below
            return catalogue.signatures[_RELAYED]
        signature = catalogue.recognise(text, marks.signatures) if marks.signatures else None
        if signature is not None and signature.from_owner and not segment.own:
            signature = None
        if signature is None and segment.severity is LineSeverity.FATAL and not segment.traced:
            return catalogue.signatures[_ABORTED]
        return signature

    def _is_harmless(self, segment: Segment, signature: Signature) -> bool:
        if signature.informs:
            return False
        if segment.severity in _BELOW_ERROR and signature.severity == "fatal":
            return True
        return self.catalogue.is_harmless(segment.text)

    def _follow_traceback(
        self, segment: Segment, source: Source, time: float | None, signature: Signature | None
    ) -> Iterator[Event]:
        raised = self.tracebacks.take(segment, source.line)
        if raised is None:
            return
        identity = signature.id if signature is not None else ""
        if raised.line == source.line:
            silent = self._silent.pop(raised.explains, None) if raised.explains is not None else None
            if silent is not None:
                yield replace(silent, chained=True)
            if silent is not None or self._is_first(segment, raised, signature):
                self._messages[raised.line] = (source, identity)
        if raised.line in self._messages:  # its own line, or a later one of its message
            source, identity = self._messages[raised.line]
            process, stamp = raised.process, self._time(segment, time)
            event = ExceptionSeen(
                raised.message[:_TEXT_LIMIT], source, raised.began, raised.own, raised.wrapper,
                process.node, process.rank, process.pid, stamp, identity, raised.chained,
                raised.detail[:_TEXT_LIMIT], raised.frame, segment.task,
            )  # fmt: skip
            if ": " not in raised.message:
                self._silent[raised.line] = event
            yield event

    def _finding(
        self, signature: Signature, segment: Segment, source: Source, time: float | None
    ) -> FindingSeen:
        process = self._process(segment, signature)
        phase = "generation" if (segment.actor or "").startswith(_ENGINES) else self.phase
        advice = signature.advice_in(phase)
        return FindingSeen(
            signature.id,
            signature.title,
            signature.severity,
            segment.text.strip()[:_TEXT_LIMIT],
            source,
            advice.fix,
            process.node,
            process.rank,
            time=time,
            tier=signature.tier,
            edits=advice.edits,
            stamp=self._time(segment, time),
            pid=process.pid,
            retried=signature.retried,
            task=segment.task,
        )

    def _process(self, segment: Segment, signature: Signature) -> Process:
        node, rank, pid = self.tracebacks.process(segment)
        for text, pattern in _NODES:
            if text in segment.text and (match := pattern.search(segment.text)):
                node = match["node"]
                break
        named = _MISSING_RANK.search(segment.text) if signature.nature is not Nature.OWN else None
        unnamed = segment.rank is None and rank in (None, segment.task)
        if named is None and unnamed and "rank" in segment.text.lower():
            named = _RANK.search(segment.text)
        if named is not None:
            rank = int(next(group for group in named.groups() if group is not None))
        if "Worker PID: " in segment.text and (match := _DEAD_PROCESS.search(segment.text)):
            node, pid = match["node"], int(match["pid"])
        if "local_rank: " in segment.text and (match := _FAILED_PROCESS.search(segment.text)):
            pid = int(match["pid"])
        return Process(node, rank, pid)

    def _time(self, segment: Segment, time: float | None) -> float | None:
        """Return a line's own time, else a carrier's, else when it was written, as wall-clock seconds."""
        carried = timestamp(segment.stamp, self._year) if segment.stamp else None
        stamp = timestamp(segment.text, self._year)
        if stamp is None:
            return carried[0] + self._zone_shift if carried is not None else wall_clock(time)
        self._year = stamp[1]
        if carried is not None:
            self._zone_shift = round((stamp[0] - carried[0]) / 900) * 900.0
        return stamp[0]

    def _is_first(self, segment: Segment, raised: Raised, signature: Signature | None) -> bool:
        """Return True for the first exception of each kind of each process."""
        kind = signature.id if signature is not None else ""
        about = raised.process
        key = (
            kind, raised.wrapper, raised.chained, raised.own, segment.actor, segment.pid, segment.ip,
            about.pid if about.pid is not None else about.rank, about.node,
        )  # fmt: skip
        if key in self._reported or self._kinds[kind] >= _EXCEPTIONS_LIMIT:
            return False
        self._reported.add(key)
        self._kinds[kind] += 1
        return True

    def _in_script(self, segment: Segment) -> bool:
        r"""Return True inside a multi-line script that the shell prints in quotes (`'\''` for its own)."""
        if not self._script and not any(name in segment.text for name in _SCRIPTS):
            return False
        odd = segment.text.replace("'\\''", "").count("'") % 2
        if self._script:
            self._script, self._awaited_until = (0 if odd else self._script - 1), 0
            return True
        self._script, self._awaited_until = (_SCRIPT_LINES if odd and segment.traced else 0), 0
        return segment.traced


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())
