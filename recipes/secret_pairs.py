"""Rules for secrets whose name stands apart from them: pairs, calls, variables, encoded text, commands."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64

from recipes.secret_rule import SecretRule

_VARIABLE = (
    r"(?:(?:[A-Z0-9]{1,30}_){0,6}(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|PRIVATE_KEY"
    r"|SECRET_KEY|AUTH_KEY|SIGNING_KEY|ENCRYPTION_KEY|LICENSE_KEY|CREDENTIALS?)(?:_(?:ID|\d))?"
    r"|(?:[A-Z0-9]{1,30}_){1,6}(?:AUTH|PAT|PWD|JWT))"
)
"""Name of a variable, or of a header, that holds a secret; in one spelling: a list of words has others."""
_HEADER = (
    r"(?:x-[a-z-]{0,40}(?:token|key|secret|auth)|(?:proxy-)?authorization|api-?key|private-token|job-token"
    r"|cookie)"
)
_NAME = rf"(?:{_VARIABLE}|(?i:{_HEADER}))"
_ESCAPE = r"\\{0,31}"
_QUOTED = rf"b?(?P<quote>{_ESCAPE}[\"'])(?![«<]|\$\{{|\*{{3}})(?P<value>[^\"'\n]{{4,4000}}?)(?P=quote)"
_LITERALS = (
    "token",
    "secret",
    "passw",
    "passphrase",
    "key",
    "credential",
    "auth",
    "pat",
    "pwd",
    "jwt",
    "cookie",
)
_ENCODED_QUOTE = r"(?:&quot;|&#0?3[49];|&#x2[27];|&apos;|%2[27])"
_LOGIN = re.compile(rb"[\w.@$+-]{1,64}:[\x21-\x7e]{4,200}")


_NO_VALUE = re.compile(r"[A-Z][A-Z0-9_]*|[A-Za-z-]{1,12}")


def _is_list(match: re.Match[str]) -> bool:
    """Return whether what follows the name of a variable is another name, or a word."""
    return _NO_VALUE.fullmatch(match["value"]) is not None


def _is_no_login(match: re.Match[str]) -> bool:
    """Return whether letters of base64 are no `user:password`."""
    text = match["value"]
    try:
        data = a2b_base64(text + "=" * (-len(text) % 4))
    except Error:
        return True
    return _LOGIN.fullmatch(data) is None


PAIRS: tuple[SecretRule, ...] = (
    SecretRule(  # ("HF_TOKEN", "…"), environ["HF_TOKEN"] = "…", setdefault("HF_TOKEN", "…")
        "secret by its name",
        _LITERALS,
        rf"[\"']{_NAME}{_ESCAPE}[\"']\s{{0,8}}(?:,|\]\s{{0,8}}=|:)\s{{0,40}}{_QUOTED}",
        is_none=_is_list,
    ),
    SecretRule(  # {"name": "HF_TOKEN", "value": "…"}
        "secret by its name",
        ("value",),
        rf"[\"'](?i:name|key){_ESCAPE}[\"']\s{{0,8}}:\s{{0,8}}{_ESCAPE}[\"']{_NAME}{_ESCAPE}[\"']\s{{0,8}},\s{{0,80}}"
        rf"{_ESCAPE}[\"'](?i:value){_ESCAPE}[\"']\s{{0,8}}:\s{{0,8}}{_QUOTED}",
    ),
    SecretRule(  # - name: HF_TOKEN
        "secret by its name",  # value: …
        ("value",),
        rf"\b(?i:name|key):[ \t]{{0,8}}[\"']?{_NAME}[\"']?[ \t]{{0,8}}\n[ \t]{{0,80}}(?i:value):[ \t]{{0,8}}"
        r"(?:\"(?![«<])(?P<double>[^\"\n]{4,4000})|'(?![«<])(?P<single>[^'\n]{4,4000})|(?![«<\"'])(?P<bare>\S{4,4000}))",
    ),
    SecretRule(  # <add key="ApiKey" value="…"/>
        "secret by its name",
        ("value=",),
        rf"\b(?:key|name|id)=[\"'][\w.:-]{{0,60}}?(?i:token|secret|password|api[-_]?key|access[-_]?key)[\"']\s+value={_QUOTED}",
    ),
    SecretRule(
        "key in a URL",
        ("/t/",),
        r"\bconda[\w.-]{0,60}(?::\d{1,5})?/t/(?!«)(?P<value>[^/\s\"']{8,200})",
    ),
    SecretRule("Telegram token", ("bot",), r"(?<![A-Za-z0-9])bot(?P<value>\d{6,12}:[\w-]{30,60})"),
    SecretRule(  # wandb.login(key="…")
        "secret by its name",
        ("login(",),
        rf"\blogin\([^()\n]{{0,200}}?\b(?:key|token|password)\s{{0,8}}=\s{{0,8}}{_QUOTED}",
    ),
    SecretRule(
        "secret of an option",
        ("wandb login",),
        r"\bwandb login(?:[ \t]+--?[\w-]+(?:=\S+)?){0,6}[ \t]+(?![-«])(?P<value>[\w-]{16,200})",
    ),
    SecretRule(
        "secret of an option",
        (" login",),
        r"\b(?:docker|podman|apptainer|singularity|helm|oras|skopeo|nerdctl)\b[^\n|;&]{0,40}?\blogin\b[^\n|;&]{0,120}?\s-p[\s=]"
        r"[\"']?(?P<value>(?!«)[^\s\"']{4,400})",
    ),
)
"""Rules for everything that is printed."""

BROAD_PAIRS: tuple[SecretRule, ...] = (
    SecretRule(
        "secret by its name",
        ("&quot;", "&#", "&apos;", "%22", "%27", "%3d", "%3a"),
        rf"(?:token|secret|passw(?:or)?d|passphrase|api_?key|access_?key|signature)(?:{_ENCODED_QUOTE})?\s?"
        rf"(?:[:=]\s?(?:{_ENCODED_QUOTE})|%3[ad](?:{_ENCODED_QUOTE})?)(?P<value>(?![«%&])[^\s&%\"'<>]{{4,4000}})",
        re.I,
        broad=True,
    ),
    SecretRule(
        "secret by its name",
        ("pass", "pwd"),
        r"^[ \t]*(?:pass|pwd)[ \t]+[=:][ \t]+(?P<value>(?![«<$])[^\s\"']{6,400})[ \t]*$",
        re.M,
        broad=True,
    ),
    SecretRule(
        "password in words",
        ("password for", "code", "otp"),
        r"(?:\bpassword for [^\n:]{0,40}(?::[^\n ]{0,200})?:[ \t]+(?P<typed>(?![«<])\S{4,200})"
        r"|\b(?:verification|one-time|authenticator|otp|totp|2fa|mfa)[- ]?(?:code|token)?[ \t]*[:=][ \t]*"
        r"(?P<code>\d{6,8})\b)",
        re.I,
        broad=True,
    ),
    SecretRule(
        "cookie",
        ("\t",),
        r"\t(?:TRUE|FALSE)\t\d{1,12}\t[^\t\n]{1,200}\t(?P<value>(?!«)[^\t\n]{4,4000})",
        broad=True,
    ),
    SecretRule(
        "secret of an option",
        ("7z", "openssl"),
        r"(?:\b7za?\b[^\n|;&]{0,400}?\s-p|\bopenssl\b[^\n|;&]{0,400}?\spass:)(?P<value>(?!«)[^\s\"']{4,200})",
        broad=True,
    ),
    SecretRule(
        "base64 of a login",
        (),
        r"(?<![A-Za-z0-9+/=_.-])(?P<value>[A-Za-z0-9+/]{12,400}={0,2})(?![A-Za-z0-9+/=_.-])",
        broad=True,
        is_none=_is_no_login,
    ),
    SecretRule(  # Basic auth in a short setting: `_auth=…`
        "base64 of a login",
        ("auth",),
        r"auth[\"']?\s{0,8}[:=]\s{0,8}[\"']?(?P<value>[A-Za-z0-9+/]{12,400}={0,2})",
        re.I,
        broad=True,
        is_none=_is_no_login,
    ),
)
"""Rules for what is given to others."""
