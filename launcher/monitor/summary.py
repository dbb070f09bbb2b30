"""JSON of a run's state and of events: the interface of the `watch` command."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, fields
from enum import Enum
from typing import Any

from launcher.foretold import checks_foretelling
from launcher.logs.events import (
    Event,
    FindingSeen,
    JobChanged,
    LostNode,
    MetricRecorded,
    MilestoneReached,
    RootFindingChanged,
    Source,
    TrackerDirFound,
)
from launcher.logs.milestones import MILESTONE_TITLES, MILESTONES
from launcher.logs.signatures import SuggestedEdit
from launcher.monitor.ending import AttemptStatus
from launcher.monitor.progress import pace_of
from launcher.monitor.state import RunState

SCHEMA = 1


def state_json(run: str, state: RunState) -> dict[str, Any]:
    """Return a run's state as `watch --once --json` prints it."""
    return {
        "schema": SCHEMA,
        "run": run,
        "state": state.state.value,
        "reason": state.reason,
        "ended": ended_at(state),
        "job": job_json(state.job),
        "attempts": [attempt_json(item) for item in state.attempts],
        "milestones": [
            milestone_json(state.milestones[kind.id]) for kind in MILESTONES if kind.id in state.milestones
        ],
        "metrics": metrics_json(state),
        "findings": [finding_json(item) for item in state.findings],
        "verdict": verdict_json(state),
        "trackers": [{"kind": kind, "path": path} for path, kind in sorted(state.trackers.items())],
        "logs": [
            {
                "name": log.log,
                "role": log.role.value,
                "bytes": log.bytes,
                "lines": log.lines,
                "problem": log.problem,
            }
            for _, log in sorted(state.logs.items())
        ],
    }


def ended_at(state: RunState) -> float | None:
    """Return when a run ended, in seconds since the epoch; None while it lives or where unknown.

    The launcher's last line is most precise; where it was killed, its last milestone is nearest.
    """
    if not state.state.ended:
        return None
    for end in (state.launcher_ended, state.driver_ended, state.job):
        if end is not None and end.time is not None:
            return end.time
    return max(
        (reached.time for reached in state.milestones.values() if reached.time is not None), default=None
    )


def attempt_json(attempt: AttemptStatus) -> dict[str, Any]:
    """Return one attempt of a run; `text` is the same in words."""
    return {
        "job": attempt.job,
        "requeue": attempt.requeue,
        "state": attempt.state.value,
        "reason": attempt.reason,
        "step": attempt.step,
        "resumed": attempt.resumed,
        "began": attempt.began,
        "ended": attempt.ended,
        "text": attempt.in_words(),
    }


def job_json(job: JobChanged | None) -> dict[str, Any] | None:
    """Return the cluster's status of the run's job with the scheduler's own words; None where unknown."""
    if job is None:
        return None
    return {
        "id": job.job or None,
        "state": job.state.value,
        "reason": job.reason,
        "word": job.word,
        "exit_code": job.exit_code,
        "nodes": job.nodes,
        "waits_for": job.waits_for,
        "stuck": job.stuck,
        "fix": job.fix,
        "unavailable_nodes": job.unavailable_nodes,
        "lost_nodes": [asdict(node) for node in job.lost_nodes],
        "submitted": job.submitted,
        "began": job.began,
        "time": job.time,
        "deadline": job.deadline,
        "starts": job.starts,
        "unanswered": job.unanswered,
    }


def milestone_json(event: MilestoneReached) -> dict[str, Any]:
    """Return a reached milestone."""
    return {
        "id": event.id,
        "title": MILESTONE_TITLES[event.id],
        "log": event.source.log,
        "line": event.source.line,
        "time": event.time,
    }


