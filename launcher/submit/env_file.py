"""Parsing of env files: `NAME=value` lines."""

from __future__ import annotations

import re
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
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        variables[name] = value
    return variables
