"""Legal sizes, batches, times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipes.models.table import TABLE
from recipes.planning.edits import Fix, RecipeEdit, hydra
from recipes.planning.sizes import (
    legal_global_batches,
    legal_parallel,
    must_save_by,
    nearest_multiple,
)

SMALL = TABLE["Qwen/Qwen2.5-1.5B"]  # 12 heads, 2 key-value heads


def test_tensor_parallel_sizes_divide_the_heads_and_stay_in_a_node() -> None:
    assert {size.tp for size in legal_parallel(8, SMALL)} == {1, 2}
    assert {size.tp for size in legal_parallel(8, None, node_gpus=4)} == {1, 2, 4}
    stages = {size.pp for size in legal_parallel(16, SMALL, pipeline=True)}
    assert stages == {1, 2, 4}, "28 layers divide by these"


@given(st.integers(1, 32), st.sampled_from(sorted(TABLE)))
def test_legal_sizes_use_all_gpus(gpus: int, name: str) -> None:
    sizes = list(legal_parallel(gpus, TABLE[name], pipeline=True))
    assert sizes
    assert len(set(sizes)) == len(sizes)
    for size in sizes:
        assert gpus % size.width == 0
        assert TABLE[name].heads % size.tp == 0
        assert TABLE[name].kv_heads % size.tp == 0


@given(st.integers(1, 512), st.integers(1, 16), st.integers(1, 4))
def test_legal_batches_divide_both_ways(samples: int, dp: int, micro: int) -> None:
    for batch in legal_global_batches(samples, dp, micro):
        assert samples % batch == 0
        assert batch % (dp * micro) == 0


@given(st.integers(1, 1000), st.integers(1, 64))
def test_nearest_multiples_surround_a_value(value: int, step: int) -> None:
    found = nearest_multiple(value, step)
    assert all(number > 0 and number % step == 0 for number in found)
    assert found[-1] > value
    assert found[-1] - value <= step


def test_saving_in_time_leaves_room_for_setup_save_and_a_step() -> None:
    assert must_save_by(4 * 3600, setup_s=1200, save_s=300, step_s=100) == "00:03:33:20"
    assert must_save_by(3 * 86400, setup_s=600, save_s=60, step_s=60) == "02:23:48:00"
    assert must_save_by(1700, setup_s=1200, save_s=300, step_s=150) is None


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "plain", "a b", "it's", "yes", "null", "00:03:00:00", [1, "x"]]
)
def test_edits_read_back_from_their_overrides(value: object) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    (text,) = RecipeEdit("a.b", 1, value).overrides()
    assert OverridesParser.create().parse_override(text).value() == value


def test_removing_a_null_key_reads_as_removal() -> None:
    fix = Fix("x", (RecipeEdit("a", None, None, remove=True), RecipeEdit("b", 1, None, remove=True)))
    assert fix.overrides() == ("++a=0", "~a", "~b")
    assert hydra({"k": [1, None]}) == "{k:[1,null]}"
