"""The keys NeMo-RL knows, read from its type definitions with `ast`: nothing of it is imported.

NeMo-RL accepts any key silently, so a misspelt one is simply not in effect. The known keys are those
of the algorithm's `MasterConfig` and everything it refers to, and those of the stock recipes. They are
read from the user's checkout; `known_keys.json` holds those of one version for when there is none.
Run `python -m recipes.known_keys CHECKOUT` to print that file anew.
"""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from recipes.chain import DEFAULTS, RecipeReader
from recipes.errors import RecipeError
from recipes.merge import OVERRIDE_KEY
from recipes.values import Map, Seq, Value

ALGORITHMS = ("distillation", "grpo", "ppo", "dpo", "sft", "rm")
"""NeMo-RL's algorithms: the section that marks a recipe, and the module below nemo_rl/algorithms."""

CROSS_TOKENIZER = "xtoken_off_policy_distillation"
"""The distillation between tokenizers: marked by `teachers` beside `distillation`."""

_WRAPPERS = ("NotRequired", "Required", "Optional", "Union", "Annotated", "ClassVar", "ReadOnly")
_LISTS = ("list", "List", "Sequence", "tuple")
_OPEN = ("Any", "dict", "Dict", "Mapping", "object")


@dataclass(slots=True)
class Known:
    """What is known of a value: its type, the keys below it, those of its items, whether any key goes."""

    type: str = ""
    keys: dict[str, Known] = field(default_factory=dict)
    open: bool = False

    def add(self, other: Known) -> None:
        """Take over what another definition knows."""
        types = dict.fromkeys([*self.type.split(" | "), *other.type.split(" | ")])
        self.type = " | ".join(name for name in types if name)
        self.open = self.open or other.open
        for name, known in other.keys.items():
            if name in self.keys:
                self.keys[name].add(known)
            else:
                self.keys[name] = known

    def to_json(self) -> Any:  # noqa: ANN401
        """Return the compact form: a type, or the keys with the type under ''."""
        if not self.keys:
            return self.type + ("*" if self.open else "")
        data: dict[str, Any] = {"": self.type + ("*" if self.open else "")} if self.type or self.open else {}
        return data | {name: known.to_json() for name, known in sorted(self.keys.items())}

    @classmethod
    def from_json(cls, data: Any) -> Known:  # noqa: ANN401
        """Read what `to_json` wrote."""
        if isinstance(data, str):
            return cls(data.removesuffix("*"), {}, data.endswith("*"))
        own = data.get("", "")
        keys = {name: cls.from_json(item) for name, item in data.items() if name}
        return cls(own.removesuffix("*"), keys, own.endswith("*"))


def algorithm_of(values: dict[str, Any]) -> str | None:
    """Tell from an effective recipe's sections which algorithm it is for; None if that is unknown."""
    if "teachers" in values and "distillation" in values:
        return CROSS_TOKENIZER
    return next((name for name in ALGORITHMS if name in values), None)


def known_keys(algorithm: str, checkout: Path | None = None) -> Known | None:
    """Return the known keys of an algorithm: of a checkout if it has them, else the shipped ones."""
    if checkout is not None:
        known = read_checkout(checkout, algorithm)
        if known is not None:
            return known
    return shipped_keys().get(algorithm)


@lru_cache(maxsize=1)
def shipped_keys() -> dict[str, Known]:
    """Return the keys that came with this package, by algorithm."""
    data = json.loads(Path(__file__).with_name("known_keys.json").read_text(encoding="utf-8"))
    return {name: Known.from_json(item) for name, item in data["algorithms"].items()}


def read_checkout(checkout: Path, algorithm: str) -> Known | None:
    """Read the known keys from a NeMo-RL checkout; None if it has no such algorithm."""
    types = _Types(checkout)
    known = types.known(f"nemo_rl.algorithms.{algorithm}", "MasterConfig")
    if known is None:
        return None
    section = "distillation" if algorithm == CROSS_TOKENIZER else algorithm
    for path in _stock_recipes(checkout):
        _add_stock(known, path, section, cross=algorithm == CROSS_TOKENIZER)
    return known


def _stock_recipes(checkout: Path) -> list[Path]:
    """List the recipes that come with NeMo-RL."""
    return sorted((checkout / "examples").rglob("*.yaml"))


def _add_stock(known: Known, path: Path, section: str, *, cross: bool) -> None:
    try:
        if f"\n{section}:" not in "\n" + path.read_text(encoding="utf-8", errors="replace"):
            return  # another algorithm's: not worth the parsing
        values = RecipeReader().source(path).values
    except (OSError, RecipeError):
        return  # a file in the user's checkout that is no recipe tells nothing
    if section in values.items and ("teachers" in values.items) == cross:
        known.add(_seen(values))


