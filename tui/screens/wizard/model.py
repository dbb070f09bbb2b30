"""What is typed in the wizard, what stands where nothing was typed, and the order that makes: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from launcher.clusters.slurm.parse import ParseError, parse_duration, slurm_time
from recipes.fields import FIELDS, Field
from recipes.fields import field as field_of
from recipes.planning.edits import hydra

if TYPE_CHECKING:
    from launcher.clusters.slurm.detect import Detection
    from launcher.clusters.slurm.job_options import Cost, Kind
    from launcher.clusters.slurm.partitions import Partition
    from launcher.submit.checkout import NemoCheckout
    from launcher.submit.submit import SubmissionPlan, SubmitRequest
    from recipes.checks import Report, Result
    from recipes.errors import ExplainedError
    from recipes.inheritance import EffectiveRecipe
    from recipes.memory import Estimate
    from recipes.models import ModelFacts, UnknownModel
    from recipes.planning import Fix

STARTING_RECIPE = "qwen3-1.7b-from-4b.yaml"
REHEARSAL_RECIPE = "rehearsal.yaml"
_USUAL_S = {"rehearsal": 600, "smoke": 1800, "training": 86400}
"""Time limits that are proposed, where the partition allows them."""
_MODELS = ("checkout", "student", "teacher")


@dataclass(frozen=True, slots=True)
class Step:
    """One page of the wizard."""

    id: str
    title: str
    fields: tuple[str, ...] = ()


STEPS = (
    Step("cluster", "Cluster", ("partition", "account", "qos", "reservation", "profile")),
    Step("recipe", "Recipe", ("kind", "recipe", *_MODELS)),
    Step("job", "Job", ("nodes", "time", "chain")),
    Step(
        "sizes",
        "Sizes",
        ("policy_tp", "policy_cp", "teacher_tp", "teacher_cp", "vllm_tp", "prompts", "global_batch",
         "micro_batch", "length", "steps"),
    ),
    Step("review", "Review"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WizardState:
    """What the user has typed and chosen so far; nothing else."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """By field; a field that is not in it follows the recipe, the cluster, or what is usual."""
    overrides: tuple[str, ...] = ()
    """Overrides that no field says: from the command line, and fixes that were applied."""
    skipped: tuple[str, ...] = ()
    """Ids of failing checks that are not to block."""

    @property
    def touched(self) -> bool:
        """Whether there is anything to lose."""
        return bool(self.texts or self.overrides or self.skipped)

    def with_text(self, name: str, text: str, usual: str) -> WizardState:
        """Return the draft with a field's text; one that equals what stands there anyway is not kept."""
        texts = {key: value for key, value in self.texts.items() if key != name}
        if text.strip() != usual:
            texts[name] = text.strip()
        return replace(self, texts=texts)

    def with_fix(self, fix: Fix, seen: DraftStatus) -> WizardState:
        """Return the draft with a check's fix applied: to fields where they say it, else as overrides."""
        draft = self
        for edit in fix.edits:
            name = field_with_key(edit.key, seen)
            if name is not None and not edit.remove:
                draft = replace(draft, texts={**draft.texts, name: str(edit.after)})
            else:
                draft = replace(draft, overrides=(*draft.overrides, *edit.overrides()))
        return draft

    def with_skipped(self, identity: str) -> WizardState:
        """Return the draft with a check skipped, or no longer skipped."""
        if identity in self.skipped:
            return replace(self, skipped=tuple(item for item in self.skipped if item != identity))
        return replace(self, skipped=(*self.skipped, identity))


@dataclass(frozen=True, slots=True)
class DraftStatus:
    """What was found out about a draft. Everything is None until it is known."""

    draft: WizardState = WizardState()
    found: Detection | None = None
    no_slurm: ExplainedError | None = None
    """Why the cluster could not be asked at all."""
    recipes: tuple[Path, ...] = ()
    """Recipes to choose from: recently used ones, then the starting recipes."""
    usual_checkout: str = ""
    path: Path | None = None
    """The recipe's file."""
    recipe: EffectiveRecipe | None = None
    """As its file has it, with the draft's own overrides but not its fields."""
    file: EffectiveRecipe | None = None
    """As its file has it."""
    recipe_error: str = ""
    checkout: NemoCheckout | None = None
    checkout_error: str = ""
    student: ModelFacts | UnknownModel | None = None
    teacher: ModelFacts | UnknownModel | None = None
    report: Report | None = None
    memory: Estimate | None = None
    cost: Cost | None = None
    gpus_per_node: int = 0
    proposal: SubmissionPlan | None = None
    """What would be submitted; None where it cannot be laid out, or was not yet."""
    problem: ExplainedError | None = None
    """Why it cannot be laid out."""
    settled: bool = False
    """Whether there is nothing more to find out."""


