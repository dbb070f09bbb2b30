"""Keys of the list of runs."""

from __future__ import annotations

from tui.commands.command import Command, Scope

RUN_LIST_COMMANDS: tuple[Command, ...] = (
    Command(
        "home.open", ("enter",), "Open the run",
        "Show the selected run or job in the monitor; go on with a draft.",
        Scope.HOME, "open_run", footer="open",
    ),
    Command(
        "home.new", ("n",), "New run", "Choose cluster, recipe and sizes step by step, then submit.",
        Scope.HOME, "new_run", footer="new",
    ),
    Command(
        "home.filter", ("slash",), "Filter the list",
        "Show only rows that contain all words, in name, id, state, reason, recipe, models, partition or "
        "job; enter returns to the list.",
        Scope.HOME, "filter", footer="filter",
    ),
    Command(
        "home.show-all", ("escape", "backspace"), "Clear the filter",
        "Show all rows; again: clear the marks.",
        Scope.HOME, "show_all",
    ),
    Command(
        "home.mark", ("space",), "Mark",
        "Mark the row and go on to the next; actions then apply to all marked rows.",
        Scope.HOME, "mark", footer="mark",
    ),
    Command(
        "home.mark-all", ("A",), "Mark all", "Mark all rows that the filter shows; again: none.",
        Scope.HOME, "mark_all",
    ),
    Command(
        "home.sort", ("o",), "Sort by the next column",
        "Sort by start, state, name, loss, step, time taken, nodes or size on disk.",
        Scope.HOME, "sort_next", footer="sort",
    ),
    Command(
        "home.reverse", ("O",), "Reverse the order", "Sort the other way round.",
        Scope.HOME, "sort_reverse",
    ),
    Command(
        "home.group", ("v",), "Group by recipe",
        "List the runs of each recipe together; again: all in one list.",
        Scope.HOME, "group",
    ),
    Command(
        "home.compare", ("D",), "Compare",
        "Show the marked runs beside each other: curves, recipes, times, memory.",
        Scope.HOME, "compare_runs", footer="compare",
    ),
    Command(
        "home.charts", ("m",), "Charts", "Show all metrics of the run as charts.",
        Scope.HOME, "open_charts", footer="charts",
    ),
    Command(
        "home.edit", ("e",), "Edit a recipe",
        "Open the recipe of the selected run, or another one, in the editor.",
        Scope.HOME, "edit_recipe", footer="edit",
    ),
    Command(
        "home.cancel", ("c",), "Cancel the run",
        "Stop the selected or marked runs and jobs, after a confirmation.",
        Scope.HOME, "cancel_run", footer="cancel",
    ),
    Command(
        "home.resume", ("r",), "Resume the run",
        "Submit one more job of the selected or marked runs that have ended, each from its last checkpoint, "
        "after a confirmation.",
        Scope.HOME, "resume_run", footer="resume",
    ),
    Command(
        "home.again", ("R",), "Run again",
        "Open the wizard with the run's settings and, if you choose, the changes advised for its failure.",
        Scope.HOME, "run_again",
    ),
    Command(
        "home.remove", ("d", "delete"), "Remove",
        "Remove the selected or marked runs that have ended, after a question with their size on disk; "
        "discard drafts; forget jobs of other programs.",
        Scope.HOME, "remove_run", footer="remove",
    ),
    Command("home.rename", ("f2",), "Rename", "Give the run another name.", Scope.HOME, "rename_run"),
    Command(
        "home.report", ("i",), "Report",
        "Write a report of the run without secrets (report.md in its directory) and open it in the pager.",
        Scope.HOME, "report_run",
    ),
    Command(
        "home.shell", ("s",), "Shell in its directory", "Open a shell in the run's directory.",
        Scope.HOME, "shell_here",
    ),
    Command(
        "home.dashboard", ("U",), "Ray dashboard",
        "Open a local port to the Ray dashboard of the run, show its address (URL) and copy it.",
        Scope.HOME, "open_dashboard",
    ),
    Command(
        "home.copy", ("y",), "Copy the job's id", "Copy the ids of the selected or marked jobs.",
        Scope.HOME, "copy_job",
    ),
    Command(
        "home.watch", ("w",), "Watch a job", "Watch a Slurm job by its number, or a directory of logs.",
        Scope.HOME, "watch_job",
    ),
    Command(
        "home.refresh", ("f5",), "Refresh", "List and read all runs again, and ask Slurm now.",
        Scope.HOME, "refresh_runs", footer="refresh",
    ),
)  # fmt: skip
