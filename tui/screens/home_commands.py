"""Commands of the list on the selected or marked rows; what they do is in `home_actions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.screen import Screen

from launcher.overview.rows import RunRow
from tui.widgets.run_table import RunTable

if TYPE_CHECKING:
    from tui.screens.home_actions import HomeActions

ROW_ACTIONS = frozenset(
    {
        "cancel_run",
        "remove_run",
        "rename_run",
        "resume_run",
        "run_again",
        "report_run",
        "shell_here",
        "copy_job",
        "compare_runs",
        "open_charts",
        "open_dashboard",
    }
)
"""Commands of which `is_valid` says for which rows they are valid."""


def is_valid(action: str, rows: Sequence[RunRow]) -> bool:
    """Return whether one of `ROW_ACTIONS` is valid for these rows.

    Not with the actions themselves, whose import takes 90 ms: the first paint asks this for its keys.
    """
    runs = [row for row in rows if row.is_run]
    match action:
        case "cancel_run":
            return any(row.live and not row.damaged for row in rows)
        case "remove_run":
            return any(row.removable for row in rows)
        case "resume_run":
            return any(row.jobs and row.has_ended for row in runs)
        case "run_again":
            return len(rows) == len(runs) == 1 and bool(runs[0].jobs) and runs[0].has_ended
        case "copy_job":
            return any(row.job for row in rows)
        case "open_dashboard":
            return len(rows) == len(runs) == 1 and runs[0].live
        case "compare_runs":
            return len(runs) >= 2
        case _:
            return len(rows) == len(runs) == 1


class RowCommands(Screen[None]):
    """Commands on the chosen rows of a list."""

    runs: RunTable

    @property
    def actions(self) -> HomeActions:
        """The actions on rows."""
        raise NotImplementedError

    def action_cancel_run(self) -> None:
        """Stop the chosen runs and jobs."""
        self.actions.cancel(self.runs.chosen)

    def action_remove_run(self) -> None:
        """Remove the chosen runs."""
        self.actions.remove(self.runs.chosen)

    def action_rename_run(self) -> None:
        """Rename the run."""
        self.actions.rename(self.runs.chosen[0])

    def action_resume_run(self) -> None:
        """Resume the chosen runs."""
        self.actions.resume(self.runs.chosen)

    def action_run_again(self) -> None:
        """Open the wizard with the run's settings."""
        self.actions.run_again(self.runs.chosen[0])

    def action_report_run(self) -> None:
        """Write the run's report."""
        self.actions.report(self.runs.chosen[0])

    def action_shell_here(self) -> None:
        """Open a shell in the run's directory."""
        self.actions.shell_here(self.runs.chosen[0])

    def action_copy_job(self) -> None:
        """Copy the ids of the chosen jobs."""
        self.actions.copy_jobs(self.runs.chosen)

    def action_watch_job(self) -> None:
        """Ask for a job or a directory to watch."""
        selected = self.runs.selected
        self.actions.ask_what_to_watch(selected.host if selected is not None else "")

    def action_open_charts(self) -> None:
        """Show the run's charts."""
        self.actions.open_charts(self.runs.chosen[0])

    def action_open_dashboard(self) -> None:
        """Open a port to the run's Ray dashboard."""
        self.actions.open_dashboard(self.runs.chosen[0])

    def action_compare_runs(self) -> None:
        """Show the chosen runs beside each other."""
        self.actions.compare(self.runs.chosen)