@dataclass(frozen=True, slots=True)
class FieldNote:
    """What stands beside a field."""

    text: str
    level: Literal["", "warn", "error"] = ""
    """An error must go before an order can be made; a warning is the site's to judge."""


def kind_of(draft: WizardState) -> Kind:
    """Return the kind of run."""
    kind = draft.texts.get("kind", "training")
    return kind if kind in ("rehearsal", "smoke") else "training"  # type: ignore[return-value]


def fields_of(step: Step, draft: WizardState, seen: DraftStatus) -> tuple[Field, ...]:
    """Return the fields that a step asks for now: rehearsals have stand-in models and need no checkout."""
    names = list(step.fields)
    if kind_of(draft) == "rehearsal":
        names = [name for name in names if name not in _MODELS and step.id != "sizes"]
    if seen.found is None or not seen.found.site.profiles:
        names = [name for name in names if name != "profile"]
    return tuple(field_of(name) for name in names)


def steps_of(draft: WizardState, seen: DraftStatus) -> tuple[Step, ...]:
    """Return the steps that ask for something, and the review."""
    return tuple(step for step in STEPS if step.id == "review" or fields_of(step, draft, seen))


def key_of(item: Field, seen: DraftStatus) -> str:
    """Return the recipe key that a field sets."""
    side = item.key.partition(".")[0]
    megatron = seen.recipe is not None and seen.recipe.get(f"{side}.megatron_cfg.enabled") is True
    return item.key_with("megatron" if megatron else None)


def field_with_key(key: str, seen: DraftStatus) -> str | None:
    """Return the name of the field that sets a recipe key."""
    if key == "cluster.num_nodes":
        return "nodes"
    return next((item.name for item in FIELDS if item.key and key_of(item, seen) == key), None)


def partition_of(draft: WizardState, seen: DraftStatus) -> Partition | None:
    """Return the partition that is chosen, or the default one."""
    if seen.found is None:
        return None
    name = draft.texts.get("partition")
    if name:
        return seen.found.partition(name)
    usual = next((item for item in seen.found.partitions if item.default), None)
    return usual or next(iter(seen.found.partitions), None)


def usual(name: str, draft: WizardState, seen: DraftStatus) -> str:
    """Return what stands in a field that was not touched."""
    item = field_of(name)
    if item.key:
        value = seen.recipe.get(key_of(item, seen)) if seen.recipe is not None else None
        return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    partition = partition_of(draft, seen)
    if name == "partition":
        return partition.name if partition is not None else ""
    if name == "account":
        return _usual_account(partition, seen)
    if name == "kind":
        return "training"
    if name == "recipe":
        return REHEARSAL_RECIPE if kind_of(draft) == "rehearsal" else STARTING_RECIPE
    if name == "checkout":
        return seen.usual_checkout
    if name == "nodes":
        count = seen.recipe.get("cluster.num_nodes") if seen.recipe is not None else None
        return str(count) if isinstance(count, int) and not isinstance(count, bool) and count > 0 else "1"
    if name == "time":
        most = partition.max_time_s if partition is not None else None
        return slurm_time(min(_USUAL_S[kind_of(draft)], most or _USUAL_S["training"]))
    return "1" if name == "chain" else ""


def _usual_account(partition: Partition | None, seen: DraftStatus) -> str:
    if seen.found is None:
        return ""
    default = next((item.account for item in seen.found.accounts or () if item.default), "")
    usable = seen.found.accounts_in(partition) if partition is not None else None
    if usable and default not in usable:
        return usable[0]
    return default


def text_of(name: str, draft: WizardState, seen: DraftStatus) -> str:
    """Return what stands in a field."""
    return draft.texts[name] if name in draft.texts else usual(name, draft, seen)


def time_s(draft: WizardState, seen: DraftStatus) -> int | None:
    """Return the time limit in seconds; None where none is given."""
    try:
        return parse_duration(text_of("time", draft, seen)) or None
    except ParseError:
        return None


def count_of(name: str, draft: WizardState, seen: DraftStatus) -> int | None:
    """Return a whole number from 1 on; None where there is none."""
    text = text_of(name, draft, seen)
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


def changes(draft: WizardState, seen: DraftStatus) -> tuple[str, ...]:
    """Return the overrides that the fields of the recipe make; what is no value of its field is left out."""
    made = []
    for item in FIELDS:
        if not item.key or not draft.texts.get(item.name):
            continue
        value: object = draft.texts[item.name]
        if item.kind == "whole":
            value = count_of(item.name, draft, seen)
            if value is None:
                continue
        made.append(f"++{key_of(item, seen)}={hydra(value)}")
    return tuple(made)


