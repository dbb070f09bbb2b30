"""Secrets: which variables of the environment hold one, and texts without any.

A variable counts by its name, or where its value is a URL with a password. `launcher/environment.py` decides
what becomes of such a variable in a job; here it only matters that its value is never printed or stored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECRET_NAME = re.compile(
    r"""
      (?:.*_)?(?:TOKEN(?!S|IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY).*
    | .*(?:PASSWORD|PASSWD|SECRET|TOKEN|APIKEY|PASSPHRASE)
    | (?:.+_)?(?:PASS|PAT|AUTH|COOKIE|KEY|PW|JWT) | .+_PWD | SSHPASS | PGPASS
    | LLM_JUDGE_(?!(?:MODEL|MODEL_NAME|BASE_URL|URL|ENDPOINT|PORT|TIMEOUT)$)\w+
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PUBLIC_NAME = re.compile(
    r".*_(?:PATH|FILE|DIR|URL|SOCK|ID|LIMIT|TIMEOUT|PARALLELISM|TYPE|NAME)|OLDPWD", re.IGNORECASE
)
"""Names that say where a secret is, or how it is used; an access key's id goes with the key."""
_CREDENTIALS = re.compile(r"^[\w+.-]+://[^/@:\s]*:(?!\d{1,5}/)(?P<password>[^/\s]+|[^@\s]+)@")
_SHORTEST = 4
"""Characters of the shortest value that is masked wherever it occurs."""
_SURE = 8
"""Characters from which on a value is masked inside of words, too, and in other forms."""
_ORDINARY = frozenset(
    {"true", "false", "none", "null", "test", "dummy", "empty", "disabled", "offline", "online"}
)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether a variable's name marks a secret."""
    if _PUBLIC_NAME.fullmatch(name) and not name.upper().endswith("ACCESS_KEY_ID"):
        return False
    return _SECRET_NAME.fullmatch(name) is not None


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret: by its name, or a URL with a password."""
    return is_secret_name(name) or ("://" in value and _CREDENTIALS.match(value) is not None)


def secret_names(environment: Mapping[str, str]) -> frozenset[str]:
    """Return the names of the variables that hold a secret."""
    return frozenset(name for name, value in environment.items() if value and is_secret(name, value))


def masked(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Return a text without secrets; see `Mask`."""
    return Mask.of(environment)(text)


@dataclass(frozen=True, slots=True)
class Mask:
    """Masking of secrets: the values of secret variables as «NAME», others as «removed: KIND»."""

    names: tuple[tuple[str, str], ...]
    """Pairs of value and name, the longest value first: one may hold another."""

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None) -> Mask:
        """Return the mask of an environment; by default of this process's."""
        pairs = set(_values(os.environ if environment is None else environment))
        return cls(tuple(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[1]))))

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        from recipes.secret_finder import without_secrets

        return without_secrets(text, self.names)

    def data(self, value: object) -> Any:  # noqa: ANN401 - data of JSON
        """Return data for JSON without secrets in its texts and keys."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value

    def hidden(self, text: str) -> str:
        """Return a text of the same length with dots in the place of secrets."""
        from recipes.secret_finder import hidden

        return hidden(text, self.names)


def secret_values(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield a secret value in the forms in which it may occur, each with its variable's name."""
    for secret in {value, value.strip(), *_CREDENTIALS.findall(value)}:
        if len(secret) < _SHORTEST or secret.lower() in _ORDINARY:
            continue
        yield secret, name
        if len(secret) >= _SURE:
            from recipes.secret_spellings import spellings

            yield from ((form, name) for form in spellings(secret))


def _values(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        if value and is_secret(name, value):
            yield from secret_values(name, value)
