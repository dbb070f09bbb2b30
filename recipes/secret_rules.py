"""Rules by which secrets are recognised in any text: by their own form, or by what stands before them.

The forms are in `recipes/secret_forms.py`; `recipes/secret_finder.py` applies the rules.
"""

from __future__ import annotations

import re
from functools import lru_cache

from recipes.secret_forms import FORMS
from recipes.secret_pairs import BROAD_PAIRS, PAIRS
from recipes.secret_rule import SecretRule

NAMED = (
    r"(?:token|secret|passw(?:or)?d|passwort|kennwort|passphrase|passcode|credentials?|authorization|sessionid|session[-_]id"
    r"|connection[-_]?string|key)"
)
"""Names whose value is a secret, at their end."""
_SUFFIX = r"(?:_?(?:\d{1,2}|old|new|value|base|b64|base64|prod|dev|staging|test|backup|admin|user|db|main))?"
_SECRET_KEY = re.compile(
    r"(?:api|access|account|private|secret|sas|license|auth|encryption|signing|shared[-_]?access|master|client|service"
    r"|storage|ssh|deploy|app|user|write|read|admin|project|ingest)[-_ ]?$",
    re.I,
)
"""What a key is called that is a secret: most keys are those of a mapping."""
_QUOTE_ESCAPE = r"\\{0,31}"
"""Of a quote: JSON in JSON has 1, one deeper 3, then 7 …"""
_FREE = (
    r"(?![«<]|\*{3}|\$\{|\$[A-Z_]{2}|\.{3}|…|(?:None|null|true|false|True|False|unset|undefined|VALUE)(?!\w))"
)
"""Beginning of no placeholder: removed already, an interpolation, a variable."""
_VALUE = (
    rf"(?:{_QUOTE_ESCAPE}\"{_FREE}(?P<double>(?:\\[^\"\n]|[^\"\\\n]){{4,4000}})"
    rf"|{_QUOTE_ESCAPE}'{_FREE}(?P<single>(?:\\[^'\n]|[^'\\\n]){{4,4000}})"
    rf"|[|>][+-]?[ \t]*\n[ \t]+{_FREE}(?P<block>[^\s][^\n]{{3,4000}})"
    rf"|{_FREE}(?P<bare>[^\s\"',;&)}}\]\\|]{{4,4000}}))"
)
"""Value behind a name: in quotes with all that is in them, as a block of YAML, or up to a blank."""
_TO_BLANK = (
    rf"(?:{_QUOTE_ESCAPE}\"{_FREE}(?P<double>(?:\\[^\"\n]|[^\"\\\n]){{4,4000}})"
    rf"|{_QUOTE_ESCAPE}'{_FREE}(?P<single>(?:\\[^'\n]|[^'\\\n]){{4,4000}})|{_FREE}(?P<bare>[^\s\"']{{4,4000}}))"
)
_SEPARATOR = rf"{_QUOTE_ESCAPE}[\"']?[^\S\n]{{0,8}}(?:=>|:=|[=:])[^\S\n]{{0,8}}(?:b(?=[\"']))?"
_LOGIN = r"(?:[^\s/@:'\"<>]{0,80}:(?!\d{1,5}/)(?:[^\s/'\"<>]{1,200}|[^\s@'\"<>]{1,200})|[^\s/@:'\"<>]{8,200})"
_SCHEMES = r"(?:basic|bearer|token|api-?key|key|jwt|private-token|github-bearer|splunk)"
_WHOLE_LINE = r"(?:digest|oauth|aws4-hmac-sha256|signature|hawk|negotiate|ntlm|scram-sha-\d+|sharedkey\w*)"
_LABEL = r"[A-Za-z0-9-]{1,63}"

# ------------------------------------------------------------ what is no secret although it looks like one

