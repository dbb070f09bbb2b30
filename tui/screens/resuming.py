"""Resumption of a run: the question with its cost, and one more job of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.screen import Screen

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.formatting import plural
from tui.machines import LocalMachine
from tui.opening import ActionFailed
from tui.screens.cancelling import ask_to_trust
from tui.screens.dialogs import ChoiceDialog, DialogChoice

if TYPE_CHECKING:
    from launcher.submit.resume import ResumePlan
    from tui.work_machine import WorkMachine

_CANNOT = "This run cannot be resumed"
_LISTED = 6
_REFUSED = 2
"""Refusals that are told whole, two rows each: the answers must stay in sight on 24 rows."""


@dataclass(frozen=True, slots=True)
class _Resumption:
    """A planned job, and the machine of its run; not every run is in the user's own directory of runs."""

    plan: ResumePlan
    machine: WorkMachine


class ResumeSent(Message):
    """One more job of a run was submitted."""

    def __init__(self, directory: str, host: str = "") -> None:
        super().__init__()
        self.directory = directory
        self.host = host


def ask_to_resume(
    screen: Screen[None],
    directory: str,
    machine: WorkMachine | None = None,
    *,
    reason: str = "",
    new_run: Callable[[], None] | None = None,
) -> None:
    """Lay out one more job of a run of a machine (None: this one), ask, and submit it.

    `reason`: why the run ended. `new_run`, where given, is the other choice: it prepares a new run.
    The screen gets a `ResumeSent` message, or an `ActionFailed` where no job could be submitted.
    """
    on = machine or LocalMachine()

    def lay_out() -> None:
        from launcher.runs import load
        from launcher.submit.resume import lay_out_resume

        store = on.store_at(str(Path(directory).parent))
        # Read anew: the run may have got further jobs since it was opened.
        plan = lay_out_resume(load(store.transport, directory), store)
        call_on(screen, lambda: _ask(screen, _Resumption(plan, on), reason, new_run))

    def failed(error: ExplainedError) -> None:
        if new_run is None:
            post(screen, ActionFailed(error))
        else:
            call_on(screen, partial(_offer_new_run, screen, error, new_run))

    in_background(lay_out, "resume", failed)


def ask_to_resume_several(
    screen: Screen[None], runs: Sequence[tuple[str, WorkMachine]], left_out: int = 0
) -> None:
    """Lay out one more job of each run, ask once, and submit them; `runs`: their directories and machines.

    `left_out`: how many of the marked rows are no runs that have ended. The screen gets a `ResumeSent`
    message for each job, an `ActionFailed` for each that could not be submitted.
    """

    def lay_out() -> None:
        from launcher.runs import load
        from launcher.submit.resume import lay_out_resume

        plans, refusals = [], []
        for directory, machine in runs:
            try:
                store = machine.store_at(str(Path(directory).parent))
                plan = lay_out_resume(load(store.transport, directory), store)
                plans.append(_Resumption(plan, machine))
            except ExplainedError as error:
                refusals.append(error)
        if not plans and refusals:
            raise refusals[0]
        call_on(screen, lambda: _ask_about(screen, plans, [error.what for error in refusals], left_out))

    in_background(lay_out, "resume", lambda error: post(screen, ActionFailed(error)))


def _ask_about(
    screen: Screen[None], resumptions: Sequence[_Resumption], refusals: Sequence[str], left_out: int
) -> None:
    def answered(answer: str | None) -> None:
        if answer == "resume":
            for resumption in resumptions:
                _submit(screen, resumption)

    plans = [resumption.plan for resumption in resumptions]
    title = f"Resume {plural(len(plans), 'run')}?"
    choices = [
        DialogChoice("y", f"submit {plural(len(plans), 'job')}", "resume"),
        DialogChoice("n", "not now", "no"),
    ]
    dialog = ChoiceDialog(title, resumptions_in_words(plans, refusals, left_out), choices, chosen=1)
    screen.app.push_screen(dialog, answered)


def resumptions_in_words(plans: Sequence[ResumePlan], refusals: Sequence[str], left_out: int = 0) -> str:
    """Say where each job would begin, what all of them cost at most, and what is not resumed."""
    lines = [f"{clean(plan.run.spec.name)}  {_beginning(plan)}" for plan in plans[:_LISTED]]
    lines += [f"and {len(plans) - _LISTED} more"] if len(plans) > _LISTED else []
    lines.append(f"\nAt most {sum(plan.cost.gpu_hours for plan in plans):.1f} GPU hours together.")
    not_resumed = [*refusals[:_REFUSED]]
    rest = len(refusals) - len(not_resumed) + left_out
    not_resumed += [f"{plural(rest, 'further row')} without a run that can be resumed"] if rest else []
    return "\n".join([*lines, *(f"Not resumed: {text}." for text in not_resumed)])


def _ask(
    screen: Screen[None], resumption: _Resumption, reason: str, new_run: Callable[[], None] | None
) -> None:
    """Ask whether the job is submitted."""

    def answered(answer: str | None) -> None:
        if answer == "resume":
            _submit(screen, resumption)
        elif answer == "new" and new_run is not None:
            new_run()

    if new_run is not None:
        choices = [
            DialogChoice("r", "resume from its checkpoint", "resume"),
            DialogChoice("n", "a new run with its settings", "new"),
        ]
    else:
        choices = [DialogChoice("y", "submit the job", "resume"), DialogChoice("n", "not now", "no")]
    text = "\n\n".join(part for part in (reason, resumption_in_words(resumption.plan)) if part)
    # Without another choice the answer that costs nothing is the first one.
    dialog = ChoiceDialog("Resume this run?", text, choices, chosen=0 if new_run is not None else 1)
    screen.app.push_screen(dialog, answered)


def resumption_in_words(plan: ResumePlan) -> str:
    """Say where the job would begin, and what it costs at most."""
    return (
        f"One more job of {plan.run.spec.id}, {_beginning(plan)} (step {plan.done} was reached).\n"
        f"At most {plan.cost.gpu_hours:.1f} GPU hours."
    )


def _beginning(plan: ResumePlan) -> str:
    total = f" of {plan.max_steps}" if plan.max_steps is not None else ""
    return f"from the checkpoint of step {plan.step}{total}" if plan.step is not None else "from step 0"


def _offer_new_run(screen: Screen[None], error: ExplainedError, new_run: Callable[[], None]) -> None:
    """Say why the run cannot be resumed, and offer a new one."""

    def answered(answer: str | None) -> None:
        if answer == "new":
            new_run()

    choices = [
        DialogChoice("n", "a new run with its settings", "new"),
        DialogChoice("b", "back to the monitor", "back"),
    ]
    screen.app.push_screen(ChoiceDialog(_CANNOT, str(error), choices), answered)


def _submit(screen: Screen[None], resumption: _Resumption) -> None:
    """Submit the job on a thread; of a run that others can write only once the user trusts it."""

    def submit(*, trust: bool = False) -> None:
        from launcher.submit.resume import go_on

        plan, machine = resumption.plan, resumption.machine
        run = go_on(plan, machine.store_at(str(Path(plan.run.directory).parent)), trust=trust)
        post(screen, ResumeSent(run.directory, machine.name))

    def failed(error: ExplainedError) -> None:
        from launcher.ownership import ForeignRunError

        if isinstance(error, ForeignRunError):
            call_on(screen, partial(ask_to_trust, screen, error, partial(submit, trust=True)))
        else:
            post(screen, ActionFailed(error))

    in_background(submit, "resume", failed)
