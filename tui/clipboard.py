"""Copying of text to the clipboard.

A terminal gets text by OSC 52, which it never acknowledges. tmux by default does not forward that sequence;
its `load-buffer` command puts the text into tmux's own buffer and forwards it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

LIMIT = 74_000
"""Bytes that terminals accept: xterm's limit without base64's overhead; others allow as much or more."""


def fitting(text: str) -> str:
    """Return the text, cut after the last line within the limit."""
    data = text.encode()
    if len(data) <= LIMIT:
        return text
    cut = data[:LIMIT].decode(errors="ignore")
    return cut.rpartition("\n")[0] or cut


def in_tmux(environ: Mapping[str, str]) -> bool:
    """Return whether the app runs within tmux."""
    return bool(environ.get("TMUX"))


def copy_to_tmux(text: str) -> bool:
    """Copy text to tmux's buffer, and have tmux forward it; False where that fails."""
    for options in (["-w"], []):  # tmux before 3.2 cannot forward
        try:
            result = subprocess.run(
                ["tmux", "load-buffer", *options, "-"],
                input=text.encode(),
                capture_output=True,
                timeout=5,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if result.returncode == 0:
            return True
    return False
