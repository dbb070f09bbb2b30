"""What the memory account must do whatever the numbers: terms, formulas, relief, proposals, speed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.checks import Checker, ClusterRequest, Inputs
from recipes.checks.fitting import fitting_options
from recipes.inheritance import EffectiveRecipe, resolve
from recipes.memory import Work, demand_of, estimate, options
from recipes.memory.allocator import limit
from recipes.memory.rank_sizes import SYMBOLS, RankSizes
from recipes.memory.shapes import GIB, Moment
from recipes.memory.training import student_moments, teacher_moments
from recipes.memory.wrapping import V1, V1_UNTIED, V2_HOLDING, V2_INSIDE, V2_PARTS, V2_PLAIN
from recipes.models import Models
from recipes.models.table import TABLE

MODELS = Models.of({"HF_HOME": "/nonexistent"})
WORK = Work(TABLE["Qwen/Qwen3-4B"], gpus=8, tp=2, tokens=8192)
WRAPPINGS = (V1, V1_UNTIED, V2_PARTS, V2_PLAIN, V2_HOLDING, V2_INSIDE)
DENSE = tuple(facts for facts in TABLE.values() if facts.regular and not facts.experts)


def peak(moments: Callable[[Work], tuple[Moment, ...]], work: Work) -> Moment:
    return max(moments(work), key=lambda moment: moment.gib)


@pytest.mark.parametrize(
    "less",
    [
        replace(WORK, gpus=16),
        replace(WORK, tokens=4096),
        replace(WORK, cp=2),
        replace(WORK, tp=4),
        replace(WORK, cpu_offload=True),
    ],
)
def test_what_relieves_a_gpu_lowers_the_student(less: Work) -> None:
    assert peak(student_moments, less).gib < peak(student_moments, WORK).gib


def test_recomputing_lowers_activations_and_terms_sum_up() -> None:
    kept = peak(student_moments, replace(WORK, checkpointing=False))
    assert kept.gib > peak(student_moments, WORK).gib
    assert kept.gib == pytest.approx(sum(term.gib for term in kept.terms))
    assert all(term.gib >= 0 for term in kept.terms)
    assert peak(teacher_moments, WORK).gib < peak(student_moments, WORK).gib


@st.composite
def works(draw: st.DrawFn) -> Work:
    tp, cp = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2)))
    rows = draw(st.sampled_from((1, 2, 4)))
    return Work(
        draw(st.sampled_from(DENSE)),
        gpus=tp * cp * draw(st.sampled_from((1, 2, 8))),
        tp=tp,
        cp=cp,
        tokens=rows * draw(st.sampled_from((512, 2048, 16384))),
        rows=rows,
        micro_batches=draw(st.sampled_from((1, 2, 32))),
        checkpointing=draw(st.booleans()),
        cpu_offload=draw(st.booleans()),
        sequence_parallel=draw(st.booleans()) and tp > 1,
        zero_outside_topk=draw(st.booleans()),
        entropy=draw(st.booleans()),
        wrapping=draw(st.sampled_from(WRAPPINGS)),
    )


def value(formula: str, work: Work) -> float:
    """Work out a formula as it stands in the documentation, in GiB."""
    sizes, facts = RankSizes(work), work.facts
    symbols = {
        "W": work.sharing_gpus, "N": work.shards, "P": work.params, "G": sizes.graded, "P1": sizes.layer,
        "E": sizes.embedding, "R": sizes.root, "M": sizes.linear, "B": sizes.largest, "L": facts.layers,
        "H": facts.hidden, "F": facts.ffn, "V": facts.vocab, "D": facts.head_dim, "t": sizes.tokens,
        "T": sizes.logits, "I": sizes.inner, "m": work.micro_batches, "TP": work.tp, "CP": work.cp,
        "rows": work.rows, "length": work.tokens / work.rows,
    }  # fmt: skip
    assert set(SYMBOLS) <= set(symbols)
    text = formula.removesuffix(" (offload)").replace("^", "**")
    text = re.sub(r"(?<=[\w.)]) (?=[\w(])", "*", text)
    return float(eval(text, {"__builtins__": {}}, symbols)) / GIB


@settings(max_examples=50)
@given(works())
def test_each_formula_gives_what_its_term_says(work: Work) -> None:
    moments = [*student_moments(work), *teacher_moments(work)]
    terms = [term for moment in moments for term in moment.terms if term.formula]
    assert terms
    for term in terms:
        if term.name == "activations" and work.sequence_parallel:
            continue  # the table gives them before sequence parallelism divides
        matrices = {"layers gathered again and held": 1, "bf16 copies of weights": 8}.get(term.name, 0)
        segments = max(matrices * work.facts.layers, 1)
        expected = max(value(term.formula, work), 0.0)
        assert term.gib == pytest.approx(expected, rel=0.001, abs=segments * 2**20 / GIB + 1e-6), term


@settings(max_examples=50)
@given(works())
def test_terms_are_parts_and_less_work_never_takes_more(work: Work) -> None:
    moments = student_moments(work)
    assert len({moment.id for moment in moments}) == len(moments)
    for moment in (*moments, *teacher_moments(work)):
        assert moment.gib == pytest.approx(sum(term.gib for term in moment.terms))
        assert all(term.gib >= 0 for term in moment.terms), moment
        assert moment.block >= 0
    assert limit(moments) >= peak(student_moments, work).gib + 1.2
    shorter = replace(work, tokens=work.tokens // 2)
    assert peak(student_moments, shorter).gib <= peak(student_moments, work).gib
    one = replace(work, micro_batches=1)
    assert peak(student_moments, one).gib <= peak(student_moments, work).gib
    more = replace(work, gpus=2 * work.gpus)
    if work.shards > 1:
        # Below 10 MiB a block is not rounded up to segments, above it is.
        assert peak(student_moments, more).gib <= 1.02 * peak(student_moments, work).gib


def peak_of(work: Work, moment: str) -> Moment:
    return next(found for found in student_moments(work) if found.id == moment)


def test_v2_holds_all_layers_but_one_until_the_backward_pass_ends() -> None:
    work = Work(TABLE["Qwen/Qwen3-8B"], gpus=8, tokens=2048, wrapping=V2_HOLDING)
    plain = replace(work, wrapping=V2_PLAIN)
    held = peak(student_moments, work).gib - peak(student_moments, plain).gib
    assert held == pytest.approx(12.6, abs=0.1)
    assert peak(student_moments, work).gib == pytest.approx(34.9, abs=0.1)
    assert peak(student_moments, replace(work, wrapping=V2_INSIDE)).gib == pytest.approx(22.3, abs=0.3)
    alone = replace(work, gpus=1, tp=1)
    assert not any("held" in term.name for moment in student_moments(alone) for term in moment.terms)


def test_a_head_that_is_tied_again_saves_weights_and_moments_but_no_gradients() -> None:
    untied = Work(TABLE["Qwen/Qwen3-1.7B"], gpus=2, tp=2, tokens=8192, wrapping=V1_UNTIED)
    tied = replace(untied, wrapping=V1)
    assert peak(student_moments, untied).gib - peak(student_moments, tied).gib == pytest.approx(
        1.74, abs=0.01
    )
    assert RankSizes(tied).graded == RankSizes(untied).graded


def test_masks_of_context_parallelism_grow_with_the_micro_batches() -> None:
    work = Work(TABLE["Qwen/Qwen3-1.7B"], gpus=2, cp=2, tokens=32768, wrapping=V2_HOLDING)
    masks = {
        count: next(
            term.gib
            for term in peak_of(replace(work, micro_batches=count), "loss").terms
            if term.name == "attention masks"
        )
        for count in (1, 32)
    }
    assert masks[1] == pytest.approx(0.25)
    assert masks[32] == pytest.approx(8.0)


def test_adapters_have_neither_gradients_nor_moments_of_the_weights() -> None:
    work = Work(TABLE["Qwen/Qwen3-8B"], gpus=4, tokens=2048)
    adapted = replace(work, lora_rank=16)
    assert peak(student_moments, adapted).gib < peak(student_moments, work).gib - 8 * work.params / 4 / GIB
    assert "root-reduced" not in {moment.id for moment in student_moments(adapted)}


RECIPE = """
distillation: {num_prompts_per_step: 64, num_generations_per_prompt: 1, topk_logits_k: 64}
loss_fn: {kl_type: mixed, zero_outside_topk: false}
policy: &policy
  model_name: Qwen/Qwen3-8B
  train_global_batch_size: 64
  train_micro_batch_size: 1
  logprob_batch_size: 1
  max_total_sequence_length: 8192
  make_sequence_length_divisible_by: 8
  dtensor_cfg: &dtensor
    {enabled: true, tensor_parallel_size: 1, context_parallel_size: 1, activation_checkpointing: true}
  generation:
    backend: vllm
    vllm_cfg:
      {tensor_parallel_size: 1, pipeline_parallel_size: 1, gpu_memory_utilization: 0.6, max_model_len: 8192}
    colocated: {enabled: true}
