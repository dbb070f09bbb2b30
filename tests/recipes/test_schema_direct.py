"""Core schemas that are written directly, and values accepted without pydantic, compared with pydantic."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import SchemaValidator, ValidationError

from recipes.schema.build import Builder
from recipes.schema.core_schema import as_data, restored
from recipes.schema.direct import DirectBuilder, NotDirectError
from recipes.schema.quick import surely_accepts
from recipes.schema.roots import read_description
from recipes.schema.types import ANY, NONE, ClassKind, Description, SchemaClass, SchemaField, Type, union

TREES = ("v0.4.0", "v0.5.0", "v0.6.0", "v0.7.0", "main-7ea279ab")
DRIVERS = ("distillation", "grpo", "sft", "dpo")


def inlined(node: Any, shared: dict[str, Any]) -> Any:
    """Return a core schema without references, and with the alternatives of unions in one order."""
    if isinstance(node, list):
        return [inlined(item, shared) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "definitions":
        return inlined(node["schema"], {item["ref"]: item for item in node["definitions"]})
    if node.get("type") == "definition-ref":
        return inlined(shared[node["schema_ref"]], shared)
    result = {name: inlined(item, shared) for name, item in node.items() if name != "ref"}
    if result.get("type") == "union":
        # `typing` keeps one of `float | int` and `int | float` for both, the one it met first.
        result["choices"].sort(key=repr)
    return result


def same_as_pydantics(description: Description, *, lenient: bool) -> bool:
    """Compare all roots of a description; False where one of them is left to pydantic."""
    roots = (description.root, *(item.class_id for item in description.late))
    direct, builder = DirectBuilder(description, lenient=lenient), Builder(description, lenient=lenient)
    for root in roots:
        try:
            made = direct.core_schema(root)
        except NotDirectError:
            return False
        SchemaValidator(restored(made))
        assert inlined(made, {}) == inlined(as_data(builder.core_schema(root)), {})
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in TREES[:-1]), TREES[-1]]
)
def test_releases_are_made_without_pydantic_and_as_by_pydantic(
    shared: Path, tmp_path: Path, name: str
) -> None:
    with tarfile.open(shared / "nemo-versions" / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    for driver in DRIVERS:
        description, _ = read_description(tmp_path / name, f"nemo_rl.algorithms.{driver}")
        assert same_as_pydantics(description, lenient=False)
        assert same_as_pydantics(description, lenient=True)


CLASSES = ("m:A", "m:B", "m:C", "m:D")
PLAIN = [
    ANY, NONE, *(Type("name", name) for name in ("int", "float", "str", "bool", "bytes", "os.PathLike")),
    Type("name", "pydantic.PositiveInt"), Type("name", "pydantic.NonNegativeFloat"), Type("generic", "list"),
    Type("generic", "dict"), Type("literal", "", (), ("a", "b", 1, None)), Type("literal", "", (), (True, 1)),
    Type("annotated", "", (Type("name", "float"),), (("gt", 0), ("le", 1))), Type("literal"),
    Type("annotated", "", (Type("name", "int"),), (("ge", 2),)), Type("class", "m:Missing"),
    Type("annotated", "", (Type("name", "str"),), (("min_length", 2),)), Type("generic", "tuple"),
]  # fmt: skip


def types_over(classes: tuple[str, ...]) -> st.SearchStrategy[Type]:
    simple = st.sampled_from([*PLAIN, *(Type("class", id_) for id_ in classes)])
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(union),
            inner.map(lambda item: Type("generic", "list", (item,))),
            inner.map(lambda item: Type("generic", "dict", (Type("name", "str"), item))),
            inner.map(lambda item: Type("generic", "tuple…", (item,))),
            st.lists(inner, min_size=1, max_size=2).map(lambda items: Type("generic", "tuple", tuple(items))),
        ),
        max_leaves=4,
    )


@st.composite
def descriptions(draw: st.DrawFn) -> Description:
    """Draw classes that name only earlier ones; the last is the root."""
    classes: dict[str, SchemaClass] = {}
    for number, id_ in enumerate(CLASSES):
        types = types_over(CLASSES[:number])
        names = draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=4))
        fields = {name: SchemaField(name, draw(types), draw(st.booleans())) for name in names}
        kind: ClassKind = draw(st.sampled_from(("typed_dict", "model")))
        config = draw(st.sampled_from(({}, {"extra": "allow"}, {"extra": "forbid"})))
        opaque = draw(st.sampled_from((False, False, False, True))) and id_ != CLASSES[-1]
        classes[id_] = SchemaClass(id_, kind, fields, config, opaque=opaque)
    return Description("driver", CLASSES[-1], True, classes)


@pytest.mark.long
@pytest.mark.timeout(1200)
@given(descriptions(), st.booleans())
def test_any_description_is_made_as_by_pydantic(description: Description, lenient: bool) -> None:
    same_as_pydantics(description, lenient=lenient)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from((10**30, 10**400, -(2**60))), st.floats(),
    st.sampled_from(("", "a", "b", "abc", "2", "\ud800", "é")),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(("a", "b", "c", "d", "e", "f", "\ud800", 1)), inner, max_size=4),
    ),
    max_leaves=8,
)


def value_of(draw: st.DrawFn, described: Type, classes: dict[str, SchemaClass]) -> object:
    """Draw a value that a type mostly accepts."""
    if draw(st.integers(0, 12)) == 0:
        return draw(VALUES)
    if described.kind == "class" and described.name in classes:
        fields = classes[described.name].fields.values()
        return {
            item.name: value_of(draw, item.type, classes)
            for item in fields
            if item.required or draw(st.booleans())
        }
    if described.kind == "union":
        return value_of(draw, draw(st.sampled_from(described.items)), classes)
    if described.kind == "literal" and described.values:
        return draw(st.sampled_from(described.values))
    if described.kind == "generic" and described.name == "list":
        return [value_of(draw, item, classes) for item in described.items]
    if described.kind == "generic" and described.name == "dict" and described.items:
        return {"a": value_of(draw, described.items[1], classes)}
    samples: dict[str, object] = {"int": 3, "float": 0.5, "str": "abc", "bool": True, "None": None}
    return samples.get(described.name, 1)


@st.composite
def judged(draw: st.DrawFn) -> tuple[Description, object]:
    description = draw(descriptions())
    root = Type("class", description.root)
    return description, value_of(draw, root, dict(description.classes))


@pytest.mark.long
@pytest.mark.timeout(1200)
@given(judged(), st.booleans(), st.booleans())
def test_what_is_surely_accepted_is_accepted_by_pydantic(
    case: tuple[Description, object], lenient: bool, strict: bool
) -> None:
    description, value = case
    try:
        core = DirectBuilder(description, lenient=lenient).core_schema(description.root)
    except NotDirectError:
        return
    certain = surely_accepts(core, value, strict=strict)
    try:
        SchemaValidator(restored(core)).validate_python(value, strict=strict)
    except (ValidationError, TypeError, RecursionError):
        assert not certain


def test_plain_recipes_are_accepted_without_pydantic() -> None:
    inner = SchemaClass("m:Inner", "typed_dict", {"a": SchemaField("a", Type("name", "int"), True)})
    field = SchemaField("inner", union([Type("class", "m:Inner"), NONE]), True)
    root = SchemaClass("m:Root", "model", {"inner": field}, {"extra": "allow"})
    description = Description("driver", "m:Root", True, {"m:Inner": inner, "m:Root": root})
    core = DirectBuilder(description).core_schema("m:Root")
    assert surely_accepts(core, {"inner": {"a": 1}, "more": [1]}, strict=False)
    assert surely_accepts(core, {"inner": None}, strict=False)
    refused: tuple[object, ...] = ({}, {"inner": {}}, {"inner": {"a": "1"}}, {"inner": {"a": True}}, [], None)
    assert not any(surely_accepts(core, value, strict=False) for value in refused)
