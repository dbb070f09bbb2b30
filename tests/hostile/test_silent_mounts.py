"""Mounts whose server gives no answer, as the kernel has them: every command ends within its deadline, in words."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from recipes import reading
from tests.hostile.mount_inputs import PLACES, MountAttempt, make_node, mount_attempts, wrong_with_mount
from tests.hostile.silent_mount import can_mount, silent_mount
from tui.headless.unanswered import waits_for

needs_mounts = pytest.mark.skipif(not can_mount(), reason="mounts are made by root, with /dev/fuse")


def test_calls_of_a_thread_that_are_about_files(tmp_path: Path) -> None:
    assert waits_for("running\n", "x86_64") is None
    assert waits_for("202 0x7f 0x0 0x0", "x86_64") is None  # futex: a lock
    assert waits_for("0 0x0 0x7f 0x100", "x86_64") is None  # read of standard input
    with (tmp_path / "x").open("w") as file:
        call = f"0x{file.fileno():x} 0x7f 0x100"
        assert waits_for(f"0 {call}", "x86_64") == waits_for(f"63 {call}", "aarch64") == str(tmp_path / "x")
    reading, writing = os.pipe()
    assert waits_for(f"0 0x{reading:x} 0x7f", "x86_64") is None
    os.close(reading)
    os.close(writing)
    assert waits_for("257 0xffffff9c 0x0", "x86_64") == ""  # openat, with a path that is gone


def tried(root: Path, attempt: MountAttempt) -> str:
    environment = make_node(root)
    with silent_mount(root / PLACES[attempt.place]):
        wrong = wrong_with_mount(attempt, root, environment)
    shutil.rmtree(root, ignore_errors=True)
    return f"{attempt}: {wrong}" if wrong else ""


@needs_mounts
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_commands_on_silent_mounts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = int(os.environ.get("DISTILL_TUI_ATTEMPTS", "150"))
    attempts = Random(2).sample(list(mount_attempts()), count)
    with ThreadPoolExecutor(8) as pool:
        numbered = [tmp_path / str(number) for number in range(count)]
        bad = [text for text in pool.map(tried, numbered, attempts) if text]
    with capsys.disabled():
        print(f"\nreal silent mounts: tried {count}, bad {len(bad)}")
    assert bad == [], "\n".join(bad)


@needs_mounts
def test_settings_without_answer_end_a_command_in_words(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    within = reading.within
    monkeypatch.setattr(reading, "within", lambda action, _, path="": within(action, 0.3, path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    with silent_mount(tmp_path / "config"):
        code, _, err = run("runs")
    assert (code, err.count("\n")) == (3, 1)
    assert re.search(r"no answer from the file system for 0\.3 s: .*/config/distill-tui/settings\.toml", err)
