"""Handlers of `recipe set, insert, unset, minimise, comment, comment-out`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from launcher.errors import InputError
from launcher.text import clean
from recipes.advice import advice
from recipes.compare import minimise as minimise_document
from recipes.compare import rebase
from recipes.document import Change, Document
from recipes.editing.here import add_here
from recipes.errors import Exit, FilePosition, RecipeError
from recipes.inheritance import Resolver
from recipes.keys import format_key, list_index, parse_key
from recipes.lint import STUDENT, TEACHER, set_in_both
from recipes.remote_path import on_machine_of
from recipes.yaml.typed import read_typed, writable
from recipes.yaml.write import flow_text
from tui.headless.output import SCHEMA, print_json, say, show
from tui.headless.recipe_files import checkout_of, edited_file, open_document, resolve_document

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence


_EQUALS = re.compile(r'(?:[^="]|"(?:[^"\\]|\\.)*")*=')
"""Pattern of a key, quoted steps included, up to its '='."""


def set(options: argparse.Namespace) -> int:  # noqa: A001 - the command's name
    """Set values; nothing else of the file changes."""
    with edited_file(options) as file:
        document = file.document
        with document.group():
            edits = _set_values(document, options)
        warnings = _warnings(document, [edit.change.key for edit in edits])
        file.save()
    for edit in edits:
        say(_described(document, edit))
    _report_shared(edit.change for edit in edits)
    for line in warnings:
        say(line)
    return 0


def _set_values(document: Document, options: argparse.Namespace) -> list[AppliedEdit]:
    edits: list[AppliedEdit] = []
    for key, text in key_values(options.pairs):
        typed = read_typed(text)
        keys = [f"{section}.{key}" for section in (STUDENT, TEACHER)] if options.both else [key]
        before = [_line_of(document, name) for name in keys]
        if options.both:
            set_in_both(document, key, typed.value, spelling=typed.spelling)
            changes = [Change(name, ()) for name in keys]
        else:
            changes = [document.set(key, typed.value, spelling=typed.spelling, copy=options.copy)]
        edits += map(AppliedEdit, changes, before)
    return edits


def _warnings(document: Document, keys: Sequence[str]) -> list[str]:
    """Return a line for each set key that NeMo-RL does not know, and each value that it will refuse.

    Before the file is saved: keys of a stock recipe count as known, and it may be the edited file.
    """
    lines = advice(document, keys, Resolver(), checkout_of(None, document))
    return [f"warning: {line}" for line in lines]


class AppliedEdit(NamedTuple):
    """Edit that was made, and the key's text before it ("" where it was not there)."""

    change: Change
    before: str


