"""Line of an exception's message that explains it, where the first one does not."""

from __future__ import annotations

import re

_SAYS_NOTHING = re.compile(r"(?::|\bat \d+:\d+:|\d+ validation errors? for \S+)\s*$")
_LAST_ERROR = "Last error:"
"""NCCL's own words stand below it."""
_KEY = "full_key: "
_NAME = re.compile(r"[\w.-]+$")
"""The name of a setting, on a line of its own; the next line says what is wrong with it."""
_PAIR = re.compile(r"[A-Z]\w*: \S+$")
"""One of several values that a message lists, a line each."""
_PAIRS_LIMIT = 200
_TELLS = re.compile(
    r"\b\w*(?:Error|Exception)\b[:(]|\berror:|mismatch|Missing key|Unexpected key|Value error"
)


def better_detail(message: str, detail: str, line: str, *, wrapper: bool) -> str:
    """Return what explains an exception, after one more line of its message.

    `message`: its first line; `detail`: what explained it so far; `wrapper`: it carries another one's error.
    """
    if line.startswith(_KEY):  # OmegaConf names the key below every message
        return line
    if line == _LAST_ERROR:
        return line
    if detail == _LAST_ERROR:
        return f"{detail} {line}" if line else detail
    if wrapper or not line or _SAYS_NOTHING.search(message) is None:
        return detail
    lists = len(detail) < _PAIRS_LIMIT and (detail.endswith(":") or _PAIR.search(detail))
    heads = line.endswith(":") and not detail.endswith(":")
    if lists and (heads or _PAIR.match(line)):
        return f"{detail} {line}"
    if not detail or (_TELLS.search(line) and not _TELLS.search(detail)):
        return line
    return f"{detail}: {line}" if _NAME.match(detail) else detail
