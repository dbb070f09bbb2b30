"""`runs`: the list of runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tui.headless import cancel
from tui.headless.output import print_json, say

if TYPE_CHECKING:
    from launcher.runs import RunStore


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command, and `cancel` beside it."""
    listing = commands.add_parser("runs", help="list the runs and their states", description=_runs.__doc__)
    listing.add_argument("--json", action="store_true", help="as one JSON object")
    listing.set_defaults(handler=_runs)
    cancel.add_parser(commands)


def store() -> RunStore:
    """Return the store of the user's runs."""
    from launcher.paths import runs_root
    from launcher.runs import RunStore
    from launcher.transports.local import LocalTransport

    return RunStore(LocalTransport(), str(runs_root()))


def _runs(options: argparse.Namespace) -> int:
    """List all runs, newest first, with their states."""
    from launcher.monitor.watch_run import summary_of
    from launcher.runs import Run, load

    known = store()
    rows: list[dict[str, Any]] = []
    damaged: list[dict[str, str]] = []
    for item in known.list():
        if not isinstance(item, Run):
            damaged.append({"dir": item.directory, "problem": item.problem})
            continue
        summary = summary_of(known.transport, item)
        # The look may have found the number of a job whose submission had no clear answer.
        jobs = load(known.transport, item.directory).jobs
        rows.append(
            {
                "run": item.spec.id,
                "name": item.spec.name,
                "kind": item.spec.kind,
                "cluster": item.spec.cluster,
                "created": item.spec.created.isoformat(),
                "dir": item.directory,
                "state": summary["state"],
                "reason": summary["reason"],
                "step": summary["metrics"]["step"],
                "max_steps": summary["metrics"]["max_steps"],
                "jobs": [{"id": job.id, "role": "training"} for job in jobs],
            }
        )
    if options.json:
        print_json({"schema": 1, "root": known.root, "runs": rows, "damaged": damaged})
        return 0
    for row in rows:
        steps = f"{row['step']}/{row['max_steps'] or '?'}"
        print(f"{row['run']:44} {row['state']:10} step {steps:10} {row['reason']}".rstrip())
    for broken in damaged:
        print(f"{broken['dir']}: {broken['problem']}")
    if not rows and not damaged:
        say(f"no runs in {known.root}; `distill-tui demo` makes one")
    return 0
