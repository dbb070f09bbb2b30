"""Refusals that are said without OmegaConf: they must be refusals of OmegaConf, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from recipes.document import Document
from recipes.editing.edit_state import first_state
from recipes.editing.resolution import resolve_state
from recipes.errors import RecipeError
from recipes.inheritance import Resolver
from tests.editing.conftest import CHILD

REFUSED = [
    "${", "${policy", "${policy.", "${mul:${policy.max_total_sequence_length}, 2", "${no.key}", "${x}",
    "a${b", "${oc.env:NO_SUCH_VARIABLE_HERE}", "${div:1,0}", "${..policy.model_name}x${", "${x.y}",
]  # fmt: skip
TAKEN = [
    "${policy.model_name}",
    "\\${not",
    "$",
    "}",
    "{",
    "${mul:2, 3}",
    "${oc.env:NO_SUCH_VARIABLE_HERE,d}",
    "$x{",
]


@pytest.mark.parametrize("value", REFUSED + TAKEN)
def test_the_editor_refuses_what_the_loader_refuses(child: Path, value: str) -> None:
    child.write_text(CHILD + f"x: '{value}'\n")
    try:
        expected = Resolver().resolve(child).values
    except RecipeError:
        expected = {}
    assert bool(expected) == (value in TAKEN)
    resolution = resolve_state(Resolver(), first_state(child, child.read_text()))
    assert (resolution.error is None) == bool(expected)
    assert resolution.complete
    assert resolution.recipe.values == expected or resolution.error is not None
    assert resolution.recipe.get("distillation.max_num_steps") == 20
    if resolution.error is not None:
        assert str(resolution.recipe.get("x")).replace(" ", "") == value.replace(" ", "")


@pytest.mark.slow
def test_every_step_of_typing_an_interpolation_is_judged_as_the_loader_does(child: Path) -> None:
    text = "${mul:${policy.max_total_sequence_length}, 2} and ${teacher.model_name}"
    for length in range(1, len(text) + 1):
        document = Document(CHILD + f"x: '{text[:length]}'\n", str(child), path=child)
        revision = document.revision
        state = first_state(child, document.text)
        resolution = resolve_state(Resolver(), state)
        try:
            Resolver().resolve(child, (), tree=revision.tree, composed=revision.composed)
        except RecipeError:
            assert resolution.error is not None, text[:length]
        else:
            assert resolution.error is None, text[:length]
