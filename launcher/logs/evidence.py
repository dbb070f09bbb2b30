"""What one log's lines tell of failures: signatures, tracebacks, and what must not be taken for either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from datetime import datetime

from launcher.logs.events import Event, ExceptionSeen, FindingSeen, Role, Source
from launcher.logs.lines import Segment
from launcher.logs.signatures import Catalogue, catalogue
from launcher.logs.stamps import stamp_of, wall
from launcher.logs.tracebacks import BEGIN, HANDLED, Tracebacks, Who

_PANEL = ("│", "╭", "╰", "┃")
_ASCII_PANEL = ("|", "+-")
_SAMPLES_BEGIN, _SAMPLES_END = "Sample Conversations", "End of Samples"
# nemo_rl/algorithms/distillation.py: what the driver is doing, and whose memory that needs.
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
# A word that stands in the line, and where the node's name is.
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

_TRACEBACK_WORDS = frozenset((BEGIN, *HANDLED))
LITERALS = (BEGIN, *HANDLED, _SAMPLES_BEGIN, _SAMPLES_END, *_SCRIPTS, *(text for text, _ in _PHASES))


@dataclass(slots=True)
class Evidence:
    """Reads the segments of one log in their order. Holds no more than what is open in it."""

    role: Role
    known: Catalogue = field(default_factory=catalogue)
    tracebacks: Tracebacks = field(default_factory=Tracebacks)
    phase: str = ""
    """What the driver is doing, where it matters to advice."""
    _samples: bool = False
    _script: int = 0
    """Lines left in which a script that the shell prints may end; 0 outside of one."""
    _year: int = field(default_factory=lambda: datetime.now().astimezone().year)
    _excepted: set[tuple[str | None, int | None, str | None]] = field(default_factory=set)

    @property
    def wants_all(self) -> bool:
        """Whether the next lines matter although they hold no literal."""
        return self.tracebacks.any_open or self._script > 0

    def is_text(self, segment: Segment, words: Set[str]) -> bool:
        """Tell whether a line is what a model or a shell's trace says; `words` as for `read`."""
        if (self._script or not words.isdisjoint(_SCRIPTS)) and self._in_script(segment):
            return True
        if segment.traced or segment.text.startswith(_PANEL):
            return True
        if not segment.own:
            return False
        if _SAMPLES_BEGIN in words and _SAMPLES_BEGIN in segment.text:
            self._samples = True
        elif _SAMPLES_END in words and _SAMPLES_END in segment.text:
            self._samples = False
        return self._samples and segment.text.startswith(_ASCII_PANEL)

    def progressed(self) -> None:
        """Note that the log's owner went on: what failed before was not the end, and no sample is open."""
        self._samples = False
        self._excepted.clear()

    def read(self, segment: Segment, source: Source, time: float | None, words: Set[str]) -> Iterator[Event]:
        """Yield what a line that is no text tells of failures.

        `words` are the reader's literals that its line holds: each step looks only for what can be there.
        """
        if segment.own and self.role is Role.DRIVER:
            self._note_phase(segment.text)
        if self.tracebacks.any_open or not words.isdisjoint(_TRACEBACK_WORDS):
            yield from self._follow_traceback(segment, source, time)
            if self.tracebacks.inside_frames(segment) and _indented(segment.body) >= 4:
                return
        if not words.isdisjoint(self.known.words):
            yield from self._recognise(segment, source, time, words)

    def _follow_traceback(self, segment: Segment, source: Source, time: float | None) -> Iterator[Event]:
        raised = self.tracebacks.take(segment, source.line)
        if raised is not None and self._is_news(segment, raised.wrapper):
            who, stamp = raised.who, self._stamp(segment, time)
            yield ExceptionSeen(
                segment.body[:_TEXT_LIMIT], source, raised.began, raised.own, raised.wrapper,
                who.node, who.rank, who.pid, stamp,
            )  # fmt: skip

    def _recognise(
        self, segment: Segment, source: Source, time: float | None, words: Set[str]
    ) -> Iterator[Event]:
        text = segment.body
        if not text or (text[0].isspace() and _CODE.match(text)):
            return
        signature = self.known.recognise(text, words)
        if signature is None or (not signature.informs and self.known.is_harmless(segment.text)):
            return
        who = self._who(segment)
        advice = signature.advice_in(self.phase)
        yield FindingSeen(
            signature.id,
            signature.title,
            signature.severity,
            segment.text.strip()[:_TEXT_LIMIT],
            source,
            advice.fix,
            who.node,
            who.rank,
            time=time,
            tier=signature.tier,
            edits=advice.edits,
            stamp=self._stamp(segment, time),
            pid=who.pid,
            retried=signature.retried,
        )

    def _who(self, segment: Segment) -> Who:
        who = self.tracebacks.who(segment)
        node = who.node
        for word, pattern in _NODES:
            if word in segment.text and (match := pattern.search(segment.text)):
                node = match["node"]
                break
        rank = who.rank
        if rank is None and "rank" in segment.text.lower() and (match := _RANK.search(segment.text)):
            rank = int(match["rank"] or match["rank2"])
        return Who(node, rank, who.pid)

    def _stamp(self, segment: Segment, time: float | None) -> float | None:
        told = stamp_of(segment.text, self._year)
        if told is None:
            return wall(time)
        self._year = told[1]
        return told[0]

    def _is_news(self, segment: Segment, wrapper: bool) -> bool:
        """Tell the first exception of each process, and what a wrapper carries."""
        key = (f"{wrapper}:{segment.actor}", segment.pid, segment.ip)
        if key in self._excepted or len(self._excepted) >= _EXCEPTIONS_LIMIT:
            return False
        self._excepted.add(key)
        return True

    def _note_phase(self, text: str) -> None:
        if text.startswith("▶ "):
            self.phase = next((phase for words, phase in _PHASES if words in text), "")

    def _in_script(self, segment: Segment) -> bool:
        r"""Follow a script that the shell prints in quotes over many lines; its own quotes are `'\''`."""
        if not self._script and not any(name in segment.text for name in _SCRIPTS):
            return False
        odd = segment.text.replace("'\\''", "").count("'") % 2
        if self._script:
            self._script = 0 if odd else self._script - 1
            return True
        self._script = _SCRIPT_LINES if odd and segment.traced else 0
        return segment.traced


def _indented(text: str) -> int:
    return len(text) - len(text.lstrip())
