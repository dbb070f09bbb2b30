"""`models`: a model's architecture, and where it was read from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from launcher.text import did_you_mean
from recipes.errors import Exit, ExplainedError
from recipes.models import Models, UnknownModel
from recipes.models.table import TABLE
from tui.headless.output import SCHEMA, print_json, say, show

if TYPE_CHECKING:
    import argparse

_FIELDS = (
    "id", "source", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "tied", "params",
    "context",
)  # fmt: skip


class DownloadError(ExplainedError):
    """A model's files cannot be downloaded."""

    exit_code = Exit.OUTSIDE


def run(options: argparse.Namespace) -> int:
    """Print a model's architecture.

    Raises:
        ExplainedError: nothing is known of the model.
    """
    models = Models.of()
    if options.download:
        _download(models, options.id)
    facts = models.find(options.id)
    if isinstance(facts, UnknownModel):
        guess = did_you_mean(options.id, TABLE)
        raise ExplainedError(f"unknown model: {facts.reason}{guess}", fix=facts.fix)
    values = {name: getattr(facts, name) for name in _FIELDS} | {"path": facts.path or None}
    if options.json:
        print_json(SCHEMA | values)
        return 0
    for name, value in values.items():
        show(f"{name:10} {'unknown' if value is None else value}")
    if facts.source == "table":
        say("from the built-in table, not from the model's own config.json")
    return 0


def _download(models: Models, model_id: str) -> None:
    from recipes.models.download import download

    fetched = download(models.hub, model_id, os.environ)
    if isinstance(fetched, UnknownModel):
        raise DownloadError(f"cannot download '{model_id}': {fetched.reason}", fix=fetched.fix)