_SPECIAL_TOKEN = re.compile(
    r"(?:pad|eos|bos|unk|mask|sep|cls|stop|per|next|first|last|image|video|audio|special|end|start|think|added|new"
    r"|max|min|num|each|every|this|the|a|of|in|one|vocab|fim|mm|tool|begin|by|single|bad|suppress)"
    r"(?:[_ .-]|\b)$",
    re.I,
)
_SCHEME = re.compile(f"{_SCHEMES}|{_WHOLE_LINE}", re.I)
_PUBLIC = re.compile(
    r".*_(?:PATH|FILE|DIR|URL|SOCK|ID|LIMIT|TIMEOUT|PARALLELISM|TYPE|NAME)|.*TOKEN(?:S|IZ).*"
)
"""Names of variables that say where a secret is, or how it is used."""
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"[-+]?[\d.,_]+(?:e[-+]?\d+)?(?:%|[kmg]i?b?|m?s|/s|tokens?(?:/s)?)?", re.I)
_NAME_OF_HASH = re.compile(
    r"(?:commit|revision|\brev|sha-?\d*(?:sum)?|hash|digest|checksum|blob|tree|etag|md5|head|refs?|\boid|snapshots?"
    r"|parent|merge|build[- ]?id|index|\.\.|(?:actor|node|worker|job|object|task)_id|@)[\s=:\"'(\[@/]*$",
    re.I,
)
_NO_PASSWORD = re.compile(
    r"(?:required|needed|not|missing|invalid|set|unset|empty|expired|wrong|incorrect|none|being|used|only|too|the"
    r"|read|stored|given|asked|expected|accepted|ignored|valid|correct|known|unknown|passed|taken|kept|never|always"
    r"|in|on|at|for|from|an?)\b",
    re.I,
)  # fmt: skip


def _is_setting(match: re.Match[str]) -> bool:
    """Return whether a name that ends in `token` or `key` means none that is secret."""
    name = match["name"].lower()
    before = match.string[max(0, match.start("name") - 20) : match.start("name")]
    value = match[match.lastgroup or 0]
    if name == "authorization":
        return _SCHEME.fullmatch(value) is not None
    if name == "key":
        return _SECRET_KEY.search(before) is None
    if name != "token":
        return False
    return _SPECIAL_TOKEN.search(before) is not None or _NUMBER.fullmatch(value) is not None


def _is_public_variable(match: re.Match[str]) -> bool:
    """Return whether a variable says where a secret is, or how it is used, as HF_TOKEN_PATH does."""
    before = _NAME_BEFORE.search(match.string, max(0, match.start() - 60), match.start())
    name = (before[0] if before else "") + match[0].partition("=")[0]
    return _PUBLIC.fullmatch(name) is not None or (match["name"] == "TOKEN" and _is_setting(match))


def _is_number(match: re.Match[str]) -> bool:
    return _NUMBER.fullmatch(match[match.lastgroup or 0]) is not None


def _is_hash(match: re.Match[str]) -> bool:
    """Return whether a hexadecimal number is said to be one of something's content."""
    return _NAME_OF_HASH.search(match.string[max(0, match.start() - 24) : match.start()]) is not None


def _is_no_base64(match: re.Match[str]) -> bool:
    """Return whether a run of base64's letters is a path, a word or a rule: random ones have of all kinds."""
    text = match["value"]
    kinds = (any(map(str.isupper, text)), any(map(str.islower, text)), any(map(str.isdigit, text)))
    return not all(kinds) or text.count("/") * 12 > len(text)


def _is_remark(match: re.Match[str]) -> bool:
    """Return whether words about a password tell it, or something of it."""
    value = match[match.lastgroup or 0]
    if _NO_PASSWORD.match(value):
        return True
    return match["name"].lower() in ("token", "secret", "key") and not any(map(str.isdigit, value))


def _form(kind: str, literal: str, pattern: str) -> SecretRule:
    anchored = pattern.replace("\\", "").lower().startswith(literal)
    return SecretRule(kind, (literal,), rf"(?<![A-Za-z0-9])(?:{pattern})", anchored=anchored)


