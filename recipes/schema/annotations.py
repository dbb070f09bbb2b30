"""Annotations of a checkout's sources as types."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from recipes.schema.checkout_source import CheckoutSource, Module, dotted_name
from recipes.schema.constants import NotConstantError, constant
from recipes.schema.types import ANY, NONE, Type, union

SIMPLE = frozenset(("int", "float", "str", "bool", "bytes", "complex", "None"))
LIBRARY = {
    "os": ("PathLike",),
    "pathlib": ("Path", "PurePath", "PosixPath", "PurePosixPath"),
    "datetime": ("date", "datetime", "time", "timedelta"),
    "decimal": ("Decimal",),
    "uuid": ("UUID",),
    "fractions": ("Fraction",),
    "pydantic": (
        "PositiveInt", "NegativeInt", "NonNegativeInt", "NonPositiveInt", "PositiveFloat", "NegativeFloat",
        "NonNegativeFloat", "NonPositiveFloat", "FiniteFloat", "StrictInt", "StrictFloat", "StrictStr",
        "StrictBool", "StrictBytes", "FilePath", "DirectoryPath", "NewPath", "SecretStr", "ByteSize",
        "AnyUrl", "HttpUrl", "AnyHttpUrl", "FileUrl", "FutureDate", "AwareDatetime", "NaiveDatetime",
        "PastDate",
    ),
}  # fmt: skip
"""Types of other packages that pydantic knows, by module."""
CONTAINERS = {
    "list": "list", "List": "list", "MutableSequence": "list", "Sequence": "Sequence", "Iterable": "Iterable",
    "Collection": "Sequence", "dict": "dict", "Dict": "dict", "Mapping": "Mapping",
    "MutableMapping": "MutableMapping", "defaultdict": "dict", "OrderedDict": "dict", "set": "set",
    "Set": "set", "AbstractSet": "set", "frozenset": "frozenset", "FrozenSet": "frozenset", "tuple": "tuple",
    "Tuple": "tuple", "deque": "list",
}  # fmt: skip
"""Containers by the name that stands in an annotation; the name under which they are rebuilt."""
CONSTRAINTS = frozenset(
    ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern", "strict", "allow_inf_nan",
     "max_digits", "decimal_places", "discriminator", "union_mode", "coerce_numbers_to_str",
     "strip_whitespace", "to_lower", "to_upper")
)  # fmt: skip
"""Arguments of `Field` and `StringConstraints` that change what is accepted."""
_MARKS = {
    "Gt": "gt", "Ge": "ge", "Lt": "lt", "Le": "le", "MultipleOf": "multiple_of", "MinLen": "min_length",
    "MaxLen": "max_length", "Strict": "strict", "Discriminator": "discriminator",
}  # fmt: skip
QUALIFIERS = frozenset(("NotRequired", "Required", "ReadOnly", "Final"))
_REWRITING = frozenset(("BeforeValidator", "PlainValidator", "WrapValidator", "GetPydanticSchema"))
_DEPTH = 40

ClassReader = Callable[[Module, ast.ClassDef], str | None]
"""Reads a class and returns its id; None where it is no configuration class."""


class AnnotationReader:
    """Reads annotations; classes that they name are read by `read_class`."""

    def __init__(self, source: CheckoutSource, read_class: ClassReader) -> None:
        self.source = source
        self.read_class = read_class

    def read(self, module: Module, node: ast.expr, depth: int = 0) -> Type:
        """Return the type that an annotation names; what cannot be resolved accepts anything."""
        if depth > _DEPTH:
            return ANY
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return union([self.read(module, side, depth + 1) for side in (node.left, node.right)])
        if isinstance(node, ast.Constant):
            return self._constant(module, node, depth)
        if isinstance(node, ast.Subscript):
            return self._subscript(module, node, depth)
        name = dotted_name(node)
        return self._named(module, name, depth) if name else Type("any", ast.unparse(node))

    def _constant(self, module: Module, node: ast.Constant, depth: int) -> Type:
        if node.value is None:
            return NONE
        if not isinstance(node.value, str):
            return Type("any", ast.unparse(node))
        try:
            inner = ast.parse(node.value.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return Type("any", node.value)
        return self.read(module, inner, depth + 1)

    def _named(self, module: Module, name: str, depth: int) -> Type:
        definition = self.source.find(module.name, name)
        if definition is None:
            return self.outside(module, name)
        if isinstance(definition.node, ast.ClassDef):
            id_ = self.read_class(definition.module, definition.node)
            return Type("any", name) if id_ is None else Type("class", id_)
        if isinstance(definition.node, ast.Call):
            return self._made(definition.module, definition.node, name, depth)
        if not isinstance(definition.node, ast.expr):
            return Type("any", name)
        if dotted_name(definition.node):
            return self.outside(definition.module, dotted_name(definition.node))
        return self.read(definition.module, definition.node, depth + 1)

    def _made(self, module: Module, call: ast.Call, name: str, depth: int) -> Type:
        """Return the type that `NewType`, `TypeAliasType`, `conint` or a functional `TypedDict` makes."""
        maker = dotted_name(call.func).rpartition(".")[2]
        if maker in ("NewType", "TypeAliasType") and len(call.args) > 1:
            return self.read(module, call.args[1], depth + 1)
        if maker in ("conint", "confloat", "constr"):
            limits = self._limits(module, call.keywords)
            return Type("annotated", "", (Type("name", maker.removeprefix("con")),), limits)
        if maker == "TypedDict" and len(call.args) > 1 and isinstance(call.args[1], ast.Dict):
            id_ = self.read_class(module, _as_class(call))
            return Type("any", name) if id_ is None else Type("class", id_)
        return Type("any", name)

    def outside(self, module: Module, name: str) -> Type:
        """Return a type that the checkout does not define: Python's or pydantic's."""
        last = name.rpartition(".")[2]
        if name in SIMPLE:
            return Type("name", name)
        if last in ("Any", "object"):
            return ANY
        if last in CONTAINERS:
            return Type("generic", CONTAINERS[last])
        origin = self.origin(module, name)
        if origin is not None and last in LIBRARY.get(origin, ()):
            return Type("name", f"{origin}.{last}")
        return Type("any", name)

    @staticmethod
    def origin(module: Module, name: str) -> str | None:
        """Return the top-level package from which a module has a name; None if it does not import it."""
        imported = module.imports.get(name.partition(".")[0])
        return None if imported is None else imported.module.partition(".")[0]

    def _subscript(self, module: Module, node: ast.Subscript, depth: int) -> Type:
        name = dotted_name(node.value).rpartition(".")[2]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return self._literal(module, parts)
        if name == "Annotated":
            return self._annotated(module, parts, depth)
        if name in QUALIFIERS:
            return self.read(module, parts[0], depth + 1)
        if name in ("Optional", "Union"):
            inner = [self.read(module, part, depth + 1) for part in parts]
            return union([*inner, NONE] if name == "Optional" else inner)
        if name in CONTAINERS:
            return self._container(module, CONTAINERS[name], parts, depth)
        if name in ("PathLike", "Generic"):
            return self.outside(module, dotted_name(node.value))
        return Type("any", ast.unparse(node))

    def _container(self, module: Module, name: str, parts: list[ast.expr], depth: int) -> Type:
        ends = parts and isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis
        inner = [self.read(module, part, depth + 1) for part in (parts[:-1] if ends else parts)]
        return Type("generic", "tuple…" if ends else name, tuple(inner))

    def _literal(self, module: Module, parts: list[ast.expr]) -> Type:
        values: list[Any] = []
        for part in parts:
            try:
                values.append(constant(self.source, module, part))
            except NotConstantError:
                inner = self.read(module, part)
                if inner.kind != "literal":
                    return Type("any", f"Literal[{ast.unparse(part)}]")
                values += inner.values
        return Type("literal", "", (), tuple(values))

    def _annotated(self, module: Module, parts: list[ast.expr], depth: int) -> Type:
        inner = self.read(module, parts[0], depth + 1)
        limits: list[tuple[str, object]] = []
        for mark in parts[1:]:
            name = dotted_name(mark.func if isinstance(mark, ast.Call) else mark).rpartition(".")[2]
            if name in _REWRITING:
                return Type("any", ast.unparse(parts[0]))
            if isinstance(mark, ast.Call):
                limits += self.constraints(module, mark)
        return Type("annotated", "", (inner,), tuple(limits)) if limits else inner

    def constraints(self, module: Module, call: ast.Call) -> list[tuple[str, object]]:
        """Return the constraints that `Field(…)`, `Gt(…)` and the like put on a value."""
        name = dotted_name(call.func).rpartition(".")[2]
        if name in _MARKS:
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            try:
                value = constant(self.source, module, given[0]) if given else True
            except NotConstantError:
                return []
            return [(_MARKS[name], value)]
        if name in ("Field", "StringConstraints", "Interval", "Len"):
            return list(self._limits(module, call.keywords))
        return []

    def _limits(self, module: Module, keywords: list[ast.keyword]) -> tuple[tuple[str, object], ...]:
        limits: list[tuple[str, object]] = []
        for keyword in keywords:
            if keyword.arg in CONSTRAINTS:
                try:
                    value = constant(self.source, module, keyword.value)
                except NotConstantError:
                    continue
                if value is not None and isinstance(value, str | int | float):
                    limits.append((keyword.arg, value))
        return tuple(limits)


def _as_class(call: ast.Call) -> ast.ClassDef:
    """Return `TypedDict("Name", {…})` as the class statement that says the same."""
    name = call.args[0].value if isinstance(call.args[0], ast.Constant) else ""
    table = call.args[1]
    assert isinstance(table, ast.Dict)
    body: list[ast.stmt] = [
        ast.AnnAssign(target=ast.Name(id=str(key.value)), annotation=value, simple=1, lineno=key.lineno)
        for key, value in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Constant)
    ]
    return ast.ClassDef(
        name=str(name), bases=[call.func], keywords=call.keywords, body=body, decorator_list=[],
        lineno=call.lineno, end_lineno=call.end_lineno,
    )  # fmt: skip
