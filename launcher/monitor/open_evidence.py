"""Evidence of a failure that nothing later in its log overcame, and starts of Ray that are tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from launcher.logs.events import ExceptionSeen, FindingSeen, Role, Source, StartRetried
from launcher.logs.signatures import catalogue

_PROCESSES_LIMIT = 1024
"""Processes of which a finding is kept, for each kind and log: all of them may print it."""
FindingKey = tuple[str, str, str | None, int | None, int | None]
"""Log, id, node, rank, pid."""
_BLOCK_LINES = 40
"""Lines below an announcement in which the line that tells why stands."""
_NAME_LINES = 6
"""Lines below a finding in which a repetition tells whose it is."""
_EARLIER_S = 1.0
"""A later line of the same finding is the first one if its own time is earlier by more than this."""
_CHILD_FAILED = "child-failed"
"""Signature of a launcher that ended because one of its processes failed."""
RETRYING = "ray-start-retried"
"""Id of the warning that a start of Ray is tried again."""


@dataclass(slots=True)
class OpenEvidence:
    """Findings and exceptions of all logs, with what shows that they were overcome."""

    _findings: dict[FindingKey, FindingSeen] = field(default_factory=dict)
    """Its first occurrence in each log and process."""
    _kinds: dict[tuple[str, str], int] = field(default_factory=dict)
    """(log, id) -> processes of which it is kept."""
    _exceptions: dict[Source, ExceptionSeen] = field(default_factory=dict)
    _last_progress: dict[str, int] = field(default_factory=dict)
    """Log -> last line that shows its owner going on; failures before it were not the end."""
    _last_recovery: dict[str, int] = field(default_factory=dict)
    """Log -> last line that shows that what is retried succeeded."""
    retry: StartRetried | None = None
    """The latest start of Ray that failed and is tried again."""

    def add_finding(self, event: FindingSeen) -> None:
        """Add a finding, or what one more of its lines says."""
        nameless = self._findings.get((event.source.log, event.id, None, None, None))
        if nameless is not None and _names(event, nameless):
            named = replace(nameless, node=event.node, rank=event.rank, pid=event.pid)
            self._findings[nameless.source.log, nameless.id, None, None, None] = named
            return
        key = (event.source.log, event.id, event.node, event.rank, event.pid)
        self._replace_heading(key, event)
        first = self._findings.get(key)
        if first is None:
            kind = (event.source.log, event.id)
            if self._kinds.get(kind, 0) >= _PROCESSES_LIMIT:
                return
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if first is None or not self._is_open(first) or _is_earlier(event, first):
            self._findings[key] = event

    def _replace_heading(self, key: FindingKey, event: FindingSeen) -> None:
        """Drop a line that only announced this one."""
        first, signature = self._findings.get(key), catalogue().signatures.get(event.id)
        if (
            first is None
            or signature is None
            or not 0 < event.source.line - first.source.line <= _BLOCK_LINES
        ):
            return
        if signature.announces(first.text) and not signature.announces(event.text):
            self._findings[key] = event

    def add_exception(self, event: ExceptionSeen) -> None:
        """Add an exception; it comes again when later lines say more about it."""
        self._exceptions.pop(event.source, None)
        self._exceptions[event.source] = event

    def add_retry(self, event: StartRetried) -> None:
        """Add a start that is tried again."""
        if self.retry is None or self.retry.source.line <= event.source.line:
            self.retry = event

    def note_progress(self, source: Source) -> None:
        """Record that the owner of a log went on."""
        _advance(self._last_progress, source)

    def note_recovery(self, source: Source) -> None:
        """Record that what its log's owner retries succeeded."""
        _advance(self._last_recovery, source)

    def went_on_after(self, source: Source) -> bool:
        """Return True if the owner of a log went on after a line."""
        return source.line <= self._last_progress.get(source.log, 0)

    def findings(self, *, retrying: bool = False) -> list[FindingSeen]:
        """Return the open findings; `retrying`: without those of a start that is being tried again."""
        items = [item for item in self._findings.values() if self._is_open(item)]
        return items if not retrying else [item for item in items if not self._is_of_start(item)]

    def exceptions(self, *, retrying: bool = False) -> list[ExceptionSeen]:
        """Return the open exceptions; `retrying`: without those of a start that is being tried again."""
        items = [item for item in self._exceptions.values() if not self.went_on_after(item.source)]
        return items if not retrying else [item for item in items if not self._is_of_start(item)]

    @property
    def launcher_raised(self) -> bool:
        """True if a launcher such as torchrun ended because one of its processes failed."""
        return any(
            item.own and item.wrapper and item.signature == _CHILD_FAILED for item in self.exceptions()
        )

    def drop_log(self, log: str) -> None:
        """Drop the evidence of a log that restarted."""
        self.keep_logs(lambda name: name != log)
        self._last_progress.pop(log, None)
        self._last_recovery.pop(log, None)

    def keep_logs(self, is_kept: Callable[[str], bool]) -> None:
        """Drop the evidence of all other logs."""
        self._findings = {key: item for key, item in self._findings.items() if is_kept(key[0])}
        self._kinds = {kind: count for kind, count in self._kinds.items() if is_kept(kind[0])}
        self._exceptions = {source: item for source, item in self._exceptions.items() if is_kept(source.log)}
        if self.retry is not None and not is_kept(self.retry.source.log):
            self.retry = None

    def _is_open(self, item: FindingSeen) -> bool:
        """Return True unless a later line of its log shows that it was overcome."""
        if self.went_on_after(item.source) and item.severity == "fatal":
            return False
        return not (item.retried and item.source.line <= self._last_recovery.get(item.source.log, 0))

    def _is_of_start(self, item: FindingSeen | ExceptionSeen) -> bool:
        """Return True for what Ray wrote before it was started again, and what the launcher quotes of it."""
        if isinstance(item, FindingSeen) and item.severity != "fatal":
            return False
        retry, source = self.retry, item.source
        if source.role in (Role.HEAD, Role.WORKER):
            return True
        return retry is not None and source.log == retry.source.log and source.line <= retry.source.line


def retry_finding(retry: StartRetried) -> FindingSeen:
    """Return the warning that a start of Ray is tried again."""
    return FindingSeen(
        RETRYING, f"Ray on {retry.node} did not start in time: retrying ({retry.attempt} of {retry.of})",
        "warning", retry.text, retry.source,
        "Nothing: the launcher starts it again, and ends the job if the last attempt fails.",
        retry.node, time=retry.time, tier=3,
    )  # fmt: skip


def _names(event: FindingSeen, nameless: FindingSeen) -> bool:
    """Return True if the next lines tell where a finding happened, or which rank it is about."""
    anonymous = nameless.node is None and nameless.rank is None
    named = event.node is not None or event.rank is not None
    return anonymous and named and 0 <= event.source.line - nameless.source.line <= _NAME_LINES


def _advance(lines: dict[str, int], source: Source) -> None:
    lines[source.log] = max(lines.get(source.log, 0), source.line)


def _is_earlier(one: FindingSeen, other: FindingSeen) -> bool:
    if one.stamp is not None and other.stamp is not None and abs(one.stamp - other.stamp) > _EARLIER_S:
        return one.stamp < other.stamp
    return one.source.line < other.source.line
