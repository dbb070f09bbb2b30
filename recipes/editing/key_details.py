"""Everything that is known of one key of an edited recipe: for the panel below the tree, and `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.document import Document
from recipes.editing.analysis import Analysis
from recipes.editing.here import counterpart_of
from recipes.editing.outline import one_line
from recipes.editing.predictor import Predictor
from recipes.editing.stock_comments import HelpText, joined
from recipes.editing.units import unit_of
from recipes.keys import KeyPath, parse_key
from recipes.lint import is_read_from_teacher, teacher_drift, unknown_path
from recipes.origins import Link, chain_of, followers_of, replaced_by
from recipes.schema.key_info import key_info
from recipes.values import find
from recipes.yaml.comments import Comment
from recipes.yaml.scalars import same

if TYPE_CHECKING:
    from recipes.checks import Result
    from recipes.inheritance import EffectiveRecipe, Origin
    from recipes.schema.key_info import KeyInfo
    from recipes.schema.types import Description

_MISSING = object()
_NO_COMMENT = Comment("", "")


@dataclass(frozen=True, slots=True)
class KeyDetails:
    """One key: what it takes, where its value comes from, and what changes with it.

    `allowed` are values in the recipe's spelling, () where there are others besides. `counterpart` is the
    teacher's key of a student's setting (or the other way round) that has another value and would be
    read, "" where there is none; it `drifts` where both had one value until one of them was changed.
    `did_you_mean` is the key that an unknown one was meant for.
    """

    key: str
    value: str
    type: str = ""
    allowed: tuple[str, ...] = ()
    required: bool = False
    default: str = ""
    unit: str = ""
    help: tuple[HelpText, ...] = ()
    origin: Origin | None = None
    chain: tuple[Link, ...] = ()
    replaced: tuple[Link, ...] = ()
    followers: tuple[str, ...] = ()
    counterpart: str = ""
    counterpart_value: str = ""
    drifts: bool = False
    findings: tuple[Result, ...] = ()
    remark: Comment = _NO_COMMENT
    unknown: bool = False
    did_you_mean: str = ""


def details_of(predictor: Predictor, analysis: Analysis, key: str) -> KeyDetails:
    """Return what is known of a key, set or not; quick enough for every move of the cursor."""
    recipe, path = analysis.recipe, parse_key(key)
    algorithm = predictor.schema.algorithm(recipe.values)
    description = predictor.schema.description(algorithm)
    info = _info(description, recipe, path)
    value = recipe.get(key, _MISSING)
    counterpart, other = _counterpart(recipe, key, value)
    tree = predictor.schema.key_tree(algorithm)
    unknown = unknown_path(recipe, path, tree) if tree is not None else None
    return KeyDetails(
        key,
        one_line(value) if value is not _MISSING else "",
        type=info.type if info is not None else "",
        allowed=info.allowed if info is not None else (),
        required=info.required if info is not None else False,
        default=info.default if info is not None else "",
        unit=unit_of(str(path[-1])) if path and not isinstance(value, bool | str | dict | list) else "",
        help=tuple(_help(predictor, analysis, key, info)),
        origin=recipe.origin(key),
        chain=tuple(chain_of(recipe, key)),
        replaced=tuple(replaced_by(recipe, key)),
        followers=tuple(followers_of(recipe, key)),
        counterpart=counterpart,
        counterpart_value=other,
        drifts=bool(counterpart) and _drifts(predictor, recipe, key, counterpart),
        findings=analysis.findings_on(key),
        remark=_remark(analysis, path),
        unknown=unknown is not None,
        did_you_mean=unknown[1] if unknown is not None else "",
    )


def _info(description: Description | None, recipe: EffectiveRecipe, path: KeyPath) -> KeyInfo | None:
    if description is None or not path:
        return None
    steps = ["" if step is None else str(step) for step in path]
    return None if any("." in step for step in steps) else key_info(description, ".".join(steps))


def _counterpart(recipe: EffectiveRecipe, key: str, value: object) -> tuple[str, str]:
    """Return the other side's key and value where the two differ and NeMo-RL reads the teacher's."""
    other = counterpart_of(key)
    if not other or value is _MISSING or isinstance(value, dict):
        return "", ""
    other_value: Any = recipe.get(other, _MISSING)
    if other_value is _MISSING or isinstance(other_value, dict) or same(other_value, value):
        return "", ""
    below = key.partition(".")[2]
    if not is_read_from_teacher(recipe, below) or below == "model_name":
        return "", ""
    return other, one_line(other_value)


def _drifts(predictor: Predictor, recipe: EffectiveRecipe, key: str, counterpart: str) -> bool:
    """Return whether two settings were equal when the recipe was opened, or in the file below."""
    first = predictor.first_recipe
    if first is not None and first.has(key) and same(first.get(key), first.get(counterpart, _MISSING)):
        return True
    below = key.partition(".")[2]
    return any(drift.key == below for drift in teacher_drift(recipe))


def _remark(analysis: Analysis, path: KeyPath) -> Comment:
    document = Document.at(analysis.state.revision, analysis.state.path)
    if not path or not document.is_written(path):
        return _NO_COMMENT
    return document.comment(path)


def _help(predictor: Predictor, analysis: Analysis, key: str, info: KeyInfo | None) -> Iterator[HelpText]:
    """Yield the words of the class, the comments of the parents, then those of stock recipes; each once."""
    texts: set[str] = set()
    for help_text in (
        *((HelpText(info.doc, info.where),) if info is not None and info.doc else ()),
        *_chain_help(predictor, analysis, key),
        *predictor.stock_comments.of(key),
    ):
        if help_text.text not in texts:
            texts.add(help_text.text)
            yield help_text


def _chain_help(predictor: Predictor, analysis: Analysis, key: str) -> Iterator[HelpText]:
    comments = predictor.comments(analysis)
    value = find(analysis.recipe.merged, parse_key(key))
    own = str(analysis.state.path)
    while value is not None:
        if value.mark.file != own and (comment := comments.own(value)) is not None:
            text = joined(comment)
            if text:
                yield HelpText(text, f"{value.mark.file}:{value.mark.line}")
        value = value.under
