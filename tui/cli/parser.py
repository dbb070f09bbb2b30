"""Parsers made from the command table.

Options and positional arguments may stand in any order. argparse's own `parse_intermixed_args` knows no
subcommands and takes `-5e-6` for an option, so arguments are sorted before argparse reads them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

from recipes.errors import Exit, ExplainedError
from tui.cli.converters import CONVERTERS
from tui.cli.spec import Argument, Group, Subcommand

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

PROGRAM = "distill-tui"

# Numbers as YAML writes them, and list items: no option begins like that.
_NEGATIVE_VALUE = re.compile(r"-(?:\d|\.\d|\.?inf|\.?nan|\s)", re.IGNORECASE)


class UsageError(ExplainedError):
    """The command line is wrong."""

    exit_code = Exit.USAGE


class Parser(argparse.ArgumentParser):
    """An argument parser for options in any order, whose errors suggest what was meant."""

    example = ""
    commands: Sequence[Subcommand | Group] = ()
    """What the help lists as commands."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - as argparse takes them
        super().__init__(**settings, allow_abbrev=False)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print help or the version; argparse would pass over an output that cannot be written."""
        from tui.headless.output import write_text

        write_text(cast("TextIO", file or sys.stderr), message)

    def parse_any_order(self, words: Sequence[str], namespace: argparse.Namespace) -> argparse.Namespace:
        """Parse options and positional arguments in any order; `--` ends the options."""
        options, values = self._sorted(words)
        # Without a value that looks like an option no `--` is needed.
        marker = ["--"] if any(value.startswith("-") and value != "-" for value in values) else []
        namespace, extra = self.parse_known_args([*options, *marker, *values], namespace)
        extra = [word for word in extra if word != "--"]
        if extra:
            self.error(f"unexpected argument '{extra[0]}'")
        return namespace

    def _sorted(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the options, each with its value as `--option=value`, and the positional arguments."""
        options: list[str] = []
        values: list[str] = []
        following = iter(words)
        for word in following:
            if word == "--":
                values += following
            elif not _is_option(word):
                values.append(word)
            else:
                name, equals, _ = word.partition("=")
                action = self._option_string_actions.get(name)
                if action is None:
                    self._refuse_option(name)
                if not equals and action.nargs != 0:
                    value = next(following, None)
                    if value is None or value == "--" or _is_option(value):
                        self._refuse_missing_value(name, action, value)
                    word = f"{name}={value}"
                options.append(word)
        return options, values

    def _refuse_option(self, name: str) -> NoReturn:
        guess = suggestion(name, self._option_string_actions)
        hint = "" if guess else "; put -- before values that begin with -"
        self.error(f"unknown option {name}{guess}{hint}")

    def _refuse_missing_value(self, name: str, action: argparse.Action, word: str | None) -> NoReturn:
        hint = f"; write {name}={word} if that is its value" if word not in (None, "--") else ""
        self.error(f"option {name} needs a value ({action.metavar or 'VALUE'}){hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401 - as argparse has it
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            message = f"invalid value '{value}' (expected {', '.join(names)}){suggestion(str(value), names)}"
            raise argparse.ArgumentError(action, message)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with what is wrong and where help is."""
        raise UsageError(message.removeprefix("argument "), fix=f"See `{self.prog} --help`.")

    def format_help(self) -> str:
        """Return the help, with the commands and an example at its end."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        if self.commands:
            formatter.start_section("commands")
            formatter.add_arguments(_help_row(command) for command in self.commands)
            formatter.end_section()
        formatter.add_text(self.epilog)
        example = f"\nexample:\n  {PROGRAM} {self.example}\n" if self.example else ""
        return formatter.format_help() + example


def suggestion(word: str, names: Iterable[str]) -> str:
    """Return `; did you mean …?` for the most similar name; empty if none is similar."""
    from difflib import get_close_matches

    shortened = [name for name in names if len(word) >= 4 and name.startswith(word)]
    close = shortened or get_close_matches(word, list(names), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def command_parser(command: Subcommand) -> Parser:
    """Return the parser of one command."""
    parser = Parser(prog=f"{PROGRAM} {command.name}", description=command.description)
    parser.example = command.example
    add_arguments(parser, command)
    return parser


def group_parser(group: Group, commands: Sequence[Subcommand]) -> Parser:
    """Return the parser that shows a group's help."""
    prog = f"{PROGRAM} {group.name}"
    description = " ".join(filter(None, (f"{group.help[:1].upper()}{group.help[1:]}.", group.description)))
    parser = Parser(prog=prog, usage=f"{prog} [-h] COMMAND …", description=description)
    parser.commands = commands
    parser.example = commands[0].example
    return parser


def add_arguments(parser: argparse.ArgumentParser, command: Subcommand) -> None:
    """Add a command's arguments to a parser."""
    groups: dict[str, Any] = {"": parser}
    more = resolve_reference(command.more_arguments)() if command.more_arguments else ()
    for argument in (*command.arguments, *more):
        if argument.group not in groups:
            groups[argument.group] = parser.add_mutually_exclusive_group()
        _add_argument(groups[argument.group], argument)


def resolve_reference(reference: str) -> Any:  # noqa: ANN401 - whatever the module has under that name
    """Import `module:name` and return what it names."""
    from importlib import import_module

    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def _add_argument(container: Any, argument: Argument) -> None:  # noqa: ANN401 - a parser or a group of one
    if argument.kind == "flag":
        container.add_argument(argument.name, action="store_true", help=argument.help)
        return
    settings: dict[str, Any] = {
        "metavar": argument.metavar or None,
        "help": argument.help.replace("%", "%%"),
        "type": CONVERTERS[argument.kind],
        "default": argument.default,
    }
    if argument.choices:
        settings["choices"] = argument.choices
    if argument.dest:
        settings["dest"] = argument.dest
    if argument.is_option:
        settings["required"] = argument.required
        if argument.repeat:
            settings |= {"action": "append", "default": []}
    elif argument.repeat:
        settings["nargs"] = argument.repeat
        if argument.repeat == "*":
            settings["default"] = []
    container.add_argument(argument.name, **settings)


def _help_row(command: Subcommand | Group) -> argparse.Action:
    """Return what makes argparse write a row of the help for a command."""
    name = command.name.rpartition(" ")[2]
    return argparse.Action((), dest=name, metavar=name, help=command.help)


def _is_option(word: str) -> bool:
    """Tell an option from a value; `-` alone, numbers and overrides (`~key`, `++key=…`) are values."""
    return word.startswith("-") and word != "-" and _NEGATIVE_VALUE.match(word) is None
