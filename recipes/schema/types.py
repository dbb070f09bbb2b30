"""A description of configuration classes as plain data: types, fields, classes, roots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from recipes.schema.root_conditions import LateRoot

TypeKind = Literal["any", "name", "union", "generic", "literal", "class", "annotated"]
ClassKind = Literal["typed_dict", "model", "dataclass", "enum"]

Constraint = tuple[str, object]
"""A constraint of `Annotated` or `Field` by its name in pydantic: ("gt", 0)."""


@dataclass(frozen=True, slots=True)
class Type:
    """A type expression.

    `any` accepts everything (`name` is its text where it could not be resolved), `name` is a type by its
    name (`int`, `None`, `pydantic.PositiveInt`), `generic` a container by its name with the types of its
    items, `literal` some values, `class` a class by its id, `annotated` a type with constraints.
    """

    kind: TypeKind
    name: str = ""
    items: tuple[Type, ...] = ()
    values: tuple[Any, ...] = ()

    def walk(self) -> Iterator[Type]:
        """Yield this type and all inside it."""
        yield self
        for item in self.items:
            yield from item.walk()

    def to_json(self) -> list[Any]:
        """Return the compact form: kind, name, items, values; without empty ends."""
        data: list[Any] = [self.kind, self.name, [item.to_json() for item in self.items], list(self.values)]
        while not data[-1]:
            data.pop()
        return data

    @classmethod
    def from_json(cls, data: list[Any]) -> Type:
        """Read what `to_json` wrote."""
        kind: TypeKind = data[0]
        name, items, values = _filled(data[1:], ("", [], []))
        pairs = kind == "annotated"
        return cls(
            kind,
            name,
            tuple(cls.from_json(item) for item in items),
            tuple(tuple(value) if pairs else value for value in values),
        )


ANY = Type("any")
NONE = Type("name", "None")


def union(types: list[Type]) -> Type:
    """Return the union of types, nested unions flattened and repeated ones once."""
    flat: dict[str, Type] = {}  # by their text: True and 1 are equal, but not the same literal
    for item in types:
        flat.update((repr(one), one) for one in (item.items if item.kind == "union" else (item,)))
    return next(iter(flat.values())) if len(flat) == 1 else Type("union", "", tuple(flat.values()))


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of a class. `default` is its text; `line` is where it is declared, 0 where unknown."""

    name: str
    type: Type
    required: bool
    default: str = ""
    doc: str = ""
    line: int = 0
    file: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class SchemaClass:
    """A configuration class with the fields of its bases.

    `unknown` says what of it could not be reconstructed. An `opaque` one accepts anything; its fields are
    known by name all the same. `members` are the values of an enumeration.
    """

    id: str
    kind: ClassKind
    fields: Mapping[str, SchemaField]
    config: Mapping[str, Any] = field(default_factory=dict)
    doc: str = ""
    file: str = ""
    line: int = 0
    opaque: bool = False
    unknown: str = ""
    members: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """The name of the class in its module."""
        return self.id.rpartition(":")[2]


@dataclass(frozen=True, slots=True)
class Description:
    """The schema of one driver.

    `root` is the class of the whole recipe. `validates`: the driver applies it before anything starts.
    `extensions` are subclasses that code casts a class to, by its id: their keys are known in its place.
    """

    driver: str
    root: str
    validates: bool
    classes: Mapping[str, SchemaClass]
    late: tuple[LateRoot, ...] = ()
    extensions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    release: str = ""

    def reachable(self, roots: Iterable[str]) -> dict[str, SchemaClass]:
        """Return classes and all that their fields name, by id."""
        reached: dict[str, SchemaClass] = {}
        waiting = list(roots)
        while waiting:
            id_ = waiting.pop()
            if id_ in reached or id_ not in self.classes:
                continue
            reached[id_] = self.classes[id_]
            for item in reached[id_].fields.values():
                waiting += [part.name for part in item.type.walk() if part.kind == "class"]
        return reached

    def incomplete(self, roots: Iterable[str]) -> list[SchemaClass]:
        """Return the reachable classes of which something could not be reconstructed."""
        return [item for item in self.reachable(roots).values() if item.unknown]


def to_json(description: Description) -> dict[str, Any]:
    """Return a description as JSON data."""
    return {
        "driver": description.driver,
        "root": description.root,
        "validates": description.validates,
        "release": description.release,
        "classes": {id_: _class_to_json(item) for id_, item in description.classes.items()},
        "late": [[late.class_id, late.path, list(late.conditions), late.where] for late in description.late],
        "extensions": {id_: list(more) for id_, more in description.extensions.items()},
    }


def from_json(data: Mapping[str, Any]) -> Description:
    """Read what `to_json` wrote."""
    return Description(
        data["driver"],
        data["root"],
        data["validates"],
        {id_: _class_from_json(id_, item) for id_, item in data["classes"].items()},
        tuple(LateRoot(id_, path, tuple(all_of), where) for id_, path, all_of, where in data["late"]),
        {id_: tuple(more) for id_, more in data["extensions"].items()},
        data["release"],
    )


def _class_to_json(item: SchemaClass) -> dict[str, Any]:
    fields = []
    for one in item.fields.values():
        row = [one.name, one.type.to_json(), int(one.required), one.default, one.doc, one.line]
        row += ["" if one.file == item.file else one.file, one.alias]
        while not row[-1]:
            row.pop()
        fields.append(row)
    data = {
        "kind": item.kind, "file": item.file, "line": item.line, "fields": fields, "doc": item.doc,
        "config": dict(item.config), "opaque": item.opaque, "unknown": item.unknown,
        "members": list(item.members),
    }  # fmt: skip
    return {name: value for name, value in data.items() if value}


def _filled(row: list[Any], defaults: tuple[Any, ...]) -> list[Any]:
    """Return a row with the ends that were left out."""
    return [*row, *defaults[len(row) :]]


def _class_from_json(id_: str, data: Mapping[str, Any]) -> SchemaClass:
    file = data.get("file", "")
    fields: dict[str, SchemaField] = {}
    for row in data.get("fields", ()):
        name, type_ = row[:2]
        required, default, doc, line, other, alias = _filled(row[2:], (0, "", "", 0, "", ""))
        fields[name] = SchemaField(
            name, Type.from_json(type_), bool(required), default, doc, line, other or file, alias
        )
    return SchemaClass(
        id_, data["kind"], fields, data.get("config", {}), data.get("doc", ""), file, data.get("line", 0),
        data.get("opaque", False), data.get("unknown", ""), tuple(data.get("members", ())),
    )  # fmt: skip
