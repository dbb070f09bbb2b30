"""Texts of a picture that differ each time, replaced by ones of the same width."""

from __future__ import annotations

import re
from pathlib import Path
from zlib import adler32

_DIRECTORY = "/p/project/carla"
_RUN_ID = re.compile(r"\d{8}-\d{6}(-[a-z-]+)-[0-9a-f]{4}")
_TOKEN = re.compile(r"dt-[0-9a-f]{16}")
_BLANK = "(?: |&#160;)"
_PICTURE_ID = re.compile(r"terminal-\d+")


def same_each_time(text: str) -> str:
    """Replace what differs each time, in text or SVG: the moment of the last answer, and sizes on disk."""
    text = re.sub(
        rf"(?:since|as{_BLANK}of){_BLANK}\d\d:\d\d:\d\d", lambda match: match[0][:-8] + "04:24:36", text
    )
    text = re.sub(rf"{_BLANK}*\d+(?:\.\d)?(?P<blank>{_BLANK})kB", _same_size, text)
    return "\n".join(line.rstrip() for line in text.split("\n")) + "\n"


def _same_size(match: re.Match[str]) -> str:
    """Return a size that takes as many columns as the one that was there."""
    columns = len(match[0].replace("&#160;", " "))
    return "80.0 kB".rjust(columns).replace(" ", match["blank"])


def reproducible(svg: str, name: str, directory: Path) -> str:
    """Replace what differs each time by texts of the same length: directory, ids of run, job and picture."""
    path = str(directory)
    stand_in = _DIRECTORY.ljust(len(path), "x")
    svg = svg.replace(path, stand_in)
    for start in range(1, len(path) - 2):  # a field that is too short shows the path's end
        svg = svg.replace(f"{path[start:]}/node", f"{stand_in[start:]}/node")
    svg = _RUN_ID.sub(r"20261128-042436\1-1a2b", svg)
    svg = _TOKEN.sub("dt-1a2b3c4d5e6f7a8b", svg)
    return with_own_id(svg, name)


def with_own_id(svg: str, name: str) -> str:
    """Let a picture's id follow from its name."""
    return _PICTURE_ID.sub(f"terminal-{adler32(name.encode())}", svg)
