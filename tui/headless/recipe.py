"""`recipe`: reading and editing recipes. What the commands do is in `recipe_read` and `recipe_edit`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

READ, EDIT = "tui.headless.recipe_read", "tui.headless.recipe_edit"
KEY_HELP = 'dotted, list items by number: policy.scheduler.0.kwargs; a key with a dot in quotes: a."b.c"'


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the commands."""
    top = commands.add_parser(
        "recipe",
        help="read, edit, compare and explain recipes",
        description="FILE may be - (standard input).",
    )
    recipe = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_reading(recipe)
    _add_editing(recipe)


def _handler(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """Return a handler that imports its module when it runs."""

    def run(options: argparse.Namespace) -> int:
        from importlib import import_module

        code: int = getattr(import_module(module), name)(options)
        return code

    return run


def _add_reading(recipe: argparse._SubParsersAction[Any]) -> None:
    def add(name: str, text: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = recipe.add_parser(
            name, help=text, description=text.capitalize() + "."
        )
        command.set_defaults(handler=_handler(READ, name))
        if name != "diff":
            command.add_argument("file", metavar="FILE", help="the recipe")
        return command

    get = add("get", "print a value")
    get.add_argument("key", metavar="KEY", help=KEY_HELP)
    get.add_argument("--effective", action="store_true", help="after inheritance and interpolation")
    show = add("show", "print the recipe")
    which = show.add_mutually_exclusive_group()
    which.add_argument(
        "--effective", action="store_true", help="with all it inherits, interpolations resolved"
    )
    which.add_argument("--expand", action="store_true", help="with all it inherits, interpolations kept")
    diff = add("diff", "compare two recipes by their effective values")
    diff.add_argument("a", metavar="A", help="a recipe")
    diff.add_argument("b", metavar="B", help="another")
    resolve = add("resolve", "print what NeMo-RL's loader makes of the recipe")
    origin = add("origin", "tell where a value comes from and what follows it")
    origin.add_argument("key", metavar="KEY", help=KEY_HELP)
    lint = add("lint", "list unknown keys, and settings that the teacher does not follow")
    lint.add_argument(
        "--checkout",
        metavar="DIR",
        help="NeMo-RL, for its known keys; default: $NEMO_RL_ROOT, or the one that holds FILE",
    )
    lint.add_argument("--exit-zero", action="store_true", help="exit code 0 even if there are findings")
    for command in (show, resolve, origin, lint):
        command.add_argument("override", metavar="OVERRIDE", nargs="*", help="KEY=VALUE, +KEY=VALUE, ~KEY")
    for command in (get, diff, resolve, origin, lint):
        command.add_argument("--json", action="store_true", help="as one JSON object")


def _add_editing(recipe: argparse._SubParsersAction[Any]) -> None:
    def add(name: str, text: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = recipe.add_parser(
            name, help=text, description=text.capitalize() + "."
        )
        command.set_defaults(handler=_handler(EDIT, name))
        command.add_argument("file", metavar="FILE", help="the recipe, changed in place")
        return command

    change = add("set", "set values; nothing else of the file changes")
    change.add_argument("pairs", metavar="KEY VALUE", nargs="+", help=f"KEY: {KEY_HELP}; VALUE: as YAML")
    change.add_argument("--both", action="store_true", help="KEY goes below policy and below teacher")
    change.add_argument(
        "--copy", action="store_true", help="write out sections that come from a merge or an alias first"
    )
    insert = add("insert", "add a key, or an item to a list")
    insert.add_argument("parent", metavar="PARENT", help=f"{KEY_HELP}; . is the whole recipe")
    insert.add_argument("key", metavar="KEY", help="the new key, or the number of the new list item")
    insert.add_argument("value", metavar="VALUE", help="as YAML")
    unset = add("unset", "remove a key")
    unset.add_argument("key", metavar="KEY", help=KEY_HELP)
    unset.add_argument("--with-comments", action="store_true", help="with the comment lines above it")
    minimise = add("minimise", "remove what the recipe would inherit anyway")
    minimise.add_argument("--base", metavar="PARENT", help="inherit from this recipe instead")
    minimise.add_argument("--check", action="store_true", help="change nothing, exit 1 if there is something")
    minimise.add_argument(
        "--with-comments", action="store_true", help="with the comment lines above the keys"
    )
    comment = add("comment", "print, set or (with an empty TEXT) remove the comment of a key")
    comment.add_argument("key", metavar="KEY", help=KEY_HELP)
    comment.add_argument("text", metavar="TEXT", nargs="?", help="without the '#'")
    comment.add_argument(
        "--above", action="store_true", help="the lines above the key, not the one beside it"
    )
    for command in (change, insert, unset, minimise, comment):
        command.add_argument("--dry-run", action="store_true", help="print the diff and change nothing")
    for command in (minimise, comment):
        command.add_argument("--json", action="store_true", help="as one JSON object")
