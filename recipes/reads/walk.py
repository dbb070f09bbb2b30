"""The walk through a checkout, from a driver script's `main`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from recipes.reads.description import Reads, described
from recipes.reads.frame import CallFrame
from recipes.reads.statements import Statements
from recipes.reads.symbols import FunctionValue
from recipes.schema.checkout_source import CheckoutSource

_ENTRY = "main"


def walk(root: Path, script: str) -> Reads | None:
    """Return the reads of a driver script (a path relative to the checkout); None if it has no `main`.

    What cannot be followed (a method of something unknown, a loop over unknown things) reads nothing.
    """
    source = CheckoutSource(root)
    name = script.removesuffix(".py").replace("/", ".")
    module = source.module(name)
    if module is None:
        return None
    follower = Statements(source)
    entry = follower.of_module(name, _ENTRY)
    if not isinstance(entry, FunctionValue):
        return None
    frame = CallFrame(module)
    try:
        follower.invoke(frame, replace(entry, inner=True), (), {})
        complete = not follower.exhausted
    except RecursionError:
        complete = False
    return described(frame.reads, source.files, complete=complete)
