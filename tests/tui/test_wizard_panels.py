"""What the wizard's panels say, as text; and choices that become a recipe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.cells import cell_len

from launcher.fields import field
from launcher.runs import RunStore
from launcher.transports.local import LocalTransport
from recipes.inheritance import Resolver
from tests.tui.fakeslurm import LoginNode
from tui.screens.wizard.alternatives import FieldChoice
from tui.screens.wizard.chosen_lines import chosen_lines, submit_arguments
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.field_details import FieldDetails
from tui.screens.wizard.findings import Assessment, DraftFinding
from tui.screens.wizard.model import DraftStatus, WizardState
from tui.screens.wizard.pages import facts_of, step_list
from tui.screens.wizard.recipe_saving import all_overrides, offer_of, state_after_saving
from tui.screens.wizard.wizard_state import STEPS

LONG = "8 is not a divisor of the 12 samples of a step, so that the last update would have too few of them"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    return LoginNode.at(tmp_path_factory.mktemp("node"))


@pytest.fixture(scope="module")
def resolver(node: LoginNode) -> DraftResolver:
    resolver = DraftResolver(RunStore(LocalTransport(), str(node.runs)), {**os.environ, **node.environment})
    resolver.ask_slurm()
    return resolver


def state_of(node: LoginNode, **texts: str) -> WizardState:
    return WizardState({"recipe": str(node.recipe), **texts})


def details(choices: tuple[FieldChoice, ...], text: str = "4") -> FieldDetails:
    finding = DraftFinding("error", LONG, "batches", "global_batch", "C22")
    return FieldDetails(field("global_batch"), text, choices, Assessment((finding,)), ("It does this.",))


@pytest.mark.parametrize("width", [30, 56, 76, 120])
def test_a_finding_is_told_in_full_at_any_width(width: int) -> None:
    lines = [line.plain for line in details((FieldChoice("4"), FieldChoice("8"))).lines(width, 0)]
    assert " ".join(" ".join(lines).split()).count(f"C22 {LONG}") == 1
    assert all(cell_len(line) <= width for line in lines)
    assert any("[4]  8" in line for line in lines)


def test_values_are_a_list_where_there_is_room_and_the_present_one_is_in_it() -> None:
    choices = tuple(FieldChoice(str(number), f"what {number} means") for number in range(50))
    lines = [line.plain for line in details(choices, "37").lines(60, 8)]
    assert any(line.startswith("▸ 37") and "what 37 means" in line for line in lines)
    assert lines[-1].strip() == "F2 lists all 50"
    assert sum("what" in line for line in lines) == 8


@pytest.mark.parametrize("width", [40, 56, 76, 156])
def test_no_cell_of_the_partitions_is_wrapped(node: LoginNode, resolver: DraftResolver, width: int) -> None:
    state = state_of(node)
    lines = [line.plain for line in facts_of("cluster", state, resolver.quick_status(state), width)]
    table = [line for line in lines if line.startswith(("  partition", "▸ ", "  devel", "  closed"))]
    assert len(table) == 4
    assert all(cell_len(line) <= width for line in lines)
    assert table[1].startswith("▸ booster")


def test_the_step_list_is_short_where_it_must_be() -> None:
    full = step_list("data", STEPS, Assessment())
    short = step_list("data", STEPS, Assessment(), 80)
    assert "5 Data and output" in full.plain
    assert "5 Data" in short.plain
    assert short.cell_length <= 80 - len(STEPS)  # a mark for each step


def test_choices_are_shown_with_what_they_replace_and_as_a_command(
    node: LoginNode, resolver: DraftResolver
) -> None:
    state = state_of(node, partition="devel", time="30m", prompts="32", env="A=1 B='x y'", kind="smoke")
    status = resolver.quick_status(state)
    text = "\n".join(line.plain for line in chosen_lines(state, status, 200))
    for part in ("● Partition", "booster → devel", "● Prompts per step", "64 → 32"):
        assert part in text
    arguments = submit_arguments(state, status)
    assert arguments[:3] == ("distill-tui", "submit", str(node.recipe))
    for part in ("++distillation.num_prompts_per_step=32", "--smoke"):
        assert part in arguments
    joined = " ".join(arguments)
    assert "--partition devel" in joined
    assert "--env A=1 --env B=x y" in joined
    bare = WizardState()
    assert "nothing is changed yet" in chosen_lines(bare, DraftStatus(), 80)[0].plain


def test_choices_become_a_recipe_with_the_size_of_the_job(node: LoginNode, resolver: DraftResolver) -> None:
    state = state_of(node, prompts="32", nodes="2", partition="devel")
    status = resolver.quick_status(state)
    assert "++cluster.num_nodes=2" in all_overrides(state, status)
    offer = offer_of(state, status)
    assert {item.key for item in offer.chosen.differences} == {
        "distillation.num_prompts_per_step",
        "cluster.num_nodes",
    }
    assert offer.refused == ""
    names = {path.name for path, _ in offer.paths}
    assert names == {"distillation-student-from-teacher-2n4g.yaml"}
    from recipes.editing.outcomes import child

    target = offer.paths[0][0]
    child(offer.as_child, target, header=offer.header).write()
    try:
        after = state_after_saving(state, target)
        assert after.texts == {"recipe": str(target), "partition": "devel"}
        assert Resolver().resolve(target).values == offer.as_child.edited.values
    finally:
        target.unlink()


def test_a_packaged_recipe_is_no_file_to_save_into(resolver: DraftResolver, tmp_path: Path) -> None:
    state = WizardState({"recipe": "qwen3-1.7b-from-4b.yaml", "prompts": "32"})
    assert offer_of(state, resolver.quick_status(state)).refused == "it comes with the program"
