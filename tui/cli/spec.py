"""Types of the command table: a command and its arguments, as data.

Named tuples instead of dataclasses: importing `dataclasses` (with `inspect`) would add 15 ms to every start.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["flag", "text", "count", "number", "amount", "time"]
"""What an argument takes: nothing, any text, a whole number >= 1, one >= 0, a number > 0, a time limit."""


class Argument(NamedTuple):
    """One positional argument, or one option if its name begins with `--`."""

    name: str
    metavar: str = ""
    help: str = ""
    kind: Kind = "text"
    repeat: Literal["", "?", "*", "+"] = ""
    """How often it may stand: `?` at most once, `*` any number, `+` at least once; an option: `*` or not."""
    default: int | str | None = None
    choices: tuple[str, ...] = ()
    group: str = ""
    """Options of one group exclude each other."""
    required: bool = False
    """Whether an option must be given."""
    dest: str = ""
    """Attribute of the parsed options; empty: as argparse derives it from the name."""

    @property
    def is_option(self) -> bool:
        """Whether it is an option rather than a positional argument."""
        return self.name.startswith("--")


class Subcommand(NamedTuple):
    """One command. Its module is imported only when it runs."""

    name: str
    """With the group in front where it has one: `recipe get`."""
    help: str
    """One line for lists of commands: lower case, no full stop."""
    description: str
    handler: str
    """`module:function`, a function of the parsed options that returns the exit code."""
    arguments: tuple[Argument, ...]
    example: str
    """A command line that works, without the program's name."""
    more_arguments: str = ""
    """`module:function` that returns further arguments, where importing them at every start would cost."""

    @property
    def group(self) -> str:
        """First word of a two-word name; empty for a command of one word."""
        return self.name.rpartition(" ")[0]


class Group(NamedTuple):
    """A first word that several commands share."""

    name: str
    help: str
    description: str


def flag(name: str, help: str, *, group: str = "") -> Argument:  # noqa: A002 - argparse's own word
    """Return an option that takes no value."""
    return Argument(name, help=help, kind="flag", group=group)


JSON = flag("--json", "print one JSON object")
HERE = "here"
"""Name of this machine, where the settings name another one (`hosts.default`)."""
HOST = Argument(
    "--host", "NAME", "machine that has all files and runs, over SSH: a name of ~/.ssh/config, or USER@HOST"
)
NAMED_HOST = HOST._replace(help="machine whose settings are meant, over SSH; `hosts.default` does not count")
"""For commands on which the setting `hosts.default` has no effect."""
NO_MOUSE = flag("--no-mouse", "do not capture the mouse")
DRY_RUN = flag("--dry-run", "print the diff, change nothing")
ACCEPT_CHANGES = flag(
    "--accept-changes", "save even if the file's owner, group, mode or access list changes by that"
)
OVERRIDES = Argument(
    "override", "OVERRIDE", "KEY=VALUE, +KEY=VALUE, ++KEY=VALUE or ~KEY, as in Hydra", repeat="*"
)
SET_FIELD = Argument(
    "--set",
    "FIELD=VALUE",
    "set a field of the wizard, by its name in docs/wizard.md",
    repeat="*",
    dest="assignments",
)
SET_BOTH = Argument(
    "--set-both", "FIELD=VALUE", "set a field for student and teacher", repeat="*", dest="assignments_both"
)
TRUST = flag("--trust", "act on a run that another user owns or can write, without a question")
