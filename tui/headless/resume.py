"""`resume`: one more job for a run that ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from recipes.errors import Exit
from tui.headless.output import print_json, say
from tui.headless.submit import cost_line

if TYPE_CHECKING:
    from launcher.runs import Job
    from launcher.submit.resume import ResumePlan

_KEYS_SHOWN = 5


def add_parsers(commands: argparse._SubParsersAction[Any]) -> None:
    """Register the command."""
    command = commands.add_parser(
        "resume", help="go on with a run that ended, from its last checkpoint", description=_resume.__doc__
    )
    command.add_argument("run", metavar="RUN", help="a run's name or an unambiguous part of it")
    command.add_argument("--time", metavar="T", help="another time limit: MM, HH:MM:SS, D-HH:MM:SS")
    command.add_argument("--dry-run", action="store_true", help="print what would happen; does nothing")
    command.add_argument("--json", action="store_true", help="as one JSON object")
    command.set_defaults(handler=_resume)


def _resume(options: argparse.Namespace) -> int:
    """Submit one more job of a run: the same recipe as it was submitted, from the last checkpoint."""
    from launcher.submit.request import limit_of
    from launcher.submit.resume import go_on, lay_out_resume
    from tui.headless.runs import store

    known = store()
    time_s = None if options.time is None else limit_of(options.time)
    resumption = lay_out_resume(known.find(options.run), known, time_s=time_s)
    _tell(resumption)
    job = None if options.dry_run else go_on(resumption, known).job
    if options.json:
        print_json(_as_json(resumption, job))
    elif job is None:
        import shlex

        print(shlex.join(resumption.plan.argv))
    else:
        print(f"job {job.id}")
        print(f"run {resumption.run.spec.id}; `distill-tui watch {resumption.run.spec.id}` follows it")
    return Exit.OK


def _tell(resumption: ResumePlan) -> None:
    """Say where it goes on, and with what."""
    run = resumption.run.spec
    say(f"{run.id} {resumption.state}" + f": {resumption.reason}" * bool(resumption.reason))
    of = f" of {resumption.max_steps}" if resumption.max_steps is not None else ""
    if resumption.step is None:
        say(f"there is no checkpoint: it begins again, though step {resumption.done}{of} was done")
    else:
        say(f"goes on from the checkpoint of step {resumption.step}{of}; step {resumption.done} was done")
    if resumption.left is not None:
        say(f"{resumption.left} steps are left")
    if resumption.changed is None:
        say(f"{run.recipe.source} cannot be read now; the recipe as it was submitted is used")
    elif resumption.changed:
        more = len(resumption.changed) - _KEYS_SHOWN
        keys = ", ".join(resumption.changed[:_KEYS_SHOWN]) + f" and {more} more" * (more > 0)
        say(f"the recipe has changed since ({keys}); it goes on as it was submitted")
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
