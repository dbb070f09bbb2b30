"""Fetching a model's small files into the Hugging Face cache, on a node with internet and only when asked."""

from __future__ import annotations

import json
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from recipes.limits import REFERENCE_BYTES
from recipes.models.facts import UnknownModel
from recipes.reading import read_limited

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from recipes.models.hub import Hub

FILES = ("config.json", "tokenizer.json")
_OPTIONAL = frozenset({"tokenizer.json"})
_LIMIT = 64 * 2**20
_TIMEOUT_S = 20.0
_MAIN = "main"


def download(hub: Hub, name: str, environment: Mapping[str, str]) -> Path | UnknownModel:
    """Fetch `config.json` and, where there is one, `tokenizer.json`; returns the snapshot's directory.

    Honours `HF_ENDPOINT`, `HF_TOKEN` and the token that `hf auth login` keeps. Never raises: a gated
    model, no network or a broken answer is `UnknownModel` with what to do. Files come whole, or not at all.
    """
    contents: dict[str, bytes] = {}
    revision = ""
    for file in FILES:
        answer = _fetch(name, file, environment)
        if isinstance(answer, UnknownModel):
            if file in _OPTIONAL:
                continue
            return answer
        contents[file], revision = answer[0], revision or answer[1]
    try:
        json.loads(contents["config.json"])
    except ValueError:
        return UnknownModel(
            f"the answer for {name}'s config.json is not JSON", "Is there a proxy in between? Try a browser."
        )
    root = hub.directory / f"models--{name.replace('/', '--')}"
    try:
        return _store(root, revision or _MAIN, contents)
    except OSError as error:
        return UnknownModel(
            f"{root} cannot be written: {error}", "Set HF_HOME to a directory that you can write to."
        )


def _fetch(name: str, file: str, environment: Mapping[str, str]) -> tuple[bytes, str] | UnknownModel:
    endpoint = environment.get("HF_ENDPOINT") or "https://huggingface.co"
    if not endpoint.startswith(("https://", "http://")):
        return UnknownModel(f"HF_ENDPOINT is {endpoint}, which is not a web address", "Unset it.")
    request = urllib.request.Request(f"{endpoint.rstrip('/')}/{name}/resolve/{_MAIN}/{file}")  # noqa: S310 - checked
    token = _token(environment)
    if token:
        # Redirects lead to a storage host, which must not see the token.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - checked above
            return _read(answer)
    except urllib.error.HTTPError as error:
        return _refused(name, file, error.code, signed_in=bool(token))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return UnknownModel(
            f"{endpoint} cannot be reached from here ({reason})",
            f"Run `hf download {name} {file}` on a node with internet, with the same HF_HOME.",
        )


def _read(answer: HTTPResponse) -> tuple[bytes, str]:
    data = answer.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise ValueError(f"more than {_LIMIT // 2**20} MiB")
    revision = answer.headers.get("X-Repo-Commit", "")
    return data, revision if revision.isalnum() else ""


def _refused(name: str, file: str, status: int, *, signed_in: bool) -> UnknownModel:
    if status in (401, 403):
        access = "this account was not given access" if signed_in else "you are not signed in"
        sign_in = "Ask for access on the model's page, then `hf auth login` (or set HF_TOKEN)."
        fix = f"{sign_in} Is '{name}' spelled right?"
        return UnknownModel(f"{name} is gated, private or does not exist, and {access}", fix)
    if status == 404:
        return UnknownModel(f"{name} has no {file}", "Check the model's name.")
    return UnknownModel(f"HTTP {status} for {name}'s {file}", "Try again later.")


def _token(environment: Mapping[str, str]) -> str:
    if environment.get("HF_TOKEN"):
        return environment["HF_TOKEN"].strip()
    home = environment.get("HF_HOME") or "~/.cache/huggingface"
    path = Path(environment.get("HF_TOKEN_PATH") or f"{home}/token").expanduser()
    try:
        return read_limited(path, REFERENCE_BYTES).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""  # you are not signed in: open models need no token


def _store(root: Path, revision: str, contents: Mapping[str, bytes]) -> Path:
    snapshot = root / "snapshots" / revision
    snapshot.mkdir(parents=True, exist_ok=True)
    (root / "refs").mkdir(exist_ok=True)
    for name, data in contents.items():
        _write(snapshot / name, data)
    _write(root / "refs" / _MAIN, revision.encode())
    return snapshot


def _write(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
