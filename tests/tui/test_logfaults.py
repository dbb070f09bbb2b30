"""What can happen to a log while it is looked at: it is told, and following goes on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui.opening
from launcher.errors import TransportError
from launcher.transports.base import FileStat
from launcher.transports.local import LocalTransport
from tests.tui.pilot import Screen, shown
from tests.tui.replay import Replay, running
from tests.tui.test_monitor import open_logs


class Forbidding(LocalTransport):
    """Refuses the driver's log while told to, as a file system does that took permissions away."""

    refuses = False

    def read(self, path: str, offset: int = 0, size: int = -1) -> bytes:
        self._refuse(path)
        return super().read(path, offset, size)

    def stat(self, path: str) -> FileStat | None:
        self._refuse(path)
        return super().stat(path)

    def _refuse(self, path: str) -> None:
        if self.refuses and path.endswith("ray-driver.log"):
            raise TransportError(f"cannot read {path}: Permission denied")


@pytest.fixture
def forbidding(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Forbidding]]:
    monkeypatch.setattr(tui.opening, "local", Forbidding)
    yield Forbidding
    Forbidding.refuses = False


async def goes_on(screen: Screen, replay: Replay, text: str) -> None:
    """See that what comes next is shown."""
    replay.append("ray-driver.log", f"\n{text}\n")
    await screen.see(text, "following")


@pytest.mark.long
async def test_replaced_deleted_forbidden_and_odd(tmp_path: Path, forbidding: type[Forbidding]) -> None:
    replay = running(tmp_path, host="elsewhere")
    log = replay.logs / "ray-driver.log"
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        other = tmp_path / "other"
        other.write_text("another file in its place\n")
        other.replace(log)
        await screen.see("the log was reset", "another file in its place")
        await goes_on(screen, replay, "after it was replaced")

        forbidding.refuses = True
        await screen.see("! cannot read the log: Permission den", "after it was replaced")
        forbidding.refuses = False
        await goes_on(screen, replay, "after it was forbidden")

        log.unlink()
        await screen.see("! the file does not exist (yet)", "after it was forbidden")
        log.write_text("created again\n")
        await screen.see("created again")

        with log.open("ab") as file:
            file.write(b"\x00\x00\xff\xfe nul and invalid \x00\n\x80\x81\n")
        await screen.see("\ufffd\ufffd nul and invalid")
        await goes_on(screen, replay, "after odd bytes")


@pytest.mark.long
async def test_a_directory_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        shutil.move(replay.logs, tmp_path / "away")
        await screen.see("! the file does not exist (yet)")
        shutil.move(tmp_path / "away", replay.logs)
        await goes_on(screen, replay, "back again")


async def test_a_pipe_instead_of_a_log_does_not_stop_the_screen(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        log = replay.logs / "ray-driver.log"
        log.unlink()
        os.mkfifo(log)  # opening it waits for a writer
        await screen.press("f1")
        await screen.see("Help")
        await screen.press("escape", "h")
        await screen.see("▸head", "Ray runtime started.")


@pytest.mark.slow
async def test_two_gigabytes_at_once_and_a_very_long_line(tmp_path: Path) -> None:
    replay = running(tmp_path, host="elsewhere")
    log = replay.logs / "ray-driver.log"
    async with shown(tmp_path, open_run="demo") as screen:
        await open_logs(screen)
        os.truncate(log, log.stat().st_size + 2_000_000_000)
        replay.append("ray-driver.log", "\nbehind two gigabytes\n")
        await screen.see("behind two gigabytes", "2.0 GB", limit_s=60)
        with log.open("ab") as file:
            file.write(b"y" * 100_000_000 + b"\n")
        await screen.see("yyyyyyyy", limit_s=60)
        await goes_on(screen, replay, "after a very long line")
        await screen.press("ampersand")
        await screen.type("behind")
        await screen.press("enter")
        await screen.see("only “behind”", "behind two gigabytes", limit_s=60)
