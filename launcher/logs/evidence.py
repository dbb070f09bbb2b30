"""Evidence of failures in one log: signatures and tracebacks, without lines that only look like either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from datetime import datetime

from launcher.logs.clock import timestamp, wall_clock
from launcher.logs.events import Event, ExceptionSeen, FindingSeen, Role, Source
from launcher.logs.lines import Segment
from launcher.logs.signatures import Catalogue, catalogue
from launcher.logs.tracebacks import BEGIN, HANDLED, Process, Tracebacks

_PANEL = ("│", "╭", "╰", "┃")
_ASCII_PANEL = ("|", "+-")
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
    ("srun: error: ", re.compile(r"^srun: error: (?:Node failure on )?(?P<node>[\w.-]+)(?:: task|$| )")),
    ("slurmstepd-", re.compile(r"^slurmstepd-(?P<node>[\w.-]+): ")),
    (" NCCL ", re.compile(r"(?:^|\] )(?P<node>[\w.-]+):\d+:\d+ \[\d+\] .*NCCL ")),
    ("(ID: ", re.compile(r"\(ID: \w+, IP: (?P<node>[\d.]+)\)")),
    ("was started with", re.compile(r"on node (?P<node>[\w.-]+) was started with")),
)
_RANK = re.compile(r"\[Rank (?P<rank>\d+)\]|\[rank=(?P<rank2>\d+)\]")
_TEXT_LIMIT = 2000
_EXCEPTIONS_LIMIT = 64

_TRACEBACK_LITERALS = frozenset((BEGIN, *HANDLED))
LITERALS = (BEGIN, *HANDLED, _SAMPLES_BEGIN, _SAMPLES_END, *_SCRIPTS, *(text for text, _ in _PHASES))


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
    _year: int = field(default_factory=lambda: datetime.now().astimezone().year)
    _reported: set[tuple[str | None, int | None, str | None]] = field(default_factory=set)

    @property
    def wants_all(self) -> bool:
        """True if the next lines matter although they hold no literal."""
        return self.tracebacks.any_open or self._script > 0

    def is_text(self, segment: Segment, literals: Set[str]) -> bool:
        """Return True for the text of a model or of a shell's trace; `literals` as for `read`."""
        if (self._script or not literals.isdisjoint(_SCRIPTS)) and self._in_script(segment):
            return True
        if segment.traced or segment.text.startswith(_PANEL):
            return True
        if not segment.own:
            return False
        if _SAMPLES_BEGIN in literals and _SAMPLES_BEGIN in segment.text:
            self._samples = True
        elif _SAMPLES_END in literals and _SAMPLES_END in segment.text:
            self._samples = False
        return self._samples and segment.text.startswith(_ASCII_PANEL)

    def progressed(self) -> None:
        """Record that the log's owner went on: what failed before was not the end, and no sample is open."""
        self._samples = False
        self._reported.clear()

    def read(
        self, segment: Segment, source: Source, time: float | None, literals: Set[str]
    ) -> Iterator[Event]:
        """Yield the evidence in a line that is not text (see `is_text`).

        `literals`: those of the reader that the line holds; each step searches only for what can be there.
        """
        if segment.own and self.role is Role.DRIVER:
            self._note_phase(segment.text)
        if self.tracebacks.any_open or not literals.isdisjoint(_TRACEBACK_LITERALS):
            yield from self._follow_traceback(segment, source, time)
            if self.tracebacks.inside_frames(segment) and _indentation(segment.body) >= 4:
                return
        if not literals.isdisjoint(self.catalogue.literal_set):
            yield from self._recognise(segment, source, time, literals)

    def _follow_traceback(self, segment: Segment, source: Source, time: float | None) -> Iterator[Event]:
        raised = self.tracebacks.take(segment, source.line)
        if raised is not None and self._is_first(segment, raised.wrapper):
            process, stamp = raised.process, self._time(segment, time)
            yield ExceptionSeen(
                segment.body[:_TEXT_LIMIT], source, raised.began, raised.own, raised.wrapper,
                process.node, process.rank, process.pid, stamp,
            )  # fmt: skip

    def _recognise(
        self, segment: Segment, source: Source, time: float | None, literals: Set[str]
    ) -> Iterator[Event]:
        text = segment.body
        if not text or (text[0].isspace() and _CODE.match(text)):
            return
        signature = self.catalogue.recognise(text, literals)
        if signature is None or (not signature.informs and self.catalogue.is_harmless(segment.text)):
            return
        process = self._process(segment)
        advice = signature.advice_in(self.phase)
        yield FindingSeen(
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
        )

    def _process(self, segment: Segment) -> Process:
        process = self.tracebacks.process(segment)
        node = process.node
        for text, pattern in _NODES:
            if text in segment.text and (match := pattern.search(segment.text)):
                node = match["node"]
                break
        rank = process.rank
        if rank is None and "rank" in segment.text.lower() and (match := _RANK.search(segment.text)):
            rank = int(match["rank"] or match["rank2"])
        return Process(node, rank, process.pid)

    def _time(self, segment: Segment, time: float | None) -> float | None:
        """Return a line's own time, else the time when it was written, as wall-clock seconds."""
        stamp = timestamp(segment.text, self._year)
        if stamp is None:
            return wall_clock(time)
        self._year = stamp[1]
        return stamp[0]

    def _is_first(self, segment: Segment, wrapper: bool) -> bool:
        """Return True for the first exception of each process, and the first that a wrapper carries."""
        key = (f"{wrapper}:{segment.actor}", segment.pid, segment.ip)
        if key in self._reported or len(self._reported) >= _EXCEPTIONS_LIMIT:
            return False
        self._reported.add(key)
        return True

    def _note_phase(self, text: str) -> None:
        if text.startswith("▶ "):
            self.phase = next((phase for marker, phase in _PHASES if marker in text), "")

    def _in_script(self, segment: Segment) -> bool:
        r"""Return True inside a multi-line script that the shell prints in quotes (`'\''` for its own)."""
        if not self._script and not any(name in segment.text for name in _SCRIPTS):
            return False
        odd = segment.text.replace("'\\''", "").count("'") % 2
        if self._script:
            self._script = 0 if odd else self._script - 1
            return True
        self._script = _SCRIPT_LINES if odd and segment.traced else 0
        return segment.traced


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())