def _seen(value: Value) -> Known:
    """Return the keys that a recipe uses."""
    known = Known()
    if isinstance(value, Map):
        for key, item in value.items.items():
            if isinstance(key, str) and key not in (DEFAULTS, OVERRIDE_KEY):
                known.keys[key] = _seen(item)
    elif isinstance(value, Seq):
        for item in value.items:
            known.add(_seen(item))
    return known


@dataclass(slots=True)
class _Module:
    classes: dict[str, ast.ClassDef]
    aliases: dict[str, ast.expr]
    imports: dict[str, tuple[str, str]]


@dataclass(slots=True)
class _Types:
    """Type definitions of a checkout, read module by module as they are referred to."""

    checkout: Path
    modules: dict[str, _Module | None] = field(default_factory=dict)
    busy: set[tuple[str, str]] = field(default_factory=set)

    def module(self, name: str) -> _Module | None:
        if name not in self.modules:
            self.modules[name] = self._read(name)
        return self.modules[name]

    def _read(self, name: str) -> _Module | None:
        base = self.checkout.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            try:
                tree = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                continue
            return _collect(tree)
        return None

    def known(self, module: str, name: str) -> Known | None:
        """Return what a class or an alias defines; None if it is not found."""
        found = self.module(module)
        if found is None or (module, name) in self.busy:
            return None
        self.busy.add((module, name))
        try:
            if name in found.classes:
                return self._class(module, found.classes[name])
            if name in found.aliases:
                return self.annotation(module, found.aliases[name])
            if name in found.imports:
                return self.known(*found.imports[name])
            return None
        finally:
            self.busy.discard((module, name))

    def _class(self, module: str, node: ast.ClassDef) -> Known:
        known = Known()
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id not in ("TypedDict", "BaseModel"):
                known.add(self.known(module, base.id) or Known())
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                known.keys[statement.target.id] = self.annotation(module, statement.annotation)
        if node.name == "GenerationConfig":
            for backend in ("vllm", "sglang", "megatron", "trtllm"):
                self._add_backend(known, f"nemo_rl.models.generation.{backend}.config")
        return known

    def _add_backend(self, known: Known, module: str) -> None:
        """Add the keys of a generation backend: recipes write them, the annotation names only the base."""
        found = self.module(module)
        for node in found.classes.values() if found is not None else ():
            if any(isinstance(base, ast.Name) and base.id == "GenerationConfig" for base in node.bases):
                known.add(self._class(module, node))

    def annotation(self, module: str, node: ast.expr) -> Known:
        """Return what an annotation allows."""
        if isinstance(node, ast.BinOp):
            known = self.annotation(module, node.left)
            known.add(self.annotation(module, node.right))
            return known
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return self.annotation(module, ast.parse(node.value, mode="eval").body)
            return Known("None" if node.value is None else repr(node.value))
        if isinstance(node, ast.Subscript):
            return self._subscript(module, node)
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in _OPEN:
            return Known("", {}, open=True)
        return self.known(module, name) or Known(name)

    def _subscript(self, module: str, node: ast.Subscript) -> Known:
        name = ast.unparse(node.value).rpartition(".")[2]
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return Known(" | ".join(ast.unparse(part) for part in parts))
        if name == "Annotated":
            parts = parts[:1]
        known = Known("None") if name == "Optional" else Known()
        if name in _WRAPPERS or name in _LISTS:
            for part in parts:
                known.add(self.annotation(module, part))
            if name in _LISTS:
                known.type = f"list[{known.type}]" if known.type else "list"
            return known
        return Known("dict", {}, open=True) if name in _OPEN else Known(ast.unparse(node))


def _collect(tree: ast.Module) -> _Module:
    module = _Module({}, {}, {})
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            module.classes[node.name] = node
        elif (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        ):
            module.aliases[node.targets[0].id] = node.value
        elif (
            isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nemo_rl") and not node.level
        ):
            for alias in node.names:
                module.imports[alias.asname or alias.name] = (node.module or "", alias.name)
    return module


def main(checkout: str) -> None:
    """Print `known_keys.json` for a checkout."""
    names = (*ALGORITHMS, CROSS_TOKENIZER)
    read = {name: read_checkout(Path(checkout), name) for name in names}
    algorithms = {name: known.to_json() for name, known in read.items() if known is not None}
    # A line for each section: short enough, and a new version's differences can still be read.
    blocks = [
        f'"{name}": {{\n'
        + ",\n".join(
            f"{json.dumps(key)}:{json.dumps(item, separators=(',', ':'))}" for key, item in sections.items()
        )
        + "\n}"
        for name, sections in algorithms.items()
    ]
    print('{"algorithms": {\n' + ",\n".join(blocks) + "\n}}")


if __name__ == "__main__":
    main(sys.argv[1])
