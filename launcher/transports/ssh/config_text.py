"""Text of ssh configuration files: tokens in values, and files that others include (ssh_config(5))."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path

DEEPEST_INCLUDE = 4
_TOKEN = re.compile(r"%(.)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_KEYWORD = re.compile(r"\s*(?P<word>[A-Za-z]+)(?:\s*=\s*|\s+)(?P<rest>.*)")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


def expanded(text: str, tokens: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return a value with its `%` tokens and `${NAME}` variables replaced; unknown ones stay."""
    text = _VARIABLE.sub(lambda match: environment.get(match[1], match[0]), text)
    return _TOKEN.sub(lambda match: {"%": "%", **tokens}.get(match[1], match[0]), text)


def split_line(line: str) -> tuple[str, list[str]]:
    """Return keyword, in small letters, and arguments of a line; both empty for a comment."""
    match = _KEYWORD.match(line)
    if match is None:
        return "", []
    words = _WORD.findall(match["rest"])
    until_comment = takewhile(lambda word: not word[1].startswith("#"), words)
    return match["word"].lower(), [quoted or plain for quoted, plain in until_comment]


def lines_of(config: Path, directory: Path | None = None, depth: int = DEEPEST_INCLUDE) -> Iterator[str]:
    """Yield the lines of a file and of those that it includes, in their place; none where unreadable.

    A Host or Match line of an included file ends with it: the block around its Include goes on.
    """
    try:
        lines = config.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    directory, block = directory or config.parent, "Host *"
    for line in lines:
        word, arguments = split_line(line)
        if word != "include":
            block = line if word in ("host", "match") else block
            yield line
        elif depth:
            for pattern in arguments:
                for path in sorted(glob.glob(str(directory / Path(pattern).expanduser()))):
                    yield from lines_of(Path(path), directory, depth - 1)
            yield block
