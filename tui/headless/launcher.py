"""`launcher export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from launcher.scripts import export as export_scripts
from tui.headless.output import show

if TYPE_CHECKING:
    import argparse


def export(options: argparse.Namespace) -> int:
    """Write the launcher and the rehearsal to a directory."""
    for path in export_scripts(Path(options.directory)):
        show(str(path))
    return 0
