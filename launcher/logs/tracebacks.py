"""Python tracebacks in a log where many processes print: first line, frames, exception, and its message.

Of chained tracebacks the first block is the cause. `RayTaskError`, an `ActorDiedError` of a creation task and
Ray's `Unhandled error` carry another process's traceback, which follows with the process that raised it; a
checkpoint's exception carries those of ranks. Of an ExceptionGroup, the exceptions in it count. Where the
first exception of a chain has no message, the one that was raised from it explains.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from launcher.logs.exception_detail import better_detail
from launcher.logs.headers import LineSeverity
from launcher.logs.lines import Segment

BEGIN = "Traceback (most recent call last):"
BOXED = "Traceback (most recent call last) ─"
"""In the upper edge of the box that Rich draws around frames; the exception stands below the box."""
UNHANDLED = "Unhandled error"
ENDLESS = 2000
"""A traceback is dropped after so many lines without one of its process."""
_AGE_EVERY = 256
_ANNOUNCED_LINES = 3
"""Python announces an exception that it goes on after at most so many lines before the traceback."""
_MESSAGE_LINES = 40
"""Lines of a process that may belong to an exception's message."""
_CAUSED = "The above exception was the direct cause"
_CHAINED = ("During handling of the above", "The above exception was")
_NO_MESSAGE = re.compile(r"[A-Za-z_][\w.]*:?\s*$")
_SAYS_LITTLE = re.compile(r"(?:Exception|(?:Runtime|Value|OS|IO|System)Error):?\s*$")
"""Python's general exceptions without a message; the name of any other says something."""
_AWAITED_IN_VAIN = re.compile(
    r"(?:[\w.]*\.)?(?:\w*Timeout(?:Error)?|Empty|Full|StopIteration|CancelledError):?\s*$"
)
"""Exceptions without a message that only say that something did not come."""
_FRAME = re.compile(r'\s*File "(?P<path>[^"]+)", line (?P<line>\d+)')
_INSTALLED = re.compile(r".*/(?:site|dist)-packages/")
_OWN_CODE = re.compile(r".*/(?=(?:nemo_rl|nemo_automodel|nemo_gym|megatron)/)")
_PATH_PARTS = 3
_BEGIN = re.compile(r"Traceback \(most recent call last\):(?: \(RANK (?P<rank>\d+)\))?$")
_EXCEPTION = re.compile(
    r"[A-Za-z_][\w.<>]*(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Died|Full|Failure|Group)"
    r"(?:\([\w.]+\))?:?$"
    r"|[A-Za-z_][\w.<>]*(?:\([\w.]+\))?: $"
)
_BARE = re.compile(r"[A-Za-z_]\w*(?:\.(?:\w+|<locals>))*:?$")
"""An exception without a message, whatever its name; only directly behind the frames."""
_WRAPPER = re.compile(
    r"(?:[\w.]*\.)?(?:RayTaskError|ActorDiedError|RayActorError|ActorUnavailableError|ChildFailedError"
    r"|CheckpointException|ProcessRaisedException|\w*ExceptionGroup|_?RemoteTraceback|RemoteError)\b"
    r"|\w[\w.]*: Caught \w+ in (?:DataLoader worker|replica|pin memory)"
    r"|\w[\w.]*: Error raised in subprocess:"
)
_NAMES_ONLY = re.compile(r"(?:[\w.]*\.)?(?:(?:Ray)?Actor\w*Error|ChildFailedError)\b(?!.*ray::)")
"""A wrapper that names a process and holds nothing of what it printed."""
_REMOTE = re.compile(r"\(pid=(?P<pid>\d+)(?:, ip=(?P<ip>[\w.:]+))?(?:.*?\[rank=(?P<rank>\d+)\])?")
_MARGIN = re.compile(r"\s*(?:\| ?|\+-[-+ \d.]*$|\+ (?=Exception Group ))")
"""Left edge of an ExceptionGroup's lines."""
# Lines below a relayed failure that name the process it is about.
_NAMED = re.compile(
    r"\s+(?:(?P<key>pid|ip|host|rank|class_name)\s*: (?P<value>[\w.:-]+)"
    r"|exitcode\s*: -?\d+ \(pid: (?P<pid>\d+)\)|traceback : (?P<signal>Signal .*))"
)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|/ray/_private/|/bin/[\w.-]+$|\.p(?:xi|yx)$")
"""Paths of code that is neither NeMo-RL's nor the user's."""
_RAY_CARRIES = "traceback: Traceback"
"""Second line of Ray's error about what it could not read."""
_LAUNCHERS = ("srun: ", "slurmstepd", "[NRL_PHASE]", "[INFO]", "[ERROR]", "sbatch: ", "+ ")
"""Beginnings of what a job's launcher prints: no message goes on behind it."""
# Python went on after these: they are not failures.
HANDLED = ("Exception ignored in", "--- Logging error ---", "Error in atexit._run_exitfuncs")
# The process may go on after these: a thread, or a task that nobody waits for.
ASIDE = ("Exception in thread ", "Task exception was never retrieved")

