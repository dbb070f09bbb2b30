"""A draft that begins where a run was; on request with what the advice on its failure changes."""

from __future__ import annotations

from collections.abc import Iterable

from launcher.clusters.slurm.parse import slurm_time
from launcher.clusters.slurm.submission import as_given
from launcher.logs.events import FindingSeen
from launcher.runs import Run
from recipes.planning.edits import hydra
from tui.screens.wizard.model import WizardState


def remedies(findings: Iterable[FindingSeen]) -> tuple[str, ...]:
    """Return overrides that help against what made a run fail; advice that names no value is none."""
    edits = (edit for finding in findings if finding.root for edit in finding.edits)
    return tuple(f"++{edit.key}={hydra(edit.to)}" for edit in edits if edit.to is not None)


def draft_of(run: Run, overrides: tuple[str, ...] = ()) -> WizardState:
    """Return what was chosen for a run that Slurm ran, and more overrides of its recipe."""
    spec = run.spec
    texts = {"kind": spec.kind, "recipe": spec.recipe.source, "nodes": str(spec.nodes)}
    if spec.checkout is not None:
        texts["checkout"] = spec.checkout
    if spec.slurm is not None:
        asked = {
            "partition": spec.slurm.partition,
            "account": spec.slurm.account,
            "qos": spec.slurm.qos,
            "reservation": spec.slurm.reservation,
            "time": slurm_time(spec.slurm.time_s),
            "chain": str(spec.slurm.chain),
        }
        texts |= {name: text for name, text in asked.items() if text}
    return WizardState(texts, (*as_given(spec), *overrides))
