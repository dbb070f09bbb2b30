"""Downloads on request, from a server on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recipes.models import ModelFacts, Models, UnknownModel
from recipes.models.download import download
from tests.checks.test_models import CONFIG

SERVED = {
    "/org/open/resolve/main/config.json": json.dumps(CONFIG),
    "/org/open/resolve/main/tokenizer.json": json.dumps({"model": {"vocab": {"a": 0}}}),
    "/org/bare/resolve/main/config.json": json.dumps(CONFIG),
    "/org/proxy/resolve/main/config.json": "<html>Sign in to the network</html>",
    "/org/gated/resolve/main/config.json": json.dumps(CONFIG),
}


class Handler(BaseHTTPRequestHandler):
    """Serves files; what is gated wants a token."""

    def do_GET(self) -> None:
        signed = self.headers.get("Authorization") == "Bearer good"
        text = SERVED.get(self.path)
        status = (
            401
            if "gated" in self.path and not signed
            else 503
            if "down" in self.path
            else 200
            if text
            else 404
        )
        self.send_response(status)
        self.send_header("X-Repo-Commit", "c0ffee")
        self.end_headers()
        if status == 200 and text:
            self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Say nothing."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def known(home: Path, endpoint: str, **variables: str) -> tuple[Models, dict[str, str]]:
    environment = {"HF_HOME": str(home), "HF_ENDPOINT": endpoint, **variables}
    return Models.of(environment, home), environment


def test_what_is_fetched_is_found_in_the_cache_afterwards(endpoint: str, tmp_path: Path) -> None:
    models, environment = known(tmp_path, endpoint)
    assert isinstance(models.find("org/open"), UnknownModel)
    folder = download(models.hub, "org/open", environment)
    assert folder == tmp_path / "hub" / "models--org--open" / "snapshots" / "c0ffee"
    facts = models.find("org/open")
    assert isinstance(facts, ModelFacts)
    assert facts.source == "cache"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "tokenizer.json"]
    assert not models.has_weights("org/open")


def test_a_model_without_tokenizer_json_is_fetched(endpoint: str, tmp_path: Path) -> None:
    models, environment = known(tmp_path, endpoint)
    assert isinstance(download(models.hub, "org/bare", environment), Path)


def test_a_token_opens_a_gated_model(endpoint: str, tmp_path: Path) -> None:
    models, environment = known(tmp_path, endpoint, HF_TOKEN="good")
    assert isinstance(download(models.hub, "org/gated", environment), Path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "token").write_text("good\n")
    models, environment = known(tmp_path / "other", endpoint)
    assert isinstance(download(models.hub, "org/gated", environment), Path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("org/gated", ("gated", "you are not signed in", "hf auth login")),
        ("org/absent", ("has no config.json",)),
        ("org/down", ("HTTP 503",)),
        ("org/proxy", ("not JSON",)),
    ],
)
def test_refusals_say_what_to_do_and_leave_nothing(
    endpoint: str, tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    models, environment = known(tmp_path, endpoint)
    found = download(models.hub, name, environment)
    assert isinstance(found, UnknownModel)
    assert all(word in f"{found.reason} {found.fix}" for word in words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["http://127.0.0.1:9", "file:///etc"])
def test_no_network_is_said(tmp_path: Path, where: str) -> None:
    models, environment = known(tmp_path, where)
    found = download(models.hub, "org/open", environment)
    assert isinstance(found, UnknownModel)
    assert found.fix


def test_a_cache_that_cannot_be_written_is_said(endpoint: str, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("a file")
    models, environment = known(tmp_path, endpoint)
    found = download(models.hub, "org/open", environment)
    assert isinstance(found, UnknownModel)
    assert "cannot be written" in found.reason
