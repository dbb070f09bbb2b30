"""The words next to a field: comments above and beside it, a string below it, its class's docstring."""

from __future__ import annotations

import ast
import re
import textwrap

from recipes.schema.checkout_source import Module

_ATTRIBUTE = re.compile(r"^\s*`{0,2}(\w+)`{0,2}\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_LONGEST = 800
"""Characters of a text that are kept: help, not a manual."""


def field_doc(module: Module, body: list[ast.stmt], index: int) -> str:
    """Return what stands at a field: the comment lines above, the one beside, the string literal below."""
    node = body[index]
    lines = module.lines
    if not 0 < node.lineno <= len(lines):
        return ""
    above: list[str] = []
    row = node.lineno - 2
    while row >= 0 and lines[row].lstrip().startswith("#"):
        above.insert(0, _plain(lines[row].strip()))
        row -= 1
    end = node.end_lineno or node.lineno
    beside = [_after_code(line) for line in lines[node.lineno - 1 : end]]
    below = ""
    if index + 1 < len(body):
        following = body[index + 1]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            below = following.value.value if isinstance(following.value.value, str) else ""
    return shortened(" ".join(filter(None, [*above, *beside, below])))


def class_doc(node: ast.ClassDef) -> str:
    """Return the first paragraph of a class's docstring."""
    text = ast.get_docstring(node) or ""
    return shortened(text.partition("\n\n")[0])


def attribute_docs(node: ast.ClassDef) -> dict[str, str]:
    """Return what a class's docstring says about its attributes, under `Attributes:`."""
    text = ast.get_docstring(node) or ""
    _, heading, table = text.partition("Attributes:")
    entries: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in textwrap.dedent(table).splitlines() if heading else ():
        match = _ATTRIBUTE.match(line)
        if match is not None and not line.startswith(" " * 8):
            current = entries.setdefault(match[1], [])
            current.append(match[2])
        elif current is not None:
            current.append(line.strip())
    return {name: shortened(" ".join(words)) for name, words in entries.items()}


def shortened(text: str) -> str:
    """Return a text on one line, not longer than help should be."""
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _plain(comment: str) -> str:
    return comment.lstrip("#").strip()


def _after_code(line: str) -> str:
    """Return the comment that ends a line; a '#' inside quotes is none."""
    quote = ""
    for position, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#":
            return _plain(line[position:])
    return ""
