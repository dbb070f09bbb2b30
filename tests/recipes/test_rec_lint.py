"""Known keys from a checkout, unknown ones with a guess, and the teacher that stays behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.document import Document
from recipes.errors import RecipeError
from recipes.inheritance import Resolver, resolve
from recipes.known_keys import ALGORITHMS, KeyTree, algorithm_of, known_keys, read_checkout, shipped_keys
from recipes.lint import Drift, UnknownKey, set_in_both, teacher_drift, unknown_keys

POLICY = """
from typing import Any, Literal, NotRequired, Optional, TypedDict, Union
from nemo_rl.models.generation.interfaces import GenerationConfig

class Off(TypedDict):
    enabled: Literal[False]

class On(TypedDict):
    enabled: Literal[True]
    tensor_parallel_size: int

Steps = list["Step"]

class Step(TypedDict):
    name: str
    kwargs: dict[str, Any]

class PolicyConfig(TypedDict):
    model_name: str
    dtensor_cfg: On | Off
    generation: NotRequired[GenerationConfig]
    scheduler: Optional[Steps]
    max_grad_norm: Union[float, None]
"""
FILES = {
    "algorithms/distillation.py": """
import torch  # never imported: this is only parsed
from pydantic import BaseModel
from nemo_rl.models.policy import PolicyConfig as Student

class Inner(BaseModel, extra="allow"):
    topk_logits_k: int = 64
    num_prompts_per_step: int

class MasterConfig(BaseModel):
    policy: Student
    teacher: Student
    distillation: Inner
    env: dict[str, Any]
