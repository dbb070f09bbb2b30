"""Fields as the command line gives them: `--set NAME=VALUE`, in the words of any release of NeMo-RL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.errors import InputError
from launcher.fields import FIELDS, field
from launcher.fields.field_values import all_changes, is_available, value_error
from launcher.text import clean, did_you_mean
from recipes.inheritance import Resolver
from recipes.known_keys import known_keys
from recipes.schema.algorithms import algorithm_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Assigned:
    """Effect of fields that were set: overrides of the recipe, and variables of the job as NAME=VALUE."""

    overrides: tuple[str, ...] = ()
    env: tuple[str, ...] = ()


def assign(
    recipe: Path,
    overrides: Sequence[str],
    texts: Iterable[str],
    *,
    for_both: Iterable[str] = (),
    checkout: Path | None = None,
    nodes: int | None = None,
    gpus_per_node: int | None = None,
) -> Assigned:
    """Return the effect of `NAME=VALUE` texts on a recipe; those of `for_both` are set for the teacher, too.

    Raises:
        InputError: there is no such field, its value is none, or the release has nothing of the kind.
        RecipeError: the recipe cannot be read.
    """
    values, both_values = read_assignments(texts), read_assignments(for_both)
    if not values and not both_values:
        return Assigned()
    base = Resolver().resolve(recipe, overrides)
    key_tree = known_keys(algorithm_of(base.values) or "distillation", checkout)
    values = {**values, **both_values}
    for name in values:
        if not is_available(field(name), base, key_tree):
            raise InputError(f"--set {name}: this release and this recipe have nothing of the kind")
        if name in both_values and not field(name).both:
            raise InputError(
                f"--set-both {name}: student and teacher do not both have it", fix=f"Give --set {name}=…"
            )
    changes = all_changes(
        values,
        base,
        key_tree=key_tree,
        both=frozenset(both_values),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
    )
    return Assigned(
        tuple(text for change in changes for text in change.overrides()),
        tuple(text for change in changes for text in change.env),
    )


def read_assignments(texts: Iterable[str]) -> Mapping[str, str]:
    """Return fields of the recipe with their texts, as `NAME=VALUE` gives them.

    Raises:
        InputError: there is no such field, or its value is none.
    """
    values = {}
    names = [row.name for row in FIELDS if row.of_recipe]
    for assignment in texts:
        name, equals, text = assignment.partition("=")
        if name not in names:
            raise InputError(
                f"--set: unknown field '{clean(name)}'{did_you_mean(name, names)}",
                fix=f"Fields: {', '.join(names)}; any other key is an override KEY=VALUE.",
            )
        if not equals:
            raise InputError(f"--set {name}: no value", fix=f"Give --set {name}=VALUE.")
        if error := value_error(field(name), text.strip()):
            raise InputError(f"--set {name}: '{clean(text)}' {error}")
        values[name] = text.strip()
    return values
