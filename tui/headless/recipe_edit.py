"""`recipe set, insert, unset, minimise, comment`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recipes.advice import advice
from recipes.compare import minimise as minimise_document
from recipes.compare import rebase
from recipes.errors import Exit, RecipeError
from recipes.inheritance import Resolver
from recipes.keys import format_key, parse_key
from recipes.lint import STUDENT, TEACHER, set_in_both
from recipes.yaml.typed import read_typed
from tui.headless.output import print_json, say
from tui.headless.recipe_files import SCHEMA, checkout_of, open_document, store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from recipes.document import Change, Document


def set(options: argparse.Namespace) -> int:  # noqa: A001 - the command's name
    """Set values; nothing else of the file changes."""
    pairs: list[str] = options.pairs
    if len(pairs) % 2:
        raise RecipeError(f"'{pairs[-1]}' has no value", fix="Give KEY VALUE [KEY VALUE ...].")
    document = open_document(options.file)
    changes: list[Change] = []
    with document.group():
        for key, text in zip(pairs[::2], pairs[1::2], strict=True):
            typed = read_typed(text)
            if options.both:
                set_in_both(document, key, typed.value, spelling=typed.spelling)
            else:
                changes.append(document.set(key, typed.value, spelling=typed.spelling, copy=options.copy))
    store(document, dry_run=options.dry_run)
    _tell(changes)
    _advise(document, pairs[::2], both=options.both)
    return 0


def _advise(document: Document, keys: Sequence[str], *, both: bool) -> None:
    """Warn of set keys that NeMo-RL does not know, and of values that it will refuse."""
    sections = (f"{STUDENT}.", f"{TEACHER}.") if both else ("",)
    named = [section + key for key in keys for section in sections]
    for line in advice(document, named, Resolver(), checkout_of(None, document)):
        say(f"warning: {line}")


def _tell(changes: Iterable[Change]) -> None:
    """Say which other keys changed because they share the edited text."""
    for change in changes:
        if change.also:
            say(f"With {change.key} also change (an anchor hands it on): {', '.join(change.also)}")


def insert(options: argparse.Namespace) -> int:
    """Add a key or a list item."""
    document = open_document(options.file)
    typed = read_typed(options.value)
    parent = parse_key(options.parent)
    if document.has(parent) and isinstance(document.get(parent), list):
        if not options.key.isdigit():
            raise RecipeError(f"'{options.parent}' is a list", fix="Give the new item's number as KEY.")
        change = document.insert_item(parent, int(options.key), typed.value, spelling=typed.spelling)
    else:
        (key,) = parse_key(options.key) if len(parse_key(options.key)) == 1 else (options.key,)
        change = document.insert(parent, key, typed.value, spelling=typed.spelling)
    store(document, dry_run=options.dry_run)
    _tell([change])
    return 0


def unset(options: argparse.Namespace) -> int:
    """Remove a key."""
    document = open_document(options.file)
    change = document.delete(options.key, with_comments=options.with_comments)
    store(document, dry_run=options.dry_run)
    _tell([change])
    return 0


def minimise(options: argparse.Namespace) -> int:
    """Remove what the recipe would inherit anyway."""
    document = open_document(options.file)
    resolver = Resolver()
    with document.group():
        if options.base:
            rebase(document, resolver, Path(options.base))
        removed = minimise_document(document, resolver, with_comments=options.with_comments)
    if not options.check:
        store(document, dry_run=options.dry_run)
    if options.json:
        print_json(SCHEMA | {"removed": removed})
    elif options.check or not options.dry_run:
        for key in removed:
            say(f"{'Redundant' if options.check else 'Removed'}: {key}")
    return int(Exit.FAILED) if options.check and removed else 0


def comment(options: argparse.Namespace) -> int:
    """Print, set or remove the comment of a key."""
    document = open_document(options.file)
    if options.text is not None:
        document.set_comment(options.key, options.text, above=options.above)
        store(document, dry_run=options.dry_run)
        return 0
    found = document.comment(options.key)
    if options.json:
        key = format_key(parse_key(options.key))
        print_json(SCHEMA | {"key": key, "above": found.above, "beside": found.beside})
        return 0
    texts = [found.above] if options.above else [found.above, found.beside]
    for text in filter(None, texts):
        print(text)
    return 0