""",
    "models/policy/__init__.py": POLICY,
    "models/generation/interfaces.py": "class GenerationConfig(TypedDict):\n    backend: str\n",
    "models/generation/vllm/config.py": (
        "from nemo_rl.models.generation.interfaces import GenerationConfig\n"
        "class Args(TypedDict):\n    gpu_memory_utilization: float\n"
        "class VllmConfig(GenerationConfig):\n    vllm_cfg: Args\n"
        "    vllm_kwargs: NotRequired[dict[str, Any]]\n"
    ),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, text in FILES.items():
        path = root / "nemo_rl" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    stock = root / "examples" / "configs"
    stock.mkdir(parents=True)
    (stock / "distillation.yaml").write_text(
        "distillation: {seed: 1}\npolicy: {sequence_packing: {enabled: false}}\n"
    )
    (stock / "grpo.yaml").write_text("grpo: {only_here: 1}\npolicy: {not_ours: 1}\n")
    (stock / "broken.yaml").write_text("distillation: [\n")
    return root


def names(known: KeyTree, *path: str) -> set[str]:
    for name in path:
        known = known.keys[name]
    return set(known.keys)


def test_keys_are_read_from_type_definitions_and_stock_recipes(checkout: Path) -> None:
    known = read_checkout(checkout, "distillation")
    assert known is not None
    assert names(known) == {"policy", "teacher", "distillation", "env"}
    assert names(known, "distillation") == {"topk_logits_k", "num_prompts_per_step", "seed"}
    assert names(known, "policy", "dtensor_cfg") == {"enabled", "tensor_parallel_size"}
    assert names(known, "policy", "generation") == {"backend", "vllm_cfg", "vllm_kwargs"}
    assert names(known, "policy", "scheduler") == {"name", "kwargs"}
    assert known.keys["policy"].keys["scheduler"].keys["kwargs"].open
    assert names(known, "policy", "sequence_packing") == {"enabled"}
    assert "not_ours" not in names(known, "policy")
    assert known.keys["policy"].keys["max_grad_norm"].type == "float | None"
    assert known.keys["env"].open


def test_without_a_checkout_the_shipped_keys_serve(tmp_path: Path) -> None:
    assert read_checkout(tmp_path, "distillation") is None
    known = known_keys("distillation", tmp_path)
    assert known == shipped_keys()["distillation"]
    assert known is not None
    assert {"policy", "teacher", "loss_fn", "cluster"} <= names(known)
    assert set(ALGORITHMS) < set(shipped_keys())
    assert KeyTree.from_json(known.to_json()) == known


def lint(directory: Path, text: str, checkout: Path | None = None, parent: str = "") -> list[UnknownKey]:
    (directory / "parent.yaml").write_text(parent)
    (directory / "recipe.yaml").write_text(("defaults: parent.yaml\n" if parent else "") + text)
    document = Document.open(directory / "recipe.yaml")
    values = document.revision.values
    assert values is not None
    return unknown_keys(resolve(directory / "recipe.yaml"), values, checkout)


def test_unknown_keys_come_with_a_guess(tmp_path: Path, checkout: Path) -> None:
    text = (
        "distillation:\n  topk_logit_k: 3\npolicy:\n  max_grad_nrm: 1\n  tensor_parallel_size: 2\n"
        "  scheduler:\n    - nmae: x\n      kwargs: {anything: 1}\nenv:\n  math: {free: 1}\nzzz: 1\n"
    )
    assert lint(tmp_path, text, checkout) == [
        UnknownKey("distillation.topk_logit_k", 2, "distillation.topk_logits_k"),
        UnknownKey("policy.max_grad_nrm", 4, "policy.max_grad_norm"),
        UnknownKey("policy.tensor_parallel_size", 5, "policy.dtensor_cfg.tensor_parallel_size"),
        UnknownKey("policy.scheduler.0.nmae", 7, "policy.scheduler.0.name"),
        UnknownKey("zzz", 11, ""),
    ]


def test_keys_of_a_parent_and_of_unknown_algorithms_are_left_alone(tmp_path: Path, checkout: Path) -> None:
    assert lint(tmp_path, "policy: {odd: 2}\n", checkout, "distillation: {}\npolicy: {odd: 1}\n") == []
    assert lint(tmp_path, "something: {else: 1}\n", checkout) == []
    assert algorithm_of({"distillation": {}, "teachers": []}) == "xtoken_off_policy_distillation"


def test_stock_distillation_recipes_have_no_unknown_keys(distillation: list[Path]) -> None:
    resolver = Resolver()
    for path in distillation:
        assert unknown_keys(resolver.resolve(path), resolver.reader.source(path).values) == [], path


BASE = "policy: &P\n  size: 64\n  length: 8\n  same: ${policy.size}\n  tp: 2\nteacher:\n  <<: *P\n  tp: 4\n"


def drift(directory: Path, child: str, *overrides: str) -> list[Drift]:
    (directory / "base.yaml").write_text(BASE)
    (directory / "child.yaml").write_text("defaults: base.yaml\n" + child)
    return teacher_drift(resolve(directory / "child.yaml", overrides))


def test_a_student_changed_alone_leaves_the_teacher_behind(tmp_path: Path) -> None:
    child = str(tmp_path / "child.yaml")
    assert drift(tmp_path, "policy:\n  size: 32\n") == [Drift("size", 32, 64, child, 3)]
    assert drift(tmp_path, "policy: {size: 32}\nteacher: {size: 32}\n") == []
    assert drift(tmp_path, "policy: {size: 64, tp: 8}\n") == []
    assert drift(tmp_path, "teacher: {size: 32}\n") == []
    assert drift(tmp_path, "x: 1\n", "policy.length=9") == [Drift("length", 9, 8, "<override>", 1)]
    assert drift(tmp_path, "policy: {size: 1}\nteacher: {size: 2}\n", "policy.size=3") == []


@pytest.mark.parametrize(
    ("key", "megatron", "reported"),
    [
        ("max_total_sequence_length", False, True),
        ("logprob_batch_size", False, True),
        ("max_grad_norm", False, True),
        ("dtensor_cfg.context_parallel_size", False, True),
        ("dtensor_cfg.context_parallel_size", True, False),
        ("megatron_cfg.context_parallel_size", True, True),
        ("megatron_cfg.context_parallel_size", False, False),
        ("generation.temperature", False, True),
        ("generation.max_new_tokens", False, False),
        ("generation.vllm_cfg.gpu_memory_utilization", False, False),
        ("optimizer.kwargs.lr", False, False),
        ("scheduler.kwargs.total_iters", False, False),
        ("train_global_batch_size", False, False),
        ("train_global_batch_size", True, True),
        ("sequence_packing.train_mb_tokens", False, False),
        ("sequence_packing.logprob_mb_tokens", False, True),
    ],
)
def test_drift_is_told_of_what_is_read_from_the_teacher_alone(
    tmp_path: Path, key: str, megatron: bool, reported: bool
) -> None:
    section, _, last = key.rpartition(".")
    opened = "".join(f"{{{step}: " for step in section.split(".") if step)
    inner = f"{opened}{{{last}: 1}}{'}' * opened.count('{')}"
    (tmp_path / "base.yaml").write_text(f"policy: &P {inner}\nteacher:\n  <<: *P\n  more: {{x: 1}}\n")
    (tmp_path / "child.yaml").write_text("defaults: base.yaml\n")
    overrides = [f"policy.{key}=2", f"++teacher.megatron_cfg.enabled={str(megatron).lower()}"]
    drift = [item.key for item in teacher_drift(resolve(tmp_path / "child.yaml", overrides))]
    assert drift == ([key] if reported else [])


def test_set_in_both_is_one_step(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "child.yaml").write_text("defaults: base.yaml\npolicy: {size: 32}\n")
    document = Document.open(tmp_path / "child.yaml")
    set_in_both(document, "size", 16)
    assert document.text == "defaults: base.yaml\npolicy: {size: 16}\nteacher:\n  size: 16\n"
    assert document.undo()
    assert not document.undo()
    with pytest.raises(RecipeError):
        set_in_both(document, "size.deep", 1)
    assert not document.changed
