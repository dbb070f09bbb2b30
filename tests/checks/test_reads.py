"""Reads without a default, found in small checkouts of a few files, and in the releases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from recipes.checks.data import datasets
from recipes.drivers import SCRIPTS
from recipes.inheritance import Resolver
from recipes.reads import MissingKey, Reads, find_reads, missing_keys
from recipes.reads.walk import walk
from tests.checks.releases import RELEASES, release, stock_recipes

SCRIPT = "examples/run_distillation.py"
MAIN = """
from nemo_rl.algorithms.distillation import setup
from nemo_rl.utils.config import load_config

def main():
    config = load_config("x.yaml")
    setup(config)
"""


def checkout(root: Path, **files: str) -> Path:
    """Write a checkout; `__` in a name is a slash."""
    script = root / SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text(MAIN)
    for name, text in files.items():
        path = root / "nemo_rl" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return root


def missing(
    root: Path, recipe: Mapping[str, Any], environments: tuple[str, ...] = ()
) -> dict[str, tuple[str, bool]]:
    """Return the missing keys of a recipe: where they are read, and whether surely."""
    reads = walk(root, SCRIPT)
    assert reads is not None
    assert reads.complete
    again = Reads.from_json(reads.to_json())
    assert again is not None
    found = missing_keys(again, recipe, environments)
    assert found == missing_keys(reads, recipe, environments)
    return {item.key: (f"{item.file}:{item.line}", item.certain) for item in found}


def only_setup(root: Path, body: str, **files: str) -> Path:
    text = "def setup(master):\n" + "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())
    return checkout(root, algorithms__distillation=text, **files)


def test_a_subscript_is_a_read_and_a_get_is_none(tmp_path: Path) -> None:
    root = only_setup(tmp_path, 'a = master["policy"]["name"]\nb = master["policy"].get("other")')
    assert missing(root, {"policy": {}}) == {"policy.name": ("nemo_rl/algorithms/distillation.py:2", True)}
    assert missing(root, {}) == {"policy": ("nemo_rl/algorithms/distillation.py:2", True)}
    assert missing(root, {"policy": {"name": 1}}) == {}


CONDITIONS = [
    ('if p["on"]:\n    p["key"]', {"on": True}, True),
    ('if p["on"]:\n    p["key"]', {"on": False}, None),
    ('if not p["on"]:\n    p["key"]', {"on": False}, True),
    ('if p["kind"] == "a":\n    p["key"]', {"kind": "a"}, True),
    ('if p["kind"] == "a":\n    p["key"]', {"kind": "b"}, None),
    ('if p["kind"] in ("a", "b"):\n    p["key"]', {"kind": "b"}, True),
    ('if "key" in p:\n    p["key"]', {}, None),
    ('if "key" in p and p["key"]["x"]:\n    pass', {}, None),
    ('x = p["key"] if p["on"] else 0', {"on": False}, None),
    ('x = p["key"] if p["on"] else 0', {"on": True}, True),
    ('if p["size"] > 1:\n    p["key"]', {"size": 2}, True),
    ('if 1 < p["size"]:\n    p["key"]', {"size": 1}, None),
    ('if p.get("on", True):\n    p["key"]', {}, True),
    ('if p.get("on"):\n    p["key"]', {}, None),
    ('if p["on"] is None:\n    return\np["key"]', {"on": None}, None),
    ('if p["on"] is None:\n    return\np["key"]', {"on": 1}, True),
    ('if unknown():\n    return\np["key"]', {}, True),
    ('if unknown():\n    p["key"]', {}, False),
    ('if unknown():\n    p["key"]\nelse:\n    p["key"]', {}, True),
    ('for item in things():\n    p["key"]', {}, True),
    ('try:\n    p["key"]\nexcept KeyError:\n    pass', {}, False),
    ('try:\n    p["key"]\nexcept ImportError:\n    raise', {}, True),
    ('p["key"] = 1\np["key"]', {}, None),
    ('p.setdefault("key", 1)\np["key"]', {}, None),
    ('for cfg, name in ((p, "a"),):\n    cfg["key"]', {}, True),
    ('a = [q["key"] for q in (p,)]', {}, True),
    ('f = lambda: p["key"]\nf()', {}, True),
    ('def inner():\n    return p["key"]\nsubmit(inner)', {}, False),
    ('if isinstance(p["on"], dict):\n    p["key"]', {"on": {}}, True),
    ('if isinstance(p["on"], dict):\n    p["key"]', {"on": 1}, None),
    ('mode = "x" if p["on"] else "y"\nif mode == "y":\n    p["key"]', {"on": False}, True),
    ('mode = "x" if p["on"] else "y"\nif mode == "y":\n    p["key"]', {"on": True}, None),
    ('assert p["on"]\np["key"]', {"on": True}, True),
    ('raise ValueError\np["key"]', {}, None),
]


@pytest.mark.parametrize(("body", "values", "certain"), CONDITIONS)
def test_branches_are_conditions_on_the_recipe(
    tmp_path: Path, body: str, values: dict[str, object], certain: bool | None
) -> None:
    root = only_setup(tmp_path, f'p = master["p"]\n{body}')
    found = missing(root, {"p": values}).get("p.key")
    assert (found[1] if found else None) == certain


@pytest.mark.parametrize(("before", "certain"), [("p['made'] = 1\n", True), ("", None)])
def test_an_assertion_of_a_key_that_the_driver_writes_hides_nothing(
    tmp_path: Path, before: str, certain: bool | None
) -> None:
    root = only_setup(tmp_path, f"p = master['policy']\n{before}assert 'made' in p\np['key']")
    found = missing(root, {"policy": {}})
    assert found.get("policy.key", ("", None))[1] is certain


def test_calls_objects_and_remote_workers_are_followed(tmp_path: Path) -> None:
    root = checkout(
        tmp_path,
        algorithms__distillation="""
            from nemo_rl.models.policy import Policy

            def setup(master):
                for name, init in (("policy", True), ("teacher", False)):
                    policy = Policy(config=master[name], init=init)
                    policy.train()
        """,
        models__policy="""
            from nemo_rl.distributed.groups import RayWorkerBuilder, RayWorkerGroup
            from nemo_rl.distributed.tools import pick

            class Policy:
                def __init__(self, config, init=True):
                    self.cfg = config
                    kwargs = dict(init=init)
                    if config.get("v2"):
                        cls = pick("nemo_rl.models.second.Second", config)
                        kwargs["extra"] = 1
                    else:
                        cls = "nemo_rl.models.first.First"
                    self.workers = RayWorkerGroup(RayWorkerBuilder(cls, config, **kwargs))

                @property
                def size(self):
                    return self.cfg["size"]

                def train(self):
                    self.size
                    self.workers.run_all_workers_single_data("train", batch=self.cfg["batch"])
        """,
        distributed__tools="def pick(name, config):\n    return name if config.get('q') is None else 'x'\n",
        distributed__groups="class RayWorkerBuilder: ...\nclass RayWorkerGroup: ...\n",
        models__first="""
            class Base:
                def __init__(self, config, init=True, seed=None):
                    self.cfg = config
                    config["base"]
                    if init:
                        config["optimizer"]

            class First(Base):
                def __init__(self, config, **kwargs):
                    super().__init__(config, **kwargs)

                def train(self, batch=None):
                    self.cfg["first"]
        """,
        models__second="""
            from nemo_rl.models.first import Base

            class Second(Base):
                def train(self, batch=None):
                    if batch is None:
                        self.cfg["never"]
                    self.cfg["second"]
        """,
    )
    found = missing(root, {"policy": {"v2": True, "batch": 1}, "teacher": {"v2": False}})
    assert {key for key, (_, certain) in found.items() if certain} == {
        *(f"policy.{name}" for name in ("base", "optimizer", "size", "second")),
        *(f"teacher.{name}" for name in ("base", "size", "batch", "first")),
    }


def test_environments_are_those_that_the_data_sets_name(tmp_path: Path) -> None:
    root = checkout(
        tmp_path,
        algorithms__distillation="""
            from nemo_rl.environments.utils import create_env

            def setup(master):
                for name in names(master):
                    create_env(name, master["env"][name])
        """,
        environments__utils="""
            ENV_REGISTRY = {"math": {"actor_class_fqn": "nemo_rl.environments.math.Math"}}

            def create_env(env_name, env_config): ...
        """,
        environments__math='class Math:\n    def __init__(self, cfg):\n        cfg["num_workers"]\n',
    )
    recipe: dict[str, object] = {"env": {"math": {}}}
    assert set(missing(root, recipe, ("math",))) == {"env.math.num_workers"}
    assert missing(root, recipe) == {}


def test_code_that_runs_in_circles_ends(tmp_path: Path) -> None:
    body = """
        from nemo_rl.other import again

        def setup(master):
            again(master, 1)
            setup(master)
            master["key"]
    """
    other = (
        "from nemo_rl.algorithms.distillation import setup\n"
        "def again(master, n):\n    again(master, n)\n    setup(master)\n"
    )
    root = checkout(tmp_path, algorithms__distillation=body, other=other)
    assert set(missing(root, {})) == {"key"}


@pytest.mark.parametrize("text", ["def setup(", "", "def setup(master): return master[", "\0"])
def test_broken_sources_read_nothing(tmp_path: Path, text: str) -> None:
    root = checkout(tmp_path, algorithms__distillation=text)
    assert missing(root, {}) == {}


def test_a_changed_file_is_walked_again_and_an_unchanged_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = only_setup(tmp_path / "checkout", 'master["one"]')
    cache = tmp_path / "cache"
    first = find_reads(root, SCRIPT, cache)
    assert first is not None
    assert list(first.reads.by_path) == [("one",)]
    with monkeypatch.context() as patch:
        patch.setattr("recipes.reads.walk.walk", lambda *_: pytest.fail("walked again"))
        assert find_reads(root, SCRIPT, cache) == first
    (root / "nemo_rl/algorithms/distillation.py").write_text('def setup(master):\n    master["other"]\n')
    second = find_reads(root, SCRIPT, cache)
    assert second is not None
    assert list(second.reads.by_path) == [("other",)]


@pytest.mark.parametrize("damage", ["", "{", "[]", json.dumps({"stamps": 1, "reads": "{}", "release": ""})])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: str) -> None:
    root = only_setup(tmp_path / "checkout", 'master["one"]')
    cache = tmp_path / "cache"
    first = find_reads(root, SCRIPT, cache)
    (file,) = cache.iterdir()
    file.write_text(damage)
    assert find_reads(root, SCRIPT, cache) == first


def test_without_a_checkout_the_newest_release_is_said() -> None:
    found = find_reads(None, SCRIPTS["distillation"][0])
    assert found is not None
    assert found.release == "v0.7.0"
    assert find_reads(None, "examples/run_nothing.py") is None


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in RELEASES])
def test_shipped_reads_are_those_of_the_releases(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, name: str
) -> None:
    root = release(shared, tmp_path_factory, name)
    script = next(script for script in SCRIPTS["distillation"] if (root / script).is_file())
    found = find_reads(root, script, tmp_path)
    assert found is not None
    assert found.release == root.name
    walked = walk(root, script)
    assert walked is not None
    assert found.reads.to_json() == walked.to_json()


NAMED = {
    "policy.sequence_packing": (),
    "policy.generation.vllm_kwargs": (),
    "policy.generation.colocated": (),
    "policy.generation.vllm_cfg.precision": (),
    "policy.generation.vllm_cfg.enforce_eager": (),
    "teacher.max_grad_norm": (),
    "env.math.num_workers": (),
    "checkpointing.save_optimizer": (),
    "policy.offload_optimizer_for_logprob": ("distillation_math_megatron.yaml",),
}


@pytest.mark.parametrize("key", NAMED)
def test_reads_of_the_main_branch(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, key: str
) -> None:
    root = release(shared, tmp_path_factory, "main-7ea279ab")
    found = find_reads(root, SCRIPT, tmp_path)
    base = root / "examples/configs" / (NAMED[key] or ("distillation_math.yaml",))[0]
    recipe = Resolver().resolve(base, [f"~{key}"])
    assert found is not None
    names = {entry.env for entry in datasets(recipe)}
    (item,) = missing_keys(found.reads, recipe.values, names)
    assert isinstance(item, MissingKey)
    assert (item.key, item.certain) == (key, True)
    line = (root / item.file).read_text(encoding="utf-8").splitlines()[item.line - 1 : item.line + 2]
    assert any(key.rpartition(".")[2] in text for text in line), (item, line)


@pytest.mark.parametrize("name", RELEASES)
def test_stock_recipes_miss_nothing(
    shared: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, name: str
) -> None:
    root = release(shared, tmp_path_factory, name)
    script = next(script for script in SCRIPTS["distillation"] if (root / script).is_file())
    found = find_reads(root, script, tmp_path)
    assert found is not None
    resolver = Resolver()
    for path in stock_recipes(root):
        if "xtoken" in path.name or "nano3" in path.name:
            continue
        recipe = resolver.resolve(path, [])
        names = {entry.env for entry in datasets(recipe)}
        assert missing_keys(found.reads, recipe.values, names) == []
