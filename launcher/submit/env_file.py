"""Parsing of env files: `NAME=value` lines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from launcher.errors import InputError


def read_env_file(text: str, where: Path) -> dict[str, str]:
    """Return the variables of a file.

    Raises:
        InputError: a line is invalid; the message omits the line, which may hold a key.
    """
    variables = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = re.fullmatch(r"(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)", bare)
        if match is None:
            raise InputError(f"invalid line {number} (expected NAME=value)", where=where)
        name, value = match.groups()
        variables[name] = _unquoted(value)
    return variables


def _unquoted(text: str) -> str:
    """Return a value as a shell would have it: without quotes, and without a comment after it."""
    if text[:1] in ("'", '"'):
        try:
            words = shlex.split(text, comments=True)
        except ValueError:  # a quote that is not closed
            return text
        return words[0] if len(words) == 1 else text
    return re.sub(r"(?:\s+#|^#\s).*", "", text)
