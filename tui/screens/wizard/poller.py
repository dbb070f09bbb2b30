"""Looking at drafts on a thread, and sending what was found out."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import InputError
from launcher.submit.submit import StartEstimate, SubmissionPlan
from recipes.errors import ExplainedError
from tui.background import Background, in_background, post
from tui.opening import OpenFailed
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.model import DraftStatus, WizardState

TYPING_S = 0.04
"""Keys come in bursts; looking at each letter of a word would be in vain."""
SETTLE_S = 0.3
"""What would be submitted is laid out when nothing was typed for so long."""


class DraftResolved(Message):
    """Something was found out."""

    def __init__(self, seen: DraftStatus) -> None:
        super().__init__()
        self.seen = seen


class StartEstimated(Message):
    """Slurm told when it would start, or why not."""

    def __init__(self, proposal: SubmissionPlan, told: StartEstimate | ExplainedError) -> None:
        super().__init__()
        self.proposal = proposal
        self.told = told


class Submitted(Message):
    """The run is submitted."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory


class WizardPoller(Background):
    """Looks at the latest draft: at once for what is quick, and after a pause for the rest."""

    def __init__(self, make: Callable[[], DraftResolver], target: MessagePump) -> None:
        super().__init__(self._look, "wizard")
        self._make = make
        self._lookout: DraftResolver | None = None
        self._target = target
        self._draft = WizardState()
        self._seen: DraftStatus | None = None
        self._again = True

    def consider(self, draft: WizardState) -> None:
        """Look at a draft."""
        self._draft = draft
        self.wake()

    def again(self) -> None:
        """Look at the draft anew: the world changed, or what was laid out is spent."""
        self._again = True
        self.wake()

    def ask_slurm(self, *, refresh: bool) -> None:
        """Ask Slurm what there is, beside everything else: a controller that hangs takes a minute."""

        def ask() -> None:
            self._known().ask_slurm(refresh=refresh)
            self.again()

        in_background(ask, "detect", lambda error: post(self._target, OpenFailed(error)))

    def estimate_start(self, proposal: SubmissionPlan) -> None:
        """Ask Slurm when it would start."""
        from launcher.submit.submit import estimate_start

        def ask() -> None:
            known = self._known()
            post(
                self._target,
                StartEstimated(proposal, estimate_start(proposal, known.store, known.environment)),
            )

        in_background(
            ask, "estimate_start", lambda error: post(self._target, StartEstimated(proposal, error))
        )

    def send(self, proposal: SubmissionPlan) -> None:
        """Submit what was laid out and agreed to."""
        from launcher.submit.submit import send

        def submit() -> None:
            known = self._known()
            run = send(proposal, known.store, known.environment, confirmed=True)
            post(self._target, Submitted(run.directory))

        in_background(submit, "submit", lambda error: post(self._target, OpenFailed(error)))

    def rehearse_here(self) -> None:
        """Start a rehearsal on this machine."""
        from launcher.sites import look_at, shared_login_node
        from launcher.submit.rehearsal import start

        def begin() -> None:
            known = self._known()
            why = shared_login_node(look_at(known.store.transport, known.environment))
            if why is not None:
                raise InputError(
                    f"{why}: others work here", fix="`distill-tui demo` asks, and starts it there."
                )
            post(
                self._target,
                Submitted(start(known.store.transport, known.store, known.environment).directory),
            )

        in_background(begin, "rehearse", lambda error: post(self._target, OpenFailed(error)))

    def _known(self) -> DraftResolver:
        if self._lookout is None:
            self._lookout = self._make()
        return self._lookout

    def _look(self) -> float | None:
        seen = self._seen
        if self._again or seen is None or seen.draft is not self._draft:
            time.sleep(TYPING_S)
            self._again = False
            self._seen = self._known().glance(self._draft)
        elif not seen.settled:
            self._seen = self._known().look(seen.draft, seen)
        else:
            return None
        post(self._target, DraftResolved(self._seen))
        return SETTLE_S
