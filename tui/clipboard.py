"""Copying text out of the app.

A terminal takes text with OSC 52, unanswered: nobody can tell whether it did. tmux, as it comes, keeps such a
sequence from the terminal outside; given the text itself it has it in its own buffer, and hands it on.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

LIMIT = 74_000
"""Bytes that terminals take: xterm's limit, less base64's third, and others' are no lower."""


def fitting(text: str) -> str:
    """Return the text, cut after the last line that still fits."""
    data = text.encode()
    if len(data) <= LIMIT:
        return text
    cut = data[:LIMIT].decode(errors="ignore")
    return cut.rpartition("\n")[0] or cut


def in_tmux(environ: Mapping[str, str]) -> bool:
    """Tell whether tmux stands between the app and the terminal."""
    return bool(environ.get("TMUX"))


def give_to_tmux(text: str) -> bool:
    """Put text into tmux's buffer, and have tmux hand it on; False where tmux does not take it."""
    for options in (["-w"], []):  # before 3.2 tmux hands nothing on
        try:
            done = subprocess.run(
                ["tmux", "load-buffer", *options, "-"],
                input=text.encode(),
                capture_output=True,
                timeout=5,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode == 0:
            return True
    return False
