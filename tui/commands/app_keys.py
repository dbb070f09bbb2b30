"""Keys that are valid on every screen."""

from __future__ import annotations

from tui.commands.command import Command, Scope

APP_COMMANDS: tuple[Command, ...] = (
    Command(
        "app.help", ("f1", "question_mark"), "Help", "List all keys of this screen.",
        Scope.APP, "help", footer="help",
    ),
    Command(
        "app.palette", ("ctrl+p",), "Commands", "Find a command by its name.",
        Scope.APP, "command_palette", footer="commands", priority=True, palette=False,
    ),
    Command(
        "app.doctor", ("f9",), "Doctor",
        "Find out whether everything is ready for a run, with the commands that make it so.",
        Scope.APP, "doctor",
    ),
    Command(
        "app.theme", (), "Change the theme", "Choose another colour theme, which is kept.",
        Scope.APP, "change_theme",
    ),
    Command(
        "app.density", (), "Change the density",
        "Have more rows on a screen, or more room between its parts; the choice is kept.",
        Scope.APP, "change_density",
    ),
    Command(
        "app.redraw", ("ctrl+l",), "Redraw",
        "Paint the whole screen again, after another program wrote on the terminal.",
        Scope.APP, "redraw", priority=True,
    ),
    Command(
        "app.suspend", ("ctrl+z",), "Suspend", "Suspend the app and return to the shell; `fg` resumes it.",
        Scope.APP, "suspend_process", priority=True,
    ),
    Command(
        "app.quit", ("q",), "Quit",
        "Quit; runs continue. Asks whether to stop the demo's run, and before entries would be lost.",
        Scope.APP, "leave", footer="quit",
    ),
    Command(
        "app.quit-now", ("ctrl+c", "ctrl+q"), "Quit at once",
        "Quit; runs continue, but the demo's run is stopped. Asks only before entries would be lost.",
        Scope.APP, "leave_now", footer="quit", priority=True,
    ),
)  # fmt: skip
