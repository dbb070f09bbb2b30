"""Work over SSH behind a relay that delays: `python -m tests.bench.bench_ssh CHECKOUT [ROUND_TRIP_MS…]`.

CHECKOUT is a NeMo-RL checkout. Prints seconds, requests, round trips and bytes: a running job's first screen,
30 logs that grow by a line a second, a list of 50 runs, the first and second open of a recipe and its checks.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from launcher.monitor.watch_run import watch_run
from launcher.runs import RunStore, load
from launcher.transports.local import LocalTransport
from launcher.transports.ssh.transport import SshTransport
from recipes.checks import Checker, Inputs
from tests.driver_text import DriverText
from tests.ssh.relay import Relay, relayed
from tests.ssh.server import SFTP, Server, running
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.model import WizardState

LOGS = 30
RUNS = 50
FOLLOWED_S = 20


class Counter:
    """Transports through a relay, whose requests and bytes are counted."""

    def __init__(self, server: Server, relay: Relay) -> None:
        self._server, self._relay = server, relay
        self.requests = 0

    def transport(self) -> SshTransport:
        """Return a transport without a connection."""
        known = self._server.known_hosts(f"[127.0.0.1]:{self._relay.port} {self._server.host_key}\n")
        transport = SshTransport(self._server.host(known, port=self._relay.port))
        take = transport.connection.take_spare

        def shell(timeout_s: float = 0.0) -> Any:
            self.requests += 1
            return take(timeout_s)

        transport.connection.take_spare = shell  # type: ignore[method-assign]
        return transport

    def measured(self, name: str, action: Callable[[], object]) -> None:
        """Print what an action takes."""
        requests, passed, turns = self.requests, self._relay.passed, self._relay.turns
        begun, cpu = time.monotonic(), time.process_time()
        action()
        print(
            f"  {name:44} {time.monotonic() - begun:6.2f} s {time.process_time() - cpu:6.2f} s CPU"
            f" {self.requests - requests:4} requests {self._relay.turns - turns:4} round trips"
            f" {(self._relay.passed - passed) / 1000:8.1f} kB",
            flush=True,
        )


def main(checkout: Path, round_trips_ms: list[int]) -> None:
    """Run all of it at each round trip."""
    directory = Path(tempfile.mkdtemp(prefix="bench-ssh-"))
    os.environ["XDG_CACHE_HOME"] = str(directory / "cache")
    (directory / "sshd").mkdir()
    root, run = make_runs(directory)
    recipe = min((checkout / "examples" / "configs" / "recipes").rglob("*distillation*.yaml"))
    try:
        with running(directory / "sshd", SFTP) as server:
            for milliseconds in round_trips_ms:
                print(f"round trip {milliseconds} ms")
                shutil.rmtree(directory / "cache", ignore_errors=True)
                with relayed(server.port, milliseconds / 2000) as relay:
                    measure(Counter(server, relay), root, run, checkout, recipe)
    finally:
        shutil.rmtree(directory)


def measure(counter: Counter, root: Path, run: Path, checkout: Path, recipe: Path) -> None:
    """Print the figures of one round trip."""
    transport = counter.transport()

    def first_screen() -> None:
        store = RunStore(transport, str(root))
        watch = watch_run(transport, store.find(run.name))
        watch.find_logs()
        watch.poll()
        assert watch.state.step == 5

    counter.measured("connect", lambda: transport.environment())
    counter.measured("first screen of a running job, connected", first_screen)
    counter.measured("the same again", first_screen)
    followed(counter, transport, run)
    counter.measured(f"list of {RUNS} runs", lambda: listed(transport, root))
    transport.close()
    for time_ in ("first", "second"):
        fresh = counter.transport()
        counter.measured("connect", lambda fresh=fresh: fresh.environment())  # type: ignore[misc]

        def check(fresh: SshTransport = fresh) -> None:
            inputs = Inputs.of(
                environment=fresh.environment(), checkout=fresh.path(str(checkout)), root=fresh.path("")
            )
            assert Checker(inputs).check(fresh.path(str(recipe))).results

        counter.measured(f"{time_} open of a recipe", check)
        fresh.close()
    wizard_keys(counter, root, recipe, checkout)


def wizard_keys(counter: Counter, root: Path, recipe: Path, checkout: Path) -> None:
    """Open the wizard on a recipe, and type sizes: from each key to its checks, there and here."""
    far = counter.transport()
    far.environment()
    for machine, transport in (("on the host", far), ("here", LocalTransport())):
        resolver = DraftResolver(RunStore(transport, str(root)), transport.environment())
        state = WizardState({"recipe": str(transport.path(str(recipe))), "checkout": str(checkout)})
        counter.measured(f"the wizard's first checks {machine}", partial(checked, resolver, state))
        for prompts in (16, 32, 64):
            typed = WizardState({**state.texts, "prompts": str(prompts)})
            counter.measured(f"the checks of a key {machine}", partial(checked, resolver, typed))
    far.close()


def checked(resolver: DraftResolver, state: WizardState) -> None:
    """Check a state of the wizard as after a key."""
    status = resolver.quick_status(state)
    assert status.report is not None, status


def followed(counter: Counter, transport: SshTransport, run: Path) -> None:
    """Follow logs that grow, as the monitor polls."""
    logs = sorted((run / "logs").rglob("*.log"))
    watch = watch_run(transport, load(transport, str(run)))
    watch.catch_up()

    def follow() -> None:
        for second in range(FOLLOWED_S):
            for log in logs:
                with log.open("a") as file:
                    file.write(f"a line of second {second}, as long as those of a worker usually are\n")
            watch.poll()
            time.sleep(1)

    counter.measured(f"{LOGS} logs followed for {FOLLOWED_S} s", follow)


def listed(transport: SshTransport, root: Path) -> None:
    """List the runs as `runs` does."""
    from launcher.monitor.watch_run import summary_of
    from launcher.runs import Run

    store = RunStore(transport, str(root))
    with store.looking():
        runs = [item for item in store.list() if isinstance(item, Run)]
        for item in runs[1:]:
            summary_of(transport, item)
    assert len(runs) == RUNS


def make_runs(directory: Path) -> tuple[Path, Path]:
    """Make the runs; the last one has logs and no end."""
    sample = next(path for path in Path("screenshots/sample").iterdir() if path.is_dir())
    spec = json.loads((sample / "run.json").read_text())
    root = run = directory / "runs"
    for number in range(RUNS):
        run = root / f"20261128-0423{number:02}-bench-{number:04x}"
        run.mkdir(parents=True)
        (run / "run.json").write_text(json.dumps(spec | {"id": run.name}))
        if number < RUNS - 1:
            summary = {
                "run": run.name,
                "state": "completed",
                "reason": "",
                "metrics": {"step": 3, "max_steps": 3},
            }
            (run / "summary.json").write_text(json.dumps({"schema": 1} | summary))
    logs = run / "logs" / "bench-logs"
    logs.mkdir(parents=True)
    (logs / "ray-driver.log").write_text(DriverText([0.5] * 5, end="").text())
    for number in range(LOGS - 1):
        (logs / f"ray-worker-{number}.log").write_text("started\n" * 50)
    return root, run


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(text) for text in sys.argv[2:]] or [100, 200])