_NAMES = (
    "token", "secret", "passw", "kennwort", "passphrase", "passcode", "credential", "key", "authorization",
    "session", "connection",
)  # fmt: skip
"""Beginnings of the names."""
_AWS_ID = r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,17}"
_AWS_SECRET = r"(?<![\w+/=-])(?P<value>[A-Za-z0-9+/]{40})(?![\w+/=-])"  # noqa: S105 - a pattern
_CONTEXTS: tuple[SecretRule, ...] = (
    SecretRule(
        "private key",
        ("private key",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.S,
    ),
    SecretRule(
        "private key",
        ("putty-user-key-file",),
        r"Private-Lines: \d+\s+(?P<value>[A-Za-z0-9+/=\s]{20,20000})",
    ),
    SecretRule("AWS key", ("akia", "asia", "abia", "acca"), rf"{_AWS_ID}.{{0,200}}?{_AWS_SECRET}", re.S),
    SecretRule(
        "AWS key",
        ("akia", "asia", "abia", "acca"),
        rf"{_AWS_SECRET}(?=[^A-Za-z0-9].{{0,60}}?{_AWS_ID})",
        re.S,
    ),
    SecretRule(
        "authorization",
        ("authorization",),
        rf"authorization{_SEPARATOR}[\"']?{_WHOLE_LINE}\s+(?P<value>(?![«<])[^\n]{{4,4000}})",
        re.I,
    ),
    SecretRule(
        "authorization",
        ("authorization",),
        rf"authorization{_SEPARATOR}[\"']?{_SCHEMES}\s+{_FREE}(?P<value>[^\s\"',;\\]{{4,4000}})",
        re.I,
    ),
    SecretRule(
        "authorization",
        ("x-", "private-token", "job-token", "deploy-token"),
        rf"(?:x-[\w-]{{0,40}}(?:token|key|secret|auth|signature)|(?:private|job|deploy)-token){_SEPARATOR}{_VALUE}",
        re.I,
    ),
    SecretRule(
        "cookie",
        ("cookie",),
        rf"cookie{_SEPARATOR}[\"']?(?P<value>(?![«<])[\w.%-]{{1,80}}=[^\n\"']{{4,4000}})",
        re.I,
    ),
    SecretRule("login in a URL", ("://",), rf"://(?P<value>(?!«){_LOGIN})@(?=[\w.\[«-])"),
    SecretRule(
        "key in a URL",
        ("=",),
        r"[?&;](?:amp;)?(?:x-(?:amz|goog|oss)-(?:signature|security-token|credential)|awsaccesskeyid|\w{0,20}key|sig"
        r"|signature|\w{0,20}token|auth|secret|\w{0,20}secret|password|passwd|pwd|pass|jwt|credential|code)="
        rf"{_FREE}(?P<value>[^\s&\"'<>#]{{4,4000}})",
        re.I,
    ),
    SecretRule(
        "netrc",
        ("machine", "default"),
        r"\b(?:machine\s+\S{1,200}\s+|default\s+(?=login|user))(?:(?:login|account|user)\s+\S{1,200}\s+){0,2}password\s+"
        r"(?P<value>(?!«)\S{1,400})",
        re.I,
    ),
    SecretRule(
        "secret by its name",
        _NAMES,
        rf"(?P<name>{NAMED}){_SUFFIX}{_SEPARATOR}{_VALUE}",
        re.I,
        is_none=_is_setting,
        anchored=True,
    ),
    SecretRule(
        "secret by its name",
        _NAMES,
        rf"(?P<name>TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY|CREDENTIALS?)[A-Z0-9_]{{0,20}}={_TO_BLANK}",
        is_none=_is_public_variable,
        anchored=True,
    ),
    SecretRule(
        "secret by its name",
        ("_key", "_pw", "pass", "_pat", "_cookie", "_cred", "_auth", "_dsn", "_jwt"),
        rf"(?:_(?:KEY|PW|PWD|PAT|COOKIE|CREDS?|AUTH|DSN|JWT)|(?<!BY)PASS){_SEPARATOR}{_VALUE}",
        is_none=_is_number,
    ),
    SecretRule(
        "secret by its name",
        ("pass", "pwd"),
        rf"(?<![A-Za-z])(?:pass|pwd)(?:{_QUOTE_ESCAPE}[\"']?=(?!/)|{_SEPARATOR}(?={_QUOTE_ESCAPE}[\"'])){_VALUE}",
        is_none=_is_number,
    ),
    SecretRule("secret by its name", ("auth",), rf"[\"'](?:_?auth|identitytoken)[\"']\s*:\s*{_VALUE}", re.I),
    SecretRule(
        "secret by its name",
        ("</",),
        rf"<[\w:.-]{{0,40}}{NAMED}\w{{0,20}}>{_FREE}(?P<value>[^<\n]{{4,4000}})</",
        re.I,
    ),
    SecretRule(
        "secret by its name",
        ("setenv", "set -"),
        rf"(?:setenv|set\s+-\w{{1,4}})\s+\w{{0,60}}?(?:{NAMED}|_PWD|_PAT|_PASS|SSHPASS|_AUTH)\w{{0,20}}\s+{_VALUE}",
        re.I,
    ),
    SecretRule(
        "secret of an option",
        ("--",),
        rf"--?[\w-]{{0,40}}(?P<name>{NAMED}){_SUFFIX}[\"']?,?\s+{_VALUE}",
        re.I,
        is_none=_is_setting,
    ),
)

_BROAD: tuple[SecretRule, ...] = (
    SecretRule(
        "authorization",
        ("bearer", "basic", "apikey"),
        r"\b(?:Bearer|Basic|ApiKey)\s+(?P<value>[A-Za-z0-9._~+/=-]{8,})",
        re.I,
        broad=True,
    ),
    SecretRule(
        "base64",
        (),
        r"^[^\S\n]*(?P<value>[A-Za-z0-9+/]{40,}={0,2})[^\S\n]*$",
        re.M,
        broad=True,
        is_none=_is_no_base64,
    ),
    SecretRule(
        "base64",
        (),
        r"(?<![A-Za-z0-9+/=_.-])(?P<value>[A-Za-z0-9+/]{60,}={0,2})(?![A-Za-z0-9+/=_.-])",
        broad=True,
        is_none=_is_no_base64,
    ),
    SecretRule(
        "hexadecimal key",
        (),
        r"(?<![\w/.-])(?:[0-9a-f]{40,64}|[0-9A-F]{40,64})(?![\w/.-])",
        broad=True,
        is_none=_is_hash,
    ),
    SecretRule(
        "password in words",
        ("passw", "passphrase", "passcode", "token", "secret", "key"),
        r"(?P<name>password|passwd|passphrase|passcode|token|secret|key)\s+(?:is|was|will be|->)\s*:?\s*"
        rf"{_VALUE}",
        re.I,
        broad=True,
        anchored=True,
        is_none=_is_remark,
    ),
    SecretRule(
        "secret of an option",
        ("--",),
        rf"--(?:key|pass|pwd|pw|auth|sig)(?:[\"']?,?\s+|=){_VALUE}",
        broad=True,
    ),
    SecretRule(
        "secret of an option",
        ("curl", "wget"),
        r"\b(?:curl|wget)\b[^\n|;&]{0,400}?\s(?:-u|--user|--proxy-user|-U)[\s=]*[\"']?(?P<value>[^\s\"':]{1,80}:[^\s\"']{1,200})",
        broad=True,
    ),
    SecretRule(
        "secret of an option",
        ("mysql", "mariadb", "sshpass", "mongo", "redis-cli"),
        r"\b(?:mysql\w{0,20}|mariadb\w{0,20}|sshpass|mongo\w{0,20})\b[^\n|;&]{0,400}?\s-p\s?[\"']?(?P<value>(?!«)[^\s\"']{3,200})",
        broad=True,
    ),
    SecretRule(
        "secret of an option",
        ("redis-cli", "smbclient", "ldap"),
        r"\b(?:redis-cli|ldap\w{0,20})\b[^\n|;&]{0,400}?\s(?:-a|-w)\s+[\"']?(?P<value>(?!«)[^\s\"']{3,200})",
        broad=True,
    ),
    SecretRule(
        "mail address",
        ("@",),
        rf"\b[A-Za-z0-9._%+-]{{1,64}}@{_LABEL}(?:\.{_LABEL}){{0,8}}\.[A-Za-z]{{2,24}}\b",
        broad=True,
    ),
)  # fmt: skip


@lru_cache(maxsize=2)
def secret_rules(*, broad: bool = False) -> tuple[SecretRule, ...]:
    """Return the rules for everything that is printed, or those for what is given to others."""
    narrow = (*(_form(*row) for row in FORMS), *_CONTEXTS, *PAIRS)
    return (*narrow, *_BROAD, *BROAD_PAIRS) if broad else narrow
