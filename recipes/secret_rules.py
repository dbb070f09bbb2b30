"""Rules by which secrets are recognised in any text: by their own form, or by what stands before them.

The forms (prefix, alphabet, shortest length) are those that the services document and that gitleaks keeps
(github.com/gitleaks/gitleaks, config/gitleaks.toml, MIT), here as data of our own with shorter minimal lengths:
a cut key is a key. `recipes/secret_finder.py` applies them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_W = r"[\w-]"
_FORMS: tuple[tuple[str, str, str], ...] = (
    # Kind, what every secret of the form begins with (in lower case), and its pattern.
    ("Hugging Face token", "hf_", r"hf_[A-Za-z0-9]{10,}"),
    ("Hugging Face token", "api_org_", r"api_org_[A-Za-z0-9]{16,}"),
    ("GitHub token", "gh", r"gh[opsur]_[A-Za-z0-9]{16,}"),
    ("GitHub token", "github_pat_", r"github_pat_\w{16,}"),
    ("GitLab token", "gl", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent|oas|ffct)-[\w.-]{10,}"),
    ("GitLab token", "gr1348941", rf"GR1348941{_W}{{16,}}"),
    ("OpenAI or Anthropic key", "sk-", rf"sk-{_W}{{16,}}"),
    ("Stripe key", "k_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    ("Stripe key", "whsec_", r"whsec_[A-Za-z0-9+/]{16,}={0,2}"),
    ("NVIDIA key", "nvapi-", rf"nvapi-{_W}{{16,}}"),
    ("W&B key", "wandb_v", r"wandb_v\d_\w{16,}"),
    ("W&B key", "local-", r"local-[0-9a-fA-F]{40}(?![0-9a-zA-Z])"),
    ("Slack token", "xox", r"xox(?:[abceoprs]|e\.xox[bp])-[\w-]{10,}"),
    ("Slack token", "xapp-", rf"xapp-{_W}{{10,}}"),
    ("AWS key", "ia", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    ("AWS key", "absk", r"ABSK[A-Za-z0-9+/]{30,}={0,2}"),
    ("AWS session token", "fwogzxivyxdz", r"FwoGZXIvYXdz[A-Za-z0-9+/]{16,}={0,2}"),
    ("AWS session token", "iqojb3jpz2lu", r"IQoJb3JpZ2lu[A-Za-z0-9+/]{16,}={0,2}"),
    ("Google key", "aiza", rf"AIza{_W}{{20,}}"),
    ("Google key", "ya29.", r"ya29\.[\w.-]{10,}"),
    ("Google key", "gocspx-", rf"GOCSPX-{_W}{{16,}}"),
    ("Google key", "1//0", rf"1//0{_W}{{20,}}"),
    ("web token", "eyj", r"eyJ[\w-]{8,}\.(?:[\w-]{8,}|\.[\w-]{8,})(?:\.[\w-]*){0,3}"),
    ("npm token", "npm_", r"npm_[A-Za-z0-9]{16,}"),
    ("PyPI token", "pypi-age", rf"pypi-AgE{_W}{{16,}}"),
    ("RubyGems key", "rubygems_", r"rubygems_[0-9a-f]{16,}"),
    ("Docker token", "dckr_", rf"dckr_(?:pat|oat)_{_W}{{16,}}"),
    ("SendGrid key", "sg.", rf"SG\.{_W}{{16,}}\.{_W}{{16,}}"),
    ("Mailgun key", "key-", r"key-[0-9a-f]{32}(?![0-9a-z])"),
    ("Mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}(?!\w)"),
    ("Brevo key", "xkeysib-", rf"xkeysib-{_W}{{16,}}"),
    ("Twilio key", "sk", r"SK[0-9a-f]{32}(?![0-9a-z])"),
    ("DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{16,}"),
    ("Databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("Vault token", "hv", r"hv[sbr]\.[\w-]{20,}"),
    ("Atlassian token", "at", r"AT[AC]TT3[\w=-]{20,}"),
    ("Artifactory key", "akc", r"AKC[A-Za-z0-9]{20,}"),
    ("Doppler token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{16,}"),
    ("Grafana token", "gl", r"gl(?:sa|c)_[\w+/=-]{20,}"),
    ("Shopify token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}"),
    ("Linear token", "lin_", r"lin_(?:api|oauth)_\w{16,}"),
    ("Notion token", "ntn_", r"ntn_[A-Za-z0-9]{20,}"),
    ("Figma token", "figd_", rf"figd_{_W}{{16,}}"),
    ("Postman key", "pmak-", rf"PMAK-{_W}{{20,}}"),
    ("New Relic key", "nrak-", r"NRAK-[A-Z0-9]{16,}"),
    ("Pulumi token", "pul-", r"pul-[0-9a-f]{40}"),
    ("PlanetScale token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.-]{16,}"),
    ("Sentry token", "sntry", r"sntry[su]_[\w+/=-]{16,}"),
    ("Supabase token", "sbp_", r"sbp_[0-9a-f]{16,}"),
    ("Replicate token", "r8_", r"r8_[A-Za-z0-9]{20,}"),
    ("Groq key", "gsk_", r"gsk_[A-Za-z0-9]{20,}"),
    ("xAI key", "xai-", rf"xai-{_W}{{20,}}"),
    ("Perplexity key", "pplx-", r"pplx-[A-Za-z0-9]{16,}"),
    ("Tavily key", "tvly-", rf"tvly-{_W}{{16,}}"),
    ("LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_\w{16,}"),
    ("Netlify token", "nfp_", r"nfp_[A-Za-z0-9]{20,}"),
    ("Tailscale key", "tskey-", rf"tskey-{_W}{{16,}}"),
    ("age key", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{16,}"),
    ("Azure client secret", "q~", r"[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    ("Terraform token", ".atlasv1.", rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_W}{{20,}}"),
    ("Telegram token", ":a", r"\d{8,10}:A[\w-]{34}(?![\w-])"),
    ("webhook", "hooks.slack", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[\w/+.-]{8,}"),
    ("webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[\w/-]{8,}"),
    ("webhook", "webhook", r"[\w-]{1,80}\.webhook\.office\.com/[\w@/.-]{8,}"),
    ("webhook", "/hooks/", r"(?<=/hooks/)[a-z0-9]{26}(?![a-z0-9])"),
)  # fmt: skip

NAMED = (
    r"(?:token|secret|passw(?:or)?d|passphrase|passcode|credentials?|authorization|sessionid|session[-_]id"
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
_QUOTE_ESCAPE = r"\\{0,3}"
_FREE = (
    r"(?![«<]|\*{3}|\$\{|\$[A-Z_]{2}|\.{3}|…|(?:None|null|true|false|True|False|unset|undefined)(?!\w))"
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
_SEPARATOR = rf"{_QUOTE_ESCAPE}[\"']?\s{{0,8}}(?:=>|:=|[=:])\s{{0,8}}(?:b(?=[\"']))?"
_LOGIN = (
    r"(?:[^\s/@:'\"<>]{0,80}:(?!\d{1,5}/)(?:[^\s/'\"<>]{1,200}|[^\s@'\"<>]{1,200})|[^\s/@:'\"<>]{8,200})"
)
_SCHEMES = r"(?:basic|bearer|token|api-?key|key|jwt|private-token|github-bearer|splunk)"
_WHOLE_LINE = r"(?:digest|oauth|aws4-hmac-sha256|signature|hawk|negotiate|ntlm|scram-sha-\d+|sharedkey\w*)"
_LABEL = r"[A-Za-z0-9-]{1,63}"

# ------------------------------------------------------------ what is no secret although it looks like one

_SPECIAL_TOKEN = re.compile(
    r"(?:pad|eos|bos|unk|mask|sep|cls|stop|per|next|first|last|image|video|audio|special|end|start|think|added|new"
    r"|max|min|num|each|every|this|the|a|of|in|one|vocab|fim|mm|tool|begin|by|single|bad|suppress)(?:[_ .-]|\b)$",
    re.I,
)
_SCHEME = re.compile(f"{_SCHEMES}|{_WHOLE_LINE}", re.I)
_PUBLIC = re.compile(r".*_(?:PATH|FILE|DIR|URL|SOCK|ID|LIMIT|TIMEOUT|PARALLELISM|TYPE|NAME)|.*TOKEN(?:S|IZ).*")
"""Names of variables that say where a secret is, or how it is used."""
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"[-+]?[\d.,_]+(?:e[-+]?\d+)?(?:%|[kmg]i?b?|m?s|/s|tokens?(?:/s)?)?", re.I)
_NAME_OF_HASH = re.compile(
    r"(?:commit|revision|\brev|sha-?\d*(?:sum)?|hash|digest|checksum|blob|tree|etag|md5|head|refs?|\boid|snapshots?"
    r"|parent|merge|build[- ]?id|index|\.\.|actor_id|node_id|worker_id|job_id|object_id|task_id|@)[\s=:\"'(\[@/]*$",
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


def _form(kind: str, literal: str, pattern: str) -> SecretRule:
    anchored = pattern.replace("\\", "").lower().startswith(literal)
    return SecretRule(kind, (literal,), rf"(?<![A-Za-z0-9])(?:{pattern})", anchored=anchored)


_NAMES = (
    "token", "secret", "passw", "passphrase", "passcode", "credential", "key", "authorization", "session",
    "connection",
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
    SecretRule("AWS key", ("akia", "asia", "abia", "acca"), rf"{_AWS_SECRET}(?=[^A-Za-z0-9].{{0,60}}?{_AWS_ID})", re.S),
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
        ("_key", "_pw", "pass", "_pat", "_cookie", "_cred", "_auth", "_dsn"),
        rf"(?:_(?:KEY|PW|PWD|PAT|COOKIE|CREDS?|AUTH|DSN)|(?<!BY)PASS){_SEPARATOR}{_VALUE}",
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
        rf"(?P<name>password|passwd|passphrase|passcode|token|secret|key)\s+(?:is|was|will be|->)\s*:?\s*{_VALUE}",
        re.I,
        broad=True,
        anchored=True,
        is_none=_is_remark,
    ),
    SecretRule("secret of an option", ("--",), rf"--(?:key|pass|pwd|pw|auth|sig)(?:[\"']?,?\s+|=){_VALUE}", broad=True),
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
    return (*(_form(*row) for row in _FORMS), *_CONTEXTS, *(_BROAD if broad else ()))
