"""Evaluation of OmegaConf's interpolations: the value of `${...}`, and the keys that it reads.

This covers the forms that recipes use: `${a.b}`, `${..a}`, `${a[0]}`, text around them, and the
resolvers `add mul div max` (NeMo-RL's) and `oc.env` with plain arguments. Everything else raises
`UnsupportedError`, and so does every fault: OmegaConf itself then decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sized
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from recipes.limits import (
    DEPTH,
    INTERPOLATION_DEPTH,
    INTERPOLATION_LINKS,
    MADE_CHARACTERS,
    NUMBER_BITS,
    NUMBER_CHARACTERS,
    SCALAR_CHARACTERS,
)
from recipes.values import Leaf, Map, Plain, Seq, Value, item_index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recipes.keys import KeyPath
    from recipes.yaml.scalars import Scalar

MISSING = "???"
"""Mark of a value that must be given later (OmegaConf); it survives resolving."""


class UnsupportedError(Exception):
    """Raised for what only OmegaConf itself can decide."""


class UnresolvedError(UnsupportedError):
    """Raised for an interpolation that OmegaConf cannot resolve either."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference such as `${..a.b}`: up by `dots` (0: the root, 1: the own mapping, ...), then down."""

    dots: int
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a resolver such as `${mul:${a}, 2}`."""

    name: str
    arguments: tuple[Reference | Call | Constant, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """Plain argument of a resolver, or text between interpolations."""

    value: Scalar


Part = Reference | Call | Constant

_TEXT = re.compile(r"(?:[^$\\]|\$(?!\{))+")
_STEP = r"[A-Za-z_$][\w$-]*|[0-9]+"
_REFERENCE = re.compile(
    rf"\$\{{\s*(\.*)((?:{_STEP}|\[(?:{_STEP})\])(?:\.(?:{_STEP})|\[(?:{_STEP})\])*)\s*\}}"
)
_CALL = re.compile(r"\$\{\s*((?:[A-Za-z_][\w-]*)(?:\.[A-Za-z_][\w-]*)*)\s*:\s*")
_INT = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9])*)")
_FLOAT = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)?\.[0-9]+|(?:0|[1-9][0-9]*)\.)(?:[eE][+-]?[0-9]+)?|[+-]?[1-9][0-9]*[eE][+-]?[0-9]+"
)
_WORD = re.compile(r"[A-Za-z_/][\w/.-]*")
_ARGUMENT = re.compile(r"[\w/.+-]+")
_NO_WORDS = ("null", "true", "false", "inf", "nan")


def is_interpolation(value: object) -> bool:
    """Return whether OmegaConf takes a value for an interpolation (an escaped one counts too)."""
    return isinstance(value, str) and "${" in value


def is_simple(text: str) -> bool:
    """Return whether `parse` reads a text: otherwise only OmegaConf's own parser can."""
    try:
        parse(text)
    except UnsupportedError:
        return False
    return True


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Part, ...]:
    """Split a text into constants, references and calls; raises `UnsupportedError`."""
    parts: list[Part] = []
    position = 0
    while position < len(text):
        match = _TEXT.match(text, position)
        if match is not None:
            parts.append(Constant(match.group()))
            position = match.end()
            continue
        part, position = _interpolation(text, position, 0)
        parts.append(part)
    return tuple(parts)


def _interpolation(text: str, position: int, depth: int) -> tuple[Part, int]:
    match = _REFERENCE.match(text, position)
    if match is not None:
        steps = re.findall(_STEP, match.group(2))
        return Reference(len(match.group(1)), tuple(steps)), match.end()
    match = _CALL.match(text, position)
    if match is None or depth > INTERPOLATION_DEPTH.value:
        raise UnsupportedError(text)
    arguments: list[Part] = []
    position = match.end()
    while True:
        if text.startswith("${", position):
            argument, position = _interpolation(text, position, depth + 1)
        else:
            argument, position = _constant(text, position)
        arguments.append(argument)
        while text[position : position + 1] in (" ", "\t"):
            position += 1
        close = text[position : position + 1]
        position += 1
        if close == "}":
            return Call(match.group(1), tuple(arguments)), position
        if close != ",":
            raise UnsupportedError(text)
        while text[position : position + 1] in (" ", "\t"):
            position += 1


