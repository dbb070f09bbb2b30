"""The fields of a submit request, each declared once: title, help, recipe key, flag, sbatch option.

The wizard's form, the flags of `submit`, their help and the documentation are made from this table
(`python -m launcher.fields` prints it). Importing it imports nothing else; what a value means for a recipe
is in `launcher.fields.values`.
"""

from __future__ import annotations

from launcher.fields.job_fields import JOB_FIELDS
from launcher.fields.recipe_fields import RECIPE_FIELDS
from launcher.fields.request_field import OFF, ON, STEPS, Field, FieldKind, StepId, StepTitle

__all__ = [
    "FIELDS",
    "OFF",
    "ON",
    "STEPS",
    "Field",
    "FieldKind",
    "StepId",
    "StepTitle",
    "field",
    "table",
]

FIELDS: tuple[Field, ...] = (*JOB_FIELDS, *RECIPE_FIELDS)
_BY_NAME = {row.name: row for row in FIELDS}


def field(name: str) -> Field:
    """Return a field by its name.

    Raises:
        KeyError: there is no such field.
    """
    return _BY_NAME[name]


def table() -> str:
    """Return the fields as a Markdown table, for the documentation."""
    titles = {step.id: step.title for step in STEPS}
    rows = ["| Field | Step | `submit` | Recipe key | |", "|---|---|---|---|---|"]
    for item in FIELDS:
        keys = " or ".join(f"`{key}`" for key in item.keys) or ("several" if item.compound else "")
        flag = f"`{item.flag}`" if item.flag else f"`--set {item.name}=`" if item.of_recipe else ""
        names = ", ".join(f"`{value}`" for value, _ in item.choices)
        values = f" Values: {names}." if names else ""
        rows.append(f"| {item.title} | {titles.get(item.step, '')} | {flag} | {keys} | {item.help}{values} |")
    return "\n".join(rows) + "\n"
