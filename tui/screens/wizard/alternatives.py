"""What can be chosen in a field, by what was found out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.clusters.slurm.parse import slurm_time
from recipes.fields import field as field_of
from recipes.library import DIRECTORY
from recipes.models.facts import ModelFacts
from recipes.models.table import TABLE
from recipes.planning import Setup
from recipes.planning.sizes import divisors, heads_allow, legal_global_batches, legal_parallel
from tui.formatting import plural
from tui.screens.wizard.model import DraftStatus, WizardState, kind_of, partition_of

if TYPE_CHECKING:
    from launcher.clusters.slurm.partitions import Partition
    from recipes.planning import Side


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A value to choose, and what is known of it."""

    value: str
    about: str = ""


def choices_for(name: str, draft: WizardState, seen: DraftStatus) -> tuple[FieldChoice, ...]:
    """Return what can be chosen in a field; nothing where anything may be typed."""
    item = field_of(name)
    if item.choices:
        return tuple(FieldChoice(value, about) for value, about in item.choices)
    if name == "recipe":
        return tuple(FieldChoice(shown_path(path), _recipe_about(path)) for path in _fitting(draft, seen))
    if name in ("student", "teacher"):
        return _models(name, seen)
    if name in ("partition", "account", "qos", "profile"):
        return _of_the_cluster(name, draft, seen)
    return tuple(FieldChoice(str(size)) for size in legal_sizes(name, seen))


def _of_the_cluster(name: str, draft: WizardState, seen: DraftStatus) -> tuple[FieldChoice, ...]:
    found, partition = seen.found, partition_of(draft, seen)
    if found is None:
        return ()
    if name == "partition":
        return tuple(FieldChoice(item.name, partition_about(item)) for item in found.partitions)
    if name == "profile":
        profiles = (
            FieldChoice(item, ", ".join(known.environment)) for item, known in found.site.profiles.items()
        )
        return (FieldChoice("", "none"), *profiles)
    accounts = found.accounts or ()
    if name == "account":
        usable = found.accounts_in(partition) if partition is not None else None
        names = dict.fromkeys(usable or (item.account for item in accounts))
        default = {item.account for item in accounts if item.default}
        return tuple(FieldChoice(item, "your default" if item in default else "") for item in names)
    qos = dict.fromkeys(value for item in accounts for value in item.qos)
    return (FieldChoice("", "the account's default"), *(FieldChoice(value) for value in qos)) if qos else ()


def partition_about(item: Partition) -> str:
    """Return a partition's facts in a line."""
    gpus = f"{item.gpus.count} {item.gpus.type or 'GPU'}".strip() if item.gpus.count else "no GPU"
    limit = f"{slurm_time(item.max_time_s)} at most" if item.max_time_s else "time limit unknown"
    state = "" if item.state == "up" else f", {item.state}"
    return f"{plural(item.nodes, 'node')} × {gpus}, {limit}{state}"


def shown_path(path: Path) -> str:
    """Return a recipe as it is typed: a starting recipe by its name."""
    return path.name if is_starting(path) else str(path)


def is_starting(path: Path) -> bool:
    """Return whether a recipe is one that ships with the program."""
    return path.parent == DIRECTORY


def _recipe_about(path: Path) -> str:
    return "starting recipe" if is_starting(path) else "used before"


def _fitting(draft: WizardState, seen: DraftStatus) -> tuple[Path, ...]:
    """Return recipes that a kind can run: NeMo-RL cannot run the one of the stand-in models."""
    rehearsal = kind_of(draft) == "rehearsal"
    return tuple(path for path in seen.recipes if rehearsal or path.name != "rehearsal.yaml")


def _models(name: str, seen: DraftStatus) -> tuple[FieldChoice, ...]:
    """Return known models; for the teacher those with the student's vocabulary."""
    student = seen.student if isinstance(seen.student, ModelFacts) else None
    known = sorted(TABLE.values(), key=lambda facts: (facts.family, facts.params or 0))
    if name == "teacher" and student is not None:
        known = [facts for facts in known if facts.vocab == student.vocab and facts.id != student.id]
    return tuple(FieldChoice(facts.id, model_about(facts)) for facts in known)


def model_about(facts: ModelFacts) -> str:
    """Return a model's facts in a line."""
    size = f"{facts.params / 1e9:.1f}B parameters, " if facts.params else ""
    return f"{size}{facts.layers} layers, {facts.heads}/{facts.kv_heads} heads, vocabulary {facts.vocab:,}"


def setup_of(seen: DraftStatus) -> Setup | None:
    """Return the arithmetic of the recipe as it would run."""
    recipe = seen.report.recipe if seen.report is not None else None
    return Setup.of(recipe) if recipe is not None else None


def legal_sizes(name: str, seen: DraftStatus) -> tuple[int, ...]:
    """Return the values of a size under which the rest may stay as it is."""
    setup = setup_of(seen)
    if setup is None:
        return ()
    facts = seen.student if isinstance(seen.student, ModelFacts) else None
    if name in ("policy_tp", "policy_cp"):
        return _parallel(setup.policy, name, facts, setup.gpus_per_node)
    if name in ("teacher_tp", "teacher_cp"):
        known = seen.teacher if isinstance(seen.teacher, ModelFacts) else None
        return _parallel(setup.teacher, name, known, setup.gpus_per_node)
    if name == "vllm_tp":
        return tuple(size for size in divisors(setup.gpus_per_node) if heads_allow(facts, size))
    policy = setup.policy
    if not policy.divides:
        return ()
    if name == "global_batch":
        micro = 1 if policy.dynamic or policy.packing else policy.count("train_micro_batch_size")
        return tuple(legal_global_batches(setup.samples_per_step, policy.dp, micro))
    if name == "micro_batch" and setup.global_batch and setup.global_batch % policy.dp == 0:
        return tuple(size for size in divisors(setup.global_batch // policy.dp) if size <= 64)
    return ()


def _parallel(side: Side, name: str, facts: ModelFacts | None, node_gpus: int) -> tuple[int, ...]:
    if not side.gpus:
        return ()
    legal = list(legal_parallel(side.gpus, facts, node_gpus=node_gpus, pipeline=True))
    if name.endswith("tp"):
        sizes = {size.tp for size in legal if (size.cp, size.pp) == (side.cp, side.pp)}
    else:
        sizes = {size.cp for size in legal if (size.tp, size.pp) == (side.tp, side.pp)}
    return tuple(sorted(sizes))
