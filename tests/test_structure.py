"""The import graph and the names of the product: no circle, no arrow back, no name with two meanings."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("recipes", "launcher", "tui")
ROLES = {
    "base", "local", "cluster", "checkpoints", "detect", "errors", "report", "resume", "runs", "scale",
    "training", "watch", "checkout", "rehearsal", "monitor", "parse", "check", "memory", "submit", "models",
    "settings", "editing", "compare", "comparison", "doctor", "__main__",
}  # fmt: skip
"""Names that play the same role in two packages: a command and its engine, a screen and its model.

`__main__` is Python's name.
"""


@cache
def modules() -> dict[str, Path]:
    """Return every module of the product by its dotted name."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {
        str(path.relative_to(ROOT).with_suffix("")).replace("/", ".").removesuffix(".__init__"): path
        for path in paths
    }


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a module, read once for all tests."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def graph() -> dict[str, set[str]]:
    """Return the import graph; a package counts only where a name of its own is imported."""
    names = modules()
    edges: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = tree_of(path)
        targets = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    targets.add(inner if inner in names else node.module)
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
        edges[name] = {target for target in targets if target in names and target != name}
    return edges


def test_no_module_imports_itself_in_a_circle() -> None:
    try:
        TopologicalSorter(graph()).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_packages_of_the_launcher_have_no_arrow_back() -> None:
    rooms = defaultdict(set)
    for source, targets in graph().items():
        for target in targets:
            if source.startswith("launcher.") and target.startswith("launcher."):
                rooms[".".join(source.split(".")[:2])].add(".".join(target.split(".")[:2]))
    packages = {name for name in rooms if (ROOT / name.replace(".", "/")).is_dir()}
    edges = {name: {target for target in rooms[name] & packages if target != name} for name in packages}
    assert list(TopologicalSorter(edges).static_order())
    assert "launcher.submit" not in {target for targets in edges.values() for target in targets}


def test_a_class_name_has_one_meaning() -> None:
    homes = defaultdict(list)
    for name, path in modules().items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_a_module_name_has_one_role() -> None:
    homes = defaultdict(set)
    for name in modules():
        homes[name.rpartition(".")[2]].add(name)
    twice = {stem: names for stem, names in homes.items() if len(names) > 1}
    assert {stem: names for stem, names in twice.items() if stem not in ROLES} == {}
