"""Logs after public bug reports: the root, its words, rank and node, and the state of the run are right."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launcher.logs.events import Event, FindingSeen
from launcher.logs.follow import Follower
from launcher.logs.sources import discover
from launcher.monitor.run_status import job_status_by_log_age
from launcher.monitor.state import RunState
from launcher.transports.local import LocalTransport

LEFT_TO_STATES = {"silence-after-long-save"}
"""Judged by the state of the run, not by a cause."""


def has(words: list[str | list[str]], text: str) -> bool:
    """Return whether each word, or one of each list of words, is in a text."""
    lower = text.lower()
    return all(
        any(one.lower() in lower for one in ([word] if isinstance(word, str) else word)) for word in words
    )


def events_of(folder: Path) -> Iterator[Event]:
    transport = LocalTransport()
    for log, entry in discover(transport, str(folder)).logs:
        follower = Follower.of(transport, log)
        yield from follower.poll(entry, lambda _: None)
        yield from follower.finish(lambda _: None)


def state_of(folder: Path, age_s: float) -> RunState:
    state = RunState()
    for event in events_of(folder):
        state.apply(event)
    now = time.time()
    state.apply(job_status_by_log_age(now - age_s, now))
    return state


def problems(folder: Path, expect: dict[str, Any], state: RunState) -> Iterator[str]:
    """Yield what is not as expected (`README.md` of the cases has the keys)."""
    root = state.diagnosis.root
    if "state" in expect and state.state.value not in expect["state"]:
        yield f"state {state.state.value}"
    if state.state.value in expect.get("state_not", ()):
        yield f"state {state.state.value}"
    if expect.get("finding") is False and root is not None:
        yield f"root {root.id}: {root.text}"
    needs_root = {"line", "named", "title", "ids", "ids_not", "tier", "rank", "node", "told"} & set(expect)
    if root is None:
        if needs_root:
            yield "no root"
        return
    lines = (folder / root.source.log).read_text().split("\n")
    yield from wrong_words(expect, root, lines[root.source.line - 1], state.reason)
    for key, value in (("ids", root.id), ("tier", root.tier), ("rank", root.rank), ("node", root.node)):
        right = expect.get(key)
        if right is not None and value not in (right if isinstance(right, list) else [right]):
            yield f"{key} {value}"
    if root.id in expect.get("ids_not", ()):
        yield f"id {root.id}"


def wrong_words(expect: dict[str, Any], root: FindingSeen, line: str, reason: str) -> Iterator[str]:
    told = f"{root} {reason}"
    for key, text in (
        ("line", line), ("named", f"{line} {root.title} {root.text} {reason}"), ("title", root.title),
        ("told", told),
    ):  # fmt: skip
        if key in expect and not has(expect[key], text):
            yield f"{key}: {text}"
    for word in expect.get("told_not", ()):
        if word.lower() in told.lower():
            yield f"told {word}"


def test_public_cases(shared: Path) -> None:
    wrong = {}
    count = 0
    for file in sorted((shared / "public-cases").glob("*/expected.toml")):
        case = tomllib.loads(file.read_text())
        if case["kind"] != "watch-dir" or file.parent.name in LEFT_TO_STATES:
            continue
        count += 1
        state = state_of(file.parent, case.get("age_s", 0))
        if mistakes := list(problems(file.parent, case["expect"], state)):
            wrong[file.parent.name] = mistakes
    assert wrong == {}
    assert count >= 29
