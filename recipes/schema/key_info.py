"""Everything that the classes say of one key of a recipe: for completion, help, `lint` and `recipe set`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from recipes.schema.types import ANY, NONE, Description, SchemaClass, SchemaField, Type

_MAPPINGS = ("dict", "Mapping", "MutableMapping")


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key: `type` as text, `allowed` its values where they are few, in the recipe's spelling.

    `required` is whether every section that may hold the key must have it. `default`, `doc` and `where`
    (file:line in the checkout) are "" where the classes do not say.
    """

    key: str
    type: str
    allowed: tuple[str, ...]
    required: bool
    default: str
    doc: str
    where: str


def key_info(description: Description, key: str) -> KeyInfo | None:
    """Return what is known of a dotted key (list items by number); None for one that no class names."""
    fields = fields_at(description, key.split("."))
    if not fields:
        return None
    types = [part for item in fields for part in alternatives(item.type)]
    first = fields[0]
    return KeyInfo(
        key,
        " | ".join(dict.fromkeys(text_of(description, part) for part in types)),
        allowed_values(description, types),
        all(item.required for item in fields),
        next((item.default for item in fields if item.default), ""),
        next((item.doc for item in fields if item.doc), ""),
        f"{first.file}:{first.line}" if first.file and first.line else "",
    )


def keys_below(description: Description, key: str) -> list[str]:
    """Return the keys that the classes name below a dotted key; "" is the top."""
    steps = key.split(".") if key else []
    names = (item.name for owner in _sections(description, steps) for item in owner.fields.values())
    return list(dict.fromkeys(names))


def fields_at(description: Description, steps: list[str]) -> list[SchemaField]:
    """Return the fields that a path of keys may mean, one for each class that may stand there."""
    if not steps:
        return []
    owners = _sections(description, steps[:-1])
    return [owner.fields[steps[-1]] for owner in owners if steps[-1] in owner.fields]


def _sections(description: Description, steps: list[str]) -> list[SchemaClass]:
    """Return the classes that may stand at a path of keys."""
    types = [Type("class", description.root)]
    for step in steps:
        types = [below for type_ in types for below in _below(description, type_, step)]
    return list({owner.id: owner for type_ in types for owner in _classes(description, type_)}.values())


def _below(description: Description, type_: Type, step: str) -> Iterator[Type]:
    for part in alternatives(type_):
        if part.kind == "generic" and part.items:
            if part.name in _MAPPINGS:
                yield part.items[-1]
            elif step.isdigit():
                yield from part.items
    for owner in _classes(description, type_):
        if step in owner.fields:
            yield owner.fields[step].type


def _classes(description: Description, type_: Type) -> Iterator[SchemaClass]:
    """Yield the classes of a type, with the subclasses that code takes them for."""
    for part in alternatives(type_):
        if part.kind == "class":
            for id_ in (part.name, *description.extensions.get(part.name, ())):
                if id_ in description.classes:
                    yield description.classes[id_]


def alternatives(type_: Type) -> Iterator[Type]:
    """Yield what a type may be: the members of a union, without their constraints."""
    if type_.kind == "union" or type_.kind == "annotated":
        for item in type_.items:
            yield from alternatives(item)
    else:
        yield type_


def allowed_values(description: Description, types: Iterable[Type]) -> tuple[str, ...]:
    """Return the values that types allow, null last; nothing where others are allowed besides."""
    values: list[object] = []
    nullable = False
    for part in types:
        owner = description.classes.get(part.name) if part.kind == "class" else None
        if part == NONE:
            nullable = True
        elif part.kind == "literal":
            values += part.values
        elif part.kind == "name" and part.name == "bool":
            values += [True, False]
        elif owner is not None and owner.kind == "enum" and owner.members:
            values += owner.members
        else:
            return ()
    spelled = list(dict.fromkeys(map(_spelled, values)))
    return (*spelled, "null") if nullable and spelled else tuple(spelled)


def _spelled(value: object) -> str:
    return {"True": "true", "False": "false"}.get(str(value), str(value))


def text_of(description: Description, type_: Type) -> str:
    """Return a type as text, classes by their names."""
    if type_.kind == "union":
        return " | ".join(text_of(description, item) for item in type_.items)
    if type_.kind == "literal":
        return " | ".join(map(repr, type_.values))
    if type_.kind == "class":
        return type_.name.rpartition(":")[2]
    if type_.kind == "annotated":
        limits = ", ".join(f"{name}={value!r}" for name, value in type_.values)
        return f"{text_of(description, type_.items[0])} ({limits})"
    if type_.kind == "generic":
        inner = ", ".join(text_of(description, item) for item in type_.items)
        return f"{type_.name.rstrip('…')}[{inner}]" if inner else type_.name
    return type_.name.rpartition(".")[2] or ("Any" if type_ == ANY else type_.name)
