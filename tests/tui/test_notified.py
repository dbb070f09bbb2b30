"""The monitor tells of a run's end by what the user asked for."""

from __future__ import annotations

from pathlib import Path

from tests.tui.pilot import shown
from tests.tui.replay import running


async def test_a_command_is_run_when_the_run_ends(tmp_path: Path) -> None:
    out, root = tmp_path / "out", tmp_path / "runs"
    script = tmp_path / "tell"
    script.write_text(f'#!/bin/sh\necho "$DISTILL_TUI_EVENT $DISTILL_TUI_STATE $DISTILL_TUI_STEP" >>{out}\n')
    script.chmod(0o755)
    replay = running(root, host="elsewhere")
    async with shown(root, open_run=str(replay.run.directory), notify=(str(script), "bell")) as screen:
        await screen.see("● running")
        assert not out.exists()
        replay.finish(1)
        await screen.see("✗ failed")
        await screen.until(out.exists, "the command was run")
        await screen.until(lambda: out.read_text() == "failure failed 11\n", "the facts were given")


async def test_a_command_that_cannot_be_is_said(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    async with shown(tmp_path, open_run=str(replay.run.directory), notify=("no-such-pager",)) as screen:
        await screen.see("invalid notification command 'no-such-pager': not found in PATH")
        await screen.press("escape")
        await screen.see("● running")
