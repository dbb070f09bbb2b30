"""The command line: `distill-tui` opens the app; with a command, it does one thing without it.

Nothing heavy is imported here: `--help` and `--version` must answer at once on a cold file system.
A command's module is imported when it runs. `subcommands` lists the commands, `parser` turns a row into
a parser.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NoReturn

from recipes.errors import Exit, ExplainedError
from tui.cli.parser import (
    PROGRAM,
    Parser,
    UsageError,
    command_parser,
    group_parser,
    resolve_reference,
    suggestion,
)
from tui.cli.spec import HERE, HOST, NAMED_HOST, Group, Subcommand
from tui.cli.subcommands import COMMANDS, GROUPS

DESCRIPTION = (
    "Configure, submit and watch NeMo-RL on-policy distillation runs. Without a command, open the app."
)
EPILOG = (
    "Results go to standard output, messages to standard error. Exit codes: 0 success, "
    "1 the run, check or comparison failed, 2 wrong usage or input, "
    "3 an external system failed (file system, scheduler, Ray)."
)
_ERROR_CHARS = 1000
"""Characters of a line of an error, which may quote what was given."""
OPEN_APP = "tui.cli:open_app"
_WITH_OWN_DEADLINE = ("tui.headless.doctor:run",)
"""Commands that examine in a child process (`launcher.doctor.isolation`), which threads would prevent."""


def main(version: str, arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from tui.headless.output import finish

    try:
        return finish(_run(version, sys.argv[1:] if arguments is None else arguments))
    except SystemExit as stop:  # help and version were printed
        raise SystemExit(finish(int(stop.code or 0))) from None


def _run(version: str, arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code, whatever it raised."""
    try:
        options = parse(version, arguments)
        with _file_call_watch(options.handler), _wait_notice():
            return int(resolve_reference(options.handler)(options))
    except ExplainedError as error:
        _print_error(str(error))
        return int(error.exit_code)
    except BrokenPipeError:
        return 141  # the reader of our output has left
    except (RecursionError, MemoryError) as error:
        _print_error(f"the input is nested too deeply or too large ({type(error).__name__})")
        return int(Exit.USAGE)
    except OSError as error:
        at = f": {error.filename}" if error.filename else ""
        _print_error(_removed_directory(error) or f"{error.strerror or error}{at}")
        return int(Exit.OUTSIDE)


def _removed_directory(error: OSError) -> str:
    """Return what to do where the current directory was removed; empty where it is there."""
    if not isinstance(error, FileNotFoundError) or error.filename:
        return ""
    try:
        os.getcwd()  # pathlib would ask the same
    except OSError:
        return "the current directory was removed\n  Change to one that exists, and try again."
    return ""


def _file_call_watch(handler: str) -> AbstractContextManager[None]:
    if handler in _WITH_OWN_DEADLINE:
        return nullcontext()
    from tui.headless.unanswered import FileCallWatch

    return FileCallWatch()


def _wait_notice() -> AbstractContextManager[None]:
    if not sys.stderr.isatty():
        return nullcontext()
    from tui.headless.wait_notice import WaitNotice

    return WaitNotice()


