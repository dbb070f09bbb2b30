"""Events and states as lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from launcher.durations import format_time_limit
from launcher.logs.events import (
    CheckpointSaving,
    Event,
    FindingSeen,
    JobChanged,
    JobState,
    MetricRecorded,
    MilestoneReached,
    NoticesChanged,
    ProcessSignalled,
    RootFindingChanged,
    StartRetried,
    StoppedToSave,
    UnitsOnline,
)
from launcher.logs.milestones import MILESTONE_TITLES
from launcher.monitor.attempts import attempt_of
from launcher.monitor.open_evidence import retry_finding
from launcher.monitor.state import RunState
from launcher.monitor.summary import attempt_json, finding_json


def clock(time: float | None) -> str:
    """Return a moment as local time of day; dashes if unknown."""
    return datetime.fromtimestamp(time).astimezone().strftime("%H:%M:%S") if time is not None else "--:--:--"


@dataclass(slots=True)
class EventPrinter:
    """Turns events into lines; a step's metrics become one line when its last one has arrived."""

    _printed: set[str] = field(default_factory=set)
    _units: int = -1
    _job_text: str = ""
    _noticed: dict[tuple[str, str], FindingSeen] = field(default_factory=dict)

    def lines(self, event: Event, state: RunState) -> list[str]:
        """Return an event as lines; many events give none."""
        match event:
            case MilestoneReached() if self._is_new(event):
                where = f"{event.source.log}:{event.source.line}"
                return [f"{clock(event.time)}  ✓ {MILESTONE_TITLES[event.id]:26} {event.id:18} {where}"]
            case MetricRecorded(name="step_time_s"):
                return [f"{clock(event.time)}  · {step_line(event.step, state)}"]
            case MetricRecorded(name="accuracy"):
                return [f"{clock(event.time)}  · validation at step {event.step}: accuracy {event.value:.4f}"]
            case CheckpointSaving():
                return [f"{clock(event.time)}  · saving a checkpoint at step {event.step}"]
            case StoppedToSave():
                return [f"{clock(event.time)}  · saved, and stopped before the time limit"]
            case ProcessSignalled():
                return [f"{clock(event.time)}  ! {event.signal} ({event.source.log}:{event.source.line})"]
            case UnitsOnline() if event.online != self._units:
                self._units = event.online
                return [f"{clock(event.time)}  · worker units online: {event.online}/{event.wanted}"]
            case FindingSeen() | StartRetried():
                return self._evidence(event)
            case NoticesChanged():
                return self._notices(event)
            case RootFindingChanged():
                return [_cause_line(event.root)]
            case JobChanged():
                return self._job(event)
            case _:
                return []

    def _evidence(self, event: FindingSeen | StartRetried) -> list[str]:
        """Return a finding that is new, or a start that is tried again."""
        if isinstance(event, StartRetried):
            return [f"{clock(event.time)}  ! {retry_finding(event).title}"]
        mark = "✗" if event.severity == "fatal" and not event.retried else "!"
        return [f"{clock(event.time)}  {mark} {event.title} {_source(event)}"] if self._new(event) else []

    def _job(self, event: JobChanged) -> list[str]:
        """Return the scheduler's state of the job, if its text has changed."""
        text = job_text(event)
        if not text or text == self._job_text:
            return []
        self._job_text = text
        return [f"{clock(event.time)}  · {text}"]

    def _notices(self, event: NoticesChanged) -> list[str]:
        """Return the notices that are new, and those that no longer hold."""
        before, self._noticed = self._noticed, {(item.id, item.title): item for item in event.notices}
        lines = [
            f"{clock(item.time)}  ! {item.title}: {item.text}{f' -> {item.fix}' if item.fix else ''}"
            for key, item in self._noticed.items()
            if key not in before
        ]
        resolved = [item for key, item in before.items() if key not in self._noticed]
        return lines + [f"{clock(None)}  · resolved: {item.title}" for item in resolved]

    def _is_new(self, event: MilestoneReached) -> bool:
        """Tell whether a milestone is new to this attempt; a requeued job reaches them again."""
        kind = f"{event.id}\0{attempt_of(event.source.log)}"
        is_new = kind not in self._printed
        self._printed.add(kind)
        return is_new

    def _new(self, event: FindingSeen) -> bool:
        """Tell whether a finding of this kind was not printed yet for this log."""
        kind = f"{event.id}\0{event.source.log}\0{event.title}"
        if kind in self._printed:
            return False
        self._printed.add(kind)
        return True

    def end_lines(self, name: str, state: RunState) -> list[str]:
        """Return the last lines of a run that ended."""
        mark = _MARKS.get(state.state, "✗")
        reason = f": {state.reason}" if state.reason else ""
        lines = [f"{mark} {name} {state.state.value}{reason}"]
        lines += attempt_lines([attempt_json(item) for item in state.attempts])
        lines += finding_lines([finding_json(item) for item in state.findings])
        losses = state.metrics.get("loss", {})
        if len(losses) > 1:
            lines.append(
                f"  loss {losses[min(losses)]:.4f} -> {losses[max(losses)]:.4f} in {len(losses)} steps"
            )
        return lines


