"""The keys that NeMo-RL knows: those of its configuration classes, and those of its own recipes.

NeMo-RL accepts any key silently, so a misspelt one is simply not in effect. The classes are those of the
schema of the checkout (`recipes.schema`), or of the newest release where there is none; recipes that come
with NeMo-RL add the keys that no class names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from recipes.chain import DEFAULTS, RecipeReader
from recipes.errors import RecipeError
from recipes.limits import RECIPE_BYTES, SOURCE_BYTES
from recipes.merge import OVERRIDE_KEY
from recipes.reading import read_regular
from recipes.schema import shipped
from recipes.schema.algorithms import ALGORITHMS, CROSS_TOKENIZER, algorithm_of, driver_of_algorithm
from recipes.schema.checkout_schema import Schema, schema_of
from recipes.schema.key_info import text_of
from recipes.schema.schema_cache import Store, digest
from recipes.schema.types import Description, Type
from recipes.values import Map, Seq, Value

__all__ = [
    "ALGORITHMS",
    "CROSS_TOKENIZER",
    "KeyTree",
    "algorithm_of",
    "known_keys",
    "read_checkout",
    "shipped_keys",
]

_MAPPINGS = ("dict", "Mapping", "MutableMapping")
_DEPTH = 12


@dataclass(slots=True)
class KeyTree:
    """Tree of known keys: a value's type, the keys below it or its items, and whether any key is allowed."""

    type: str = ""
    keys: dict[str, KeyTree] = field(default_factory=dict)
    open: bool = False

    def add(self, other: KeyTree) -> None:
        """Add the types and keys of another definition."""
        types = dict.fromkeys([*self.type.split(" | "), *other.type.split(" | ")])
        self.type = " | ".join(name for name in types if name)
        self.open = self.open or other.open
        for name, subtree in other.keys.items():
            if name in self.keys:
                self.keys[name].add(subtree)
            else:
                self.keys[name] = subtree

    def to_json(self) -> Any:  # noqa: ANN401
        """Return the compact form: a type, or the keys with the type under ''."""
        if not self.keys:
            return self.type + ("*" if self.open else "")
        data: dict[str, Any] = {"": self.type + ("*" if self.open else "")} if self.type or self.open else {}
        return data | {name: subtree.to_json() for name, subtree in sorted(self.keys.items())}

    @classmethod
    def from_json(cls, data: Any) -> KeyTree:  # noqa: ANN401
        """Read what `to_json` wrote."""
        if isinstance(data, str):
            return cls(data.removesuffix("*"), {}, data.endswith("*"))
        own = data.get("", "")
        keys = {name: cls.from_json(item) for name, item in data.items() if name}
        return cls(own.removesuffix("*"), keys, own.endswith("*"))


def known_keys(
    algorithm: str,
    checkout: Path | None = None,
    directory: Path | None = None,
    *,
    apart_from: Path | None = None,
) -> KeyTree | None:
    """Return the known keys of an algorithm: of a checkout if it has them, else the shipped ones.

    `directory` is where schemas are kept; the default is the user's cache. `apart_from` is a recipe whose
    own keys do not count where it lies among the stock recipes and is none of them.
    """
    if checkout is not None:
        key_tree = read_checkout(checkout, algorithm, directory, apart_from=apart_from)
        if key_tree is not None:
            return key_tree
    return shipped_key_tree(algorithm)


def shipped_keys() -> dict[str, KeyTree]:
    """Return the keys that came with this package, by algorithm."""
    keys = {name: shipped_key_tree(name) for name in (*ALGORITHMS, CROSS_TOKENIZER)}
    return {name: key_tree for name, key_tree in keys.items() if key_tree is not None}


@lru_cache(maxsize=16)
def shipped_key_tree(algorithm: str) -> KeyTree | None:
    """Return the keys of an algorithm that came with this package; None if it has none."""
    driver = driver_of_algorithm(algorithm)
    if algorithm not in (*ALGORITHMS, CROSS_TOKENIZER) or driver not in shipped.drivers():
        return None
    key_tree = key_tree_of(shipped.description(driver))
    key_tree.add(KeyTree.from_json(shipped.keys(algorithm)))
    return key_tree


def read_checkout(
    checkout: Path, algorithm: str, directory: Path | None = None, *, apart_from: Path | None = None
) -> KeyTree | None:
    """Read the known keys from a NeMo-RL checkout; None if it has no such algorithm."""
    schema = schema_of(driver_of_algorithm(algorithm), checkout, directory)
    if schema is None or schema.shipped:
        return None
    key_tree = key_tree_of(schema.description)
    for path, keys in _stock_keys(schema, checkout, algorithm).items():
        if apart_from is None or not _is_own(checkout, path, apart_from):
            key_tree.add(keys)
    return key_tree


