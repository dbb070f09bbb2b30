"""`runs`: the list of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from launcher.errors import InputError
from launcher.monitor.watch_run import summary_of
from launcher.runs import Run, load
from recipes.errors import ExplainedError
from tui.headless.hosts import refuse_host
from tui.headless.output import SCHEMA, print_json, say, show
from tui.headless.plain import attempt_lines
from tui.headless.stores import run_store

if TYPE_CHECKING:
    import argparse

    from launcher.runs import RunStore


def run(options: argparse.Namespace) -> int:
    """List the runs, newest first, or do with them what an option says.

    Raises:
        InputError: runs are named without an option that takes them.
    """
    if options.disk_use or options.move is not None or options.remove_checkpoints:
        refuse_host(options.host, "--disk-use, --move and --remove-checkpoints")
        from tui.headless import runs_storage

        return runs_storage.run(options)
    if options.runs:
        raise InputError(
            f"unexpected argument '{options.runs[0]}'",
            fix="RUN goes with --disk-use, --move or --remove-checkpoints: `distill-tui runs --help`.",
        )
    return _list(options)


def _list(options: argparse.Namespace) -> int:
    """List the runs with their states."""
    store = run_store(options.host)
    rows: list[dict[str, Any]] = []
    damaged: list[dict[str, str]] = []
    with store.looking():
        for item in store.list():
            if isinstance(item, Run):
                try:
                    rows.append(_row(store, item))
                except ExplainedError as error:  # its files changed, or cannot be read: the others are listed
                    damaged.append({"dir": item.directory, "problem": error.what})
            else:
                damaged.append({"dir": item.directory, "problem": item.problem})
    if options.json:
        print_json(SCHEMA | {"root": store.root, "runs": rows, "damaged": damaged})
        return 0
    for row in rows:
        steps = f"{row['step']}/{row['max_steps'] or '?'}"
        show(f"{row['run']:44} {row['state']:10} step {steps:10} {row['reason']}".rstrip())
        for line in attempt_lines(row["attempts"]):
            show(f"  {line}")
    for broken in damaged:
        show(f"{broken['dir']}: {broken['problem']}")
    if not rows and not damaged:
        say(f"no runs in {store.root}; `distill-tui demo` makes one")
    return 0


def _row(store: RunStore, item: Run) -> dict[str, Any]:
    summary = summary_of(store.transport, item)
    # `summary_of` may have recovered the number of a job whose submission had no clear answer.
    jobs = load(store.transport, item.directory).jobs
    return {
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
        "attempts": summary.get("attempts", []),
        "jobs": [{"id": job.id, "role": "training"} for job in jobs],
    }
