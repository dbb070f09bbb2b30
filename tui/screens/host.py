"""What the screens need of the app that shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from textual.screen import Screen

from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from launcher.monitor.notify import Channel
    from tui.run_view import RunView
    from tui.screens.wizard.draft_resolver import DraftResolver
    from tui.screens.wizard.model import WizardState


class Host(Protocol):
    """The app, as its screens know it."""

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        ...

    def in_front(self) -> bool:
        """Return whether the terminal has the user's attention; asked from threads."""
        ...

    def channels(self) -> tuple[Channel, ...]:
        """Return how the user wants to be told of a run's start and end; asked from threads.

        Raises:
            InputError: the settings cannot be read, or name no such thing.
        """
        ...

    def open_run(self, reference: str) -> None:
        """Show a run in the monitor."""
        ...

    def new_run(self) -> None:
        """Open the wizard."""
        ...

    def run_again(self, wizard_state: WizardState) -> None:
        """Open the wizard with what was chosen for a run before."""
        ...

    def draft_resolver(self) -> DraftResolver:
        """Return the resolver of the wizard's drafts; called on a thread."""
        ...

    def put_aside(self, screen: Screen[None], wizard_state: WizardState) -> None:
        """Go back from the wizard to the list; what was typed is kept for the next time."""
        ...

    def submitted(self, screen: Screen[None], directory: str) -> None:
        """Go from the wizard to the monitor of the run it submitted."""
        ...

    def close_monitor(self, screen: Screen[None]) -> None:
        """Go back from a monitor to the list."""
        ...

    def opening_failed(self, screen: Screen[None], error: ExplainedError) -> None:
        """Say why a run cannot be watched, and go back."""
        ...

    def viewed(self, screen: Screen[None], view: RunView) -> None:
        """Take note of a run's state."""
        ...
