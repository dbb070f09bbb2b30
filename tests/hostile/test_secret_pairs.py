"""Secrets that stand apart from their names, in other encodings and in commands: none leaves by a report."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from launcher.monitor.redact import Redactor
from recipes.secrets import is_secret_name, masked
from tests.hostile.test_hostile_secrets import left_of

S = "Zq7Kd93m" + "Pw5XsT2v"
LOGIN = b64encode(f"alice:{S}".encode()).decode()
NESTED = json.dumps(json.dumps(json.dumps(json.dumps({"password": S}))))
PRINTED = (
    f"- name: HF_TOKEN\n  value: {S}", f'- name: "HF_TOKEN"\n  value: "{S}"', json.dumps({"name": "WANDB_API_KEY", "value": S}),
    json.dumps([{"name": "WANDB_API_KEY", "value": S}], indent=2), str(("HF_TOKEN", S)), json.dumps(["HF_TOKEN", S]),
    f"(b'authorization', b'Bearer {S}')", f"(b'x-api-key', b'{S}')", f"('authorization', 'Bearer {S}')",
    f'os.environ.setdefault("HF_TOKEN", "{S}")', f'os.environ["HF_TOKEN"] = "{S}"', f'setenv("HF_TOKEN", "{S}", 1)',
    f'wandb.login(key="{S}")', f"wandb login --relogin {S}{S}{S}", f"docker login -u bob -p {S} nvcr.io",
    f'<add key="ApiKey" value="{S}"/>', f"https://conda.anaconda.org/t/{S}/channel", f"SLURM_JWT={S}", NESTED,
    f"https://api.telegram.org/bot123456789:AAE{S}{S}/sendMessage", f"Kennwort: {S}", f"passwort={S}",
    f"runtime_env={{'env_vars': {{'WANDB_API_KEY': '{S}'}}}}", f"sbatch --export=ALL,WANDB_API_KEY={S},X=1 job.sh",
    f"origin\thttps://oauth2:{S}@gitlab.com/x/y.git (fetch)", f"[default]\napi_key = {S}\n", f"Config(api_key='{S}', x=1)",
)  # fmt: skip
GIVEN = (
    f"auth: {LOGIN}", f"//registry.x/:_auth={LOGIN}", f"{LOGIN}", f"&quot;token&quot;: &quot;{S}&quot;", f"password=&#x27;{S}&#x27;",
    f"redirect=https%3A%2F%2Fh%3Ftoken%3D{S}", f"%22password%22%3A%22{S}%22", f"pass = {S}", f"Password for 'https://bob@github.com': {S}",
    f"7z x -p{S} a.7z", f"openssl enc -pass pass:{S}", f"h\tTRUE\t/\tFALSE\t0\tid\t{S}", "Verification code: 49302117",
)  # fmt: skip
HARMLESS = (
    'SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY")', '_rule("HF_TOKEN", "setting")', '["PWD", "OLDPWD", "PATH"]',
    '{"name": "policy", "value": "abcdef"}', "- name: nodes\n  value: 16", "robot123:4567", "code: 12345678", "tokens: 123456",
    "examples/configs/distillation_math", "wandb login", "docker login nvcr.io", '("pad_token", "<|endoftext|>")', "7z x archive.7z",
    "https://conda.anaconda.org/conda-forge", "abcdefghijklmnop", "logger.wandb.name=HFTokenizerTest", "a\tTRUE\tb", "password for root",
)  # fmt: skip


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_has_none(text: str) -> None:
    assert not left_of(S, masked(text, {}))
    assert not left_of(S, Redactor()(text))


@pytest.mark.parametrize("text", GIVEN)
def test_what_is_given_to_others_has_none(text: str) -> None:
    once = Redactor()(text)
    assert not any(left_of(secret, once) for secret in (S, LOGIN, "49302117"))
    assert Redactor()(once) == once
    assert not Redactor().remaining(once)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert masked(text, {}) == text
    assert Redactor()(text) == text


def test_a_signed_token_of_slurm_is_one_by_its_name() -> None:
    assert is_secret_name("SLURM_JWT")
