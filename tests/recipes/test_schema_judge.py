"""What the made classes refuse, compared with what the classes of a small checkout do when they are run."""

from __future__ import annotations

import copy
import importlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.inheritance import resolve
from recipes.schema.checkout_schema import Judgement, Schema, schema_of
from recipes.schema.key_info import key_info
from recipes.schema.schema_cache import Store, digest

DRIVER = "nemo_rl.algorithms.distillation"
MODELS = Path(__file__).parents[1] / "cases" / "schema" / "models"
DICTS = MODELS.parent / "dicts"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2048, 1.5, 2.0, float("inf"), float("nan"), 10**30, 10**5000, "",
    "2", "2.0", "abc", "true", "yes", "first", "red", "a", "small", [], [1], ["a"], [1, "a"], [[1]], {},
    {"enabled": True},
    {"enabled": False}, {"enabled": True, "tensor_parallel_size": 1}, {"enabled": "x"}, {"a": [1]}, {"a": 1},
    {1: 2}, {"value": 1, "below": {"value": 2}}, {"width": 1}, {"kept": 1, "third": [{"kept": 2}]}, b"x",
    {"after": 1, "before": 2}, {"on": True}, {"on": True, "more": 1}, {"not-a-name": 1}, {"name": "x"},
    [{"name": "x"}], [{"enabled": True, "tensor_parallel_size": 2}, {"enabled": False}],
)  # fmt: skip
KEYS = [
    "", "policy", "policy.dtensor_cfg", "policy.dtensor_cfg.enabled", "policy.dtensor_cfg._v2",
    "policy.dtensor_cfg._target_", "policy.dtensor_cfg.tensor_parallel_size", "policy.dtensor_cfg.plan",
    "policy.dtensor_cfg.unknown", "policy.generation", "policy.generation.top_k", "policy.loose",
    "policy.loose.width", "policy.loose.kept", "policy.loose.third", "policy.made", "policy.made.other",
    "policy.colour", "policy.level", "policy.plain", "policy.window", "policy.window.width", "policy.kind",
    "policy.other_kind", "policy.order", "policy.whole", "policy.pair", "policy.many", "policy.unique",
    "policy.scheduler", "policy.node", "policy.max_grad_norm", "policy.anything", "teacher.model_name",
    "distillation", "distillation.max_num_steps", "distillation.period", "distillation.share",
    "distillation.size", "distillation.names", "distillation.names.b", "distillation.limit",
    "distillation.other-name", "distillation.other_name", "data", "data.train", "data.validation",
    "data.shuffle", "closed", "closed.on", "closed.text", "closed.more", "env", "directory", "extra",
]  # fmt: skip


@pytest.fixture(scope="module")
def base() -> dict[str, Any]:
    return resolve(MODELS / "recipe.yaml").values


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    made = schema_of(DRIVER, MODELS, tmp_path_factory.mktemp("cache"))
    assert made is not None
    assert not made.shipped
    return made


