"""Configuration classes of a checkout's sources, read as what they are."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from recipes.schema.annotations import AnnotationReader
from recipes.schema.checkout_source import CheckoutSource, Module, dotted_name
from recipes.schema.constants import NotConstantError, constant
from recipes.schema.field_docs import attribute_docs, class_doc, field_doc
from recipes.schema.types import ANY, ClassKind, SchemaClass, SchemaField, Type

_KINDS: dict[str, ClassKind] = {
    "TypedDict": "typed_dict", "BaseModel": "model", "Enum": "enum", "StrEnum": "enum", "IntEnum": "enum",
}  # fmt: skip
_HARMLESS_BASES = frozenset(("object", "Generic", "ABC", "str", "int", "float", "Protocol"))
_CONFIG = frozenset(
    ("extra", "strict", "str_strip_whitespace", "str_to_lower", "str_to_upper", "str_min_length",
     "str_max_length", "populate_by_name", "validate_by_name", "validate_by_alias", "coerce_numbers_to_str",
     "use_enum_values", "allow_inf_nan", "arbitrary_types_allowed")
)  # fmt: skip
"""Settings of pydantic that change what a class accepts."""
_OWN_WAY = frozenset(("__init__", "__get_pydantic_core_schema__", "__get_validators__"))
"""Methods by which a class decides itself what it accepts."""


@dataclass(slots=True)
class _Draft:
    """A class while it is read."""

    kind: ClassKind | None = None
    fields: dict[str, SchemaField] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    opaque: bool = False
    unknown: list[str] = field(default_factory=list)
    rewritten: set[str] = field(default_factory=set)


class ClassReader:
    """Reads classes and all that they refer to into `classes`, by id (`module:Name`)."""

    def __init__(self, source: CheckoutSource) -> None:
        self.source = source
        self.classes: dict[str, SchemaClass] = {}
        self.annotations = AnnotationReader(source, self.read)
        self._rewritten: dict[str, set[str]] = {}
        self._started: dict[str, ClassKind | None] = {}

    def read(self, module: Module, node: ast.ClassDef) -> str | None:
        """Read a class; return its id, None where it is no configuration class."""
        id_ = f"{module.name}:{node.name}"
        if id_ in self._started:
            return id_ if self._started[id_] is not None else None
        draft = _Draft()
        self._started[id_] = self._own_kind(module, node)
        self._add_bases(module, node, draft)
        self._add_decorators(module, node, draft)
        self._started[id_] = draft.kind
        if draft.kind is None:
            return None
        members: tuple[Any, ...] = ()
        if draft.kind == "enum":
            members = self._members(module, node, draft)
        else:
            self._add_config(module, node, draft)
            self._add_methods(node, draft)
            self._add_fields(module, node, draft)
        self._rewritten[id_] = draft.rewritten
        self.classes[id_] = SchemaClass(
            id_, draft.kind, draft.fields, draft.config, class_doc(node), module.path, node.lineno,
            draft.opaque, "; ".join(dict.fromkeys(draft.unknown)), members,
        )  # fmt: skip
        return id_

    def _own_kind(self, module: Module, node: ast.ClassDef) -> ClassKind | None:
        """Guess a class's kind before its bases are read: needed where it refers to itself."""
        names = [dotted_name(base).rpartition(".")[2] for base in node.bases]
        return next((_KINDS[name] for name in names if name in _KINDS), "typed_dict" if names else None)

    def _add_bases(self, module: Module, node: ast.ClassDef, draft: _Draft) -> None:
        for base in reversed(node.bases):
            name = dotted_name(base.value if isinstance(base, ast.Subscript) else base)
            last = name.rpartition(".")[2]
            definition = self.source.find(module.name, name) if name else None
            if definition is not None and isinstance(definition.node, ast.ClassDef):
                self._add_base(self.read(definition.module, definition.node), last, draft)
            elif last in _KINDS:
                draft.kind = _KINDS[last]
            elif last not in _HARMLESS_BASES:
                self._set_opaque(draft, f"its base {ast.unparse(base)}")

    def _add_base(self, id_: str | None, name: str, draft: _Draft) -> None:
        parent = self.classes.get(id_ or "")
        if parent is None:
            return
        draft.kind = parent.kind
        draft.fields.update(parent.fields)
        draft.config.update(parent.config)
        draft.opaque = draft.opaque or parent.opaque
        draft.rewritten |= self._rewritten.get(parent.id, set())
        if parent.unknown:
            draft.unknown.append(parent.unknown)

    @staticmethod
    def _set_opaque(draft: _Draft, reason: str) -> None:
        draft.opaque = True
        draft.unknown.append(reason)

    def _add_decorators(self, module: Module, node: ast.ClassDef, draft: _Draft) -> None:
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = dotted_name(call.func if call else decorator).rpartition(".")[2]
            if name == "dataclass":
                draft.kind = draft.kind or "dataclass"
            elif name == "with_config" and call is not None:
                for given in call.args:
                    self._update_config(module, given, draft)
                self._update_config(module, ast.Call(ast.Name("dict"), [], call.keywords), draft)

    def _add_config(self, module: Module, node: ast.ClassDef, draft: _Draft) -> None:
        for keyword in node.keywords:
            if keyword.arg in _CONFIG:
                self._update_config(module, ast.Call(ast.Name("dict"), [], [keyword]), draft)
        for statement in node.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if {dotted_name(target) for target in targets} & {"model_config", "__pydantic_config__"}:
                    self._update_config(module, statement.value, draft)
            elif isinstance(statement, ast.ClassDef) and statement.name == "Config":
                for line in statement.body:
                    if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                        keyword = ast.keyword(line.targets[0].id, line.value)
                        self._update_config(module, ast.Call(ast.Name("dict"), [], [keyword]), draft)

    def _update_config(self, module: Module, node: ast.expr, draft: _Draft) -> None:
        try:
            given = constant(self.source, module, node)
        except NotConstantError:
            self._set_opaque(draft, "its pydantic settings")
            return
        if isinstance(given, dict):
            draft.config.update((name, value) for name, value in given.items() if name in _CONFIG)

    def _add_methods(self, node: ast.ClassDef, draft: _Draft) -> None:
        """Note what methods decide: those that see a value first make it unknown what is accepted."""
        for method in node.body:
            if not isinstance(method, ast.FunctionDef):
                continue
            if method.name in _OWN_WAY:
                self._set_opaque(draft, f"its method {method.name}")
            for decorator in method.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                kind = dotted_name(call.func if call else decorator).rpartition(".")[2]
                if kind in ("model_validator", "root_validator", "field_validator", "validator"):
                    self._add_validator(kind, call, method.name, draft)

    def _add_validator(self, kind: str, call: ast.Call | None, name: str, draft: _Draft) -> None:
        settings = {
            item.arg: item.value.value
            for item in (call.keywords if call else ())
            if isinstance(item.value, ast.Constant)
        }
        first = settings.get("mode") in ("before", "wrap", "plain") or settings.get("pre") is True
        names = [arg.value for arg in (call.args if call else ()) if isinstance(arg, ast.Constant)]
        draft.unknown.append(f"its validator {name}")
        if not first:
            return
        if kind in ("model_validator", "root_validator") or "*" in names:
            draft.opaque = True
        draft.rewritten |= {str(item) for item in names}

    def _add_fields(self, module: Module, node: ast.ClassDef, draft: _Draft) -> None:
        total = not any(
            item.arg == "total" and isinstance(item.value, ast.Constant) and item.value.value is False
            for item in node.keywords
        )
        documented = attribute_docs(node)
        for index, statement in enumerate(node.body):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                continue
            name = statement.target.id
            if _is_no_field(statement.annotation, name, draft.kind):
                continue
            doc = field_doc(module, node.body, index) or documented.get(name, "")
            added = self._field(module, statement, draft.kind, total=total)
            draft.fields[name] = replace(added, name=name, doc=doc or added.doc)
        for name in draft.rewritten & set(draft.fields):
            draft.fields[name] = replace(draft.fields[name], type=ANY)

    def _field(
        self, module: Module, node: ast.AnnAssign, kind: ClassKind | None, *, total: bool
    ) -> SchemaField:
        qualifier, inner = _qualified(node.annotation)
        type_ = self.annotations.read(module, inner)
        empty = SchemaField(
            "", type_, total if qualifier is None else qualifier, "", "", node.lineno, module.path
        )
        if kind == "typed_dict":
            return empty
        fields = _field_calls(inner)
        if node.value is not None and _is_field(node.value):
            assert isinstance(node.value, ast.Call)
            fields.append(node.value)
            limits = tuple(self.annotations.constraints(module, node.value))
            type_ = Type("annotated", "", (type_,), limits) if limits else type_
        default = "" if node.value is None or _is_field(node.value) else ast.unparse(node.value)
        described = ""
        alias = ""
        for call in fields:
            default = _default_of(call) or default
            given = {item.arg: item.value for item in call.keywords}
            described = _text(given.get("description")) or described
            alias = _text(given.get("validation_alias") or given.get("alias")) or alias
            if ("validation_alias" in given or "alias" in given) and not alias:
                type_ = ANY
        required = default in ("", "...") and not alias_unknown(fields, alias)
        return replace(
            empty, type=type_, required=required, default="" if default == "..." else default, doc=described,
            alias=alias,
        )  # fmt: skip

    def _members(self, module: Module, node: ast.ClassDef, draft: _Draft) -> tuple[Any, ...]:
        names = {dotted_name(base).rpartition(".")[2] for base in node.bases}
        mixin = next((kind for kind in ("str", "int") if kind in names or f"{kind.title()}Enum" in names), "")
        draft.config = {"mixin": mixin} if mixin else {}
        values: list[Any] = []
        for statement in node.body:
            if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
                continue
            if isinstance(statement.value, ast.Call) and dotted_name(statement.value.func).endswith("auto"):
                values.append(statement.targets[0].id.lower() if "StrEnum" in names else len(values) + 1)
                continue
            try:
                values.append(constant(self.source, module, statement.value))
            except NotConstantError:
                self._set_opaque(draft, "its values")
        return tuple(value for value in values if isinstance(value, str | int | float))


