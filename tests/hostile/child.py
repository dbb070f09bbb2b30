"""Child of the attempts: runs commands in this process, one after another, within an address space."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tests.hostile.broken_machine import BrokenFiles, fast_clock, jumping_clock
from tests.hostile.pressure import waited_s
from tui.cli import main


def attempt(argv: list[str]) -> dict[str, Any]:
    """Run one command; returns its exit code, what it printed, and the exception that left it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    fault, code = "", -1
    wall, cpu, waited = time.perf_counter(), time.process_time(), waited_s()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main("0", argv)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the fault that is looked for
        fault = f"{type(error).__name__}: {error}"[:300]
    return {
        "code": int(code),
        "fault": fault,
        "cpu_s": time.process_time() - cpu,
        "wall_s": time.perf_counter() - wall - (waited_s() - waited),
        "out": _text(out),
        "err": _text(err),
    }


def troubled(order: dict[str, Any]) -> dict[str, Any]:
    """Run one command on a machine that is not well, where the order says so."""
    with contextlib.ExitStack() as stack:
        if order["hurry"] != 1:
            stack.enter_context(fast_clock(order["hurry"]))
        if order["trouble"] == "clock":
            stack.enter_context(jumping_clock(order["seed"]))
        elif order["trouble"]:
            chance = (0.02, 0.2, 1.0)[order["seed"] % 3]
            stack.enter_context(
                BrokenFiles(
                    f"{order['folder']}/runs" if order["trouble"] == "hang" else order["folder"],
                    order["trouble"],
                    chance,
                    order["seed"],
                ).patched()
            )
        return attempt(order["argv"])


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    data = stream.buffer.getvalue()  # type: ignore[attr-defined] # a BytesIO
    return str(data[:20_000].decode("utf-8", "replace"))


def as_user(uid: int, argv: list[str]) -> str:
    """Run one command as another user, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        os.write(writing, json.dumps(attempt(argv)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answer = answers.read().decode()
    os.waitpid(child, 0)
    return answer


def peak_mib() -> float:
    """Most memory that this process held (MiB), from /proc/self/status.

    Not `ru_maxrss`: Linux carries the peak of the parent over an exec into it (fs/exec.c, exec_mmap), and a
    parent that runs tests grows.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def run() -> None:
    """Run the attempts of standard input; prints a line of JSON for each, and the memory's peak (MiB)."""
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    orders = json.load(sys.stdin)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - open until the process ends
    if any(order["uid"] for order in orders):  # modules that another user may not read
        example = Path(orders[0]["folder"]).with_name("warm.yaml")
        example.write_text("a: 1\n")
        attempt(["recipe", "set", str(example), "a", "2"])
        attempt(["recipe", "set", str(example.with_name("none.yaml")), "a", "2"])
        example.unlink()
    for order in orders:
        os.chdir(order["folder"])
        before = dict(os.environ)
        os.environ.update(order["variables"])
        uid = order["uid"]
        print(as_user(uid, order["argv"]) if uid else json.dumps(troubled(order)), flush=True)
        os.environ.clear()
        os.environ.update(before)
    print(f"peak {peak_mib():.0f}")


if __name__ == "__main__":
    run()