@pytest.fixture(scope="module")
def real() -> Iterator[Any]:
    """Run the small checkout: it is the project's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(MODELS))
        yield importlib.import_module(DRIVER).MasterConfig
        for name in [name for name in sys.modules if name.partition(".")[0] == "nemo_rl"]:
            del sys.modules[name]


def changed(base: dict[str, Any], key: str, value: object, *, remove: bool = False) -> Any:
    if not key:
        return value
    values = copy.deepcopy(base)
    *above, last = key.split(".")
    section = values
    for step in above:
        if not isinstance(section.get(step), dict):
            section[step] = {}
        section = section[step]
    if remove:
        section.pop(last, None)
    else:
        section[last] = copy.deepcopy(value)
    return values


def refused(real: Any, values: Any) -> bool:
    try:
        real.model_validate(values)
    except pydantic.ValidationError:
        return True
    return False


def judged(schema: Schema, values: Any) -> list[Judgement]:
    found = schema.judge(values)
    for judgement in found:
        problem = judgement.problem
        assert problem.expected
        assert problem.message
        key_info(schema.description, ".".join(map(str, problem.path)))
    return [judgement for judgement in found if judgement.late is None]


@pytest.mark.parametrize("key", KEYS)
def test_the_made_classes_refuse_what_the_classes_refuse(
    schema: Schema, real: Any, base: dict[str, Any], key: str
) -> None:
    cases = [changed(base, key, value) for value in VALUES]
    cases.append(changed(base, key, None, remove=True) if key else base)
    for values in cases:
        assert bool(judged(schema, values)) == refused(real, values), values


SCALARS = st.sampled_from((0, 1, 2.0, "2", "abc", "true", "first", "red", "a"))
NAMES = st.sampled_from(["enabled", "a", "kept", "width", "on", "value"]) | st.integers()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner),
    max_leaves=6,
)


@given(key=st.sampled_from(KEYS), value=JSON, other=st.sampled_from(KEYS[1:]), second=JSON)
def test_any_two_values_are_judged_alike(
    schema: Schema, real: Any, base: dict[str, Any], key: str, value: Any, other: str, second: Any
) -> None:
    once = changed(base, key, value)
    values = changed(once, other, second) if isinstance(once, dict) else once
    assert bool(judged(schema, values)) == refused(real, values)


@pytest.mark.parametrize(
    ("key", "value", "problems"),
    [
        ("policy.dtensor_cfg.plan", [], {"policy.dtensor_cfg.plan": "a text"}),
        ("policy.dtensor_cfg.enabled", "yes", {"policy.dtensor_cfg.enabled": "true or false"}),
        ("policy.dtensor_cfg", {}, {"policy.dtensor_cfg.enabled": "field required"}),
        ("policy.dtensor_cfg", 3, {"policy.dtensor_cfg": "a section"}),
        ("policy.max_grad_norm", "x", {"policy.max_grad_norm": "a number or a whole number"}),
        ("policy.order", "x", {"policy.order": "'first' or 'last'"}),
        ("policy.colour", "x", {"policy.colour": "'red' or 'green'"}),
        ("distillation.share", 2, {"distillation.share": "<= 1.0"}),
        ("distillation.period", -1, {"distillation.period": ">= 0"}),
        ("distillation.limit", [], {"distillation.limit": "a number"}),
        ("closed.more", 1, {"closed.on": "field required", "closed.more": "extra inputs are not permitted"}),
        ("data.train", [{"name": 1}], {"data.train.0.name": "a text"}),
        ("data.train", {"share": 1}, {"data.train.name": "field required"}),
        ("data", None, {"data": "a section"}),
        ("directory", 1, {"directory": "a text or a path"}),
    ],
)  # fmt: skip
def test_problems_are_in_the_recipes_terms(
    schema: Schema, base: dict[str, Any], key: str, value: object, problems: dict[str, str]
) -> None:
    found = judged(schema, changed(base, key, value))
    assert {".".join(map(str, item.problem.path)): item.problem.expected for item in found} == problems


def test_later_steps_refuse_where_the_code_gets_there(schema: Schema, base: dict[str, Any]) -> None:
    wrong = changed(base, "policy.generation.backend_cfg", {"workers": 0})
    assert schema.judge(wrong) == []  # without a transport nothing looks at it
    (late,) = schema.judge(changed(wrong, "policy.generation.transport", "x"))
    assert late.late is not None
    assert late.certain
    assert (late.problem.path, late.title) == (
        ("policy", "generation", "backend_cfg", "workers"),
        "BackendConfig",
    )
    slow = changed(changed(wrong, "policy.generation.transport", "x"), "policy.generation.backend", "slow")
    assert schema.judge(slow) == []
    (other,) = schema.judge(changed(base, "env.backend", {"workers": "x"}))
    assert other.problem.path == ("env", "backend", "workers")


def test_where_nothing_validates_types_are_judged_and_missing_keys_are_not(tmp_path: Path) -> None:
    schema = schema_of(DRIVER, DICTS, tmp_path)
    assert schema is not None
    assert schema.judge({"distillation": {}}) == []
    assert schema.judge({"distillation": {"max_num_steps": 4.0, "share": 1}, "more": 1}) == []
    found = schema.judge({"distillation": {"max_num_steps": "4", "seed": None, "share": True}})
    assert {judgement.problem.path[-1] for judgement in found} == {"max_num_steps", "seed", "share"}
    assert not any(judgement.certain for judgement in found)


def test_without_a_checkout_the_newest_release_answers(tmp_path: Path) -> None:
    schema = schema_of(DRIVER, None, tmp_path)
    assert schema is not None
    assert schema.shipped == schema.compiled.release
    assert schema.compiled.validates
    assert any(item.problem.path == ("teacher",) for item in schema.judge({"policy": {}}))
    empty = schema_of(DRIVER, tmp_path, tmp_path)
    assert empty is not None
    assert empty.shipped == schema.shipped
    assert schema_of("nemo_rl.algorithms.unheard_of", None, tmp_path) is None
    script = schema_of("examples/run_xtoken_off_policy_distillation.py", None, tmp_path)
    assert script is not None
    assert script.driver.endswith("xtoken_off_policy_distillation")


def test_what_is_kept_is_used_only_while_the_sources_are_the_same(
    tmp_path: Path, base: dict[str, Any]
) -> None:
    root = tmp_path / "checkout"
    for path in MODELS.rglob("*.py"):
        copied = root / path.relative_to(MODELS)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(path.read_bytes())
    cache = tmp_path / "cache"

    def limit_refused() -> bool:
        schema = schema_of(DRIVER, root, cache)
        assert schema is not None
        return bool(schema.judge(changed(base, "distillation.size", 3000)))

    assert limit_refused()
    kept = sorted(cache.iterdir())
    assert {path.suffix for path in kept} == {".core", ".description"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    driver = root / "nemo_rl" / "algorithms" / "distillation.py"
    driver.write_text(driver.read_text().replace("2 * 1024", "4 * 1024"))
    assert not limit_refused()
    os.utime(driver, (1, 1))
    before = [path.stat().st_mtime_ns for path in kept]
    assert not limit_refused()
    assert [path.stat().st_mtime_ns for path in kept] == before
    moved = root / "nemo_rl" / "models" / "policy"
    moved.mkdir()
    (root / "nemo_rl" / "models" / "policy.py").rename(moved / "__init__.py")
    assert not limit_refused()
    for path in kept:
        path.write_text(json.dumps({"versions": 1}))
    assert not limit_refused()


def test_a_cache_that_cannot_be_used_is_done_without(tmp_path: Path, base: dict[str, Any]) -> None:
    (tmp_path / "file").write_text("")
    schema = schema_of(DRIVER, MODELS, tmp_path / "file" / "below")
    assert schema is not None
    assert schema.judge(base) == []
    store = Store(tmp_path, DRIVER, tmp_path)
    store.save("kind", {}, ["file"], {"a": float("nan")})
    assert store.load("kind", {"other": "1"}) is None
    assert store.load("nothing", {}) is None
    assert digest("a") == digest(b"a")


def test_validators_that_cannot_be_run_leave_values_alone(schema: Schema, base: dict[str, Any]) -> None:
    assert schema.judge(changed(base, "checked", {"after": 1, "before": "text"})) == []
    found = schema.judge(changed(base, "checked", {"after": "x"}))
    assert {item.problem.path for item in found} == {("checked", "before"), ("checked", "after")}
    assert "Checked" in schema.compiled.unknown[0]
