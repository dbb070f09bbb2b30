"""Resumption of a run: the question with its cost, and one more job of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.screen import Screen

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.background import call_on, in_background, post
from tui.formatting import plural
from tui.opening import ActionFailed
from tui.screens.cancelling import ask_to_trust
from tui.screens.dialogs import ChoiceDialog, DialogChoice

if TYPE_CHECKING:
    from launcher.runs import RunStore
    from launcher.submit.resume import ResumePlan

_CANNOT = "This run cannot be resumed"
_LISTED = 6
_REFUSED = 2
"""Refusals that are told whole, two rows each: the answers must stay in sight on 24 rows."""


class ResumeSent(Message):
    """One more job of a run was submitted."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory


def ask_to_resume(
    screen: Screen[None], directory: str, *, reason: str = "", new_run: Callable[[], None] | None = None
) -> None:
    """Lay out one more job of a run, ask, and submit it.

    `reason`: why the run ended. `new_run`, where given, is the other choice: it prepares a new run.
    The screen gets a `ResumeSent` message, or an `ActionFailed` where no job could be submitted.
    """

    def lay_out() -> None:
        from launcher.runs import load
        from launcher.submit.resume import lay_out_resume

        store = _store_of(directory)
        # Read anew: the run may have got further jobs since it was opened.
        plan = lay_out_resume(load(store.transport, directory), store)
        call_on(screen, lambda: _ask(screen, plan, reason, new_run))

    def failed(error: ExplainedError) -> None:
        if new_run is None:
            post(screen, ActionFailed(error))
        else:
            call_on(screen, partial(_offer_new_run, screen, error, new_run))

    in_background(lay_out, "resume", failed)


def ask_to_resume_several(screen: Screen[None], directories: Sequence[str], left_out: int = 0) -> None:
    """Lay out one more job of each run, ask once, and submit them.

    `left_out`: how many of the marked rows are no runs that have ended. The screen gets a `ResumeSent`
    message for each job, an `ActionFailed` for each that could not be submitted.
    """

    def lay_out() -> None:
        from launcher.runs import load
        from launcher.submit.resume import lay_out_resume

        plans, refusals = [], []
        for directory in directories:
            store = _store_of(directory)
            try:
                plans.append(lay_out_resume(load(store.transport, directory), store))
            except ExplainedError as error:
                refusals.append(error)
        if not plans and refusals:
            raise refusals[0]
        call_on(screen, lambda: _ask_about(screen, plans, [error.what for error in refusals], left_out))

    in_background(lay_out, "resume", lambda error: post(screen, ActionFailed(error)))


def _ask_about(
    screen: Screen[None], plans: Sequence[ResumePlan], refusals: Sequence[str], left_out: int
) -> None:
    def answered(answer: str | None) -> None:
        if answer == "resume":
            for plan in plans:
                _submit(screen, plan)

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


def _ask(screen: Screen[None], plan: ResumePlan, reason: str, new_run: Callable[[], None] | None) -> None:
    """Ask whether the job is submitted."""

    def answered(answer: str | None) -> None:
        if answer == "resume":
            _submit(screen, plan)
        elif answer == "new" and new_run is not None:
            new_run()

    if new_run is not None:
        choices = [
            DialogChoice("r", "resume from its checkpoint", "resume"),
            DialogChoice("n", "a new run with its settings", "new"),
        ]
    else:
        choices = [DialogChoice("y", "submit the job", "resume"), DialogChoice("n", "not now", "no")]
    text = "\n\n".join(part for part in (reason, resumption_in_words(plan)) if part)
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


def _submit(screen: Screen[None], plan: ResumePlan) -> None:
    """Submit the job on a thread; of a run that others can write only once the user trusts it."""

    def submit(*, trust: bool = False) -> None:
        from launcher.submit.resume import go_on

        run = go_on(plan, _store_of(plan.run.directory), trust=trust)
        post(screen, ResumeSent(run.directory))

    def failed(error: ExplainedError) -> None:
        from launcher.ownership import ForeignRunError

        if isinstance(error, ForeignRunError):
            call_on(screen, partial(ask_to_trust, screen, error, partial(submit, trust=True)))
        else:
            post(screen, ActionFailed(error))

    in_background(submit, "resume", failed)


def _store_of(directory: str) -> RunStore:
    """Return the store that a run is in: not every monitored run is in the user's own."""
    from launcher.runs import RunStore
    from launcher.transports.local import LocalTransport

    return RunStore(LocalTransport(), str(Path(directory).parent))
