"""Print the schema that is shipped: `python -m recipes.schema TREE [NEWER …] [--older TREE …] >shipped.json`.

The classes are those of the first tree, which is the newest release. Newer trees add their keys, so that
`lint` without a checkout does not call a key unknown that the next release has. All trees, older ones too,
add the names of their recipes, by which a stock recipe is told from a user's own beside it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from recipes.known_keys import KeyTree, key_tree_of, stock_keys
from recipes.schema.algorithms import ALGORITHMS, CROSS_TOKENIZER, driver_of_algorithm
from recipes.schema.checkout_source import CheckoutSource
from recipes.schema.roots import describe
from recipes.schema.types import to_json


def main(*arguments: str) -> None:
    """Print the data: a line for each class, so that the differences of a new release can be read."""
    split = arguments.index("--older") if "--older" in arguments else len(arguments)
    release, *newer = arguments[:split]
    drivers: dict[str, Any] = {}
    classes: dict[str, Any] = {}
    keys: dict[str, Any] = {}
    version = ""
    for algorithm in (*ALGORITHMS, CROSS_TOKENIZER):
        description = describe(CheckoutSource(Path(release)), driver_of_algorithm(algorithm))
        if description is None:
            continue
        data = to_json(description)
        classes |= {id_: _without_words(item) for id_, item in data.pop("classes").items()}
        version = data.pop("release")
        drivers[description.driver] = data
        known = KeyTree()
        for tree in (release, *newer):
            for used in stock_keys(Path(tree), algorithm).values():
                known.add(used)
            later = describe(CheckoutSource(Path(tree)), driver_of_algorithm(algorithm))
            if tree != release and later is not None:
                known.add(key_tree_of(later))
        keys[algorithm] = _without(known, key_tree_of(description)).to_json()
    trees = (release, *newer, *arguments[split + 1 :])
    names = {
        path.relative_to(tree).as_posix() for tree in trees for path in Path(tree).rglob("examples/**/*.yaml")
    }
    sections = {"drivers": drivers, "classes": classes, "keys": keys, "recipes": _by_folder(names)}
    blocks = [f'"{name}": {{\n' + _lines(table) + "\n}" for name, table in sections.items()]
    print(f'{{"release": {json.dumps(version)},\n' + ",\n".join(blocks) + "}")


def _without_words(data: dict[str, Any]) -> dict[str, Any]:
    """Return a class without the words that NeMo-RL's authors wrote about it: only a checkout shows those."""
    doc = 4
    fields = [[*row[:doc], "", *row[doc + 1 :]] if len(row) > doc else row for row in data.get("fields", ())]
    return {name: fields if name == "fields" else item for name, item in data.items() if name != "doc"}


def _by_folder(paths: set[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    return folders


def _lines(table: dict[str, Any]) -> str:
    return ",\n".join(
        f"{json.dumps(name)}:{json.dumps(item, separators=(',', ':'), ensure_ascii=False)}"
        for name, item in table.items()
    )


def _without(known: KeyTree, classes: KeyTree) -> KeyTree:
    """Return the keys that the classes do not name, with the sections that lead to them."""
    more = KeyTree()
    for name, item in known.keys.items():
        if name not in classes.keys:
            more.keys[name] = item
        elif not classes.keys[name].open and (below := _without(item, classes.keys[name])).keys:
            more.keys[name] = below
    return more


if __name__ == "__main__":
    main(*sys.argv[1:])