EVERY_LINE = (b"",)
"""What every line holds."""
_ANY_PID = (b"pid=",)
_MARKS = 4
"""Processes that are searched for one by one; of more, every line with a pid is read."""

Key = tuple[str | None, int | None, str | None, int | None, int | None, str | None]


class Process(NamedTuple):
    """Process that a line is about."""

    node: str | None = None
    rank: int | None = None
    pid: int | None = None


NO_PROCESS = Process()


@dataclass(frozen=True, slots=True)
class Raised:
    """Exception line of a traceback."""

    message: str
    line: int
    began: int
    own: bool
    """True if it reached the top of the process that owns the log."""
    wrapper: bool
    chained: bool
    """True if it followed from another exception of the same traceback."""
    process: Process
    detail: str = ""
    """Line of the message that explains, where the first one does not."""
    frame: str = ""
    """Where it was raised: file and line, and the line of NeMo-RL's or of the user's code that led there."""
    explains: int | None = None
    """Line of the exception without a message that it was raised from, and that it explains."""


@dataclass(slots=True)
class _Block:
    began: int
    handled: bool
    aside: bool = False
    frames: bool = True
    headed: bool = False
    """Each line has a logger's header."""
    behind_frame: bool = False
    chain: bool = False
    last: int = 0
    process: Process = NO_PROCESS
    raised: Raised | None = None
    message_lines: int = 0
    caused: bool = False
    """The next exception is one that was raised from the last."""
    frame: str = ""
    own_frame: str = ""
    asserted: str = ""
    """The last frame's line of source, where it is an assertion."""

    def add_frame(self, text: str) -> None:
        """Note the line of a traceback that names a source file, or shows its source."""
        if (match := _FRAME.match(text)) is None:
            source = text.strip()
            self.asserted = source if source.startswith("assert ") else self.asserted
            return
        self.asserted = ""
        if match["path"].startswith("<"):  # generated code
            return
        path, count = _INSTALLED.subn("", match["path"])
        own = _OWN_CODE.sub("", path)
        if own == path and not count:
            own = "/".join(path.split("/")[-_PATH_PARTS:])
        self.frame = f"{own}:{match['line']}"
        if own.startswith("nemo_rl/") or not _LIBRARY.search(match["path"]):
            self.own_frame = self.frame

    def where(self) -> str:
        """Return where the exception was raised."""
        if self.own_frame in ("", self.frame):
            return self.frame
        return f"{self.frame}, called from {self.own_frame}"


