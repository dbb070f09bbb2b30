"""Events and states as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from launcher.logs.events import (
    MILESTONE_TITLES,
    CheckpointSaving,
    Event,
    FindingSeen,
    JobChanged,
    MetricRecorded,
    MilestoneReached,
    UnitsOnline,
    VerdictChanged,
)
from launcher.logs.state import RunState
from launcher.logs.summary import finding_json


def clock(time: float | None) -> str:
    """Return a moment as local time of day; dashes where it is not known."""
    return datetime.fromtimestamp(time).astimezone().strftime("%H:%M:%S") if time is not None else "--:--:--"


@dataclass(slots=True)
class EventPrinter:
    """Turns events into lines; a step's metrics become one line when its last one has come."""

    _printed: set[str] = field(default_factory=set)
    _units: int = -1

    def lines(self, event: Event, state: RunState) -> list[str]:
        """Return the lines that an event is worth; many are worth none."""
        match event:
            case MilestoneReached() if event.id not in self._printed:
                self._printed.add(event.id)
                where = f"{event.source.log}:{event.source.line}"
                return [f"{clock(event.time)}  ✓ {MILESTONE_TITLES[event.id]:26} {event.id:18} {where}"]
            case MetricRecorded(name="step_time_s"):
                return [f"{clock(event.time)}  · {step_line(event.step, state)}"]
            case MetricRecorded(name="accuracy"):
                return [f"{clock(event.time)}  · validation at step {event.step}: accuracy {event.value:.4f}"]
            case CheckpointSaving():
                return [f"{clock(event.time)}  · saving a checkpoint at step {event.step}"]
            case UnitsOnline() if event.online != self._units:
                self._units = event.online
                return [f"{clock(event.time)}  · worker units online: {event.online}/{event.wanted}"]
            case FindingSeen():
                return [f"{clock(event.time)}  ✗ {event.title} {_place(event)}"] if self._new(event) else []
            case VerdictChanged(root=None):
                return [f"{clock(None)}  · went on: what was seen was no failure"]
            case VerdictChanged(root=FindingSeen() as root):
                return [f"{clock(root.time)}  ✗ cause ({root.confidence}): {root.title} {_place(root)}"]
            case JobChanged() if event.reason and not event.over:
                return [f"{clock(event.time)}  · {event.state.value}: {event.reason}"]
        return []

    def _new(self, event: FindingSeen) -> bool:
        """Tell whether a finding of this kind was not printed of this log yet."""
        kind = f"{event.id}\0{event.source.log}\0{event.title}"
        if kind in self._printed:
            return False
        self._printed.add(kind)
        return True

    def verdict(self, name: str, state: RunState) -> list[str]:
        """Return the last lines of a run that ended."""
        mark = "✓" if state.state.value == "completed" else "✗"
        reason = f": {state.reason}" if state.reason else ""
        lines = [f"{mark} {name} {state.state.value}{reason}"]
        lines += finding_lines([finding_json(item) for item in state.findings])
        losses = state.metrics.get("loss", {})
        if len(losses) > 1:
            lines.append(
                f"  loss {losses[min(losses)]:.4f} -> {losses[max(losses)]:.4f} in {len(losses)} steps"
            )
        return lines


def _place(finding: FindingSeen) -> str:
    """Return where a finding was seen."""
    return f"({finding.source.log}:{finding.source.line})" if finding.source.line else "(the cluster's word)"


def finding_lines(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return findings as lines: the cause with what to do, then what followed from it."""
    lines = []
    for item in findings:
        where = f"{item['log']}:{item['line']}" if item["line"] else "the cluster's word"
        about = "".join(f", {name} {item[name]}" for name in ("node", "rank") if item[name] is not None)
        kind = "cause: " if item["root"] else ("warning: " if item["severity"] == "warning" else "")
        lines.append(f"  ✗ {kind}{item['title']} ({where}{about})")
        if item["root"]:
            lines.append(f"    {item['text'][:200]}")
            if item["fix"]:
                lines.append(f"    -> {item['fix']}")
    return lines


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
    """Yield a state, as `watch --once` prints it without --json."""
    reason = f" ({state['reason']})" if state["reason"] else ""
    yield f"{state['run']}: {state['state']}{reason}"
    for milestone in state["milestones"]:
        where = f"{milestone['log']}:{milestone['line']}"
        yield f"  {clock(milestone['time'])}  ✓ {milestone['title']:26} {where}"
    yield from finding_lines(state["findings"])
    metrics = state["metrics"]
    if metrics["loss"]:
        first, last = metrics["loss"][0], metrics["loss"][-1]
        yield f"  step {metrics['step']}/{metrics['max_steps'] or '?'}  loss {first} -> {last}"
    for log in state["logs"]:
        problem = f"  {log['problem']}" if log["problem"] else ""
        yield f"  {log['role']:9} {log['name']}  {log['bytes']} bytes, {log['lines']} lines{problem}"