def _constant(text: str, position: int) -> tuple[Constant, int]:
    match = _ARGUMENT.match(text, position)
    if match is None:
        raise UnsupportedError(text)
    word = match.group()
    if word[:1] in "+-.0123456789" and len(word) > NUMBER_CHARACTERS.value:
        raise UnsupportedError(text)
    if _INT.fullmatch(word):
        return Constant(int(word)), match.end()
    if _FLOAT.fullmatch(word):
        return Constant(float(word)), match.end()
    if word.lower() in ("true", "false"):
        return Constant(word.lower() == "true"), match.end()
    if word.lower() in _NO_WORDS or not _WORD.fullmatch(word):
        raise UnsupportedError(text)
    return Constant(word), match.end()


def _variable(environment: Mapping[str, str], name: object, default: object = UnsupportedError) -> str | None:
    if not isinstance(name, str):
        raise UnsupportedError(str(name))
    value = environment.get(name)
    if value is not None:
        return value
    if default is UnsupportedError:
        raise UnresolvedError(f"the environment variable {name} is not set")
    return None if default is None else str(default)


def _multiply(a: Any, b: Any) -> object:  # noqa: ANN401 - OmegaConf hands over whatever a recipe holds
    for sized, times in ((a, b), (b, a)):
        if isinstance(sized, Sized) and isinstance(times, int):
            _require_length(len(sized) * times)
    return a * b


def _add(a: Any, b: Any) -> object:  # noqa: ANN401
    if isinstance(a, Sized) and isinstance(b, Sized):
        _require_length(len(a) + len(b))
    return a + b


def _require_length(length: int) -> None:
    if length > SCALAR_CHARACTERS.value:
        raise ValueError(f"a text or list longer than {SCALAR_CHARACTERS.value:,} (the limit)")


