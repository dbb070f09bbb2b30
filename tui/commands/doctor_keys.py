"""Keys of the doctor."""

from __future__ import annotations

from tui.commands.command import Command, Scope

DOCTOR_COMMANDS: tuple[Command, ...] = (
    Command(
        "doctor.fix", ("enter", "f"), "Run the command",
        "Run the commands of the selected check in the terminal, after a question; then examine again.",
        Scope.DOCTOR, "fix", footer="run fix",
    ),
    Command(
        "doctor.fix-all", ("F",), "Run all commands",
        "Run all commands that can be run as they are, one after the other, after a question.",
        Scope.DOCTOR, "fix_all", footer="all fixes",
    ),
    Command(
        "doctor.copy", ("y",), "Copy the command", "Copy the commands of the selected check.",
        Scope.DOCTOR, "copy", footer="copy",
    ),
    Command(
        "doctor.again", ("r",), "Examine again", "Make all checks of this login node again.",
        Scope.DOCTOR, "again", footer="again",
    ),
    Command(
        "doctor.nodes", ("n",), "Examine nodes",
        "Measure nodes in a short job of its own in the partition for tests, after a question.",
        Scope.DOCTOR, "nodes", footer="nodes",
    ),
    Command(
        "doctor.passed", ("p",), "Show what passed", "List the checks that passed, too, or only the others.",
        Scope.DOCTOR, "passed", footer="passed",
    ),
    Command(
        "doctor.pane", ("tab",), "Next panel",
        "Give the keys to the details, which scroll then, or to the checks again.",
        Scope.DOCTOR, "next_pane", footer="details", priority=True,
    ),
    Command("doctor.checks", ("1",), "Checks", "Give the keys to the checks.", Scope.DOCTOR,
        "show_pane('checks')"),
    Command("doctor.details", ("2",), "Details", "Give the keys to the details of the selected check.",
        Scope.DOCTOR, "show_pane('details')"),
    Command(
        "doctor.back", ("escape", "b"), "Back", "Return to the screen before.",
        Scope.DOCTOR, "back", footer="back",
    ),
)  # fmt: skip
