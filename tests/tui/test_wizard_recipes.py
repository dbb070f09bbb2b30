"""Recipes in the wizard: files by path, packaged ones by name, and what the list offers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launcher.clusters.registry import detect
from launcher.request import SubmitRequest
from launcher.runs import RunStore
from launcher.submit.submit import plan_submission, send
from launcher.transports.local import LocalTransport
from recipes.library import DIRECTORY, starting_recipes
from tests.tui.fakeslurm import LoginNode
from tui.screens.wizard.alternatives import choices_for
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.model import DraftStatus, WizardState, default_text
from tui.screens.wizard.recipe_paths import CHECKOUT, HERE, OF_RUN, PACKAGED, recipe_choices, recipe_file
from tui.screens.wizard.recipe_saving import offer_of
from tui.screens.wizard.validation import errors

NAME = "qwen3-4b-from-32b.yaml"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    one = LoginNode.at(tmp_path_factory.mktemp("node"))
    folder = one.checkout / "examples" / "configs" / "recipes" / "llm"
    folder.mkdir(parents=True)
    for name in ("distillation-a-1n8g.v1.yaml", "grpo-b.yaml"):
        (folder / name).write_text("defaults: ../../distillation_math.yaml\n")
    (one.checkout / "examples" / "configs" / "distillation_math.yaml").write_text("distillation: {}\n")
    return one


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resolved(node: LoginNode, text: str) -> DraftStatus:
    resolver = DraftResolver(RunStore(LocalTransport(), str(node.runs)), {**os.environ, **node.environment})
    resolver.ask_slurm()
    return resolver.quick_status(WizardState({"recipe": text}))


@pytest.mark.parametrize("name", [path.name for path in starting_recipes()])
def test_a_file_comes_before_the_packaged_recipe_of_its_name(here: Path, name: str) -> None:
    assert recipe_file(name) == DIRECTORY / name
    (here / name).write_text("distillation: {}\n")
    assert recipe_file(name) == here / name
    assert recipe_file(f"./{name}") == here / name
    assert recipe_file(str(DIRECTORY / name)) == DIRECTORY / name


def test_paths_are_paths(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here / "home"))
    assert recipe_file("~/a.yaml") == here / "home" / "a.yaml"
    assert recipe_file("sub/../a.yaml") == here / "sub" / ".." / "a.yaml"
    assert recipe_file(f"./{NAME}") == here / NAME
    assert recipe_file("unknown.yaml") == here / "unknown.yaml"


def test_where_the_recipe_comes_from_is_shown(node: LoginNode, here: Path) -> None:
    packaged = resolved(node, NAME)
    assert (packaged.path, packaged.recipe_source) == (DIRECTORY / NAME, PACKAGED)
    (here / NAME).write_text(node.recipe.read_text())
    own = resolved(node, NAME)
    assert (own.path, own.recipe_source) == (here / NAME, HERE)


def test_the_default_stays_the_packaged_recipe(node: LoginNode, here: Path) -> None:
    default = resolved(node, "")
    assert default_text("recipe", WizardState(), default) == "qwen3-1.7b-from-4b.yaml"
    (here / "qwen3-1.7b-from-4b.yaml").write_text(node.recipe.read_text())
    text = default_text("recipe", WizardState(), resolved(node, ""))
    assert recipe_file(text) == DIRECTORY / "qwen3-1.7b-from-4b.yaml"


@pytest.mark.parametrize("text", ["nowhere.yaml", "./nowhere.yaml", "~/nowhere.yaml", "sub/nowhere.yaml"])
def test_an_error_names_the_path(node: LoginNode, here: Path, text: str) -> None:
    status = resolved(node, text)
    assert str(Path(text).expanduser().absolute()) in errors(status.state, status)["recipe"]


def test_an_error_names_a_directory_and_a_file_of_another_kind(node: LoginNode, here: Path) -> None:
    (here / "folder.yaml").mkdir()
    (here / "grpo.yaml").write_text("grpo: {}\n")
    for name in ("folder.yaml", "grpo.yaml"):
        status = resolved(node, name)
        assert str(here / name) in errors(status.state, status)["recipe"]


def test_the_list_has_this_directory_then_the_checkout_then_packaged_ones(
    node: LoginNode, here: Path
) -> None:
    (here / "own.yaml").write_text("distillation: {}\n")
    (here / "child.yml").write_text("defaults:\n  - own.yaml\npolicy: {}\n")
    (here / "grpo.yaml").write_text("grpo: {}\n")
    (here / NAME).write_text("defaults: own.yaml\n")
    status = resolved(node, "own.yaml")
    offered = [(item.label, item.description) for item in choices_for("recipe", status.state, status)]
    assert offered[:5] == [
        ("child.yml", HERE),
        ("own.yaml", HERE),
        (NAME, HERE),
        ("distillation_math.yaml", CHECKOUT),
        ("distillation-a-1n8g.v1.yaml", CHECKOUT),
    ]
    assert (NAME, PACKAGED) in offered
    assert "grpo.yaml" not in dict(offered)
    values = [item.value for item in choices_for("recipe", status.state, status)]
    assert len({recipe_file(value) for value in values}) == len(values)


def test_what_is_no_recipe_is_passed_over_at_once(here: Path) -> None:
    """A FIFO would block its reader for good, and parents that name each other would be read for ever."""
    os.mkfifo(here / "fifo.yaml")
    (here / "directory.yaml").mkdir()
    (here / "large.yaml").write_text("distillation:\n" + "#" * (1 << 20))
    names = [f"loop{number}.yaml" for number in range(40)]
    for name in names:
        (here / name).write_text(f"defaults: [{', '.join(names)}]\n")
    (here / "child.yaml").write_text("defaults:\n  - nothing.yaml\n  - fifo.yaml\n  - base.yml\n")
    (here / "base.yml").write_text("distillation: {}\n")
    listed = {row.text for row in recipe_choices((), None) if row.source == HERE}
    assert listed == {"child.yaml", "base.yml"}


def test_a_recipe_is_listed_once(here: Path) -> None:
    path = here / "own.yaml"
    path.write_text("distillation: {}\n")
    choices = recipe_choices([path, DIRECTORY / NAME], here)
    assert [item.path for item in choices].count(path) == 1
    assert next(item for item in choices if item.path.name == NAME).source == PACKAGED


def test_values_of_trainings_are_offered(tmp_path: Path) -> None:
    node = LoginNode.at(tmp_path / "node")
    environment = {**os.environ, **node.environment}
    store = RunStore(LocalTransport(), str(node.runs))
    request = SubmitRequest(node.recipe, 1, "30", overrides=("distillation.max_num_steps=7",))
    detection = detect(store.transport, environment, tmp_path / "cache")
    run = send(plan_submission(request, detection, store, environment), store, environment, confirmed=True)
    status = resolved(node, str(node.recipe))
    (choice,) = [item for item in status.recipes if item.source == OF_RUN]
    assert choice.label == run.spec.id
    again = resolved(node, choice.text)
    assert default_text("steps", again.state, again) == "7"


def test_a_new_recipe_has_the_size_of_the_job_that_it_is_named_after(node: LoginNode) -> None:
    larger = node.checkout / "larger.yaml"
    larger.write_text("defaults: recipe.yaml\ncluster: {num_nodes: 2, gpus_per_node: 8}\n")
    status = resolved(node, str(larger))
    offer = offer_of(WizardState({"recipe": str(larger), "prompts": "32"}), status)
    keys = [item.key for item in offer.chosen.differences]
    assert keys == ["distillation.num_prompts_per_step"]
    assert {item.key: item.b for item in offer.as_child.differences} == {
        "distillation.num_prompts_per_step": 32,
        "cluster.gpus_per_node": 4,  # those of the partition
    }
    assert {path.name for path, _ in offer.paths} == {"distillation-student-from-teacher-2n4g.yaml"}


def test_models_in_the_cache_come_first_with_their_size(node: LoginNode, here: Path) -> None:
    def cache(name: str, file: str) -> None:
        snapshot = here / "hf" / "hub" / f"models--{name.replace('/', '--')}" / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        with (snapshot / file).open("wb") as weights:
            weights.truncate(200_000_000)

    cache("Qwen/Qwen3-4B", "model.safetensors")
    cache("own/model", "pytorch_model.bin")
    cache("meta/only-config", "config.json")
    environment = {**os.environ, **node.environment, "HF_HOME": str(here / "hf")}
    resolver = DraftResolver(RunStore(LocalTransport(), str(node.runs)), environment)
    state = WizardState({"recipe": str(node.recipe), "student": "Qwen/Qwen3-1.7B"})
    status = resolver.quick_status(state)
    offered = [(item.value, item.description) for item in choices_for("student", state, status)]
    assert [value for value, _ in offered[:2]] == ["Qwen/Qwen3-4B", "own/model"]
    assert offered[0][1].startswith("0.2 GB in the cache, 4.0B parameters")
    assert offered[1][1] == "0.2 GB in the cache"
    assert "meta/only-config" not in dict(offered)
    assert len(dict(offered)) == len(offered)
    teachers = [item.value for item in choices_for("teacher", state, status)]
    assert teachers[0] == "Qwen/Qwen3-4B"
    assert "Qwen/Qwen3-1.7B" not in teachers
