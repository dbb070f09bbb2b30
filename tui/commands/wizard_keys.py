"""Keys of the wizard."""

from __future__ import annotations

from tui.commands.command import Command, Scope

WIZARD_COMMANDS: tuple[Command, ...] = (
    Command("log.right", ("right",), "Scroll right", "", Scope.LOG, "scroll_right", palette=False),
    Command(
        "wizard.back", ("escape", "pageup", "f3"), "Back",
        "Go to the previous step, from the first step to the runs; your entries are kept. In the review and "
        "in lists PgUp and PgDn scroll.",
        Scope.WIZARD, "back", footer="back",
    ),
    Command(
        "wizard.next", ("pagedown", "ctrl+n"), "Next step", "Go to the next step.",
        Scope.WIZARD, "next", footer="next",
    ),
    Command(
        "wizard.choose", ("f2",), "List the choices", "List the values that this field can take.",
        Scope.WIZARD, "choose", footer="list",
    ),
    Command(
        "wizard.edit", ("f6",), "Edit the recipe", "Open the recipe in the editor; your entries are kept.",
        Scope.WIZARD, "edit_recipe", footer="edit recipe",
    ),
    Command(
        "wizard.up", ("up",), "Previous field", "", Scope.WIZARD, "field(-1)", palette=False,
    ),
    Command(
        "wizard.down", ("down",), "Next field", "", Scope.WIZARD, "field(1)", palette=False,
    ),
    Command(
        "wizard.reset", ("f4",), "Reset the field", "Use the value of the recipe or the cluster again.",
        Scope.WIZARD, "reset",
    ),
    Command(
        "wizard.refresh", ("f5", "r"), "Query Slurm again", "Query the partitions and accounts again.",
        Scope.WIZARD, "refresh_cluster", footer="query Slurm",
    ),
    Command(
        "wizard.submit", ("s",), "Submit", "Submit the run as the review shows it, after a confirmation.",
        Scope.WIZARD, "submit", footer="submit",
    ),
    Command(
        "wizard.when", ("t",), "Estimate the start",
        "Ask Slurm when the job would start, and whether a shorter one would start sooner; submits nothing.",
        Scope.WIZARD, "estimate_start", footer="start?",
    ),
    Command(
        "wizard.environment", ("e",), "The job's environment",
        "List what becomes of each variable of your shell in the job, and why.",
        Scope.WIZARD, "environment", footer="environment",
    ),
    Command(
        "wizard.fix", ("f",), "Fix a check", "Apply a fix that a failing check offers.",
        Scope.WIZARD, "fix", footer="fix",
    ),
    Command(
        "wizard.skip", ("x",), "Skip a check",
        "Submit in spite of a failing check; the run records which one.",
        Scope.WIZARD, "skip", footer="skip",
    ),
)  # fmt: skip
