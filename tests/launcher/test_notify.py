"""Telling the user: what is worth it, what the terminal gets, what a command gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.errors import InputError
from launcher.logs.events import JobChanged, JobState
from launcher.monitor.notify import (
    BELL,
    CommandChannel,
    Kind,
    Notifier,
    RunNotification,
    change,
    channels,
    channels_in_settings,
    notification_of,
    sequence,
)
from launcher.monitor.state import RunState
from launcher.monitor.watch import Watch
from launcher.transports.local import LocalTransport
from tui.headless.stream import EventStream

SHOW = """#!/bin/sh
env | grep ^DISTILL_TUI_ | sort >>"$OUT"; echo --- >>"$OUT"
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "tell me"
    file.write_text(SHOW)
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, "running", None),
        ("queued", "starting", Kind.START),
        ("queued", "running", Kind.START),
        ("starting", "running", None),
        ("running", "queued", None),
        ("running", "failed", Kind.FAILURE),
        ("queued", "failed", Kind.FAILURE),
        ("running", "completed", Kind.END),
        ("running", "cancelled", Kind.END),
        ("failed", "completed", None),
        ("running", "running", None),
    ],
)
def test_what_is_worth_telling(before: str | None, after: str, kind: Kind | None) -> None:
    assert change(JobState(before) if before else None, JobState(after)) is kind


@given(st.text())
def test_no_text_becomes_a_sequence_of_its_own(text: str) -> None:
    note = notification_of(text, Kind.FAILURE, RunState(job=JobChanged(JobState.FAILED, text)))
    sent = sequence(note.in_words(), {"TERM": "xterm"})
    assert sent.startswith("\x1b]9;distill-tui: ")
    assert sent.endswith(BELL)
    inner = sent[2:-1]
    assert not any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in inner)
    assert inner.count(";") == 1
    assert len(inner) < 230


def test_what_each_terminal_gets() -> None:
    assert sequence("x; y", {"TERM": "foot"}) == "\x1b]777;notify;distill-tui;x, y\a"
    assert sequence("x", {"TERM": "xterm", "VTE_VERSION": "7600"}) == "\x1b]777;notify;distill-tui;x\a"
    in_tmux = sequence("x", {"TERM": "tmux-256color", "TMUX": "/tmp/t,1,0"})
    assert in_tmux == "\x1bPtmux;\x1b\x1b]9;distill-tui: x\a\x1b\\"
    assert sequence("x", {"TERM": "screen"}) == "\x1bP\x1b]9;distill-tui: x\a\x1b\\"


def test_a_command_gets_the_facts_and_no_shell_sees_them(tmp_path: Path, script: Path) -> None:
    out = tmp_path / "out"
    evil = f"$(touch {tmp_path}/evil) `touch {tmp_path}/evil` ; touch {tmp_path}/evil"
    note = RunNotification(Kind.FAILURE, evil, JobState.FAILED, "out of memory", "71", 12, 300, 0.25)
    (command,) = channels([f"'{script}'"], {"PATH": "/usr/bin:/bin", "OUT": str(out)})
    assert command.send(note) == ""
    told = dict(line.partition("=")[::2] for line in out.read_text().splitlines() if "=" in line)
    assert told == {
        "DISTILL_TUI_EVENT": "failure", "DISTILL_TUI_RUN": evil, "DISTILL_TUI_STATE": "failed",
        "DISTILL_TUI_REASON": "out of memory", "DISTILL_TUI_JOB": "71", "DISTILL_TUI_STEP": "12",
        "DISTILL_TUI_MAX_STEPS": "300", "DISTILL_TUI_LOSS": "0.25",
        "DISTILL_TUI_TEXT": note.in_words(),
    }  # fmt: skip
    assert not (tmp_path / "evil").exists()


def test_a_command_that_fails_is_told_once(tmp_path: Path) -> None:
    command = CommandChannel(
        ("sh", "-c", "echo '\x1b[31mno such pager' >&2; exit 3"), {"PATH": "/usr/bin:/bin"}
    )
    notifier = Notifier("r", (command,))
    states = [JobState.QUEUED, JobState.RUNNING, JobState.UNKNOWN, JobState.QUEUED, JobState.RUNNING]
    said = [notifier.update(RunState(job=JobChanged(state))) for state in states]
    assert said == [(), ("'sh' ended with exit code 3: no such pager",), (), (), ()]


@pytest.mark.parametrize("wanted", ["no-such-command-anywhere --x", "'unclosed", ""])
def test_a_command_that_is_none_is_wrong_usage(wanted: str) -> None:
    with pytest.raises(InputError):
        channels([wanted], {"PATH": "/usr/bin:/bin"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ()), ('notify = "bell"', ("bell",)), ('notify = ["bell", "say hi"]', ("bell", "say hi"))],
)
def test_the_settings_file(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert channels_in_settings(environment) == ()
    file = tmp_path / "distill-tui" / "settings.toml"
    file.parent.mkdir()
    file.write_text(text)
    assert channels_in_settings(environment) == expected
    for wrong in ("notify = 3", "notify ="):
        file.write_text(wrong)
        with pytest.raises(InputError):
            channels_in_settings(environment)


def test_a_watch_tells_of_start_and_end(
    tmp_path: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    answers = [JobState.QUEUED, JobState.RUNNING, JobState.RUNNING, JobState.CANCELLED]
    logs = tmp_path / "logs"
    logs.mkdir()
    watch = Watch(
        LocalTransport(), (str(logs),), probe=lambda: JobChanged(answers.pop(0), "by the user", job="7")
    )
    environment = {"PATH": "/usr/bin:/bin", "OUT": str(out)}
    notifier = Notifier("night run", channels([f"'{script}'"], environment))
    EventStream(as_json=True, poll_s=0, notifier=notifier).follow(watch, lambda state: state.state.ended)
    events = [line for line in out.read_text().splitlines() if "_EVENT" in line]
    assert events == ["DISTILL_TUI_EVENT=start", "DISTILL_TUI_EVENT=end"]
    printed = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert set(printed) == {"job_changed"}