class Tracebacks:
    """Tracebacks of all processes in one log; at most one of each process is open."""

    def __init__(self) -> None:
        self._open: dict[Key, _Block] = {}
        self._announced: dict[Key, tuple[int, bool]] = {}
        self._aged = 0

    @property
    def any_open(self) -> bool:
        """True if the next lines may belong to a traceback."""
        return bool(self._open)

    @property
    def open_keys(self) -> Collection[Key]:
        """Processes whose next lines may belong to a traceback."""
        return self._open

    def inside_frames(self, segment: Segment) -> bool:
        """Return True for source code in a traceback of the line's process."""
        block = self._open.get(key_of(segment))
        return block is not None and block.frames and _text(segment)[:1].isspace()

    def process(self, segment: Segment) -> Process:
        """Return the process that a line is about: its printer, or the one whose error a traceback shows."""
        rank = segment.rank
        if rank is None and segment.own:
            rank = segment.task
        block = self._open.get(key_of(segment)) if self._open else None
        if block is None:
            return Process(segment.ip or segment.node, rank, segment.pid)
        inner = block.process
        return Process(
            inner.node or segment.ip or segment.node, _first(inner.rank, rank), _first(inner.pid, segment.pid)
        )

    def take(self, segment: Segment, line: int) -> Raised | None:
        """Read a line; return its exception if it ends a traceback, or says more about the last one."""
        key, text = key_of(segment), _text(segment)
        if BEGIN in text and (match := _BEGIN.search(text)):
            self._begin(key, line, match["rank"], segment)
            return None
        if is_box(text):
            self._begin(key, line, None, segment)
            self._open[key].behind_frame = True
            return None
        if text.startswith(UNHANDLED) and "ray::" in text:
            self._open[key] = _Block(line, handled=False, aside=True, last=line, process=_remote(text))
            return None
        if text.startswith(HANDLED):
            self._announced[key] = (line, True)
        elif text.startswith(ASIDE):
            self._announced[key] = (line, False)
        self.forget_endless(line)
        block = self._open.get(key)
        if block is None:
            return None
        block.last = line
        if block.raised is not None and not block.frames:
            return self._message_line(key, block, segment, text, line)
        if not text or text[0].isspace():
            block.behind_frame = bool(text)
            block.add_frame(text)
            return None
        return self._unindented(block, segment, text, line)

    def _begin(self, key: Key, line: int, rank: str | None, segment: Segment) -> None:
        block = self._open.get(key)
        within = block is not None and (
            block.frames or block.chain or _carries(block.raised) or segment.body.startswith(_RAY_CARRIES)
        )
        if block is None or not within:
            announced, handled = self._announced.pop(key, (-_ANNOUNCED_LINES, False))
            near = line - announced < _ANNOUNCED_LINES
            quiet = LineSeverity.UNKNOWN < segment.severity <= LineSeverity.WARNING
            block = _Block(line, handled=(near and handled) or quiet, aside=near and not handled)
            self._open[key] = block
        block.frames, block.last, block.behind_frame = True, line, False
        block.frame = block.own_frame = ""
        block.headed = segment.text != segment.body
        if rank is not None:
            block.process = block.process._replace(rank=int(rank))

    def _unindented(self, block: _Block, segment: Segment, text: str, line: int) -> Raised | None:
        wrapper = _WRAPPER.match(text) is not None
        if text.startswith("ray::") or (wrapper and "(pid=" in text):
            remote = _remote(text)
            block.process = remote if remote != NO_PROCESS else block.process
            block.behind_frame = False
            block.frame = block.own_frame = ""
            if not wrapper:
                return None
        elif text.startswith(_CHAINED):
            block.chain, block.caused = True, text.startswith(_CAUSED)
            return None
        elif _EXCEPTION.match(_head(text)) is None and not (block.behind_frame and _BARE.match(text)):
            block.behind_frame = False
            return None
        names_only = _NAMES_ONLY.match(text) is not None
        block.frames = wrapper and not names_only
        block.headed = segment.text != segment.body
        if block.handled:
            return None
        explains = _explained(block, text) if block.chain else None
        chained = block.chain and block.raised is not None and not _carries(block.raised)
        raised = Raised(
            text, line, block.began, segment.own and not block.aside, wrapper, chained and explains is None,
            NO_PROCESS if names_only else self.process(segment),
            block.asserted if _NO_MESSAGE.match(text) else "", block.where(), explains,
        )  # fmt: skip
        block.raised, block.message_lines, block.chain = raised, 0, False
        return raised

    def _message_line(self, key: Key, block: _Block, segment: Segment, text: str, line: int) -> Raised | None:
        """Read a line below an exception: more of its message, another exception of its chain, or its end."""
        raised = block.raised
        assert raised is not None
        if text.startswith(_CHAINED):
            block.chain, block.frames, block.caused = True, True, text.startswith(_CAUSED)
            return None
        if text.startswith("ray::") or _WRAPPER.match(text):
            block.frames = True
            return self._unindented(block, segment, text, line)
        block.message_lines += 1
        headed = segment.text != segment.body
        ended = headed != block.headed or text.startswith(_LAUNCHERS)
        if ended or block.message_lines > _MESSAGE_LINES:
            del self._open[key]
            return None
        if (name := _NAMED.match(text)) and raised.wrapper:
            return self._named(block, raised, name)
        detail = better_detail(raised.message, raised.detail, text.strip(), wrapper=raised.wrapper)
        if detail == raised.detail:
            return None
        block.raised = replace(raised, detail=detail)
        return block.raised

    def _named(self, block: _Block, raised: Raised, name: re.Match[str]) -> Raised:
        process, value = raised.process, name["value"]
        if name["signal"]:
            block.raised = replace(raised, detail=name["signal"])
            return block.raised
        match name["key"]:
            case "ip" | "host":
                process = process._replace(node=value)
            case "rank":
                process = process._replace(rank=int(value) if value.isdecimal() else process.rank)
            case "class_name":
                pass
            case "pid":
                process = process._replace(pid=int(value) if value.isdecimal() else process.pid)
            case _:
                process = process._replace(pid=int(name["pid"]))  # the line of an exit code
        block.process = process
        block.raised = replace(raised, process=process)
        return block.raised

    def forget_endless(self, line: int) -> None:
        """Close the tracebacks of processes that printed nothing for long above a line."""
        if line - self._aged < _AGE_EVERY:
            return
        self._aged = line
        for key, block in list(self._open.items()):
            if line - block.last > ENDLESS:
                del self._open[key]