def alias_unknown(calls: list[ast.Call], alias: str) -> bool:
    """Tell whether a field has another name in the recipe that cannot be read."""
    given = {item.arg for call in calls for item in call.keywords}
    return bool(given & {"alias", "validation_alias"}) and not alias


def _is_no_field(annotation: ast.expr, name: str, kind: ClassKind | None) -> bool:
    """Tell whether an annotated name of a class is not one of its fields."""
    if kind == "model" and (name.startswith("_") or name == "model_config"):
        return True
    inner = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return kind != "typed_dict" and dotted_name(inner).rpartition(".")[2] in ("ClassVar", "InitVar")


def _qualified(node: ast.expr) -> tuple[bool | None, ast.expr]:
    """Split off `Required` and `NotRequired`, wherever they may stand."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _qualified(ast.parse(node.value.strip(), mode="eval").body)
        except (SyntaxError, ValueError):
            return None, node
    if not isinstance(node, ast.Subscript):
        return None, node
    name = dotted_name(node.value).rpartition(".")[2]
    if name in ("Required", "NotRequired", "ReadOnly"):
        inner, rest = _qualified(node.slice)
        return (inner if name == "ReadOnly" else name == "Required"), rest
    if name == "Annotated" and isinstance(node.slice, ast.Tuple) and node.slice.elts:
        inner, rest = _qualified(node.slice.elts[0])
        if inner is not None:
            parts = ast.Tuple([rest, *node.slice.elts[1:]], node.slice.ctx)
            return inner, ast.copy_location(ast.Subscript(node.value, parts, node.ctx), node)
    return None, node


def _is_field(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func).rpartition(".")[2] in ("Field", "field")


def _field_calls(node: ast.expr) -> list[ast.Call]:
    """Return the `Field(…)` of an `Annotated`."""
    if isinstance(node, ast.Subscript) and dotted_name(node.value).rpartition(".")[2] == "Annotated":
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        return [part for part in parts if isinstance(part, ast.Call) and _is_field(part)]
    return []


def _default_of(call: ast.Call) -> str:
    """Return the text of the default that a `Field(…)` gives; "" where it gives none."""
    for argument in call.args[:1]:
        return ast.unparse(argument)
    for keyword in call.keywords:
        if keyword.arg == "default":
            return ast.unparse(keyword.value)
        if keyword.arg == "default_factory":
            body = keyword.value.body if isinstance(keyword.value, ast.Lambda) else None
            return ast.unparse(body) if body is not None else f"{ast.unparse(keyword.value)}()"
    return ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
