"""Cleaning of text from outside (logs, job names, file names, remote stderr).

Textual passes escape bytes in a widget's text on to the terminal: a log line could set the user's clipboard
(OSC 52) or clear the screen. So text is cleaned once, where it enters the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEQUENCES = re.compile(
    r"""
      (?:\x1b\]|\x9d)[^\x07\x1b\x9c\r\n]*(?:\x07|\x1b\\|\x9c)?        # OSC … BEL or ST
    | (?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\r\n]*(?:\x1b\\|\x9c)?   # DCS SOS PM APC … ST
    | (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?                                # CSI
    | \x1b[ -/]*[0-~]?                                               # other escapes
    """,
    re.VERBOSE,
)
# C0 except tab, DEL, C1, bidirectional controls, invisible separators, halves of surrogate pairs.
_CONTROLS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def clean(text: str) -> str:
    """Return `text` as one printable line: without escape sequences and control characters, tabs expanded."""
    text = _SEQUENCES.sub("", text)
    text = _CONTROLS.sub("", text)
    return text.expandtabs(8)


def clean_lines(text: str) -> str:
    """Return `text` with each line cleaned and its line breaks kept."""
    return "\n".join(clean(line) for line in text.replace("\r\n", "\n").split("\n"))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean NAME?` for the nearest of some names; empty where none is near."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
