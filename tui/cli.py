"""The command line: `distill-tui` opens the app; with a command, it does one thing without it.

Nothing heavy is imported here: `--help` and `--version` must answer at once on a cold file system.
A command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from recipes.errors import Exit, ExplainedError
from tui.headless import (
    check,
    demo,
    detect,
    launcher,
    new,
    recipe,
    report,
    resume,
    runs,
    scale,
    submit,
    watch,
)

DESCRIPTION = (
    "Configure, submit and watch NeMo-RL on-policy distillation runs. Without a command, open the app."
)
EPILOG = (
    "Results go to standard output, messages to standard error. "
    "Exit codes: 0 fine, 1 it failed, 2 wrong usage, 3 the outside failed."
)


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors end with exit code 2 and say where help is."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Print the message and leave."""
        self.exit(Exit.USAGE, f"distill-tui: {message}\n  `{self.prog} --help` tells how it is used.\n")


def parser(version: str) -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = Parser(prog="distill-tui", description=DESCRIPTION, epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"distill-tui {version}")
    top.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    top.set_defaults(handler=_open_app)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for module in (
        demo, new, detect, check, scale, submit, resume, watch, report, runs, recipe, launcher
    ):  # fmt: skip
        module.add_parsers(commands)
    return top


def main(version: str, arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = parser(version).parse_args(arguments)
    try:
        code: int = options.handler(options)
        sys.stdout.flush()
    except ExplainedError as error:
        print(f"distill-tui: {error}", file=sys.stderr)
        return int(error.exit_code)
    except BrokenPipeError:
        # The reader of our output has left; Python would complain once more when it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _open_app(options: argparse.Namespace) -> int:
    from tui.headless.tty import require_terminal

    require_terminal()
    from launcher.paths import runs_root
    from tui.app import run_app

    return run_app(runs_root=runs_root(), mouse=not options.no_mouse)
