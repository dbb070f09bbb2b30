"""Generators of secrets and of the texts that hold them, and of texts that only look like it."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

_ALNUM = string.ascii_letters + string.digits
_WORD = _ALNUM + "-_"
_HEX = "0123456789abcdef"
_BASE64 = _ALNUM + "+/"


@dataclass(frozen=True)
class PlantedSecret:
    """A text with a secret in it."""

    kind: str
    text: str
    secret: str
    """What must not be left of it."""


def _of(random: Random, alphabet: str, length: int) -> str:
    """Return random letters of an alphabet, with a digit, a capital and a small letter where it has them."""
    for _ in range(1000):
        text = "".join(random.choice(alphabet) for _ in range(length))
        wants = [kind for kind in (str.isdigit, str.isupper, str.islower) if any(map(kind, alphabet))]
        if length < 12 or all(any(map(kind, text)) for kind in wants):
            return text
    raise AssertionError(alphabet)


# Kind: (prefix, alphabet, lengths, suffix). Put together here so that no scanner takes them for real.
FORMS: dict[str, tuple[str, str, tuple[int, int], str]] = {
    "hugging face": ("hf" + "_", _ALNUM, (30, 36), ""),
    "hugging face organisation": ("api" + "_org_", _ALNUM, (30, 36), ""),
    "github": ("gh" + "p_", _ALNUM, (36, 36), ""),
    "github server": ("gh" + "s_", _ALNUM, (36, 36), ""),
    "github fine": ("github" + "_pat_", _ALNUM + "_", (60, 82), ""),
    "gitlab": ("gl" + "pat-", _WORD, (20, 22), ""),
    "gitlab deploy": ("gl" + "dt-", _WORD, (20, 22), ""),
    "gitlab runner": ("gl" + "rt-", _WORD, (20, 22), ""),
    "openai": ("sk" + "-proj-", _WORD, (40, 80), ""),
    "anthropic": ("sk" + "-ant-api03-", _WORD, (60, 95), ""),
    "stripe": ("sk" + "_live_", _ALNUM, (24, 34), ""),
    "stripe restricted": ("rk" + "_live_", _ALNUM, (24, 34), ""),
    "nvidia": ("nv" + "api-", _WORD, (60, 66), ""),
    "wandb": ("", _HEX, (40, 40), ""),
    "wandb capitals": ("", _HEX.upper(), (40, 40), ""),
    "wandb local": ("local" + "-", _HEX, (40, 40), ""),
    "wandb v1": ("wandb" + "_v1_", _ALNUM + "_", (40, 80), ""),
    "slack": ("xox" + "b-", string.digits + "-" + _ALNUM, (30, 50), ""),
    "slack app": ("xapp" + "-1-", _WORD, (40, 60), ""),
    "aws": ("AK" + "IA", string.ascii_uppercase + "234567", (16, 16), ""),
    "aws session": ("AS" + "IA", string.ascii_uppercase + "234567", (16, 16), ""),
    "google api": ("AI" + "za", _WORD, (35, 35), ""),
    "google access": ("ya" + "29.", _WORD, (60, 120), ""),
    "google client": ("GOCSPX" + "-", _WORD, (28, 28), ""),
    "npm": ("npm" + "_", _ALNUM, (36, 36), ""),
    "pypi": ("pypi" + "-AgEIcHlwaS5vcmc", _WORD, (60, 120), ""),
    "docker": ("dckr" + "_pat_", _WORD, (27, 27), ""),
    "digitalocean": ("do" + "p_v1_", _HEX, (64, 64), ""),
    "databricks": ("da" + "pi", _HEX, (32, 32), ""),
    "vault": ("hv" + "s.", _WORD, (90, 100), ""),
    "atlassian": ("AT" + "ATT3", _WORD + "=", (60, 180), ""),
    "artifactory": ("AK" + "Cp", _ALNUM, (68, 70), ""),
    "grafana": ("gl" + "sa_", _ALNUM, (32, 32), ""),
    "shopify": ("shp" + "at_", _HEX, (32, 32), ""),
    "replicate": ("r8" + "_", _ALNUM, (37, 37), ""),
    "groq": ("gsk" + "_", _ALNUM, (52, 52), ""),
    "age": ("AGE" + "-SECRET-KEY-1", string.ascii_uppercase + string.digits, (58, 58), ""),
    "slack webhook": ("hooks.slack" + ".com/services/T0", _ALNUM, (44, 44), ""),
    "discord webhook": ("discord" + ".com/api/webhooks/1234567890/", _WORD, (68, 68), ""),
}


def form(random: Random, kind: str) -> str:
    """Return a secret of a form of its own."""
    prefix, alphabet, (least, most), suffix = FORMS[kind]
    return prefix + _of(random, alphabet, random.randint(least, most)) + suffix


def _web_token(random: Random, parts: int) -> str:
    header = (
        base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()).decode().rstrip("=")
    )
    return ".".join([header, *(_of(random, _WORD, 40) for _ in range(parts - 1))])


def _password(random: Random) -> str:
    return _of(random, _ALNUM, random.randint(8, 24))


def _odd_password(random: Random) -> str:
    """Return a password with blanks and punctuation."""
    return _of(random, _ALNUM, 5) + random.choice(" ,;)&}]|:=#") + _of(random, _ALNUM + " ,;!?", 8) + "x"


def _key_lines(random: Random) -> list[str]:
    return [_of(random, _BASE64, 64) for _ in range(random.randint(3, 20))]


_NAMES = (
    "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MYSQL_PWD", "SSHPASS", "GITHUB_PAT",
    "MY_SECRET", "ADMIN_PASSWD", "API_KEY", "SERVICE_TOKEN_2", "X_PASS", "COMET_API_KEY",
)  # fmt: skip
_FIELDS = (
    "password", "api_key", "apiKey", "access_token", "secret", "client_secret", "auth_token", "passphrase", "db-password",
    "wandb_api_key", "private_token", "AccountKey", "SharedAccessKey", "pass", "refresh_token", "secret_key",
)  # fmt: skip


def _environment_dump(random: Random, secret: str) -> str:
    name = random.choice(_NAMES)
    return random.choice(
        (f"{name}={secret}", f"export {name}={secret}", f'declare -x {name}="{secret}"', f"+ {name}={secret} python x.py",
         f"environ({{'HOME': '/root', '{name}': '{secret}', 'A': '1'}})", f"setenv {name} '{secret}'; {name}={secret}",
         f"srun --export=ALL,{name}={secret} python", f"HOME=/root\0{name}={secret}\0PATH=/bin".replace("\0", "\n"))
    )  # fmt: skip


def _data(random: Random, secret: str) -> str:
    name = random.choice(_FIELDS)
    whole = {"user": "carla", name: secret, "port": 5432}
    return random.choice(
        (json.dumps(whole), json.dumps(json.dumps(whole)), repr(whole), json.dumps(whole, indent=1),
         f"logger:\n  {name}: {json.dumps(secret)}\n  x: 1", f"{name} = '{secret}'", f"<{name}>{secret}</{name}>"
         if name in ("password", "api_key", "secret") else f'{name}="{secret}"')
    )  # fmt: skip


def _plain_data(random: Random, secret: str) -> str:
    name = random.choice([field for field in _FIELDS if field != "pass"])
    return random.choice(
        (f"{name}: {secret}", f"{name}={secret}", f"{name}: |\n  {secret}\nother: 1", f"a=1;{name}={secret};b=2",
         f"DefaultEndpointsProtocol=https;AccountName=x;AccountKey={secret}==;EndpointSuffix=core.windows.net")
    )  # fmt: skip


def _url(random: Random, secret: str) -> str:
    return random.choice(
        (f"https://carla:{secret}@host.example/x", f"https://carla:{secret[:4]}/{secret[4:]}@host.example/x.git",
         f"postgresql://u:{secret}@10.0.0.1:5432/db", f"git clone https://oauth2:{secret}@gitlab.example/a.git",
         f"https://h.example/x?key={secret}", f"https://h.example/x?a=1&sig={secret}&b=2",
         f"https://b.example/o?X-Amz-Credential=x&X-Amz-Signature={secret}", f"https://h/x?access_token={secret}#a",
         f"redis://:{secret}@cache:6379/0", f"https://h.example/x?sv=1&amp;sig={secret}")
    )  # fmt: skip


def _header(random: Random, secret: str) -> str:
    name = random.choice(("Authorization", "authorization", "Proxy-Authorization"))
    coded = base64.b64encode(f"carla:{secret}".encode()).decode()
    scheme = random.choice(("Bearer", "Token", "ApiKey", "bearer", "JWT"))
    return random.choice(
        (f"{name}: {scheme} {secret}", f"> {name}: Basic {coded}", f"-H '{name}: {scheme} {secret}' https://h",
         f"{{'{name}': '{scheme} {secret}', 'Accept': '*/*'}}", f'"{name}": "Basic {coded}"', f"X-Api-Key: {secret}",
         f'{name}: Digest username="carla", realm="r", response="{secret}"', f"PRIVATE-TOKEN: {secret}",
         f"Cookie: session={secret}; theme=dark", f"Set-Cookie: sid={secret}; HttpOnly", f"X-Auth-Token: {secret}")
    )  # fmt: skip


def _command(random: Random, secret: str) -> str:
    return random.choice(
        (f"curl -u carla:{secret} https://h", f"curl -s --user 'carla:{secret}' https://h", f"mysql -ucarla -p{secret} db",
         f"train.py --api-key {secret} --steps 3", f"x --password={secret}", f"['x', '--token', '{secret}', '-n', '1']",
         f"x --key {secret}", f"sshpass -p {secret} ssh h", f'wandb login --api_key "{secret}"', f"x --db-password '{secret}'",
         f"machine h.example login carla password {secret}", f"machine h\n  login carla\n  password {secret}\n")
    )  # fmt: skip


def _words(random: Random, secret: str) -> str:
    return random.choice(
        (f"the password is {secret}", f"your password is: {secret}", f"passphrase was '{secret}'", f"Password: {secret}",
         f"login with password '{secret}'".replace("password '", "password: '"), f"token is {secret}1")
    )  # fmt: skip


_PLACES: dict[str, Callable[[Random, str], str]] = {
    "environment": _environment_dump, "data": _data, "plain data": _plain_data, "url": _url, "header": _header,
    "command": _command, "words": _words,
}  # fmt: skip


def _split(random: Random, text: str, secret: str) -> str:
    """Put escape sequences, control or invisible characters into a secret."""
    at = random.randint(1, len(secret) - 1)
    mark = random.choice(
        ("\x1b[31m", "\x1b[0m", "\x1b[1;36m", "\u200b", "\x00", "\x1b]0;t\x07", "\x9b31m", "\u2060", "\x07")
    )
    return text.replace(secret, secret[:at] + mark + secret[at:])


def planted_secrets(random: Random, count: int) -> Iterator[PlantedSecret]:
    """Yield texts with a secret each, every kind in turn."""
    kinds = [*(f"form {kind}" for kind in FORMS), *_PLACES, *_PLACES, "odd", "web token", "encrypted token", "key", "key in JSON",
             "beside its id", "key with prefixes", "split"]  # fmt: skip
    for number in range(count):
        kind = kinds[number % len(kinds)]
        yield from _planted(random, kind)


def _planted(random: Random, kind: str) -> Iterator[PlantedSecret]:
    before, after = random.choice(
        (("", ""), ("12:00 INFO ", " done"), ("\x1b[36m(W pid=7, ip=10.0.0.7)\x1b[0m ", ""))
    )
    if kind.startswith("form "):
        secret = form(random, kind.removeprefix("form "))
        text = random.choice(
            ("{}", "it is {}, they say", "({})", "key={}", '"{}"', "[{}]", "a {} b\n")
        ).format(secret)
    elif kind == "web token":
        secret = text = _web_token(random, 3)
    elif kind == "encrypted token":
        secret = text = _web_token(random, 5)
    elif kind.startswith("key"):
        yield from _planted_key(random, kind)
        return
    elif kind == "beside its id":
        secret = _of(random, _BASE64, 40)
        text = random.choice(
            ("aws {0} {1}", "id: {0}\nkey {1}", '["{0}", "{1}"]', "{0}:{1}", "({1}, {0})")
        ).format(form(random, "aws"), secret)
    elif kind == "odd":
        secret = _odd_password(random)
        text = random.choice(
            ('password: "{}"', "DB_PASSWORD='{}'", '{{"password": "{}", "a": 1}}', "--password '{}'")
        ).format(secret)
    elif kind == "split":
        secret = form(random, random.choice(("hugging face", "github", "openai", "wandb local")))
        yield PlantedSecret(kind, before + _split(random, f"it is {secret}", secret) + after, secret)
        return
    else:
        secret = _password(random)
        text = _PLACES[kind](random, secret)
        if secret not in text:  # written in another form, of which nothing may be left either
            secret = base64.b64encode(f"carla:{secret}".encode()).decode() if "asic" in text else secret[4:]
    yield PlantedSecret(kind, before + text + ("" if kind == "header" else after), secret)


def _planted_key(random: Random, kind: str) -> Iterator[PlantedSecret]:
    name = random.choice(("RSA ", "OPENSSH ", "EC ", "ENCRYPTED ", ""))
    begin, end = f"-----BEGIN {name}PRIVATE" + " KEY-----", f"-----END {name}PRIVATE" + " KEY-----"
    lines = _key_lines(random)
    if kind == "key in JSON":
        text = json.dumps({"type": "service_account", "private_key": "\n".join([begin, *lines, end, ""])})
    elif kind == "key with prefixes":
        text = "\n".join(f"(W pid=7, ip=10.0.0.7) {line}" for line in [begin, *lines, end])
    else:
        text = "\n".join([begin, *lines, end])
    yield PlantedSecret(kind, text, random.choice(lines))


def harmless_texts(random: Random, count: int) -> Iterator[str]:
    """Yield texts without a secret: hashes that are said to be some, paths, metrics, settings of tokenizers."""
    for number in range(count):
        sha, digest = _of(random, _HEX, 40), _of(random, _HEX, 64)
        words = "/".join(
            _of(random, string.ascii_lowercase, random.randint(3, 12)) for _ in range(random.randint(2, 9))
        )
        value = f"{random.random() * 10 ** random.randint(-3, 6):.4g}"
        texts = (
            f"commit {sha}", f"revision={sha}", f"sha256:{digest}", f"HEAD is {sha[:9]}", f"/x/snapshots/{sha}/config.json",
            f"image: docker://nvcr.io/x@sha256:{digest}", f"/{words}", f"/{words}/{_of(random, _ALNUM, 12)}.py:{number}",
            f"tokens_per_sec: {value}", "pad_token: <|endoftext|>", f"token: {value}", f"eos_token_id={number}",
            f"policy.generation.stop_token={value}", f"cost per token: {value} s", "password required", "forward pass: 0.1234s",
            f"https://host.example:8443/{words}", f"http://localhost:{8000 + number % 999}/v1", "tokenizer: Qwen/Qwen3-4B",
            "api_key: ${oc.env:WANDB_API_KEY}", "HF_TOKEN=$HF_TOKEN", "HF_TOKEN_PATH=/p/data/token", "key: policy.model_name",
            f"actor_id={_of(random, _HEX, 32)}", f"key metric: accuracy {value}", "AUTHOR: Anna Schmidt", "api_key: null",
            f"step {number}/100 loss={value} kl={value}", f"pass@1: {value}", f"task-{_of(random, string.ascii_lowercase, 20)}",
            f"flow sk-{number}", f"PYTHONPATH=/{words}", "wandb: offline, no key", "machine learning default password policy",
            f"ref: refs/heads/{_of(random, string.ascii_lowercase, 30)}", f"{_of(random, string.ascii_lowercase, 50)}",
            f"git+https://github.com/NVIDIA/NeMo-RL@{sha}", f"blob {sha} 1234", "token budget: 4096 tokens", "cookie: none",
        )  # fmt: skip
        yield texts[number % len(texts)]