def _limited(function: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
    """Return a resolver that refuses results above the limits: products of products double their digits."""

    def limited(a: Any, b: Any) -> object:  # noqa: ANN401
        result = function(a, b)
        if isinstance(result, int) and result.bit_length() > NUMBER_BITS.value:
            raise ValueError(f"a number of more than {NUMBER_BITS} (the limit)")
        return result

    return limited


RESOLVERS: dict[str, Callable[..., object]] = {
    "add": _limited(_add),
    "mul": _limited(_multiply),
    "div": _limited(lambda a, b: a / b),
    "max": _limited(lambda a, b: max(a, b)),
}
"""Resolvers that NeMo-RL registers with OmegaConf (nemo_rl/utils/config.py)."""


@dataclass(slots=True)
class Evaluator:
    """Evaluator of the interpolations below one root. `reads` notes which paths each path has read."""

    root: Value
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    """Variables of the machine that the recipe is on."""
    reads: dict[KeyPath, set[KeyPath]] = field(default_factory=dict)
    _settled: dict[KeyPath, tuple[Value, KeyPath]] = field(default_factory=dict)
    _busy: list[KeyPath] = field(default_factory=list)

    def plain(self, value: Value, path: KeyPath) -> Plain:
        """Return the data of a value, its interpolations resolved.

        Raises:
            UnsupportedError: only OmegaConf can resolve it, or a mapping contains itself.
        """
        value, path = self.settle(value, path)
        if isinstance(value, Leaf):
            return value.value
        if path in self._busy:
            raise UnsupportedError("a mapping contains itself")
        self._busy.append(path)
        data: Plain
        if isinstance(value, Seq):
            data = [self.plain(item, (*path, index)) for index, item in enumerate(value.items)]
        else:
            data = {key: self.plain(item, (*path, key)) for key, item in value.items.items()}
        self._busy.pop()
        return data

    def settle(self, value: Value, path: KeyPath) -> tuple[Value, KeyPath]:
        """Return the value that an interpolation stands for, and its path; any other value as it is.

        Raises:
            UnresolvedError: OmegaConf cannot resolve it either.
            UnsupportedError: only OmegaConf can resolve it.
        """
        if not isinstance(value, Leaf) or not is_interpolation(value.value):
            return value, path
        settled = self._settled.get(path)
        if settled is None:
            if path in self._busy:
                raise UnresolvedError("an interpolation leads back to itself")
            if len(self._busy) > DEPTH.value + 2 * INTERPOLATION_LINKS.value:
                raise UnsupportedError("too many interpolations lead to one another")
            self._busy.append(path)
            settled = self._evaluate(value, path)
            self._busy.pop()
            self._settled[path] = settled
        return settled

    def forget_busy(self) -> None:
        """Get ready for another value after an `UnsupportedError`."""
        self._busy.clear()

    def _evaluate(self, leaf: Leaf, path: KeyPath) -> tuple[Value, KeyPath]:
        assert isinstance(leaf.value, str)
        parts = parse(leaf.value)
        if len(parts) == 1 and isinstance(parts[0], Reference):
            return self._follow(parts[0], path)
        if len(parts) == 1:
            result = self._argument(parts[0], path)
        else:
            result = "".join(self._text(self._argument(part, path)) for part in parts)
            if len(result) > MADE_CHARACTERS.value:  # merging evaluates before `recipes.bounds` has looked
                raise UnsupportedError("a text of more characters than the limit")
        return Leaf(result, leaf.mark), path

    @staticmethod
    def _text(value: Scalar) -> str:
        return value if isinstance(value, str) else str(value)

    def _argument(self, part: Part, path: KeyPath) -> Scalar:
        if isinstance(part, Constant):
            return part.value
        if isinstance(part, Reference):
            value, _ = self._follow(part, path)
            if not isinstance(value, Leaf):
                raise UnsupportedError("a mapping or list inside a text or a call")
            return value.value
        return self._call(part.name, [self._argument(argument, path) for argument in part.arguments])

    def _call(self, name: str, arguments: Sequence[Scalar]) -> Scalar:
        function = partial(_variable, self.environment) if name == "oc.env" else RESOLVERS.get(name)
        if function is None:
            raise UnsupportedError(f"the resolver {name}")
        try:
            result = function(*arguments)
        except (TypeError, ArithmeticError, ValueError) as error:
            raise UnresolvedError(str(error)) from error
        if not isinstance(result, str | int | float | bool | None):
            raise UnsupportedError(f"{name} gives a {type(result).__name__}")
        return result

    def _follow(self, reference: Reference, path: KeyPath) -> tuple[Value, KeyPath]:
        """Return the value a reference leads to, through other interpolations, and where it is."""
        base: KeyPath = path[: len(path) - reference.dots] if reference.dots else ()
        if reference.dots > len(path):
            raise UnresolvedError("a reference climbs above the root")
        value = self._at(base)
        target_path = base
        read_paths = self.reads.setdefault(path, set())
        for number, step in enumerate(reference.steps):
            value, target_path = self.settle(value, target_path)
            if isinstance(value, Map) and step in value.items:
                value, target_path = value.items[step], (*target_path, step)
            elif isinstance(value, Seq) and (index := item_index(step, len(value.items))) is not None:
                value, target_path = value.items[index], (*target_path, index)
            else:
                raise UnresolvedError("a reference leads nowhere")
            if isinstance(value, Leaf):
                if value.value == MISSING:
                    raise UnresolvedError("a reference leads to a missing value")
                read_paths.add(target_path)
            elif number == len(reference.steps) - 1:
                read_paths.add(target_path)
        value, target_path = self.settle(value, target_path)
        if not isinstance(value, Leaf):
            read_paths.add(target_path)
            if path[: len(target_path)] == target_path:
                raise UnresolvedError("a reference leads to a mapping around it")
        return value, target_path

    def _at(self, path: KeyPath) -> Value:
        value = self.root
        for step in path:
            if isinstance(value, Map):
                value = value.items[step]
            else:
                assert isinstance(value, Seq)
                assert isinstance(step, int)
                value = value.items[step]
        return value
