"""The reference of all commands in Markdown: `python -m tui.cli.docs > docs/commands.md`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tui.cli.parser import PROGRAM, Parser, command_parser
from tui.cli.subcommands import COMMANDS

_INTRODUCTION = f"""\
# Commands

Made from the table of commands (`python -m tui.cli.docs`). Options and positional arguments may
stand in any order; `--` ends the options. `{PROGRAM}` alone opens the app.

Results go to standard output, messages to standard error.

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | the run, check or comparison failed |
| 2 | wrong usage or input |
| 3 | an external system failed (file system, scheduler, Ray) |
"""


def reference() -> str:
    """Return the reference of all commands."""
    parts = [_INTRODUCTION]
    for command in COMMANDS:
        parser = command_parser(command)
        parts.append(f"\n## {command.name}\n\n{command.description}\n\n    {_usage(parser, command.name)}\n")
        rows = "".join(_rows(parser))
        parts.append(f"\n| Argument | |\n|---|---|\n{rows}" if rows else "")
        parts.append(f"\nExample: `{PROGRAM} {command.example}`\n")
    return "".join(parts)


def _usage(parser: Parser, name: str) -> str:
    positional = [_positional(action) for action in parser._get_positional_actions()]
    required = [_option(action) for action in parser._get_optional_actions() if action.required]
    return " ".join([PROGRAM, name, *positional, *required, "[OPTIONS]"])


def _positional(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} …]", "+": f"{name} …"}.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    name = action.option_strings[-1]
    return name if action.nargs == 0 else f"{name} {action.metavar or action.dest.upper()}"


def _rows(parser: Parser) -> Iterator[str]:
    for action in parser._actions:
        if action.dest == "help":
            continue
        name = _option(action) if action.option_strings else _positional(action)
        text = (action.help or "").replace("%%", "%")
        cells = [cell.replace("|", "\\|") for cell in (f"`{name}`", text)]
        yield f"| {cells[0]} | {cells[1]} |\n"


if __name__ == "__main__":
    print(reference(), end="")
