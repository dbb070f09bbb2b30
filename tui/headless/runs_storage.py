"""`runs --disk-use`, `runs --move`, `runs --remove-checkpoints`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.storage.size import gigabytes
from recipes.errors import Exit
from tui.headless.output import SCHEMA, print_json, say, show
from tui.headless.stores import run_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from launcher.storage.disk_use import DiskUse


def run(options: argparse.Namespace) -> int:
    """Do with runs what the options say."""
    if options.move is not None:
        return _move(options)
    return _remove(options) if options.remove_checkpoints else _disk_use(options)


def _disk_use(options: argparse.Namespace) -> int:
    """Print the bytes on disk of each run, and of all."""
    from launcher.storage.disk_use import disk_use
    from launcher.storage.moving import runs_to_move

    store = run_store()
    uses = disk_use(store.transport, runs_to_move(store, options.runs))
    complete = all(use.complete for use in uses)
    if options.json:
        rows = [_use_json(use) for use in uses]
        print_json(SCHEMA | {"root": store.root, "runs": rows, **_sums(uses), "complete": complete})
        return Exit.OK
    for use in uses:
        _show_use(use.run.spec.id, _bytes(use), use.checkpoint_dir)
    _show_use(f"{len(uses)} run{'s' * (len(uses) != 1)}", _sums(uses))
    if not complete:
        say("not everything was counted: too many files, too slow, or not readable")
    return Exit.OK


def _show_use(name: str, sizes: Mapping[str, int], directory: str = "") -> None:
    where = f" in {directory}" if directory else ""
    logs, checkpoints = gigabytes(sizes["logs_bytes"]), gigabytes(sizes["checkpoints_bytes"])
    show(f"{name:44} {gigabytes(sizes['bytes']):>9}  logs {logs}, checkpoints {checkpoints}{where}")


def _bytes(use: DiskUse) -> dict[str, int]:
    return {
        "bytes": use.total,
        "logs_bytes": use.logs,
        "checkpoints_bytes": use.checkpoints,
        "other_bytes": use.other,
    }


def _sums(uses: Sequence[DiskUse]) -> dict[str, int]:
    names = ("bytes", "logs_bytes", "checkpoints_bytes", "other_bytes")
    return {name: sum(_bytes(use)[name] for use in uses) for name in names}


def _use_json(use: DiskUse) -> dict[str, object]:
    return {
        "run": use.run.spec.id,
        "dir": use.run.directory,
        **_bytes(use),
        "checkpoint_dir": use.checkpoint_dir or None,
        "complete": use.complete,
    }


def _move(options: argparse.Namespace) -> int:
    """Move the runs that have ended; say what was moved and what was not."""
    from launcher.paths import expand
    from launcher.storage.moving import move_run, prepare, runs_to_move

    store = run_store()
    runs = runs_to_move(store, options.runs)
    directory = prepare(Path(os.path.abspath(expand(options.move))))
    moves = []
    for item in runs:
        moves.append(move_run(store, item, directory))
        last = moves[-1]
        if not options.json:
            outcome = f"not moved: {last.problem}" if last.problem else f"moved to {last.target}"
            show(f"{last.run:44} {outcome}" + (f"; {last.remark}" if last.remark else ""))
    failed = [move for move in moves if move.problem]
    if options.json:
        rows = [
            {
                "run": move.run,
                "from": move.source,
                "to": move.target,
                "moved": not move.problem,
                "problem": move.problem or move.remark or None,
            }
            for move in moves
        ]
        print_json(SCHEMA | {"dir": str(directory), "runs": rows})
    elif not moves:
        say(f"no runs in {store.root}")
    return Exit.FAILED if failed and options.runs else Exit.OK


def _remove(options: argparse.Namespace) -> int:
    """Remove the checkpoints of trial runs: of those that are named."""
    from launcher.errors import InputError
    from launcher.storage.removal import remove_checkpoints

    if not options.runs:
        raise InputError("no run is named", fix="`runs --remove-checkpoints RUN`; `runs` lists them.")
    store = run_store()
    runs = [store.find(name) for name in options.runs]
    removed = [(item, remove_checkpoints(store, item)) for item in runs]
    if options.json:
        rows = [{"run": item.spec.id, "dir": done.directory, "bytes": done.bytes} for item, done in removed]
        print_json(SCHEMA | {"runs": rows, "bytes": sum(done.bytes for _, done in removed)})
        return Exit.OK
    for item, done in removed:
        text = f"checkpoints removed, {gigabytes(done.bytes)}" if done.bytes else "no checkpoints to remove"
        show(f"{item.spec.id:44} {text}")
    return Exit.OK
