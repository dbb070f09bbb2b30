"""Everything that a planned submission would do, as one value: what the review and a dry run show."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.compare import ABSENT, ValueDifference, differences

if TYPE_CHECKING:
    from launcher.environment import VariableDecision
    from launcher.request import Cost
    from launcher.storage.decision import RunStorage
    from launcher.submit.submit import StartEstimate, SubmissionPlan
    from recipes.checks import Report
    from recipes.inheritance import EffectiveRecipe
    from recipes.memory import Estimate

_SCRIPT = "job.sh"


@dataclass(frozen=True, slots=True)
class ReviewFacts:
    """A submission before it is made. Values that come from secret variables stay interpolations."""

    changes: tuple[ValueDifference, ...]
    """Changes of the recipe by effective value: `a` as in its file."""
    command: str
    """Line that submits the first job, quoted for a shell."""
    script: str
    """Batch script; empty where there is none."""
    environment: tuple[VariableDecision, ...]
    """Outcome for each variable; without values of secrets."""
    cost: Cost
    report: Report
    memory: Estimate | None
    storage: RunStorage | None
    """What would be written, and where."""
    start: StartEstimate | None = None
    """When it would start; None where Slurm was not asked."""

    @classmethod
    def of(
        cls,
        plan: SubmissionPlan,
        base: EffectiveRecipe,
        storage: RunStorage | None = None,
        start: StartEstimate | None = None,
    ) -> ReviewFacts:
        """Return the facts of a plan; `base` is its recipe without any override."""
        environment = plan.options.environment
        return cls(
            recipe_changes(base, plan.submission.recipe),
            command_line(plan),
            batch_script(plan),
            environment.decisions if environment is not None else (),
            plan.cost,
            plan.report,
            plan.memory,
            storage,
            start,
        )

    def changes_json(self) -> list[dict[str, Any]]:
        """Return the recipe's changes as `submit --dry-run --json` prints them."""
        return [
            {
                "key": item.key,
                "from": None if item.a is ABSENT else item.a,
                "to": None if item.b is ABSENT else item.b,
                "removed": item.b is ABSENT,
            }
            for item in self.changes
        ]


def recipe_changes(base: EffectiveRecipe, recipe: EffectiveRecipe) -> tuple[ValueDifference, ...]:
    """Return the changes of a recipe by effective value, as they may be printed."""
    return tuple(differences(base.public, recipe.public))


def command_line(plan: SubmissionPlan) -> str:
    """Return the command that submits the first job, quoted for a shell."""
    return shlex.join(plan.submission.plans[0].argv)


def batch_script(plan: SubmissionPlan) -> str:
    """Return the batch script; empty where there is none."""
    return plan.submission.files.get(_SCRIPT, b"").decode("utf-8", "replace")
