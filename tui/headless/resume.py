"""`resume`: one more job for a run that ended."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from launcher.ownership import ForeignRunError, foreign_reason
from launcher.submit.resume import go_on, lay_out_resume
from recipes.errors import Exit
from tui.headless.output import announce, ask, print_json, say, show
from tui.headless.stores import run_store
from tui.headless.submit import cost_line

if TYPE_CHECKING:
    import argparse

    from launcher.runs import Job, RunStore
    from launcher.submit.resume import ResumePlan

_KEYS_SHOWN = 5


def run(options: argparse.Namespace) -> int:
    """Submit one more job of a run: the same recipe as it was submitted, from the last checkpoint."""
    store = run_store(options.host)
    resumption = lay_out_resume(store.find(options.run), store, time_s=options.time)
    _describe(resumption)
    reason = foreign_reason(store.transport, resumption.run, starts=True)
    if reason:
        say(f"not only yours: {reason}")
    job = None if options.dry_run else _submit(resumption, store, trust=options.trust)
    if job is not None:
        announce(f"submitted: job {job.id}, run {resumption.run.spec.id}")
    if options.json:
        print_json(_as_json(resumption, job))
    elif job is None:
        show(shlex.join(resumption.plan.argv))
    else:
        on_host = f"--host {options.host} " if options.host is not None else ""
        show(f"job {job.id}")
        run = resumption.run.spec.id
        show(f"run {run}; follow it with `distill-tui watch {on_host}{run}`")
    return Exit.OK


def _submit(resumption: ResumePlan, store: RunStore, *, trust: bool) -> Job | None:
    try:
        return go_on(resumption, store, trust=trust).job
    except ForeignRunError as error:
        if not sys.stdin.isatty() or not ask(error.question):
            raise
    return go_on(resumption, store, trust=True).job


def _describe(resumption: ResumePlan) -> None:
    """Print where the run continues, and with which recipe."""
    run = resumption.run.spec
    say(f"{run.id} {resumption.state}" + f": {resumption.reason}" * bool(resumption.reason))
    of = f" of {resumption.max_steps}" if resumption.max_steps is not None else ""
    if resumption.step is None:
        say(f"no checkpoint: starts from step 0, although step {resumption.done}{of} was reached")
    else:
        say(f"continues from the checkpoint of step {resumption.step}{of} (reached: step {resumption.done})")
    if resumption.left is not None:
        say(f"{resumption.left} steps left")
    if resumption.changed is None:
        say(f"{run.recipe.source} cannot be read now; using the recipe as submitted")
    elif resumption.changed:
        more = len(resumption.changed) - _KEYS_SHOWN
        keys = ", ".join(resumption.changed[:_KEYS_SHOWN]) + f" and {more} more" * (more > 0)
        say(f"the recipe has changed since ({keys}); using the recipe as submitted")
    say(cost_line(run.nodes, run.gpus_per_node, resumption.cost))


def _as_json(resumption: ResumePlan, job: Job | None) -> dict[str, object]:
    run, cost = resumption.run, resumption.cost
    return {
        "schema": 1,
        "run": run.spec.id,
        "dir": run.directory,
        "state": resumption.state,
        "reason": resumption.reason,
        "resumes": {
            "step": resumption.step,
            "done": resumption.done,
            "max_steps": resumption.max_steps,
            "left": resumption.left,
        },
        "changed": list(resumption.changed) if resumption.changed is not None else None,
        "jobs": [] if job is None else [{"id": job.id, "role": "training", "link": job.link}],
        "plan": resumption.plan.as_json(),
        "cost": {"node_hours": cost.node_hours, "gpu_hours": cost.gpu_hours},
    }