def parse(version: str, words: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line; `handler` names the function that takes them.

    Raises:
        UsageError: the command line is wrong.
    """
    first = _first_command(words)
    top = top_parser(version)
    options = top.parse_any_order(words[:first], argparse.Namespace(handler=OPEN_APP))
    if first == len(words):
        options.host = _host_of(options.host or _usual_host())
        return options
    command, rest = _find_command(top, words[first:])
    options.handler, before = command.handler, options.host
    takes_host = any(argument.name == HOST.name for argument in command.arguments)
    if before is not None and not takes_host:
        raise UsageError(
            f"{command.name}: takes no --host",
            fix=f"Give a file as {before}:PATH." if command.group == "recipe" else "",
        )
    if takes_host and not any(word.partition("=")[0] == HOST.name for word in rest):
        host = before or (None if NAMED_HOST in command.arguments else _usual_host())
        rest = [*([f"{HOST.name}={host}"] if host else []), *rest]
    options = command_parser(command).parse_any_order(rest, options)
    options.host = _host_of(options.host)
    return options


def _first_command(words: Sequence[str]) -> int:
    """Return the index of the command: of the first word that is neither an option nor its value."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] == HOST.name else 1
    return min(index, len(words))


def _host_of(given: str | None) -> str | None:
    """Return the host that a command works on; None for this machine."""
    return None if given in (HERE, "") else given


def _usual_host() -> str | None:
    """Return the host of commands that name none, as the settings have it.

    Raises:
        InputError: the settings cannot be read.
        TimeoutError: their file system does not answer.
    """
    from launcher.base_directories import config_root
    from recipes.reading import kind_of

    if kind_of(config_root() / "settings.toml") != "file":  # the settings' own module takes 20 ms
        return None
    from launcher.settings import load_settings

    return load_settings().host or None


def top_parser(version: str) -> Parser:
    """Return the parser of what stands before the command, and of the help that lists the commands."""
    usage = f"{PROGRAM} [-h] [--version] [--no-mouse] [--host NAME] [COMMAND …]"
    top = Parser(prog=PROGRAM, usage=usage, description=DESCRIPTION, epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"{PROGRAM} {version}")
    top.add_argument("--no-mouse", action="store_true", help="do not capture the mouse")
    top.add_argument("--host", metavar="NAME", help=HOST.help)
    top.commands = top_level()
    top.example = COMMANDS[0].example
    return top


def top_level() -> list[Subcommand | Group]:
    """Return the commands and groups of commands, in the order of the table."""
    groups = {group.name: group for group in GROUPS}
    rows: dict[str, Subcommand | Group] = {}
    for command in COMMANDS:
        rows.setdefault(command.group or command.name, groups.get(command.group, command))
    return list(rows.values())


def _find_command(top: Parser, words: Sequence[str]) -> tuple[Subcommand, Sequence[str]]:
    """Return the command that the first one or two words name, and the words after them."""
    by_name = {command.name: command for command in COMMANDS}
    if words[0] in by_name:
        return by_name[words[0]], words[1:]
    group = next((group for group in GROUPS if group.name == words[0]), None)
    if group is None:
        _refuse_command(top, words[0])
    commands = [command for command in COMMANDS if command.group == group.name]
    parser = group_parser(group, commands)
    names = [command.name.rpartition(" ")[2] for command in commands]
    if len(words) == 1:
        parser.error(f"a command is required: {', '.join(names)}")
    if words[1].startswith("-"):
        parser.parse_any_order(words[1:2], argparse.Namespace())
    if words[1] not in names:
        parser.error(f"unknown command '{words[1]}'{suggestion(words[1], names)}")
    return by_name[f"{group.name} {words[1]}"], words[2:]


def _refuse_command(top: Parser, word: str) -> NoReturn:
    by_last_word = {command.name.rpartition(" ")[2]: command.name for command in COMMANDS}
    if by_last_word.get(word, word) != word:
        top.error(f"unknown command '{word}'; did you mean `{by_last_word[word]}`?")
    named = _command_for(word)
    if named:
        raise UsageError(f"unknown command '{word}'", fix=named)
    top.error(f"unknown command '{word}'{suggestion(word, [row.name for row in top.commands])}")


def _command_for(word: str) -> str:
    """Return which commands take a path or a job that stands where a command is expected; "" for a word."""
    if word.isdecimal():
        return f"Of a job: `{PROGRAM} watch {word}`."
    if os.path.isdir(word):
        return f"Of a directory of logs: `{PROGRAM} watch {word}`."
    if word.endswith((".yaml", ".yml")):
        return f"Of a recipe: `{PROGRAM} edit {word}`, or `{PROGRAM} check {word}`."
    if os.path.isfile(word):
        return f"Of a log: `{PROGRAM} watch {word}`; of a recipe: `{PROGRAM} edit {word}`."
    return f"There is no such file: '{word}'." if os.sep in word else ""


def _print_error(text: str) -> None:
    from tui.headless.output import say

    lines = (line if len(line) <= _ERROR_CHARS else f"{line[:_ERROR_CHARS]} …" for line in text.split("\n"))
    say(f"{PROGRAM}: " + "\n".join(lines))


def open_app(options: argparse.Namespace) -> int:
    """Open the app on the list of runs."""
    from tui.terminal import require_terminal

    require_terminal()
    gc.disable()  # until the first paint
    from launcher.paths import runs_root
    from tui.app import run_app

    return run_app(runs_root=runs_root(), mouse=not options.no_mouse, host=options.host or "")
