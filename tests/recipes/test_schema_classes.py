"""Classes described, with what editors and help ask of a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipes.schema.checkout_source import CheckoutSource
from recipes.schema.key_info import KeyInfo, key_info, keys_below
from recipes.schema.root_conditions import LateRoot
from recipes.schema.roots import describe
from recipes.schema.types import Description, from_json, to_json

DRIVER = "nemo_rl.algorithms.distillation"
POLICY = "nemo_rl/models/policy.py"


@pytest.fixture
def description(cases: Path) -> Description:
    made = describe(CheckoutSource(cases / "schema" / "models"), DRIVER)
    assert made is not None
    return made


def line_of(cases: Path, file: str, text: str) -> str:
    lines = (cases / "schema" / "models" / file).read_text().splitlines()
    return f"{file}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def test_a_description_is_plain_data(description: Description) -> None:
    assert from_json(json.loads(json.dumps(to_json(description)))) == description
    assert (description.release, description.validates) == ("1.2.3", True)


def test_a_driver_may_be_given_by_its_script(cases: Path, description: Description) -> None:
    by_script = describe(CheckoutSource(cases / "schema" / "models"), "examples/run_distillation.py")
    assert by_script is not None
    assert (by_script.root, by_script.validates) == (description.root, True)
    assert by_script.classes == description.classes
    typed = describe(CheckoutSource(cases / "schema" / "dicts"), DRIVER)
    assert typed is not None
    assert not typed.validates
    assert describe(CheckoutSource(cases), DRIVER) is None


def test_keys_have_types_values_words_and_places(cases: Path, description: Description) -> None:
    file = "nemo_rl/algorithms/distillation.py"
    assert key_info(description, "distillation.max_num_steps") == KeyInfo(
        "distillation.max_num_steps", "int", (), False, "1000", "How many steps, counted from one.",
        line_of(cases, file, "max_num_steps"),
    )  # fmt: skip
    enabled = key_info(description, "policy.dtensor_cfg.enabled")
    assert enabled is not None
    assert (enabled.type, enabled.allowed, enabled.required) == ("True | False", ("true", "false"), True)
    size = key_info(description, "teacher.dtensor_cfg.tensor_parallel_size")
    assert size is not None
    assert (size.doc, size.where) == (
        "Over how many GPUs a layer is cut.",
        line_of(cases, POLICY, "tensor_parallel_size: int"),
    )


@pytest.mark.parametrize(
    ("key", "type_", "allowed"),
    [
        ("policy.order", "'first' | 'last' | None", ("first", "last", "null")),
        ("policy.colour", "Colour", ("red", "green")),
        ("policy.level", "Level", ("1", "2")),
        ("policy.other_kind", "'small' | 'large' | 3 | True", ("small", "large", "3", "true")),
        ("policy.whole", "int", ()),
        ("policy.dtensor_cfg._v2", "bool", ("true", "false")),
        ("policy.scheduler.0.enabled", "True | False", ("true", "false")),
        ("policy.scheduler.milestones", "list[int]", ()),
        ("policy.max_grad_norm", "float | int | None", ()),
        ("policy.node.below.below.value", "int", ()),
        ("data.train.name", "str", ()),
        ("data.train.0.share", "float", ()),
        ("distillation.limit", "float | None", ()),
        ("closed.text", "str", ()),
        ("directory", "str | PathLike", ()),
    ],
)
def test_types_and_allowed_values(
    description: Description, key: str, type_: str, allowed: tuple[str, ...]
) -> None:
    info = key_info(description, key)
    if key == "policy.scheduler.milestones":
        assert info is None  # a key of the recipe's own choice
        return
    assert info is not None
    assert (info.type, info.allowed) == (type_, allowed)


def test_keys_below_and_unknown_ones(description: Description) -> None:
    assert keys_below(description, "policy.dtensor_cfg") == [
        "enabled", "_v2", "_target_", "tensor_parallel_size", "plan",
    ]  # fmt: skip
    assert keys_below(description, "policy.loose") == ["width", "kept", "third"]
    assert "policy" in keys_below(description, "")
    for key in ("nothing", "policy.nothing", "policy.model_name.deeper", "", "policy..x", "env.anything"):
        assert key_info(description, key) is None


def test_what_code_applies_later_is_known_with_its_conditions(description: Description) -> None:
    module = "nemo_rl.models.backend:BackendConfig"
    file = "nemo_rl/models/backend.py"
    assert description.late == (
        LateRoot(
            module,
            "policy.generation.backend_cfg",
            (
                ["is", "policy.generation.backend", "fast"],
                ["not", ["is", "policy.generation.transport", None]],
            ),
            f"{file}:14",
        ),
        LateRoot(
            module,
            "env.backend",
            (["not", ["is", "env.backend", None]],),
            "nemo_rl/algorithms/distillation.py:67",
        ),
    )


def test_what_cannot_be_reconstructed_is_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "nemo_rl" / "algorithms"
    folder.mkdir(parents=True)
    (folder / "distillation.py").write_text(
        "import torch\nfrom elsewhere import Base, make\nfrom pydantic import BaseModel, model_validator\n"
        "class Odd(Base):\n    known: int\n"
        "class Before(BaseModel):\n    a: int\n    @model_validator(mode='before')\n"
        "    def change(cls, values): return values\n"
        "class After(BaseModel):\n    b: int\n    @model_validator(mode='after')\n"
        "    def test(self): raise ValueError\n"
        "class Own(BaseModel):\n    c: int\n    def __init__(self, **given): super().__init__(c=1)\n"
        "class Bad(BaseModel):\n    d: int = Field(gt='x', pattern=3)\n    model_config = make()\n"
        "class MasterConfig(BaseModel):\n    dtype: torch.dtype\n    odd: Odd\n    before: Before\n"
        "    after: After\n    own: Own\n    bad: Bad\n    call: make(1)\n    text: 'not [a type'\n"
    )
    made = describe(CheckoutSource(tmp_path), DRIVER)
    assert made is not None
    opaque = {item.name for item in made.classes.values() if item.opaque}
    assert opaque == {"Before", "Own", "Bad"}
    assert {item.name for item in made.incomplete([made.root])} == {"Before", "After", "Own", "Bad"}
    info = key_info(made, "dtype")
    assert info is not None
    assert info.type == "dtype"
