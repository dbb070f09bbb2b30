"""Secrets of the environment: which variables hold one, and texts without their values.

A variable counts by its name, or where its value is a URL with a password. `launcher/environment.py` decides
what becomes of such a variable in a job; here it only matters that its value is never printed or stored.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SECRET_NAME = re.compile(
    r"""
      (?:.*_)?(?:TOKEN(?!S|IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY).*
    | .*(?:PASSWORD|PASSWD|SECRET|TOKEN|APIKEY|PASSPHRASE)
    | (?:.+_)?(?:PASS|PAT|AUTH|COOKIE|KEY|PW) | .+_PWD | SSHPASS | PGPASS
    | LLM_JUDGE_(?!(?:MODEL|MODEL_NAME|BASE_URL|URL|ENDPOINT|PORT|TIMEOUT)$)\w+
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_PUBLIC_NAME = re.compile(
    r".*_(?:PATH|FILE|DIR|URL|SOCK|ID|LIMIT|TIMEOUT|PARALLELISM|TYPE|NAME)|OLDPWD", re.IGNORECASE
)
"""Names that say where a secret is, or how it is used; an access key's id goes with the key."""
_CREDENTIALS = re.compile(r"^\w+://[^/@\s]*:(?P<password>[^/@\s]+)@")
_SHORTEST = 4
"""Characters of the shortest value that is masked wherever it occurs."""
_SURE = 8
"""Characters from which on a value is masked inside of words, too."""
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
    """Return a text with the values of secret variables replaced by «NAME»; see `Mask`."""
    return Mask.of(environment)(text)


@dataclass(frozen=True, slots=True)
class Mask:
    """Masking of the values of secret variables, as «NAME»."""

    names: tuple[tuple[str, str], ...]
    """Pairs of value and name, the longest value first: one may hold another."""

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None) -> Mask:
        """Return the mask of an environment; by default of this process's."""
        pairs = _values(os.environ if environment is None else environment)
        return cls(tuple(sorted(pairs, key=lambda pair: (-len(pair[0]), pair[1]))))

    def __call__(self, text: str) -> str:
        """Return a text without the values."""
        for value, name in self.names:
            if value in text:
                text = _pattern(value).sub(f"«{name}»".replace("\\", "\\\\"), text)
        return text


def _values(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in environment.items():
        if not value or not is_secret(name, value):
            continue
        for secret in {value, value.strip(), *_CREDENTIALS.findall(value)}:
            if len(secret) >= _SHORTEST and secret.lower() not in _ORDINARY:
                yield secret, name


@lru_cache(maxsize=256)
def _pattern(value: str) -> re.Pattern[str]:
    exact = re.escape(value)
    if len(value) >= _SURE:
        return re.compile(exact)
    return re.compile(rf"(?<![A-Za-z0-9]){exact}(?![A-Za-z0-9])")
