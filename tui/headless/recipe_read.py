"""`recipe get, show, diff, resolve, origin, lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recipes.compare import ABSENT, differences
from recipes.errors import Exit, RecipeError
from recipes.expand import expand
from recipes.inheritance import EffectiveRecipe, Resolver
from recipes.keys import KeyMissingError, format_key, parse_key
from recipes.lint import teacher_drift, unknown_keys
from recipes.origins import chain_of, followers_of, replaced_by
from recipes.values import EMPTY
from recipes.yaml.typed import writable, yaml_text
from tui.headless.output import SCHEMA, print_json, say, write_document
from tui.headless.output import show as show_line
from tui.headless.recipe_files import (
    checkout_of,
    jsonable,
    open_document,
    open_readable,
    resolve_document,
    similar_key_fix,
    written_keys,
)

if TYPE_CHECKING:
    import argparse

    from recipes.document import Document
    from recipes.inheritance import Origin
    from recipes.origins import Link
    from recipes.values import Plain


def get(options: argparse.Namespace) -> int:
    """Print a value as YAML or JSON."""
    document = open_readable(options.file)
    if options.effective:
        value = _value(resolve_document(document, [], Resolver()), options.key)
    else:
        value = _written(document, options.key)
    if options.json:
        print_json(SCHEMA | {"key": options.key, "value": jsonable(value)})
    else:
        text = yaml_text(writable(value)) if options.effective else document.yaml(options.key)
        write_document(text + "\n")
    return 0


def _written(document: Document, key: str) -> Plain:
    try:
        return document.get(key)
    except KeyMissingError as error:
        if document.has("defaults"):
            error.fix = _whether_inherited(document, key)
        error.fix = error.fix or similar_key_fix(key, written_keys(document))
        raise


def _whether_inherited(document: Document, key: str) -> str:
    """Return where a key may be that the file itself does not have; "" where its parents have none."""
    try:
        recipe = resolve_document(document, [], Resolver())
    except RecipeError:
        return "A parent may have it: --effective looks there too."
    if recipe.locate(parse_key(key)) is not None:
        return "A parent has it: --effective shows it."
    return similar_key_fix(key, recipe.leaf_keys())


def _value(recipe: EffectiveRecipe, key: str) -> Any:  # noqa: ANN401 - a recipe holds anything
    missing = object()
    value = recipe.get_public(key, missing)
    if value is missing:
        fix = similar_key_fix(key, recipe.leaf_keys())
        raise KeyMissingError(f"The effective recipe has no key '{key}'", where=recipe.path, fix=fix)
    return value


def show(options: argparse.Namespace) -> int:
    """Print the recipe's text, or all that it means."""
    document = open_document(options.file)
    if not (options.effective or options.expand or options.override):
        write_document(document.text)
        return 0
    resolver = Resolver()
    recipe = resolve_document(document, options.override, resolver)
    write_document(expand(recipe, resolver.reader, document.revision.tree, resolved=not options.expand))
    return 0


def diff(options: argparse.Namespace) -> int:
    """Compare two recipes by their effective values."""
    resolver = Resolver()
    a, b = (resolve_document(open_document(file), [], resolver).public for file in (options.a, options.b))
    changes = list(differences(a, b))
    if options.json:
        changed = [item for item in changes if ABSENT not in (item.a, item.b)]
        print_json(
            SCHEMA
            | {
                "changed": [
                    {"key": item.key, "a": jsonable(item.a), "b": jsonable(item.b)} for item in changed
                ],
                "only_a": [
                    {"key": item.key, "value": jsonable(item.a)} for item in changes if item.b is ABSENT
                ],
                "only_b": [
                    {"key": item.key, "value": jsonable(item.b)} for item in changes if item.a is ABSENT
                ],
            }
        )
        return 0
    for item in changes:
        sides = ("" if side is ABSENT else _one_line(side) for side in (item.a, item.b))
        show_line(f"{item.key}: {' -> '.join(side or '(absent)' for side in sides)}")
    return 0


def _one_line(value: object) -> str:
    from recipes.yaml.write import flow_text

    return flow_text(writable(value))


def resolve(options: argparse.Namespace) -> int:
    """Print the effective recipe."""
    recipe = resolve_document(open_document(options.file), options.override, Resolver())
    if options.json:
        print_json(SCHEMA | {"recipe": jsonable(recipe.public)})
    else:
        values: Any = recipe.public
        write_document(yaml_text(writable(values)) + "\n")
    return 0


def origin(options: argparse.Namespace) -> int:
    """Print where a value comes from and what else changes with it."""
    recipe = resolve_document(open_document(options.file), options.override, Resolver())
    value = _value(recipe, options.key)
    links = chain_of(recipe, options.key)
    replaced = replaced_by(recipe, options.key)
    followers = followers_of(recipe, options.key)
    own = recipe.origin(options.key)
    assert own is not None
    if options.json:
        print_json(
            SCHEMA
            | {
                "key": format_key(parse_key(options.key)),
                "value": jsonable(value),
                "origin": _origin(own),
                "chain": [_link(link) for link in links],
                "replaced": [_link(link) for link in replaced],
                "followers": followers,
            }
        )
        return 0
    show_line(f"{options.key} = {_one_line(value)}")
    for link in links:
        position = f"{link.origin.file}:{link.origin.line}"
        show_line(f"  {link.origin.how}: {position}: {link.key} = {_one_line(link.written)}")
    for link in replaced:
        show_line(f"  replaces {link.origin.file}:{link.origin.line}: {_one_line(link.written)}")
    for key in followers:
        show_line(f"  followed by {key}")
    return 0


def _origin(origin: Origin) -> dict[str, object]:
    return {"file": origin.file, "line": origin.line, "how": origin.how}


def _link(link: Link) -> dict[str, object]:
    return {"key": link.key, **_origin(link.origin), "written": jsonable(link.written)}


def lint(options: argparse.Namespace) -> int:
    """List unknown keys and teacher drift; exit code 1 if there is any, unless 0 is asked for."""
    document = open_document(options.file)
    recipe = resolve_document(document, options.override, Resolver())
    checkout = checkout_of(options.checkout, document)
    unknown = unknown_keys(recipe, document.revision.values or EMPTY, checkout)
    drift = teacher_drift(recipe)
    code = int(Exit.FAILED) if (unknown or drift) and not options.exit_zero else 0
    if options.json:
        print_json(
            SCHEMA
            | {
                "unknown": [
                    {"key": item.key, "line": item.line, "did_you_mean": item.did_you_mean or None}
                    for item in unknown
                ],
                "drift": [
                    {
                        "key": item.key,
                        "policy": jsonable(item.policy),
                        "teacher": jsonable(item.teacher),
                        "file": item.file,
                        "line": item.line,
                    }
                    for item in drift
                ],
            }
        )
        return code
    for item in unknown:
        guess = f"; did you mean {item.did_you_mean}?" if item.did_you_mean else ""
        show_line(f"{options.file}:{item.line}: unknown key {item.key}{guess}")
    for moved in drift:
        student, teacher = _one_line(moved.policy), _one_line(moved.teacher)
        values = f"policy.{moved.key} is {student}, teacher.{moved.key} is still {teacher}"
        show_line(f"{moved.file}:{moved.line}: {values}")
    if drift:
        say("To set one for both: `recipe set FILE --both KEY VALUE`, with KEY relative to policy.")
    if not unknown and not drift:
        say("no unknown keys; the teacher follows the policy")
    return code
