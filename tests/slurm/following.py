"""A watch that runs beside a test, as in another window."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.slurm.user import SITE, User

LONG = (
    "distillation.max_num_steps=100000", "distillation.max_num_epochs=100000", "distillation.val_period=0",
    "checkpointing.save_period=20", "checkpointing.metric_name=null",
)  # fmt: skip
"""A run that does not end by itself."""
Event = dict[str, Any]


@dataclass
class Watching:
    """`watch --json`, and what it has printed so far."""

    process: subprocess.Popen[str]
    events: list[Event] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _coming: queue.Queue[Event] = field(default_factory=queue.Queue)

    def read(self) -> None:
        """Take its lines until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # the last one may be cut where the watch was ended
                self._coming.put(json.loads(line))

    def listen(self) -> None:
        """Take what it says beside."""
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)

    def until(self, holds: Callable[[Event], bool], within_s: float, what: str) -> Event:
        """Wait for an event, of those that have not been looked at."""
        end = time.monotonic() + within_s
        while True:
            try:
                event = self._coming.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(
                    f"no {what} within {within_s} s; {self.jobs()} {self.process.poll()} {self.said}"
                ) from None
            self.events.append(event)
            if holds(event):
                return event

    def milestone(self, name: str, within_s: float) -> Event:
        """Wait for a milestone."""
        return self.until(lambda event: event.get("id") == name, within_s, name)

    def job(self, holds: Callable[[Event], bool], within_s: float, what: str) -> Event:
        """Wait for something that the cluster says."""
        return self.until(lambda event: event["event"] == "job_changed" and holds(event), within_s, what)

    def metrics(self, count: int, within_s: float) -> None:
        """Wait for so many losses."""
        for _ in range(count):
            self.until(lambda event: event["event"] == "metric" and event["name"] == "loss", within_s, "loss")

    def jobs(self) -> list[tuple[str, str, str]]:
        """Return what the cluster said so far: state, word, reason."""
        return [
            (event["state"], event["word"], event["reason"])
            for event in self.events
            if event["event"] == "job_changed"
        ]

    def end(self, within_s: float) -> int:
        """Wait until it ends by itself; returns its exit code."""
        return self.process.wait(within_s)


@contextmanager
def watching(user: User, run: str) -> Iterator[Watching]:
    """Watch a run; the watch is ended at the end if it has not ended by itself."""
    command = user.argv("watch", "--json", run)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        one = Watching(process)
        readers = [threading.Thread(target=work, daemon=True) for work in (one.read, one.listen)]
        for reader in readers:
            reader.start()
        try:
            yield one
        finally:
            if process.poll() is None:  # nsenter's child is the watch
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                for child in children:
                    os.kill(int(child), signal.SIGTERM)
            process.wait(20)
            for reader in readers:
                reader.join(20)


def hurry(user: User) -> None:
    """Ask the controller as often as the program ever does."""
    file = user.place / "config" / "distill-tui" / "site.toml"
    file.write_text(f"[polling]\nfront_s = 15\n{SITE}")