teacher:
  <<: *policy
  model_name: Qwen/Qwen3-32B
cluster: {num_nodes: 1, gpus_per_node: 4}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE)
    return path


def student(recipe: EffectiveRecipe) -> Work:
    work = demand_of(recipe, MODELS).student
    assert work is not None
    return work


def test_a_recipe_that_does_not_fit_is_told_what_would(recipe: Path) -> None:
    effective = resolve(recipe)
    found = {phase.id: phase for phase in estimate(effective, MODELS, 40.0).phases}
    assert set(found) == {"student-train", "teacher-score", "generation", "refit"}
    assert not found["student-train"].fits
    assert not found["teacher-score"].fits
    chosen = options(demand_of(effective, MODELS), 40.0)
    assert {option.side for option in chosen} == {"policy", "teacher"}
    assert all(option.needed <= 40.0 for option in chosen)
    for side in ("policy", "teacher"):
        nodes = [option.nodes for option in chosen if option.side == side]
        assert nodes == sorted(nodes), "the cheapest come first"
    first = next(option for option in chosen if option.side == "teacher")
    after = resolve(recipe, first.fix.overrides())
    assert {p.id: p.fits for p in estimate(after, MODELS, 40.0).phases}["teacher-score"]


def test_offload_and_shorter_sequences_are_the_last_resort(recipe: Path) -> None:
    chosen = options(demand_of(resolve(recipe), MODELS), 40.0)
    by_nodes: dict[tuple[str, int], list[bool]] = {}
    for option in chosen:
        keys = {edit.key.rpartition(".")[2] for edit in option.fix.edits}
        assert "max_total_sequence_length" not in keys
        by_nodes.setdefault((option.side, option.nodes), []).append("cpu_offload" in keys)
    assert all(offloads == sorted(offloads) for offloads in by_nodes.values())
    small = [f"{side}.model_name=Qwen/Qwen3-0.6B" for side in ("policy", "teacher")]
    long = [f"{side}.max_total_sequence_length=262144" for side in ("policy", "teacher")]
    tiny = options(demand_of(resolve(recipe, [*small, *long, "cluster.gpus_per_node=1"]), MODELS), 40.0)
    assert any("sequences of 131072 tokens" in option.fix.title for option in tiny)


