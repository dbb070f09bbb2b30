"""Taking out of a text what must not leave the user's hands: keys, passwords, addresses, names.

Better once too often than once too rarely: what merely looks like a key goes as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

GONE = "«removed»"
_NAMED = r"token|secret|passw(?:or)?d|passphrase|api[-_]?key|access[-_]?key|credentials?|authorization"
_VALUE = r"(?P<quote>[\"']?)(?!«)[^\s\"',;&)}\]]{4,}"
_FORMS = (
    r"hf_[A-Za-z0-9]{10,}|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{10,}|sk-[A-Za-z0-9_-]{16,}"
    r"|nvapi-[\w-]{16,}|wandb_v\d_\w{16,}|xox[abprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|AIza[\w-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), GONE),
    (re.compile(r"^\s*[A-Za-z0-9+/]{40,}={0,2}\s*$", re.M), GONE),  # what stands inside of one
    # Keys whose makers gave them a form.
    (re.compile(rf"(?<![A-Za-z0-9])(?:{_FORMS})"), GONE),
    (re.compile(r"\b(?P<head>Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.I), rf"\g<head> {GONE}"),
    (
        re.compile(r"(?P<head>://)(?:[^\s/@:'\"]{0,80}:[^\s/@'\"]{1,200}|[^\s/@:'\"]{8,200})@"),
        rf"\g<head>{GONE}@",
    ),
    # NAME=value, "name": "value" and --name value, where the name says what it holds.
    (re.compile(rf"(?P<head>(?:{_NAMED})[\"']?\s*[=:]\s*){_VALUE}", re.I), rf"\g<head>\g<quote>{GONE}"),
    (re.compile(rf"(?P<head>--[\w-]{{0,40}}(?:{_NAMED})\s+){_VALUE}", re.I), rf"\g<head>\g<quote>{GONE}"),
    (re.compile(rf"(?P<head>_(?:KEY|PW|PASS|PAT)[\"']?\s*[=:]\s*){_VALUE}"), rf"\g<head>\g<quote>{GONE}"),
    (
        re.compile(r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,}\b"),
        GONE,
    ),
    # W&B's keys and the like: hexadecimal, and longer than a commit's name is in print.
    (re.compile(r"(?<![\w/.-])[0-9a-f]{40,64}(?![\w/.-])"), GONE),
)
_HOME = re.compile(r"(?P<head>/(?:p/home/\w+|p/home|home|Users)/)(?P<name>[^\s/:'\",;)\]}\\]+)")
_COMMON = frozenset({"root", "user", "slurm", "ray", "home", "tmp", "jusers", "USER"})


@dataclass(frozen=True, slots=True)
class Redactor:
    """Removes secrets from texts; `names` are the user's names, removed wherever they stand as a word."""

    names: tuple[str, ...] = ()
    homes: tuple[str, ...] = ()
    """Directories that are shown as `~`."""
    secrets: tuple[str, ...] = ()
    """Texts that are known to be secret, whatever they look like."""

    @classmethod
    def of(cls, names: Iterable[str], homes: Iterable[str] = (), secrets: Iterable[str] = ()) -> Redactor:
        """Make one; names that are words of every log (`root`) are left alone."""
        people = {name for name in names if len(name) > 2 and name not in _COMMON}
        places = {home.rstrip("/") for home in homes if len(home.strip("/")) > 2}
        return cls(
            tuple(sorted(people, key=len, reverse=True)),
            tuple(sorted(places, key=len, reverse=True)),
            tuple(sorted({text for text in secrets if len(text) >= 6}, key=len, reverse=True)),
        )

    def having_read(self, text: str) -> Redactor:
        """Return one that also knows the people whose home directories a text names."""
        names = {match["name"] for match in _HOME.finditer(text)}
        return Redactor.of({*self.names, *names}, self.homes, self.secrets)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, GONE)
        for home in self.homes:
            text = text.replace(home, "~")
        for pattern, instead in _RULES:
            text = pattern.sub(instead, text)
        text = _HOME.sub(r"\g<head>USER", text)
        for name in self.names:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "USER", text)
        return text
