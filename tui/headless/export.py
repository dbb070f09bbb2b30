"""`launcher export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from launcher.scripts import export
from tui.headless.output import show

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Write the launcher and the rehearsal to a directory."""
    for path in export(Path(options.directory)):
        show(str(path))
    return 0
