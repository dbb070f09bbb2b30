"""Where facts of models come from, and that nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.models import Hub, ModelFacts, Models, UnknownModel
from recipes.models.hub import hub_name
from recipes.models.table import TABLE
from recipes.models.vocabulary import VocabularyDifference, compare

CONFIG = {
    "model_type": "qwen3",
    "num_hidden_layers": 28,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 6144,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "max_position_embeddings": 40960,
}
PUBLISHED = {
    "Qwen/Qwen3-0.6B": 0.596,
    "Qwen/Qwen3-1.7B": 1.72,
    "Qwen/Qwen3-4B": 4.02,
    "Qwen/Qwen3-8B": 8.19,
    "Qwen/Qwen3-14B": 14.77,
    "Qwen/Qwen3-32B": 32.76,
    "Qwen/Qwen3-30B-A3B": 30.5,
    "Qwen/Qwen2.5-0.5B": 0.494,
    "Qwen/Qwen2.5-1.5B": 1.54,
    "Qwen/Qwen2.5-3B": 3.09,
    "Qwen/Qwen2.5-7B": 7.62,
    "Qwen/Qwen2.5-14B": 14.77,
    "Qwen/Qwen2.5-32B": 32.76,
    "meta-llama/Llama-3.2-1B": 1.24,
    "meta-llama/Llama-3.2-3B": 3.21,
    "meta-llama/Llama-3.1-8B": 8.03,
    "meta-llama/Llama-3.1-70B": 70.55,
}


def cache(home: Path, name: str, files: dict[str, object], kind: str = "models") -> Path:
    """Make a Hugging Face cache that holds one repository."""
    root = home / "hub" / f"{kind}--{name.replace('/', '--')}"
    snapshot = root / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("abc123")
    for file, content in files.items():
        (snapshot / file).write_text(content if isinstance(content, str) else json.dumps(content))
    return snapshot


def models(home: Path) -> Models:
    return Models.of({"HF_HOME": str(home)}, home)


@pytest.mark.parametrize(("name", "billions"), PUBLISHED.items())
def test_counted_parameters_agree_with_the_published_sizes(name: str, billions: float) -> None:
    params = TABLE[name].params
    assert params is not None
    assert params / 1e9 == pytest.approx(billions, rel=0.01)


def test_the_cache_goes_before_the_table_and_says_so(tmp_path: Path) -> None:
    listed = models(tmp_path).find("Qwen/Qwen3-1.7B")
    assert isinstance(listed, ModelFacts)
    assert listed.source == "table"
    cache(tmp_path, "Qwen/Qwen3-1.7B", {"config.json": {**CONFIG, "vocab_size": 999}})
    cached = models(tmp_path).find("Qwen/Qwen3-1.7B")
    assert isinstance(cached, ModelFacts)
    assert (cached.source, cached.vocab) == ("cache", 999)


def test_a_directory_is_read_relative_to_the_driver(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(CONFIG))
    found = models(tmp_path).find("mine")
    assert isinstance(found, ModelFacts)
    assert found.source == "config.json"
    assert found.params == TABLE["Qwen/Qwen3-1.7B"].params
    assert found.kv_bytes_per_token == 112 * 1024


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "does not exist"),
        ("{ not json", "damaged"),
        ("[1]", "no mapping"),
        ('{"model_type": "bert"}', "lacks"),
        ({**CONFIG, "hidden_size": "big"}, "lacks hidden_size"),
        ("\udcff", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said_not_guessed(tmp_path: Path, content: object, word: str) -> None:
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "config.json"
    if content == "\udcff":
        path.write_bytes(b"\xff\xfe{")
    elif content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    found = models(tmp_path).find("mine")
    assert isinstance(found, UnknownModel)
    assert word in found.reason
    assert found.fix


@pytest.mark.parametrize("name", ["", "nobody/nothing", "../up", "/no/such/dir", "a/b/c"])
def test_an_unknown_model_says_what_to_do(tmp_path: Path, name: str) -> None:
    found = models(tmp_path / "empty").find(name)
    assert isinstance(found, UnknownModel)
    assert found.fix


def test_hybrid_layers_have_no_parameter_count(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    data = {**CONFIG, "hybrid_override_pattern": "MEM*E"}
    (tmp_path / "mine" / "config.json").write_text(json.dumps(data))
    found = models(tmp_path).find("mine")
    assert isinstance(found, ModelFacts)
    assert found.params is None


def test_a_vision_model_keeps_its_text_part(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps({"model_type": "vlm", "text_config": CONFIG}))
    found = models(tmp_path).find("mine")
    assert isinstance(found, ModelFacts)
    assert found.heads == 16


def tokenizer(*tokens: str, added: tuple[str, ...] = ()) -> dict[str, object]:
    return {
        "model": {"vocab": {token: number for number, token in enumerate(tokens)}},
        "added_tokens": [{"content": t, "id": len(tokens) + n} for n, t in enumerate(added)],
    }


def test_vocabularies_are_compared_token_by_token(tmp_path: Path) -> None:
    cache(tmp_path, "a/one", {"tokenizer.json": tokenizer("x", "y", added=("<s>",))})
    cache(tmp_path, "a/same", {"vocab.json": {"x": 0, "y": 1}, "added_tokens.json": {"<s>": 2}})
    cache(tmp_path, "a/other", {"tokenizer.json": tokenizer("y", "x", added=("<s>",))})
    cache(tmp_path, "a/longer", {"tokenizer.json": tokenizer("x", "y", "z", added=("<s>",))})
    cache(tmp_path, "a/broken", {"tokenizer.json": "{"})
    known = models(tmp_path)
    assert compare(known, "a/one", "a/one") is None
    assert compare(known, "a/one", "a/same") is None
    assert isinstance(compare(known, "a/one", "a/other"), VocabularyDifference)
    longer = compare(known, "a/one", "a/longer")
    assert isinstance(longer, VocabularyDifference)
    assert "3 tokens" in longer.what
    assert isinstance(compare(known, "a/one", "a/broken"), UnknownModel)
    assert isinstance(compare(known, "a/one", "a/absent"), UnknownModel)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("/p/data/hub/models--Qwen--Qwen3-1.7B/snapshots/0123abcd", "Qwen/Qwen3-1.7B"),
        ("models--Qwen--Qwen3-1.7B/snapshots/0123abcd/", "Qwen/Qwen3-1.7B"),
        ("/hub/models--Qwen--Qwen3-1.7B", "Qwen/Qwen3-1.7B"),
        ("/hub/models--gpt2/snapshots/1", "gpt2"),
        ("/hub/models--org--a--b/snapshots/1", "org/a--b"),
        ("/hub/models--Qwen--Qwen3-1.7B/refs/main", "/hub/models--Qwen--Qwen3-1.7B/refs/main"),
        ("Qwen/Qwen3-1.7B", "Qwen/Qwen3-1.7B"),
        ("/models/Qwen3-1.7B", "/models/Qwen3-1.7B"),
    ],
)
def test_a_path_into_a_cache_elsewhere_is_known_by_its_name(tmp_path: Path, given: str, name: str) -> None:
    assert hub_name(given) == name
    models = Models(Hub(tmp_path / "hub"), tmp_path)
    facts = models.find(given)
    if name == "Qwen/Qwen3-1.7B":
        assert isinstance(facts, ModelFacts)
        assert (facts.id, facts.layers) == (name, 28)
        assert not models.has_weights(given), "known by its name, but its files are not here"