def test_proposals_are_checked_by_all_rules(recipe: Path) -> None:
    request = ClusterRequest(nodes=1, gpus_per_node=4, gpu_memory_gib=40.0)
    checker = Checker(Inputs.of(environment={"HF_HOME": "/nonexistent"}, request=request))
    before = {result.id for result in checker.check(recipe, verify_fixes=False).failing}
    chosen = fitting_options(checker, recipe, gpu_gib=40.0)
    assert {option.side for option in chosen} == {"policy", "teacher"}
    for option in chosen:
        size = replace(request, nodes=option.nodes)
        own = Checker(Inputs.of(environment={"HF_HOME": "/nonexistent"}, request=size))
        report = own.check(recipe, option.fix.overrides(), verify_fixes=False)
        assert {result.id for result in report.failing} <= before, option.fix.title
        assert report.recipe is not None
        phases = {phase.id: phase for phase in estimate(report.recipe, MODELS, 40.0).phases}
        phase = phases["student-train" if option.side == "policy" else "teacher-score"]
        assert phase.fits
        assert phase.needed == pytest.approx(option.needed)


def test_an_unknown_model_is_not_guessed(recipe: Path) -> None:
    effective = resolve(recipe, ["teacher.model_name=somebody/else"])
    found = estimate(effective, MODELS, 40.0)
    assert "teacher-score" not in {phase.id for phase in found.phases}
    assert found.host_gib_per_node is None
    assert any("teacher's memory is unknown" in note and "hf download" in note for note in found.notes)


def test_a_bigger_card_fits_and_an_unknown_card_is_said(recipe: Path) -> None:
    assert estimate(resolve(recipe), MODELS, 141.0).fits
    assert any("40 GiB assumed" in note for note in estimate(resolve(recipe), MODELS).notes)