def _is_own(checkout: Path, path: str, recipe: Path) -> bool:
    """Return whether a file among the stock recipes is a recipe that did not come with NeMo-RL."""
    if not _same_file(checkout / path, recipe) or shipped.has_recipe(path):
        return False
    try:
        return path.encode() not in read_regular(
            checkout / ".git" / "index", SOURCE_BYTES
        )  # paths stand there as they are
    except OSError:
        return True


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _stock_keys(schema: Schema, checkout: Path, algorithm: str) -> dict[str, KeyTree]:
    """Return the keys of each stock recipe for an algorithm, from the cache if they are as they were."""
    paths = [path.relative_to(checkout).as_posix() for path in _recipes(checkout)]
    versions = {"recipes": digest("\n".join(paths))}
    store = Store(checkout, schema.driver, schema.directory)
    cached = store.load("keys", versions)
    if cached is not None:
        return {path: KeyTree.from_json(keys) for path, keys in cached.items()}
    used = stock_keys(checkout, algorithm)
    store.save("keys", versions, paths, {path: keys.to_json() for path, keys in used.items()})
    return used


def _recipes(checkout: Path) -> list[Path]:
    """List the recipes that come with NeMo-RL."""
    return sorted((checkout / "examples").rglob("*.yaml"))


def stock_keys(checkout: Path, algorithm: str) -> dict[str, KeyTree]:
    """Read the keys of the recipes that come with NeMo-RL for an algorithm, by their path in the checkout."""
    section = "distillation" if algorithm == CROSS_TOKENIZER else algorithm
    keys: dict[str, KeyTree] = {}
    for path in _recipes(checkout):
        used = _keys_of(path, section, cross=algorithm == CROSS_TOKENIZER)
        if used is not None:
            keys[path.relative_to(checkout).as_posix()] = used
    return keys


def _keys_of(path: Path, section: str, *, cross: bool) -> KeyTree | None:
    try:
        if f"\n{section}:" not in "\n" + read_regular(path, RECIPE_BYTES).decode("utf-8", errors="replace"):
            return None  # another algorithm's: not worth the parsing
        values = RecipeReader().source(path).values
    except (OSError, RecipeError):
        return None  # a file in the user's checkout that is no recipe tells nothing
    marked = section in values.items and ("teachers" in values.items) == cross
    return _used(values) if marked else None


def _used(value: Value) -> KeyTree:
    """Return the keys that a recipe uses."""
    key_tree = KeyTree()
    if isinstance(value, Map):
        for key, item in value.items.items():
            if isinstance(key, str) and key not in (DEFAULTS, OVERRIDE_KEY):
                key_tree.keys[key] = _used(item)
    elif isinstance(value, Seq):
        for item in value.items:
            key_tree.add(_used(item))
    return key_tree


def key_tree_of(description: Description) -> KeyTree:
    """Return the keys that the classes of a schema name."""
    return _of_type(description, Type("class", description.root), ())


def _of_type(description: Description, type_: Type, above: tuple[str, ...]) -> KeyTree:
    """Return the keys that a type allows; `above` are the classes around it, for one may hold itself."""
    if type_.kind == "class":
        return _of_class(description, type_.name, above)
    if type_.kind == "any":
        return KeyTree("", {}, open=True)
    if type_.kind in ("union", "annotated"):
        key_tree = KeyTree()
        for item in type_.items:
            key_tree.add(_of_type(description, item, above))
        return key_tree
    if type_.kind == "generic" and type_.name in _MAPPINGS:
        return KeyTree("dict", {}, open=True)
    if type_.kind == "generic":
        key_tree = KeyTree()
        for item in type_.items:
            key_tree.add(_of_type(description, item, above))
        key_tree.type = f"list[{key_tree.type}]" if key_tree.type else "list"
        return key_tree
    return KeyTree(text_of(description, type_))


def _of_class(description: Description, id_: str, above: tuple[str, ...]) -> KeyTree:
    owner = description.classes.get(id_)
    if owner is None or id_ in above or len(above) > _DEPTH:
        return KeyTree("", {}, open=owner is None)
    if owner.kind == "enum":
        return KeyTree(" | ".join(map(repr, owner.members)))
    key_tree = KeyTree()
    for item in owner.fields.values():
        key_tree.keys[item.name] = _of_type(description, item.type, (*above, id_))
        if item.alias:
            key_tree.keys[item.alias] = key_tree.keys[item.name]
    key_tree.open = owner.opaque and not owner.fields
    for extension in description.extensions.get(id_, ()):
        key_tree.add(_of_class(description, extension, (*above, id_)))
    return key_tree
