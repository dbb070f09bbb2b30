"""How long "set one value, effective recipe again, with origins" takes on every distillation recipe.

Prints the slowest of three keys' medians beside the time that OmegaConf's own load of the same chain takes
in the same run.
Run as `python tests/bench/bench_recipes.py [CORPUS]`.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.document import Document
from recipes.inheritance import Resolver
from recipes.values import Leaf, leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from recipes.keys import KeyPath

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("DISTILL_TUI_TEST_DATA") or ROOT.parent / "shared")
ROUNDS = 9
TARGET_MS = 60.0


def milliseconds(work: Callable[[int], object]) -> float:
    """Return the median time of a few rounds."""
    times = []
    for number in range(ROUNDS):
        start = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def keys_of(path: Path) -> list[KeyPath]:
    """Return the first, the middle and the last integer of a recipe: how much is parsed again differs."""
    document = Document.open(path)
    values = document.revision.values
    assert values is not None
    found = [
        key
        for key, value in leaves(values)
        if isinstance(value, Leaf) and type(value.value) is int and document.is_written(key)
    ]
    return [found[0], found[len(found) // 2], found[-1]]


def key_press(path: Path, key: KeyPath) -> Callable[[int], object]:
    """Return what an editor does on a key press: set a scalar, resolve, give every leaf its origin."""
    document, resolver = Document.open(path), Resolver()

    def work(number: int) -> object:
        document.set(key, 64 + number)
        revision = document.revision
        recipe = resolver.resolve(path, tree=revision.tree, composed=revision.composed)
        return [recipe.origin_of(value) for _, value in leaves(recipe.merged)]

    work(-1)  # parents are read and modules imported once, when the recipe is opened
    return work


def by_omegaconf(path: Path) -> Callable[[int], object]:
    """Return OmegaConf's load of the same chain, as NeMo-RL does it."""
    from omegaconf import OmegaConf

    for name in ("add", "mul", "div", "max"):
        if not OmegaConf.has_resolver(name):
            OmegaConf.register_new_resolver(name, _RESOLVERS[name])

    def load(file: Path) -> Any:
        config: Any = OmegaConf.load(file)
        named = config.pop("defaults", [])
        base: Any = OmegaConf.create({})
        for name in [named] if isinstance(named, str) else named:
            base = OmegaConf.merge(base, load(file.parent / name))
        return OmegaConf.merge(base, config)

    return lambda _: OmegaConf.to_container(load(path), resolve=True)


_RESOLVERS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": max,
}


def main(corpus: Path) -> int:
    """Print the table; returns 1 if a recipe misses the target."""
    os.environ.setdefault("HF_HOME", "/tmp/hf")
    os.environ.setdefault("PERSISTENT_CACHE", "/tmp/cache")
    worst = 0.0
    print(f"{'recipe':84} {'ours ms':>8} {'OmegaConf ms':>13}")
    for path in sorted(path for path in corpus.rglob("*.yaml") if "distillation" in path.name):
        ours = max(milliseconds(key_press(path, key)) for key in keys_of(path))
        theirs = milliseconds(by_omegaconf(path))
        worst = max(worst, ours)
        print(f"{path.name:84} {ours:8.1f} {theirs:13.1f}")
    print(f"slowest median {worst:.1f} ms, target {TARGET_MS:.0f} ms")
    return int(worst > TARGET_MS)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA / "corpus" / "nemo-rl"))
