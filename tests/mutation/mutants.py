"""Small changes of a module's source, made with mutmut's operators.

mutmut's own runner leaves out decorated functions (properties among them) and what stands at module level,
such as tables and limits; here both are changed too. Its operators are used as they are, with two exceptions:
of a text, one change is made instead of three, and none of prose, whose wording is not behaviour. One
operator is added: an `and` or `or` loses one of its halves.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation import mutators

Operator = Callable[[Any], Iterable[Any]]
_NOT_OUTSIDE_FUNCTIONS = (
    # Without its value, or an argument of what makes it, a module cannot even be imported.
    mutators.operator_assignment,
    mutators.operator_arg_removal,
    mutators.operator_augmented_assignment,
)
_SKIPPED = (cst.Annotation, cst.Decorator, cst.Import, cst.ImportFrom, cst.Assert, cst.TypeAlias)
_SKIPPED_CALLS = frozenset({"TypeVar", "field", "cast"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed module: `function` holds the change, `line` is its first line in the original, from 1."""

    module: str
    function: str
    line: int
    before: str
    after: str
    number: int
    """Which one of those that look the same, from 1."""
    code: str

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What it is recognised by when lines have moved."""
        return self.module, self.function, self.before, self.after, self.number

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.function}: {self.before}  ->  {self.after}"


def mutants_of(module: str, source: str, functions: Sequence[str] = ()) -> list[Mutant]:
    """Return the mutants of a module's source, of those functions only where some are named."""
    tree = MetadataWrapper(cst.parse_module(source)).module  # each node once, which replacing relies on
    pieces = ["", *map(tree.code_for_node, tree.body)]
    pieces[0] = source[: source.index(pieces[1])]
    original = ast.dump(ast.parse(source))
    mutants: list[Mutant] = []
    alike: Counter[tuple[str, str, str]] = Counter()
    for place, statement in enumerate(tree.body, 1):
        before_it, after_it = "".join(pieces[:place]), "".join(pieces[place + 1 :])
        for function, node, changed in _changes(statement, "", inside=False):
            if functions and not any(
                function == name or function.startswith(f"{name}.") for name in functions
            ):
                continue
            code = f"{before_it}{tree.code_for_node(_replaced(statement, node, changed))}{after_it}"
            try:
                if ast.dump(ast.parse(code)) == original:
                    continue
            except SyntaxError:
                continue
            line, before, after = _difference(source, code)
            alike[function, before, after] += 1
            mutants.append(
                Mutant(module, function, line, before, after, alike[function, before, after], code)
            )
    return mutants


def _replaced(statement: Any, node: Any, changed: Any) -> Any:
    if statement is node:
        return changed
    if isinstance(statement, cst.ClassDef):  # a replacement goes through all below it: of a class, one member
        members = list(statement.body.body)
        for place, member in enumerate(members):
            if _holds(member, node):
                members[place] = _replaced(member, node, changed)
                return statement.with_changes(body=statement.body.with_changes(body=members))
    return statement.deep_replace(node, changed)


def _holds(tree: Any, node: Any) -> bool:
    return tree is node or any(_holds(child, node) for child in tree.children)


def _changes(node: Any, function: str, *, inside: bool) -> Iterator[tuple[str, Any, Any]]:
    """Yield the function around a node, the node, and what it becomes."""
    if isinstance(node, _SKIPPED) or _is_docstring(node) or _is_dunder_all(node):
        return
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in _SKIPPED_CALLS:
        return
    if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        function = f"{function}.{node.name.value}".strip(".")
        inside = inside or isinstance(node, cst.FunctionDef)
    for operator in _operators(node, inside=inside):
        for changed in operator(node):
            yield function, node, changed
    for child in node.children:
        yield from _changes(child, function, inside=inside)


def _operators(node: Any, *, inside: bool) -> Iterator[Operator]:
    for kind, operator in mutators.mutation_operators:
        if operator is mutators.operator_string or not (inside or operator not in _NOT_OUTSIDE_FUNCTIONS):
            continue
        if isinstance(node, kind):
            yield operator
    if isinstance(node, cst.SimpleString) and " " not in node.value:
        yield _one_string
    if isinstance(node, cst.BooleanOperation):
        yield _halves


def _one_string(node: Any) -> Iterable[Any]:
    return list(mutators.operator_string(node))[:1]


def _halves(node: Any) -> Iterable[Any]:
    """Return both operands, in brackets where the operation stood in some."""
    return [
        half.with_changes(lpar=[*node.lpar, *half.lpar], rpar=[*half.rpar, *node.rpar])
        for half in (node.left, node.right)
    ]


def _is_docstring(node: Any) -> bool:
    return isinstance(node, cst.Expr) and isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString))


def _is_dunder_all(node: Any) -> bool:
    return isinstance(node, cst.Assign) and any(
        isinstance(target.target, cst.Name) and target.target.value == "__all__" for target in node.targets
    )


def _difference(source: str, code: str) -> tuple[int, str, str]:
    """Return the first line that differs, and the lines that do, before and after."""
    old, new = source.splitlines(), code.splitlines()
    first = next(place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    last = 1
    while last <= min(len(old), len(new)) - first and old[-last] == new[-last]:
        last += 1
    before, after = (lines[first : len(lines) - last + 1] for lines in (old, new))
    return first + 1, " / ".join(map(str.strip, before)), " / ".join(map(str.strip, after))
