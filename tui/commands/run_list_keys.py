"""Keys of the list of runs."""

from __future__ import annotations

from tui.commands.command import Command, Scope

RUN_LIST_COMMANDS: tuple[Command, ...] = (
    Command(
        "home.open", ("enter",), "Open the run", "Show the selected run in the monitor.",
        Scope.HOME, "open_run", footer="open",
    ),
    Command(
        "home.new", ("n",), "New run", "Choose cluster, recipe and sizes step by step, then submit.",
        Scope.HOME, "new_run", footer="new",
    ),
    Command(
        "home.filter", ("slash",), "Filter the list",
        "Show only runs whose name, id, state or reason contains the text; enter returns to the list.",
        Scope.HOME, "filter", footer="filter",
    ),
    Command(
        "home.show-all", ("escape", "backspace"), "Clear the filter", "Show all runs.",
        Scope.HOME, "show_all",
    ),
    Command(
        "home.edit", ("e",), "Edit a recipe",
        "Open the recipe of the selected run, or another one, in the editor.",
        Scope.HOME, "edit_recipe", footer="edit",
    ),
    Command(
        "home.cancel", ("c",), "Cancel the run", "Stop the selected run, after a confirmation.",
        Scope.HOME, "cancel_run", footer="cancel",
    ),
    Command(
        "home.refresh", ("r",), "Refresh", "List the runs again and update the active ones at once.",
        Scope.HOME, "refresh_runs", footer="refresh",
    ),
)  # fmt: skip
