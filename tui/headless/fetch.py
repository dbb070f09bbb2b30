"""`fetch`: a copy of a run of another machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.errors import ConnectionLostError, TransportError
from tui.headless.output import SCHEMA, print_json, say, show
from tui.headless.stores import run_store

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Copy a run's configuration, logs and curves here, with its report; checkpoints on request."""
    from launcher.monitor.report import markdown
    from launcher.monitor.watch_run import watch_run
    from launcher.storage.copying import fetch_run
    from launcher.storage.size import gigabytes
    from tui.run_report import report_of

    store = run_store(options.host)
    target = store.find(options.run)
    progress = _Progress()
    try:
        result = fetch_run(
            store.transport, target, Path(options.to), checkpoints=options.checkpoints, progress=progress
        )
    except ConnectionLostError as error:
        raise TransportError(error.what, fix="The same command goes on where it broke off.") from error
    finally:
        progress.end()
    report, _ = report_of(target.spec.id, watch_run(store.transport, target), target, say)
    (result.directory / "report.md").write_text(markdown(report), encoding="utf-8")
    if options.json:
        print_json(
            SCHEMA
            | {
                "run": target.spec.id,
                "dir": str(result.directory),
                "files": result.files,
                "bytes": result.bytes,
                "read_bytes": result.read,
                "left_out_bytes": result.left_out,
            }
        )
        return 0
    show(f"{result.directory}: {result.files} files, {gigabytes(result.bytes)}, and report.md")
    if result.left_out:
        say(f"checkpoints were left out ({gigabytes(result.left_out)}); --checkpoints copies them, too")
    return 0


class _Progress:
    """A line at the terminal that says how far it is."""

    def __init__(self) -> None:
        self._last = ""
        self._is_shown = sys.stderr.isatty()

    def __call__(self, file: str, done: int, total: int) -> None:
        percent = f"{done * 100 // max(total, 1)} %"
        if self._is_shown and percent != self._last:
            self._last = percent
            sys.stderr.write(f"\r{percent} of {total / 1e6:.0f} MB\x1b[K")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave the line empty."""
        if self._last:
            sys.stderr.write("\r\x1b[K")
