"""Redaction of a text: keys, passwords, e-mail addresses, names and home directories are removed.

The rules are those of `recipes.secret_rules`, also the broad ones: what merely looks like a key is removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from recipes.secret_finder import SecretSpan, find_secrets, without_secrets
from recipes.secrets import secret_values

REMOVED = "«removed»"
_VALUE_KIND = "value of a secret variable"
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY")
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY")
_HOME = re.compile(r"(?P<head>/(?:p/home/\w+|p/home|home|Users)/)(?P<name>[^\s/:'\",;)\]}\\]+)")
_COMMON = frozenset({"root", "user", "slurm", "ray", "home", "tmp", "jusers", "USER"})


@dataclass(frozen=True, slots=True)
class Redactor:
    """Remover of secrets from texts; `names`: user names, removed wherever they are a word of their own."""

    names: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    """Directories that are replaced by `~`."""
    secrets: tuple[str, ...] = ()
    """Texts that are secret, whatever they look like."""
    removed: Counter[str] = field(default_factory=Counter, compare=False)
    """Number of secrets that were removed so far, by kind; shared by redactors that come from one another."""

    @classmethod
    def of(cls, names: Iterable[str], homes: Iterable[str] = (), secrets: Iterable[str] = ()) -> Redactor:
        """Make a redactor; names that every log contains (`root`) are kept."""
        people = {name for name in names if len(name) > 2 and name not in _COMMON}
        directories = {home.rstrip("/") for home in homes if len(home.strip("/")) > 2}
        return cls(
            tuple(sorted(people, key=len, reverse=True)),
            tuple(sorted(directories, key=len, reverse=True)),
            tuple(sorted({text for text in secrets if len(text) >= 6}, key=len, reverse=True)),
        )

    def having_read(self, text: str) -> Redactor:
        """Return a redactor that also removes the names in a text's paths of home directories."""
        names = {match["name"] for match in _HOME.finditer(text)}
        read = Redactor.of({*self.names, *names}, self.homes, self.secrets)
        return replace(read, removed=self.removed)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._without_names(without_secrets(text, self._values, self._mark, broad=True))

    def _without_names(self, text: str) -> str:
        for home in self.homes:
            text = text.replace(home, "~")
        text = _HOME.sub(r"\g<head>USER", text)
        for name in self.names:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "USER", text)
        return text

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Return lines without secrets; of a private key that goes over several, no line is left."""
        if not lines:  # a finding that no log shows
            return []
        inside = _begins_in_key(lines)
        redacted = []
        for line in lines:
            begins, ends = _KEY_BEGIN.search(line), _KEY_END.search(line)
            if begins and not ends:
                inside = True
                redacted.append(line[: begins.start()] + REMOVED)
                continue
            if inside:
                redacted.append(REMOVED)
                inside = ends is None
                continue
            redacted.append(line)
        text = without_secrets("\n".join(redacted), self._values, self._mark, broad=True, keep_lines=True)
        return self._without_names(text).split("\n")

    def remaining(self, text: str) -> str:
        """Return the kind of a secret that a redacted text still holds; empty for none."""
        spans = find_secrets(text, self._values, broad=True)
        return spans[0].kind if spans else ""

    @property
    def _values(self) -> tuple[tuple[str, str], ...]:
        return _known_values(self.secrets)

    def _mark(self, span: SecretSpan) -> str:
        self.removed[_VALUE_KIND if span.is_value else span.kind] += 1
        return REMOVED


def _begins_in_key(lines: Sequence[str]) -> bool:
    """Return whether the first of some lines is inside of a private key whose beginning is missing."""
    for line in lines:
        if _KEY_BEGIN.search(line):
            return False
        if _KEY_END.search(line):
            return True
    return False


@lru_cache(maxsize=8)
def _known_values(secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = {pair for secret in secrets for pair in secret_values("", secret)}
    return tuple(sorted(pairs, key=lambda pair: -len(pair[0])))
