"""Reading samples."""

from __future__ import annotations

import re
from pathlib import Path


def output(samples: Path, name: str) -> str:
    """Return a sample's output, without the lines about it and without the shell's prompt."""
    lines = (samples / f"{name}.txt").read_text().splitlines()
    while lines and re.match(r"# (source|kind|command|note):", lines[0]):
        lines.pop(0)
    return "\n".join(line for line in lines if not re.match(r"(\[\S+ ~\]|\S+@\S+:\S*[~>]*)?[$>] ", line))