def attempt_lines(attempts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the attempts of a run as lines; none for a run with a single one."""
    return [f"  {item['text']}" for item in attempts] if len(attempts) > 1 else []


def _cause_line(root: FindingSeen | None) -> str:
    """Return the finding that is now taken for the cause as a line."""
    if root is None:
        return f"{clock(None)}  · continued: the earlier error was not fatal"
    return f"{clock(root.time)}  ✗ cause ({root.confidence}): {root.title} {_source(root)}"


def job_text(event: JobChanged) -> str:
    """Return the scheduler's state of a job as a line; empty if it has nothing to add."""
    if event.over:
        return ""
    text = f"{event.state.value}: {event.reason}" if event.reason else ""
    if event.deadline is not None and not event.reason:
        text = f"{event.state.value} on {event.nodes}, until {day_clock(event.deadline)}"
    if event.starts is not None:
        text += f"; expected to start at {day_clock(event.starts)}"
    # A job that is stuck has a notice with its fix.
    return f"{text} -> {event.fix}" if event.fix and not event.stuck else text


def day_clock(time: float) -> str:
    """Return a moment as local time of day, with the date if it is not today."""
    moment, today = datetime.fromtimestamp(time).astimezone(), datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%b %d %H:%M")


def left_line(metrics: Mapping[str, Any]) -> str:
    """Return the time left in the allocation and the steps that fit; empty if unknown."""
    if metrics.get("left_s") is None:
        return ""
    line = f"{format_time_limit(int(metrics['left_s']))} left in the allocation"
    if metrics["steps_that_fit"] is None:
        return line
    line += f": time for about {metrics['steps_that_fit']} steps"
    if metrics["max_steps"] is None:
        return line
    to_go = max(metrics["max_steps"] - metrics["step"], 0)
    return f"{line}, {to_go} to go{'' if metrics['steps_that_fit'] >= to_go else ' (not enough)'}"


def _source(finding: FindingSeen) -> str:
    """Return the log line of a finding."""
    return (
        f"({finding.source.log}:{finding.source.line})"
        if finding.source.line
        else "(reported by the scheduler)"
    )


_MARKS = {JobState.COMPLETED: "✓", JobState.STOPPED: "◐"}
"""Marks of runs that did not go wrong."""
_IN_FULL = ("stuck-", "no-logs")
"""Findings that are in no log: their text is the evidence."""


def finding_lines(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return findings as lines: the cause with its fix, then its consequences."""
    lines = []
    for item in findings:
        where = f"{item['log']}:{item['line']}" if item["line"] else "reported by the scheduler"
        about = "".join(f", {name} {item[name]}" for name in ("node", "rank") if item[name] is not None)
        kind = "cause: " if item["root"] else ("warning: " if item["severity"] == "warning" else "")
        mark = "!" if item["severity"] == "warning" else "✗"
        lines.append(f"  {mark} {kind}{item['title']} ({where}{about})")
        if item["root"] or item["id"].startswith(_IN_FULL):
            lines.append(f"    {item['text'][:400]}")
            if item["fix"]:
                lines.append(f"    -> {item['fix']}")
            if item["edits"]:
                lines.append(f"    recipe: {', '.join(map(_edit, item['edits']))}")
            if checks := item.get("doctor"):
                lines.append(f"    `distill-tui doctor` looks for it before a run: {', '.join(checks)}")
    return lines


def _edit(edit: Mapping[str, Any]) -> str:
    """Return a change of the recipe as an override, or as an action on a key."""
    return f"{edit['how']} {edit['key']}" if edit["to"] is None else f"{edit['key']}={json.dumps(edit['to'])}"


def step_line(step: int, state: RunState) -> str:
    """Return a finished step's metrics as one line."""
    values = {name: points[step] for name, points in state.metrics.items() if step in points}
    parts = [f"step {step}/{state.max_steps or '?'}"]
    if "loss" in values:
        parts.append(f"loss {values['loss']:.4f}")
    if "generation_length" in values:
        parts.append(f"length {values['generation_length']:.1f}")
    if "step_time_s" in values:
        parts.append(f"{values['step_time_s']:.2f} s")
    return "  ".join(parts)


def state_lines(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a state, as `watch --once` prints them."""
    reason = f" ({state['reason']})" if state["reason"] else ""
    yield f"{state['run']}: {state['state']}{reason}"
    yield from attempt_lines(state["attempts"])
    for milestone in state["milestones"]:
        where = f"{milestone['log']}:{milestone['line']}"
        yield f"  {clock(milestone['time'])}  ✓ {milestone['title']:26} {where}"
    yield from finding_lines(state["findings"])
    metrics = state["metrics"]
    if metrics["loss"]:
        first, last = metrics["loss"][0], metrics["loss"][-1]
        yield f"  step {metrics['step']}/{metrics['max_steps'] or '?'}  loss {first} -> {last}"
    if left := left_line(metrics):
        yield f"  {left}"
    for tracker in state["trackers"]:
        yield f"  {tracker['kind']}: {tracker['path']}"
    for log in state["logs"]:
        problem = f"  {log['problem']}" if log["problem"] else ""
        yield f"  {log['role']:9} {log['name']}  {log['bytes']} bytes, {log['lines']} lines{problem}"
