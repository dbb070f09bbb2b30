"""Arguments of `submit`, made from the table of request fields."""

from __future__ import annotations

from launcher.fields import FIELDS, Field, field
from tui.cli.spec import HOST, JSON, OVERRIDES, SET_BOTH, SET_FIELD, Argument, Kind, flag


def arguments() -> tuple[Argument, ...]:
    """Return the recipe, an option for each field of a request that has one, and further options."""
    meaning = dict(field("kind").choices)
    return (
        Argument("recipe", "FILE", "recipe"),
        OVERRIDES,
        *(_option(row) for row in FIELDS if row.flag.startswith("--") and row.name != "kind"),
        flag("--rehearse", meaning["rehearsal"], group="kind"),
        flag("--smoke", meaning["smoke"], group="kind"),
        SET_FIELD,
        SET_BOTH,
        Argument(
            "--save-child",
            "FILE",
            "write overrides and fields to a new recipe on top of this one; a directory: "
            "named by models and size",
            group="saving",
        ),
        flag("--save-into", "write overrides and fields into the recipe's own file", group="saving"),
        flag("--yes", "submit although the memory may not suffice"),
        flag("--test-only", "ask Slurm when it would start, submit nothing", group="extent"),
        flag("--dry-run", "print what would be submitted, submit nothing", group="extent"),
        HOST,
        JSON,
    )


def _option(row: Field) -> Argument:
    kinds: dict[str, Kind] = {"whole": "count", "time": "time"}
    if row.name == "gpus_per_node":  # 0: nodes without GPUs, for a rehearsal
        kinds["whole"] = "number"
    default: int | str | None = row.default if row.choices else None
    if row.kind == "whole" and row.default.isdecimal():
        default = int(row.default)
    return Argument(
        row.flag,
        row.metavar,
        _help(row),
        kinds.get(row.kind, "text"),
        repeat="*" if row.repeatable else "",
        default=default or None,
        choices=tuple(value for value, _ in row.choices),
        dest=row.name,
    )


def _help(row: Field) -> str:
    """Return a field's help without its sentences about the wizard's keys, and with its default."""
    sentences = [part.removesuffix(".") for part in row.help.split(". ") if "F2" not in part]
    if row.default:
        sentences.append(f"Default: {row.default}")
    return "".join(f"{sentence}. " for sentence in sentences).rstrip()
