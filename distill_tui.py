"""The door of the `distill-tui` command.

It has a name that nothing else carries, so it can check that the plainly named packages behind it
(`tui`, `launcher`, `recipes`) are the ones that were installed with it before any of them is imported.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib.machinery import PathFinder
from pathlib import Path

__version__ = "0.1.0"

PACKAGES = ("recipes", "launcher", "tui")


def shadowed_packages(home: Path) -> list[tuple[str, str]]:
    """Return (package, where Python would take it from) for each package not found beside this file."""
    foreign = []
    for name in PACKAGES:
        loaded = sys.modules.get(name)
        spec = loaded.__spec__ if loaded is not None else PathFinder.find_spec(name)
        origin = spec.origin if spec is not None else None
        if origin is None or Path(origin).resolve().parent.parent != home:
            foreign.append((name, origin or "nowhere"))
    return foreign


def open_missing_streams() -> None:
    """Give the process the standard streams that it was started without.

    Otherwise Python has None for them, and a file that is opened later gets their number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - open until the process ends
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def main() -> int:
    """Check the packages, then hand over to the command line; returns the exit code.

    Until a command takes ctrl-c over, it ends the process at once: Python's own way, an exception anywhere,
    prints a traceback while modules are loaded, and was seen to get lost there.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    open_missing_streams()
    home = Path(__file__).resolve().parent
    foreign = shadowed_packages(home)
    if foreign:
        for name, origin in foreign:
            print(f"distill-tui: package '{name}' would come from {origin}, not from {home}", file=sys.stderr)
        print("  Take that directory out of PYTHONPATH (or unset PYTHONPATH) and try again.", file=sys.stderr)
        return 2
    from tui.cli import main as run

    return run(__version__)


if __name__ == "__main__":
    raise SystemExit(main())
