"""`launcher export`."""

from __future__ import annotations

import argparse
from typing import Any


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    group = commands.add_parser("launcher", help="the batch script that starts Ray and the driver")
    actions = group.add_subparsers(metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write the scripts out", description=_export.__doc__)
    export.add_argument("directory", metavar="DIR")
    export.set_defaults(handler=_export)


def _export(options: argparse.Namespace) -> int:
    """Write the launcher and the rehearsal into a directory, for use without this program."""
    from pathlib import Path

    from launcher.scripts import export

    for path in export(Path(options.directory)):
        print(path)
    return 0