def error_in(item: Field, draft: WizardState, seen: DraftStatus) -> str:
    """Return why an order cannot be made of what stands in a field; empty where it can."""
    text = text_of(item.name, draft, seen)
    if not text and item.name == "partition" and seen.found is None:
        return ""  # that there is no answer, or none yet, is said elsewhere
    if not text:
        needed = not item.optional and (not item.key or item.name in draft.texts)
        return "is needed" if needed else ""
    if item.kind == "whole" and count_of(item.name, draft, seen) is None:
        return "a whole number from 1 on"
    if item.kind == "time" and time_s(draft, seen) is None:
        return "no time: HH:MM:SS"
    if item.name == "recipe" and seen.recipe_error:
        return seen.recipe_error
    if item.name == "checkout" and seen.checkout_error:
        return seen.checkout_error
    return ""


def warning_in(item: Field, draft: WizardState, seen: DraftStatus) -> str:
    """Return what the site may refuse; it is the site's to judge."""
    partition = partition_of(draft, seen)
    if partition is None:
        return ""
    text = text_of(item.name, draft, seen)
    if item.name == "partition" and partition.state != "up":
        return f"is {partition.state}"
    if item.name == "account" and seen.found is not None:
        usable = seen.found.accounts_in(partition)
        if usable is not None and text and text not in usable:
            return f"may not use {partition.name}"
    limit = time_s(draft, seen)
    if item.name == "time" and limit and partition.max_time_s and limit > partition.max_time_s:
        return f"{partition.name}: {slurm_time(partition.max_time_s)} at most"
    nodes = count_of("nodes", draft, seen)
    most = min(partition.nodes, partition.max_nodes or partition.nodes)
    if item.name == "nodes" and nodes and nodes > most:
        return f"{partition.name} gives {most} at most"
    return ""


def results_on(item: Field, seen: DraftStatus) -> tuple[Result, ...]:
    """Return what checks have against a field, failures first; a check's first key is what it is about."""
    if seen.report is None or not (item.key or item.name == "nodes"):
        return ()
    key = key_of(item, seen) if item.key else "cluster.num_nodes"
    found = [
        result
        for result in seen.report.results
        if result.outcome in ("fail", "warn") and result.where and result.where[0].key == key
    ]
    return tuple(sorted(found, key=lambda result: result.outcome != "fail"))


def note_on(item: Field, draft: WizardState, seen: DraftStatus) -> FieldNote:
    """Return what is to be said beside a field."""
    if error := error_in(item, draft, seen):
        return FieldNote(error, "error")
    if warning := warning_in(item, draft, seen):
        return FieldNote(warning, "warn")
    for result in results_on(item, seen):
        return FieldNote(f"{result.id} {result.message}", "error" if result.outcome == "fail" else "warn")
    return FieldNote("")


def errors(draft: WizardState, seen: DraftStatus) -> dict[str, str]:
    """Return why no order can be made, by field."""
    found = {
        item.name: error_in(item, draft, seen)
        for step in STEPS
        for item in fields_of(step, draft, seen)
    }  # fmt: skip
    return {name: text for name, text in found.items() if text}


def order_of(draft: WizardState, seen: DraftStatus) -> SubmitRequest:
    """Return the order that a draft without errors makes."""
    from launcher.submit.submit import SubmitRequest

    def chosen(name: str) -> str | None:
        return text_of(name, draft, seen) or None

    assert seen.path is not None
    kind = kind_of(draft)
    return SubmitRequest(
        recipe=seen.path,
        nodes=count_of("nodes", draft, seen) or 1,
        time=text_of("time", draft, seen),
        overrides=(*draft.overrides, *changes(draft, seen)),
        kind=kind,
        partition=chosen("partition"),
        account=chosen("account"),
        qos=chosen("qos"),
        reservation=chosen("reservation"),
        profile=chosen("profile"),
        checkout=None if kind == "rehearsal" else chosen("checkout"),
        chain=count_of("chain", draft, seen) or 1,
        skip_checks=draft.skipped,
    )


def step_state(step: Step, draft: WizardState, seen: DraftStatus) -> Literal["", "warn", "error"]:
    """Return whether a step has something that is wrong, or doubtful."""
    levels = {note_on(item, draft, seen).level for item in fields_of(step, draft, seen)}
    return "error" if "error" in levels else "warn" if "warn" in levels else ""
