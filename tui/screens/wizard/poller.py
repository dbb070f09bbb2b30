"""A thread that resolves the wizard's state and posts the result to the screen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import InputError, TransportError
from launcher.submit.submit import StartEstimate, SubmissionPlan
from recipes.errors import ExplainedError
from tui.background import Background, in_background, post
from tui.opening import ActionFailed
from tui.screens.wizard.draft_resolver import DraftResolver
from tui.screens.wizard.model import DraftStatus, WizardState

TYPING_S = 0.01
"""Keys come in bursts: resolving each letter of a word would be wasted work."""
SETTLE_S = 0.3
_AGAIN_S = 3.0
"""Pause before a host that did not answer is asked again."""
"""Pause in typing after which the submission is planned."""


class DraftResolved(Message):
    """A new status of the draft."""

    def __init__(self, status: DraftStatus) -> None:
        super().__init__()
        self.status = status


class StartEstimated(Message):
    """Slurm's start estimate, or its error."""

    def __init__(self, plan: SubmissionPlan, result: StartEstimate | ExplainedError) -> None:
        super().__init__()
        self.plan = plan
        self.result = result


class RunsRootDecided(Message):
    """The user decided where runs are kept."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root


class Submitted(Message):
    """A run was submitted."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory


class WizardPoller(Background):
    """Resolves the latest state: its quick part at once, its plan after a pause in typing."""

    def __init__(self, make: Callable[[], DraftResolver], target: MessagePump) -> None:
        super().__init__(self._poll, "wizard")
        self._make = make
        self._resolver: DraftResolver | None = None
        self._making = threading.Lock()
        self._target = target
        self._state = WizardState()
        self._status: DraftStatus | None = None
        self._stale = True

    def resolve(self, state: WizardState) -> None:
        """Resolve a state."""
        self._state = state
        self.wake()

    def refresh(self) -> None:
        """Resolve the state again: the cluster changed, or its plan was used."""
        self._stale = True
        self.wake()

    def decide_runs_root(self, answer: str) -> None:
        """Remember where runs are kept, and plan the submission again."""
        from launcher.runs import user_store
        from launcher.storage.decision import decide

        def remember() -> None:
            resolver = self.get_resolver()
            root = decide(answer, resolver.environment)
            resolver.store = user_store(resolver.store.transport, root, resolver.environment)
            post(self._target, RunsRootDecided(root))
            self.refresh()

        in_background(remember, "runs root", lambda error: post(self._target, ActionFailed(error)))

    def ask_slurm(self, *, refresh: bool) -> None:
        """Detect the cluster on a thread of its own: a controller that hangs takes a minute."""

        def ask() -> None:
            self.get_resolver().ask_slurm(refresh=refresh)
            self.refresh()

        in_background(ask, "detect", lambda error: post(self._target, ActionFailed(error)))

    def estimate_start(self, plan: SubmissionPlan) -> None:
        """Ask Slurm when the job would start."""
        from launcher.submit.submit import estimate_start

        def ask() -> None:
            resolver = self.get_resolver()
            post(
                self._target,
                StartEstimated(plan, estimate_start(plan, resolver.store, resolver.environment)),
            )

        in_background(ask, "estimate_start", lambda error: post(self._target, StartEstimated(plan, error)))

    def send(self, plan: SubmissionPlan) -> None:
        """Submit a plan that the user confirmed."""
        from launcher.submit.submit import send

        def submit() -> None:
            resolver = self.get_resolver()
            run = send(plan, resolver.store, resolver.environment, confirmed=True)
            post(self._target, Submitted(run.directory))

        in_background(submit, "submit", lambda error: post(self._target, ActionFailed(error)))

    def rehearse_here(self) -> None:
        """Start a rehearsal on this machine."""
        from launcher.sites import inspect_machine, shared_login_node
        from launcher.submit.rehearsal import start

        def begin() -> None:
            resolver = self.get_resolver()
            login_node = shared_login_node(inspect_machine(resolver.store.transport, resolver.environment))
            if login_node is not None:
                raise InputError(
                    f"{login_node}: other users share it", fix="Run `distill-tui demo`, which asks first."
                )
            post(
                self._target,
                Submitted(start(resolver.store.transport, resolver.store, resolver.environment).directory),
            )

        in_background(begin, "rehearse", lambda error: post(self._target, ActionFailed(error)))

    def get_resolver(self) -> DraftResolver:
        """Return the resolver; the first call, which takes some time, is made on a thread."""
        # Both threads need it first: two resolvers would each know half.
        with self._making:
            if self._resolver is None:
                self._resolver = self._make()
            return self._resolver

    def _poll(self) -> float | None:
        status = self._status
        if self._stale or status is None or status.state is not self._state:
            time.sleep(TYPING_S)
            self._stale = False
            try:
                self._status = self.get_resolver().quick_status(self._state)
            except TransportError:  # of a host: the screen says so; it is tried again
                self._stale = True
                return _AGAIN_S
        elif not status.settled:
            self._status = self.get_resolver().full_status(status.state, status)
        else:
            return None
        post(self._target, DraftResolved(self._status))
        return SETTLE_S