def key_values(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Split `KEY VALUE ...` or `KEY=VALUE ...` into pairs; raises `RecipeError` for a mixture of both.

    The first argument decides. A key that holds '=' is written in quotes.
    """
    mixed = "Give either KEY VALUE [KEY VALUE ...] or KEY=VALUE [KEY=VALUE ...]; quote a key that holds '='."
    joined = [_EQUALS.match(argument) for argument in arguments]
    if joined[0]:
        for argument, match in zip(arguments, joined, strict=True):
            if match is None:
                raise RecipeError(f"'{argument}' is not KEY=VALUE, as '{arguments[0]}' is", fix=mixed)
        return [
            (match[0][:-1], argument[match.end() :])
            for argument, match in zip(arguments, joined, strict=True)
            if match
        ]
    for argument, match in zip(arguments[::2], joined[::2], strict=True):
        if match:
            raise RecipeError(f"'{argument}' stands where a KEY is expected", fix=mixed)
    if len(arguments) % 2:
        raise RecipeError(f"'{arguments[-1]}' has no value", fix=mixed)
    return list(zip(arguments[::2], arguments[1::2], strict=True))


def _line_of(document: Document, key: str) -> str:
    """Return a value on one line, "" if there is none."""
    if not document.has(key):
        return ""
    value = document.get(key)
    return flow_text(writable(value)) if isinstance(value, dict | list) else document.yaml(key)


def _described(document: Document, edit: AppliedEdit) -> str:
    """Return one line about an edit: key, old and new value, file and line."""
    key, new = edit.change.key, _line_of(document, edit.change.key)
    place = clean(str(FilePosition(document.name, document.line(key))))
    if edit.before == new:
        return f"{key}: {new} (unchanged, {place})"
    return f"{key}: {edit.before or '(not set)'} -> {new} ({place})"


def _report_shared(changes: Iterable[Change]) -> None:
    """Print which other keys changed because they share the edited text."""
    for change in changes:
        if change.also:
            say(f"{change.key} is anchored; these keys change with it: {', '.join(change.also)}")


def insert(options: argparse.Namespace) -> int:
    """Add a key or a list item."""
    with edited_file(options) as file:
        document = file.document
        if options.value is None:
            _insert_at(document, options.parent, options.key)
            change = Change(format_key(parse_key(options.parent)), ())
        else:
            change = _inserted(document, options)
        warnings = _warnings(document, [change.key])
        file.save()
    say(_described(document, AppliedEdit(change, "")))
    _report_shared([change])
    for line in warnings:
        say(line)
    return 0


def _inserted(document: Document, options: argparse.Namespace) -> Change:
    typed = read_typed(options.value)
    parent = parse_key(options.parent)
    if document.has(parent) and isinstance(document.get(parent), list):
        index = list_index(options.key)
        if index is None:
            raise RecipeError(f"'{options.parent}' is a list", fix="Give the new item's number as KEY.")
        return document.insert_item(parent, index, typed.value, spelling=typed.spelling)
    (key,) = parse_key(options.key) if len(parse_key(options.key)) == 1 else (options.key,)
    return document.insert(parent, key, typed.value, spelling=typed.spelling)


def _insert_at(document: Document, key: str, text: str) -> None:
    """Add a key by its whole path; sections that are not there are made."""
    typed = read_typed(text)
    try:
        inherited = resolve_document(document, (), Resolver())
    except RecipeError:
        inherited = None  # whoever runs or checks the recipe will be told
    add_here(document, key, typed.value, spelling=typed.spelling, inherited=inherited)


def comment_out(options: argparse.Namespace) -> int:
    """Comment out a key, or take it back in."""
    with edited_file(options) as file:
        document = file.document
        if options.line is not None and not options.undo:
            raise InputError(
                "--line says which line --undo takes back in", fix="Add --undo, or leave it out."
            )
        if options.undo:
            change = document.comment_in(options.key, options.line)
        else:
            change = document.comment_out(options.key)
        file.save()
    _report_shared([change])
    return 0


def unset(options: argparse.Namespace) -> int:
    """Remove a key."""
    with edited_file(options) as file:
        change = file.document.delete(options.key, with_comments=options.with_comments)
        file.save()
    _report_shared([change])
    return 0


def _beside(document: Document, text: str) -> Path:
    """Return the path that a text names on the machine of a recipe."""
    return on_machine_of(document.path, text) if document.path is not None else Path(text)


def minimise(options: argparse.Namespace) -> int:
    """Remove what the recipe would inherit anyway."""
    resolver = Resolver()
    with edited_file(options) as file:
        document = file.document
        with document.group():
            if options.base:
                rebase(document, resolver, _beside(document, options.base))
            removed = minimise_document(document, resolver, with_comments=options.with_comments)
        if not options.check:
            file.save()
    if options.json:
        print_json(SCHEMA | {"removed": removed})
    elif options.check or not options.dry_run:
        for key in removed:
            say(f"{'Redundant' if options.check else 'Removed'}: {key}")
    return int(Exit.FAILED) if options.check and removed else 0


def comment(options: argparse.Namespace) -> int:
    """Print, set or remove the comment of a key."""
    if options.text is not None:
        with edited_file(options) as file:
            file.document.set_comment(options.key, options.text, above=options.above)
            file.save()
        return 0
    comment = open_document(options.file).comment(options.key)
    if options.json:
        key = format_key(parse_key(options.key))
        print_json(SCHEMA | {"key": key, "above": comment.above, "beside": comment.beside})
        return 0
    texts = [comment.above] if options.above else [comment.above, comment.beside]
    for text in filter(None, texts):
        show(text)
    return 0
