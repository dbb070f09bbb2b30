"""Fields of the wizard: each value reaches the effective recipe or the job, in every release and backend."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from launcher.errors import InputError
from launcher.fields import FIELDS, field
from launcher.fields.assignments import assign, read_assignments
from launcher.fields.data_set_names import data_set_names
from launcher.fields.field_values import (
    all_changes,
    counterpart_key,
    is_available,
    key_in,
    text_in,
    value_error,
)
from launcher.fields.stock_values import StockValues, field_help
from recipes.inheritance import EffectiveRecipe, resolve
from recipes.known_keys import KeyTree, known_keys
from recipes.library import DIRECTORY
from tests.checks.releases import RELEASES, release
from tests.launcher.field_samples import COMPOUND_SAMPLES, JOB_SAMPLES, RECIPE_SAMPLES
from tui import cli
from tui.headless import submit

if TYPE_CHECKING:
    from collections.abc import Mapping

STARTING = DIRECTORY / "qwen3-1.7b-from-4b.yaml"
SPLIT = DIRECTORY / "qwen3-1.7b-from-4b-split.yaml"
OF_RECIPE = [row.name for row in FIELDS if row.of_recipe]


@cache
def starting(path: Path = STARTING) -> EffectiveRecipe:
    return resolve(path)


def changed(
    texts: Mapping[str, str],
    recipe: EffectiveRecipe | None = None,
    key_tree: KeyTree | None = None,
    *,
    both: frozenset[str] = frozenset(),
    nodes: int | None = None,
    gpus_per_node: int | None = None,
) -> EffectiveRecipe:
    base = recipe or starting()
    changes = all_changes(texts, base, key_tree=key_tree, both=both, nodes=nodes, gpus_per_node=gpus_per_node)
    return resolve(base.path, [text for change in changes for text in change.overrides()])


def test_there_is_a_sample_for_every_field_that_is_asked_for() -> None:
    assert {*RECIPE_SAMPLES, *COMPOUND_SAMPLES} == set(OF_RECIPE)
    assert set(JOB_SAMPLES) == {row.name for row in FIELDS if row.step and not row.of_recipe}


@pytest.mark.parametrize("name", [name for name in RECIPE_SAMPLES if not field(name).only_megatron])
def test_a_value_reaches_the_effective_recipe(name: str) -> None:
    text, value = RECIPE_SAMPLES[name]
    item = field(name)
    assert value_error(item, text) == ""
    recipe = changed({name: text})
    assert recipe.get(key_in(item, starting())) == value
    assert text_in(item, recipe) == str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in COMPOUND_SAMPLES.items() for t in texts])
def test_a_field_of_several_keys_is_read_back(name: str, text: str) -> None:
    for path in (STARTING, SPLIT):
        assert text_in(field(name), changed({name: text}, starting(path))) == text


@pytest.mark.parametrize("name", JOB_SAMPLES)
def test_an_option_of_submit_reaches_the_request(name: str) -> None:
    arguments, attribute, value = JOB_SAMPLES[name]
    options = cli.parse("0", ["submit", str(STARTING), "--time", "10", *arguments])
    request = submit.request_of(options)
    assert getattr(request, attribute) == (value or Path(arguments[1] if arguments else STARTING))


def test_fields_of_the_recipe_are_options_of_submit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEMO_RL_ROOT", str(tmp_path))  # no checkout: the newest release's keys
    options = cli.parse(
        "0",
        ["submit", str(STARTING), "--time", "10", "--set", "wandb=offline", "--set-both", "length=4096",
         "distillation.max_num_steps=5", "--set", "generation=split"],
    )  # fmt: skip
    request = submit.request_of(options)
    assert request.env == ("WANDB_MODE=offline",)
    recipe = resolve(STARTING, request.overrides)
    assert recipe.get("distillation.max_num_steps") == 5
    assert recipe.get("teacher.max_total_sequence_length") == 4096
    assert recipe.get("policy.generation.colocated.enabled") is False
    assert recipe.get("policy.generation.colocated.resources.gpus_per_node") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prompt=3", "unknown field 'prompt'; did you mean prompts?"),
        ("prompts=0", "must be a whole number >= 1"),
        ("prompts=1_0", "must be a whole number >= 1"),
        ("prompts", "no value"),
        ("kl_mix=1.5", "must be a number >= 0 and <= 1"),
        ("lr=nan", "must be a number >= 0"),
        ("kl_type=both", "must be one of forward, reverse, mixed"),
        ("cpu_offload=maybe", "must be true or false"),
        ("student=", "required"),
    ],
)
def test_what_is_no_value_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        read_assignments([text])


def test_a_field_that_a_recipe_has_not_is_refused() -> None:
    with pytest.raises(InputError, match="nothing of the kind"):
        assign(STARTING, (), ["policy_pp=2"])
    with pytest.raises(InputError, match="do not both have it"):
        assign(STARTING, (), (), for_both=["prompts=2"])


def test_a_split_gets_what_is_legal_at_the_size_of_the_job() -> None:
    resources = "policy.generation.colocated.resources"
    one = changed({"generation": "split"}, nodes=1, gpus_per_node=4)
    assert (one.get(f"{resources}.gpus_per_node"), one.get(f"{resources}.num_nodes")) == (2, None)
    two = changed({"generation": "split"}, nodes=2, gpus_per_node=4)
    assert (two.get(f"{resources}.gpus_per_node"), two.get(f"{resources}.num_nodes")) == (4, 1)
    own = changed({"generation": "split", "generation_gpus": "3"}, nodes=1, gpus_per_node=4)
    assert own.get(f"{resources}.gpus_per_node") == 3


def test_the_schedule_ends_with_the_run() -> None:
    recipe = changed({"schedule": "linear", "warmup": "20", "steps": "120"})
    first, second, last = recipe.get("policy.scheduler")
    assert first["kwargs"]["total_iters"] == 20
    assert second["kwargs"] == {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 100}
    assert last == {"milestones": [20]}
    assert changed({"warmup": "7"}).get("policy.scheduler.1") == starting().get("policy.scheduler.1")


def test_set_for_both_where_the_teacher_does_not_follow(shared: Path) -> None:
    stock = resolve(shared / "corpus/nemo-rl/examples/configs/distillation_math.yaml")
    key = "teacher.max_total_sequence_length"
    assert counterpart_key(field("length"), stock) == key
    assert counterpart_key(field("length"), starting()) == ""
    assert changed({"length": "512"}, stock).get(key) == 8192
    assert changed({"length": "512"}, stock, both=frozenset({"length"})).get(key) == 512


def test_help_says_what_it_does_what_others_use_and_what_follows(shared: Path) -> None:
    stock = StockValues.of(shared / "corpus/nemo-rl")
    used = dict(stock.used(field("kl_type")))
    assert stock.recipes >= sum(used.values()) > 5
    assert set(used) <= {"forward", "reverse", "mixed"}
    does, others, follows = field_help(field("length"), stock)
    assert does.startswith("Longest prompt")
    assert "8192 (" in others
    assert "for both" in follows
    assert stock.line(field("checkpoint_dir")) == ""  # each recipe has its own
    assert StockValues.of(shared / "nowhere").recipes == 0


def test_data_sets_are_read_from_either_form_of_the_source(tmp_path: Path) -> None:
    source = tmp_path / "nemo_rl/data/datasets/response_datasets/__init__.py"
    source.parent.mkdir(parents=True)
    source.write_text("DATASET_REGISTRY: dict = {'A': 1, 'b-2': 2, **other}\n")
    assert data_set_names(tmp_path) == ("A", "b-2")
    source.write_text("def load(dataset_name):\n    if dataset_name == 'A':\n        return 1\n")
    assert data_set_names(tmp_path) == ("A",)
    source.write_text("def (\n")
    assert data_set_names(tmp_path) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
@pytest.mark.parametrize("recipe_name", ["distillation_math.yaml", "distillation_math_megatron.yaml"])
def test_every_field_reaches_the_recipe_of_every_release(
    name: str, recipe_name: str, shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = release(shared, tmp_path_factory, name)
    key_tree = known_keys("distillation", root)
    base = resolve(root / "examples/configs" / recipe_name)
    megatron = base.get("policy.megatron_cfg.enabled") is True
    missing = {row.name for row in FIELDS if not is_available(row, base, key_tree)}
    expected = set() if megatron else {"policy_pp", "teacher_pp"}
    if name in ("v0.4.0", "v0.5.0"):
        expected |= {"validation_set"}  # the data set decides it
    assert missing == expected
    for field_name, (text, value) in RECIPE_SAMPLES.items():
        if field_name not in missing:
            key = key_in(field(field_name), base, key_tree)
            assert changed({field_name: text}, base, key_tree).get(key) == value, (field_name, key)
    for field_name, texts in COMPOUND_SAMPLES.items():
        for text in texts:
            recipe = changed({field_name: text}, base, key_tree)
            assert text_in(field(field_name), recipe) == text, (field_name, text)
    assert {"DeepScaler", "OpenMathInstruct-2"} <= set(data_set_names(root))
    assert StockValues.of(root).recipes >= 6
