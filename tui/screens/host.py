"""Interface between the app and its screens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.screen import Screen

from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

    from launcher.monitor.notify import Channel
    from launcher.storage.wizard_drafts import RunDraft
    from tui.dashboards import Dashboards
    from tui.run_view import RunView
    from tui.screen_settings import ScreenSettings
    from tui.screens.wizard.draft_resolver import DraftResolver
    from tui.screens.wizard.model import WizardState
    from tui.work_machine import WorkMachine


@runtime_checkable
class Remarking(Protocol):
    """A screen with a line of its own for remarks: a toast would cover lines of its logs."""

    def show_remark(self, remark: str) -> None:
        """Show a remark of a screen that was closed above this one."""
        ...


class Host(Protocol):
    """The app, as far as its screens use it."""

    @property
    def screen_settings(self) -> ScreenSettings:
        """The user's settings of the screen."""
        ...

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        ...

    def in_front(self) -> bool:
        """Return whether the terminal has the focus; called from threads."""
        ...

    def slow_terminal(self) -> bool:
        """Return whether the terminal is behind with what was painted; called from threads."""
        ...

    def channels(self) -> tuple[Channel, ...]:
        """Return the user's notification channels for a run's start and end; called from threads.

        Raises:
            InputError: the settings cannot be read, or name an unknown channel.
        """
        ...

    def opened(self) -> None:
        """Note that a screen shows what the app was started for: what later screens need is imported now."""
        ...

    @property
    def first_host(self) -> str:
        """Name of the host that the app was opened for; empty for this machine."""
        ...

    @property
    def dashboards(self) -> Dashboards:
        """Ports to Ray dashboards, which are closed with the app."""
        ...

    def machine(self, name: str) -> WorkMachine:
        """Return a machine by its name; this one for an empty name."""
        ...

    def try_hosts_again(self) -> None:
        """Let the next uses of hosts connect at once, also of those that refused."""
        ...

    def open_run(self, reference: str, machine: str = "") -> None:
        """Show a run of a machine in the monitor."""
        ...

    async def new_run(self, machine: str = "") -> None:
        """Open the wizard for a machine; drafts that were left are offered first."""
        ...

    async def continue_draft(self, draft: RunDraft) -> None:
        """Open the wizard with a draft that was left, at its step."""
        ...

    def run_again(self, wizard_state: WizardState, machine: str = "") -> None:
        """Open the wizard with the settings of an earlier run of a machine."""
        ...

    def draft_resolver(self, machine: str = "") -> DraftResolver:
        """Return a resolver of drafts on a machine; called and used on a thread."""
        ...

    def edit_recipe(
        self,
        path: Path,
        *,
        key: str = "",
        line: int = 0,
        overrides: tuple[str, ...] = (),
        draft: str = "",
    ) -> None:
        """Open a recipe in the editor, at a key or a line; `draft`: file of unsaved edits to go on with."""
        ...

    def close_editor(self, screen: Screen[None], remark: str) -> None:
        """Return from an editor to the screen below it, or leave where there is none; the remark is shown."""
        ...

    def use_runs_root(self, root: Path) -> None:
        """Keep and list runs in another directory from now on."""
        ...

    def put_aside(self, screen: Screen[None], wizard_state: WizardState) -> None:
        """Return from the wizard to the list; what could not be kept on disk is kept here."""
        ...

    def submitted(self, screen: Screen[None], directory: str, machine: str = "") -> None:
        """Go from the wizard to the monitor of the run it submitted."""
        ...

    def close_monitor(self, screen: Screen[None]) -> None:
        """Return from a monitor to the list."""
        ...

    def opening_failed(self, screen: Screen[None], error: ExplainedError) -> None:
        """Show why a run cannot be opened, and return to the list."""
        ...

    def viewed(self, screen: Screen[None], view: RunView) -> None:
        """Note a run's state."""
        ...