@pytest.mark.parametrize(
    ("overrides", "field", "expected"),
    [
        ((), "micro_batches", 16),
        (("++policy.train_micro_batch_size=4",), "rows", 4),
        (("++policy.train_micro_batch_size=4",), "micro_batches", 4),
        (("++policy.dtensor_cfg.tensor_parallel_size=2",), "micro_batches", 32),
        (("++loss_fn.zero_outside_topk=true",), "zero_outside_topk", True),
        (("++loss_fn.zero_outside_topk=true", "loss_fn.kl_type=forward"), "entropy", False),
        (("++policy.dtensor_cfg.sequence_parallel=true",), "sequence_parallel", False),
        (("++policy.dtensor_cfg.cpu_offload=true",), "cpu_offload", True),
        (("++policy.dtensor_cfg._v2=true",), "wrapping", V2_HOLDING),
        (("++policy.dtensor_cfg.dp_replicate_size=2",), "replicas", 2),
        (("++policy.dtensor_cfg.dp_replicate_size=3",), "replicas", 1),
        (("++policy.dtensor_cfg.expert_parallel_size=4",), "expert_parallel", 4),
        (("++policy.dtensor_cfg.lora_cfg={enabled:true,dim:32}",), "lora_rank", 32),
        (("++policy.dtensor_cfg.lora_cfg={enabled:false,dim:32}",), "lora_rank", 0),
        (("++policy.dynamic_batching={enabled:true,train_mb_tokens:16384}",), "tokens", 16384),
        (("++policy.dynamic_batching={enabled:true,train_mb_tokens:16384}",), "rows", 2),
        (("++policy.dynamic_batching={enabled:true,train_mb_tokens:16384}",), "micro_batches", 8),
        (("++policy.sequence_packing={enabled:true,train_mb_tokens:8192}",), "packed", (1, 8190, 1)),
        (
            ("++policy.sequence_packing={enabled:true,train_mb_tokens:8192,algorithm:first_fit_decreasing}",),
            "packed",
            (4096, 4095, 1),
        ),
    ],
)
def test_a_recipe_says_what_work_its_student_is(
    recipe: Path, overrides: tuple[str, ...], field: str, expected: object
) -> None:
    assert getattr(student(resolve(recipe, overrides)), field) == expected


def test_needed_names_the_moment_and_its_terms(recipe: Path) -> None:
    for phase in estimate(resolve(recipe), MODELS, 141.0).phases[:2]:
        assert sum(term.gib for term in phase.terms) == pytest.approx(phase.needed)
        peak = max(phase.moments, key=lambda moment: moment.gib)
        assert (phase.allocated, phase.moment) == (peak.gib, peak.title)
        assert phase.reserved is not None
        assert phase.allocated <= phase.reserved <= 141.0


def test_what_is_not_measured_says_so(recipe: Path) -> None:
    lora = "++policy.dtensor_cfg.lora_cfg={enabled:true,dim:32}"
    second = "++policy.dtensor_cfg._v2=true"
    basis = estimate(resolve(recipe, [lora, second]), MODELS, 80.0).basis
    assert any("LoRA" in note and "not measured" in note for note in basis)
    assert any("generation and refit" in note and "not measured" in note for note in basis)


def test_an_engine_leaves_its_budget_to_the_cache(recipe: Path) -> None:
    def cache(*overrides: str) -> float:
        phases = {phase.id: phase for phase in estimate(resolve(recipe, overrides), MODELS, 80.0).phases}
        terms = {term.name: term.gib for term in phases["generation"].terms}
        return terms["key-value cache"]

    vllm = "policy.generation.vllm_cfg"
    assert cache(f"{vllm}.gpu_memory_utilization=0.8") - cache() == pytest.approx(16.0, abs=0.01)
    assert cache(f"{vllm}.tensor_parallel_size=2") > cache() + 7.0, "half the weights"
    batched = "++policy.generation.vllm_kwargs.max_num_batched_tokens"
    assert cache(f"{batched}=65536") < cache() - 1.0


def test_an_estimate_takes_a_few_milliseconds(recipe: Path) -> None:
    effective = resolve(recipe)
    estimate(effective, MODELS, 40.0)
    times = []
    for _ in range(20):
        start = time.process_time()
        estimate(effective, MODELS, 40.0)
        times.append(time.process_time() - start)
    assert min(times) <= 0.005
