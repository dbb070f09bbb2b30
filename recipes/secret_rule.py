"""One rule by which secrets are recognised in any text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class SecretRule:
    """Rule for one kind of secret; its last named group is the secret, without one the whole match is."""

    kind: str
    literals: tuple[str, ...]
    """Texts in lower case of which every text with such a secret holds one; empty where none is needed."""
    pattern: str
    flags: int = 0
    broad: bool = False
    """Applies only where rather too much is removed than too little: in what is given to others."""
    is_none: Callable[[re.Match[str]], bool] | None = None
    """Whether a match is no secret after all."""
    anchored: bool = False
    """Whether a match begins with one of the literals: then it is tried only there."""

    def matches(self, text: str, folded: str) -> Iterator[re.Match[str]]:
        """Yield the matches in a text; `folded` is the same text in lower case."""
        if not self.anchored:
            if not self.literals or any(literal in folded for literal in self.literals):
                yield from self.compiled.finditer(text)
            return
        for literal in self.literals:
            position = folded.find(literal)
            while position >= 0:
                if match := self.compiled.match(text, position):
                    yield match
                position = folded.find(literal, position + 1)

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled when its first literal occurs."""
        return re.compile(self.pattern, self.flags)
