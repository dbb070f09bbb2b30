"""One state per field and step: step list, fields, review and the question before a submission agree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launcher.clusters.inventory import DetectionProblem
from launcher.errors import TransportError
from launcher.runs import RunStore
from launcher.submit.submit import send
from launcher.transports.local import LocalTransport
from tests.tui.fakeslurm import LoginNode
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.findings import (
    MARKS,
    Assessment,
    DraftFinding,
    Level,
    assess,
    worst,
)
from tui.screens.wizard.model import DraftStatus, WizardState, fields_of, steps_of
from tui.screens.wizard.pages import check_lines, cluster_facts, step_findings, step_list, summary
from tui.screens.wizard.review import question, review
from tui.screens.wizard.state_changes import with_fix

TEXTS = {
    "partition": ("booster", "devel", "closed", "nowhere"),
    "account": ("distill", "other", "typo"),
    "kind": ("training", "smoke", "rehearsal"),
    "nodes": ("1", "2", "3", "9", "12", "0", "x"),
    "time": ("30m", "2h30", "3-00:00:00", "soon", "0:5"),
    "chain": ("1", "2", ""),
    "global_batch": ("30", "32", "64"),
    "policy_tp": ("1", "3", "4"),
    "length": ("128", "2048", "100000"),
    "student": ("models/student", "Qwen/Qwen3-1.7B", "no/model"),
    "checkout": ("/nowhere",),
    "recipe": ("/nowhere.yaml",),
}
states = st.fixed_dictionaries({}, optional={name: st.sampled_from(texts) for name, texts in TEXTS.items()})


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    return LoginNode.at(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def resolver(node: LoginNode) -> DraftResolver:
    resolver = DraftResolver(RunStore(LocalTransport(), str(node.runs)), {**os.environ, **node.environment})
    resolver.ask_slurm()
    return resolver


def settled(resolver: DraftResolver, state: WizardState) -> DraftStatus:
    return resolver.full_status(state, resolver.quick_status(state))


def text_of(lines: list[object]) -> str:
    return "\n".join(getattr(item, "plain", "") for item in lines)


def level_in(text: str) -> Level:
    return "error" if "✗" in text else "warn" if "!" in text else ""


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=states, skipped=st.sets(st.sampled_from(("C22", "C61", "C64"))))
def test_all_places_agree(
    node: LoginNode, resolver: DraftResolver, texts: Mapping[str, str], skipped: set[str]
) -> None:
    state = WizardState({"recipe": str(node.recipe), **texts}, skipped=tuple(sorted(skipped)))
    status = settled(resolver, state)
    assessment = assess(state, status)
    marks = step_list("cluster", steps_of(state, status), assessment).plain
    for number, step in enumerate(steps_of(state, status), 1):
        following = marks.partition(f" {number} {step.title} ")[2][:1].strip()
        level = assessment.level_of_step(step.id)
        assert following == (MARKS[level][0] if level else "")
        notes = [note for item in fields_of(step, state, status) for note in assessment.on_field(item.name)]
        own = [item for item in assessment.on_step(step.id) if not item.field and item.step == step.id]
        if step.id != "review":
            assert worst([*own, *notes]) == level
            assert worst(notes) in ("", "warn", level)
    reviewed = text_of([*review(state, status, None, width=10_000)])
    headless = reviewed.partition("Recipe changes")[0]
    assert ("✓ no failure predicted" in reviewed) <= (assessment.level == "")
    for item in assessment.findings:
        assert item.message.split("\n")[0] in headless
    assert level_in(headless.partition("\nGPU memory")[0]) == assessment.level
    assert ("✓ checks" in summary(status, assessment).plain) == (
        assessment.level == "" and status.report is not None and status.recipe is not None
    )
    if status.plan is not None:
        asked = question(status.plan, assessment)
        assert level_in(asked) == assessment.level
        blocking = {item.id for item in status.plan.blocking}
        assert blocking == {
            item.check for item in assessment.findings if item.check and item.level == "error"
        }


def test_too_many_nodes_are_the_same_everywhere(node: LoginNode, resolver: DraftResolver) -> None:
    state = WizardState({"recipe": str(node.recipe), "partition": "devel", "nodes": "12"})
    status = settled(resolver, state)
    assessment = assess(state, status)
    assert (
        assessment.level_of_field("nodes") == assessment.level_of_step("job") == assessment.level == "error"
    )
    reviewed = text_of([*review(state, status, None)])
    assert "✗ C61 the recipe asks for 12 nodes" in reviewed
    assert "! Nodes: devel allows at most 2" in reviewed
    assert "✓" not in reviewed.partition("GPU memory")[0]
    assert status.plan is not None
    assert "✗ C61" in question(status.plan, assessment)


def test_a_missing_environment_hides_neither_cost_nor_memory(tmp_path: Path, resolver: DraftResolver) -> None:
    own = LoginNode.at(tmp_path / "node")
    for program in ("python", "ray"):
        (own.checkout / ".venv" / "bin" / program).unlink()
    environment = {**os.environ, **own.environment}
    del environment["RAY_BARE_VENV"]
    bare = DraftResolver(RunStore(LocalTransport(), str(own.runs)), environment)
    bare.ask_slurm()
    state = WizardState({"recipe": str(own.recipe)})
    quick = bare.quick_status(state)
    assert assess(state, quick).level_of_field("checkout") == "warn"
    status = bare.full_status(state, quick)
    assessment = assess(state, status)
    assert status.plan is not None
    assert status.plan.obstacle is not None
    assert assessment.level_of_field("checkout") == assessment.level_of_step("models") == "error"
    reviewed = text_of([*review(state, status, None)])
    for part in ("Cannot be submitted yet", "NeMo-RL checkout", "node-hours", "GPU memory", "of booster for"):
        assert part in reviewed
    assert "--partition=booster" in reviewed  # the sbatch line
    with pytest.raises(TransportError, match="no bin/python"):
        send(status.plan, bare.store, environment, confirmed=True)
    assert not own.runs.exists()


def test_memory_that_does_not_suffice_comes_with_what_would(node: LoginNode, resolver: DraftResolver) -> None:
    long = ("policy.max_total_sequence_length=32768", "teacher.max_total_sequence_length=32768")
    state = WizardState({"recipe": str(node.recipe), "student": "Qwen/Qwen3-14B"}, overrides=long)
    status = settled(resolver, state)
    assert status.memory is not None
    short = {phase.id for phase in status.memory.phases if not phase.fits}
    assert "student-train" in short
    assert status.fitting
    option = status.fitting[0]
    assert f"would fit (f): {option.fix.title}" in text_of([*review(state, status, None)])
    changed = settled(resolver, with_fix(state, option.fix, status))
    assert changed.memory is not None
    fits = {phase.id: phase.fits for phase in changed.memory.phases}
    assert fits["student-train" if option.side == "policy" else "teacher-score"]


def test_a_skipped_check_is_a_warning_everywhere(node: LoginNode, resolver: DraftResolver) -> None:
    state = WizardState({"recipe": str(node.recipe), "global_batch": "30"})
    failing = [
        item.check for item in assess(state, settled(resolver, state)).findings if item.level == "error"
    ]
    assert failing
    skipped = replace(state, skipped=tuple(failing))
    assessment = assess(skipped, settled(resolver, skipped))
    assert assessment.level == assessment.level_of_step("batches") == "warn"
    assert all(item.skipped for item in assessment.findings if item.check in failing)


def test_nothing_is_marked_before_anything_is_resolved() -> None:
    assert assess(WizardState({"nodes": "x"}), DraftStatus()) == Assessment()


def test_a_finding_without_a_field_is_shown_on_its_step(node: LoginNode, resolver: DraftResolver) -> None:
    state = WizardState({"recipe": str(node.recipe)})
    status = settled(resolver, state)
    finding = DraftFinding("error", "something", "models", check="C1")
    shown = text_of([*check_lines(status, Assessment((finding,)), "models", 100)])
    assert "✗ C1 something" in shown


def test_without_partitions_the_field_says_why_and_the_facts_do_not_repeat_it(
    node: LoginNode, resolver: DraftResolver
) -> None:
    state = WizardState({"recipe": str(node.recipe)})
    status = settled(resolver, state)
    assert status.detection is not None
    why = DetectionProblem("Slurm gave no answer to sinfo: down", "Try later.")
    empty = replace(status.detection, partitions=(), problems=(why,))
    status = replace(status, detection=empty, plan=None)
    shown = text_of([*review(state, status, None)])
    assert f"✗ Partition: {why.what}; F5 asks again (step Cluster)" in shown
    assert why.what not in text_of([*cluster_facts(state, status, 80)])

    error = TransportError("there is no Slurm here", fix="Log in.")
    status = replace(status, detection=None, slurm_error=error)
    lines = [*step_findings(assess(state, status), "cluster", status), *cluster_facts(state, status, 80)]
    assert text_of([*lines]).count(error.what) == 1
