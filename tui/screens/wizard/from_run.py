"""The wizard state that repeats a run; on request with the edits suggested for its failure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from launcher.durations import format_time_limit
from launcher.effective import user_overrides
from launcher.logs.events import FindingSeen
from launcher.logs.signatures import catalogue
from launcher.runs import Run
from recipes.planning.edits import hydra
from tui.screens.wizard.model import WizardState


def remedies(findings: Iterable[FindingSeen]) -> tuple[str, ...]:
    """Return the suggested edits for a run's failure as overrides; edits without a value are left out."""
    edits = (edit for finding in findings if finding.root for edit in finding.edits)
    return tuple(f"++{edit.key}={hydra(edit.to)}" for edit in edits if edit.to is not None)


def variable_remedies(findings: Iterable[FindingSeen]) -> tuple[str, ...]:
    """Return the variables that the advice on a run's failure sets, as `NAME=value`."""
    signatures = catalogue().signatures
    causes = (signatures.get(finding.id) for finding in findings if finding.root)
    return tuple(
        f"{name}={value}" for cause in causes if cause is not None for name, value in cause.set_variables
    )


def wizard_state_of(
    run: Run, overrides: tuple[str, ...] = (), variables: tuple[str, ...] = ()
) -> WizardState:
    """Return the state that repeats a Slurm run, with further overrides and environment variables."""
    spec = run.spec
    texts = {"kind": spec.kind, "recipe": spec.recipe.source, "nodes": str(spec.nodes)}
    if spec.checkout is not None:
        texts["checkout"] = spec.checkout
    if spec.slurm is not None:
        slurm_texts = {
            "partition": spec.slurm.partition,
            "account": spec.slurm.account,
            "qos": spec.slurm.qos,
            "reservation": spec.slurm.reservation,
            "time": format_time_limit(spec.slurm.time_s),
            "chain": str(spec.slurm.chain),
        }
        texts |= {name: text for name, text in slurm_texts.items() if text}
    record = spec.request
    request_texts = {
        "profile": record.profile,
        "modules": record.modules,
        "env_file": record.env_file,
        "env": shlex.join(_with_variables(record.env, variables)),
        "no_env": shlex.join(record.no_env),
        "sbatch_args": shlex.join(record.sbatch_args),
    }
    texts |= {name: text for name, text in request_texts.items() if text}
    carried = {
        "launcher": spec.launcher,
        "container": record.container,
        "mounts": record.mounts,
    }
    kept = {name: value for name, value in carried.items() if value and value != "ray_bare"}
    return WizardState(texts, (*user_overrides(spec), *overrides), carried=kept)


def _with_variables(given: Iterable[str], variables: tuple[str, ...]) -> list[str]:
    """Return the variables given to a run, with further ones in place of those of the same name."""
    names = {variable.partition("=")[0] for variable in variables}
    return [*(item for item in given if item.partition("=")[0] not in names), *variables]