def _explained(block: _Block, text: str) -> int | None:
    """Return the line of the chain's first exception, if it has no message and the next one explains it."""
    first = block.raised
    if first is None or first.wrapper or first.chained or first.detail or _NO_MESSAGE.match(text):
        return None
    silent = _AWAITED_IN_VAIN.match(first.message) or (block.caused and _SAYS_LITTLE.match(first.message))
    return first.line if silent else None


def is_box(text: str) -> bool:
    """Return True for the upper edge of a box with frames."""
    return text.startswith("╭") and BOXED in text


def marks(keys: Iterable[Key]) -> tuple[bytes, ...]:
    """Return texts of which each line of some processes holds one; none for no process."""
    pids = {pid for _, pid, *_ in keys}
    if None in pids:
        return EVERY_LINE
    return tuple(f"pid={pid}".encode() for pid in pids) if len(pids) <= _MARKS else _ANY_PID


def key_of(segment: Segment) -> Key:
    """Return what tells the printer of a line from the others of its log."""
    return (segment.actor, segment.pid, segment.ip, segment.rank, segment.task, segment.node)


def _text(segment: Segment) -> str:
    """Return a line's message, without the left edge of an ExceptionGroup."""
    text = segment.body
    if text[:1] in " |" and (match := _MARGIN.match(text)) and not text.lstrip(" ").startswith("||"):
        return text[match.end() :]
    return text


def _carries(raised: Raised | None) -> bool:
    """Return True for an exception whose message is another one's traceback."""
    return raised is not None and raised.wrapper


def _remote(text: str) -> Process:
    remote = _REMOTE.search(text)
    if remote is None:
        return NO_PROCESS
    return Process(remote["ip"], int(remote["rank"]) if remote["rank"] else None, int(remote["pid"]))


def _head(text: str) -> str:
    """Return an exception line up to the colon: its message may hold anything."""
    name, colon, _ = text.partition(": ")
    return name + colon


def _first(first: int | None, second: int | None) -> int | None:
    return first if first is not None else second