def metrics_json(state: RunState) -> dict[str, Any]:
    """Return the metrics as parallel lists: those of steps beside `steps`, of validations beside theirs."""
    loss_steps = sorted(state.metrics.get("loss", {}))
    validated = sorted(state.metrics.get("accuracy", {}))
    lists = {
        name: [_finite(points[step]) for step in sorted(points)] for name, points in state.metrics.items()
    }
    return {
        "step": state.step,
        "max_steps": state.max_steps,
        "loss": [],
        "step_time_s": [],
        **lists,
        "steps": loss_steps,
        "validation_steps": validated,
        "checkpoints": sorted(state.checkpoints),
        "at": {name: sorted(points) for name, points in state.metrics.items()},
        **pace_json(state),
    }


def verdict_json(state: RunState) -> dict[str, Any] | None:
    """Return the cause in short; None where there is none."""
    root = state.diagnosis.root
    if root is None:
        return None
    return {"id": root.id, "title": root.title, "confidence": root.confidence, "node": root.node}


def pace_json(state: RunState) -> dict[str, Any]:
    """Return the pace of a run."""
    left = state.deadline - time.time() if state.deadline is not None else None
    pace = pace_of(state.metrics.get("step_time_s", {}), state.step, state.max_steps, left)
    return {
        "step_time_recent_s": pace.recent_s,
        "step_time_trend": pace.trend,
        "eta_s": None if state.state.ended else pace.eta_s,
        "left_s": None if left is None or state.state.ended else round(max(left, 0.0), 1),
        "steps_that_fit": None if state.state.ended else pace.fitting,
    }


def _finite(value: float) -> float | None:
    """Return a number that JSON can represent; nan and inf become null."""
    return value if math.isfinite(value) else None


def finding_json(item: FindingSeen) -> dict[str, Any]:
    """Return a finding."""
    return {
        "id": item.id,
        "title": item.title,
        "severity": item.severity,
        "root": item.root,
        "log": item.source.log,
        "line": item.source.line,
        "node": item.node,
        "rank": item.rank,
        "text": item.text,
        "fix": item.fix,
        "causes": list(item.causes),
        "tier": item.tier,
        "confidence": item.confidence,
        "edits": [{"key": edit.key, "to": edit.to, "how": edit.how} for edit in item.edits],
        "doctor": list(checks_foretelling(item.id)),
        "time": item.time,
    }


_EVENT_NAMES: dict[type[Event], str] = {
    MilestoneReached: "milestone",
    MetricRecorded: "metric",
    FindingSeen: "finding",
    RootFindingChanged: "verdict_changed",
    TrackerDirFound: "tracker_told",
}
"""Event names in the JSON that differ from their class names."""


def event_json(event: Event) -> dict[str, Any]:
    """Return an event as `watch --json` prints it, one per line."""
    kind = _EVENT_NAMES.get(type(event), _snake(type(event).__name__))
    body: dict[str, Any] = {"schema": SCHEMA, "event": kind}
    for name in field_names(event):
        value = getattr(event, name)
        if isinstance(value, FindingSeen):
            body[name] = finding_json(value)
        elif isinstance(value, Source):
            body |= {"log": value.log, "role": value.role.value, "line": value.line}
        else:
            body[name] = _plain(value)
    if isinstance(event, MilestoneReached):
        body["title"] = MILESTONE_TITLES[event.id]
    if isinstance(event, FindingSeen):
        body["doctor"] = list(checks_foretelling(event.id))
    return body


def field_names(event: Event) -> tuple[str, ...]:
    """Return the names of an event's fields."""
    return event._fields if isinstance(event, tuple) else tuple(item.name for item in fields(event))


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [
            asdict(item)
            if isinstance(item, SuggestedEdit)
            else finding_json(item)
            if isinstance(item, FindingSeen)
            else job_json(item)
            if isinstance(item, JobChanged)
            else asdict(item)
            if isinstance(item, LostNode)
            else item
            for item in value
        ]
    if isinstance(value, Enum):
        return value.value
    return _finite(value) if isinstance(value, float) else value


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
