"""Every command of the app, once: its keys, its words, and where it is valid.

Bindings, the bar at the bottom, the command palette, the help screen and the documentation are made from this
table. Keys: letters, F-keys, enter, escape, tab and arrows only, since tmux takes ctrl+b and passes no
shift+enter; whatever escape does, another key does too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding, BindingType


class Scope(StrEnum):
    """Where a command is valid; the value is the heading in the help."""

    HOME = "Runs"
    MONITOR = "Monitor"
    LOG = "Log"
    WIZARD = "New run"
    APP = "Everywhere"


@dataclass(frozen=True, slots=True)
class Command:
    """One thing that can be done."""

    id: str
    """Also the binding's id, by which a keymap may change its keys."""
    keys: tuple[str, ...]
    title: str
    help: str
    where: Scope
    action: str
    bar: str = ""
    """Word in the bar at the bottom; empty where it is not shown there."""
    priority: bool = False
    """Whether it goes before what a focused field does with the key."""
    palette: bool = True


COMMANDS: tuple[Command, ...] = (
    Command(
        "home.open", ("enter",), "Open the run", "Show the selected run in the monitor.",
        Scope.HOME, "open_run", bar="open",
    ),
    Command(
        "home.new", ("n",), "New run", "Choose cluster, recipe and sizes step by step, then submit.",
        Scope.HOME, "new_run", bar="new",
    ),
    Command(
        "home.filter", ("slash",), "Filter the list",
        "Show only runs whose name, id, state or reason holds what you type; enter goes back to the list.",
        Scope.HOME, "filter", bar="filter",
    ),
    Command(
        "home.show-all", ("escape", "backspace"), "End the filter", "Show all runs again.",
        Scope.HOME, "show_all",
    ),
    Command(
        "home.cancel", ("c",), "Cancel the run", "Stop the selected run; asks first.",
        Scope.HOME, "cancel_run", bar="cancel",
    ),
    Command(
        "home.refresh", ("r",), "Look again", "List the runs again, and look at each that lives at once.",
        Scope.HOME, "refresh_runs", bar="refresh",
    ),
    Command(
        "monitor.back", ("b", "escape", "backspace"), "Back to the runs",
        "Leave the monitor; the run goes on.", Scope.MONITOR, "back", bar="runs",
    ),
    Command(
        "monitor.timeline", ("1",), "Timeline", "Milestones, when each was reached and how long it took.",
        Scope.MONITOR, "show_pane('timeline')", bar="timeline",
    ),
    Command(
        "monitor.curve", ("2",), "Curve", "The loss over the steps.",
        Scope.MONITOR, "show_pane('curve')", bar="curve",
    ),
    Command(
        "monitor.logs", ("3",), "Logs", "What the run wrote.",
        Scope.MONITOR, "show_pane('logs')", bar="logs",
    ),
    Command(
        "monitor.metric", ("m",), "Next metric",
        "Let the curve show the next metric: loss, accuracy, seconds per step, generation length.",
        Scope.MONITOR, "next_metric", bar="metric",
    ),
    Command(
        "monitor.cancel", ("c",), "Cancel the run", "Stop this run; says what would be lost and asks first.",
        Scope.MONITOR, "cancel_run", bar="cancel",
    ),
    Command(
        "monitor.again", ("R",), "Run it again",
        "Prepare the same run anew in the wizard; if you like, with what the advice on its failure changes.",
        Scope.MONITOR, "run_again", bar="run again",
    ),
    Command(
        "log.driver", ("d",), "Driver's log", "Show the driver's log.",
        Scope.MONITOR, "show_log('driver')",
    ),
    Command(
        "log.head", ("h",), "Head's log", "Show the log of Ray's head.", Scope.MONITOR, "show_log('head')",
    ),
    Command(
        "log.worker", ("w",), "Next worker's log", "Show a worker's log; again for the next worker.",
        Scope.MONITOR, "show_log('worker')",
    ),
    Command(
        "log.launcher", ("s",), "Launcher's log", "Show the launcher's (batch script's) log.",
        Scope.MONITOR, "show_log('slurm')",
    ),
    Command(
        "log.choose", ("l",), "Choose a log", "List all logs of the run and choose one.",
        Scope.MONITOR, "choose_log", bar="log…",
    ),
    Command(
        "log.search", ("slash",), "Search in the log",
        "Search, while you type, for text without regard to case, or for a /pattern/ (Python's; with regard "
        "to case where it has a capital letter). Enter stays, then n and N go on; esc goes back.",
        Scope.MONITOR, "search", bar="search",
    ),
    Command(
        "log.next", ("n",), "Next match", "Go to the next match below.", Scope.MONITOR, "next_match(1)",
    ),
    Command(
        "log.previous", ("N",), "Previous match", "Go to the next match above.",
        Scope.MONITOR, "next_match(-1)",
    ),
    Command(
        "log.follow", ("f",), "Follow or pause",
        "Let new lines push the log up, or hold it still. Scrolling up holds it, its end follows again.",
        Scope.MONITOR, "toggle_follow", bar="follow",
    ),
    Command(
        "log.finding", ("e",), "Next finding", "Go to the cause of a failure, then to the next finding.",
        Scope.MONITOR, "next_finding(1)", bar="finding",
    ),
    Command(
        "log.finding-before", ("E",), "Previous finding", "Go to the finding before.",
        Scope.MONITOR, "next_finding(-1)",
    ),
    Command(
        "log.go", ("colon",), "Go to a line",
        "Go to a line of the file (`1234`) or a place in it (`50%`).", Scope.MONITOR, "go_to",
    ),
    Command(
        "log.only", ("ampersand",), "Show only some lines",
        "Show only lines with a text, a /pattern/, of a process (`rank=3`, `actor=Name`, `actor=none`, "
        "`pid=7`, `ip=10.0.0.3`), or, with `!` before it, without. Each adds to those before.",
        Scope.MONITOR, "only", bar="only",
    ),
    Command(
        "log.level", ("v",), "Warnings and errors",
        "Show only warnings and errors; again: only errors; again: all lines.",
        Scope.MONITOR, "next_level", bar="errors",
    ),
    Command(
        "log.all-lines", ("x",), "Show all lines", "Leave no line out any more.",
        Scope.MONITOR, "show_all_lines", bar="all lines",
    ),
    Command(
        "log.merge", ("a",), "All logs by time",
        "Show all logs as one, in the order of time, as far as times are known.",
        Scope.MONITOR, "merge_logs",
    ),
    Command(
        "log.wrap", ("W",), "Wrap long lines",
        "Let long lines go on in the next row, or beyond the edge (then `left` and `right` scroll).",
        Scope.MONITOR, "wrap_lines",
    ),
    Command(
        "log.copy", ("y",), "Copy",
        "Copy the line of the match or finding, else the lines that are visible.",
        Scope.MONITOR, "copy_lines",
    ),
    Command(
        "log.page", ("o",), "Open in the pager",
        "Open the log in $PAGER (else less), at the place that is shown.",
        Scope.MONITOR, "page_log",
    ),
    Command("log.up", ("up", "k"), "Line up", "", Scope.LOG, "scroll_up", palette=False),
    Command("log.down", ("down", "j"), "Line down", "", Scope.LOG, "scroll_down", palette=False),
    Command("log.page-up", ("pageup",), "Page up", "", Scope.LOG, "page_up", palette=False),
    Command("log.page-down", ("pagedown", "space"), "Page down", "", Scope.LOG, "page_down", palette=False),
    Command("log.home", ("home", "g"), "First line", "", Scope.LOG, "scroll_home", palette=False),
    Command("log.end", ("end", "G"), "Last line, and follow", "", Scope.LOG, "scroll_end", palette=False),
    Command("log.left", ("left",), "Scroll sideways: left", "", Scope.LOG, "scroll_left", palette=False),
    Command("log.right", ("right",), "Scroll sideways: right", "", Scope.LOG, "scroll_right", palette=False),
    Command(
        "wizard.back", ("escape", "pageup", "f3"), "Back",
        "Go to the step before, from the first one to the runs; what was typed stays.",
        Scope.WIZARD, "back", bar="back",
    ),
    Command(
        "wizard.next", ("pagedown", "ctrl+n"), "Next step", "Go to the next step.",
        Scope.WIZARD, "next", bar="next",
    ),
    Command(
        "wizard.choose", ("f2",), "List the choices", "List what can be chosen in this field.",
        Scope.WIZARD, "choose", bar="list",
    ),
    Command(
        "wizard.up", ("up",), "Field above", "", Scope.WIZARD, "field(-1)", palette=False,
    ),
    Command(
        "wizard.down", ("down",), "Field below", "", Scope.WIZARD, "field(1)", palette=False,
    ),
    Command(
        "wizard.reset", ("f4",), "Take it back", "Let the field follow the recipe or the cluster again.",
        Scope.WIZARD, "reset",
    ),
    Command(
        "wizard.refresh", ("f5", "r"), "Ask Slurm again", "Ask anew what partitions and accounts there are.",
        Scope.WIZARD, "refresh_cluster", bar="ask Slurm again",
    ),
    Command(
        "wizard.submit", ("s",), "Submit", "Submit what the review shows; asks first.",
        Scope.WIZARD, "submit", bar="submit",
    ),
    Command(
        "wizard.when", ("t",), "When would it start?",
        "Ask Slurm when it would start, and whether a shorter job would start sooner; submits nothing.",
        Scope.WIZARD, "estimate_start", bar="when?",
    ),
    Command(
        "wizard.fix", ("f",), "Fix a check", "Apply a fix that a failing check offers.",
        Scope.WIZARD, "fix", bar="fix",
    ),
    Command(
        "wizard.skip", ("x",), "Skip a check", "Let a failing check not block; the run records that.",
        Scope.WIZARD, "skip", bar="skip",
    ),
    Command(
        "app.help", ("f1", "question_mark"), "Help", "All keys that work here.",
        Scope.APP, "help", bar="help",
    ),
    Command(
        "app.palette", ("ctrl+p",), "Commands", "Find a command by its name.",
        Scope.APP, "command_palette", bar="commands", priority=True, palette=False,
    ),
    Command(
        "app.theme", (), "Change the colours", "Choose another colour theme for this session.",
        Scope.APP, "change_theme",
    ),
    Command(
        "app.suspend", ("ctrl+z",), "Suspend", "Stop the app and go to the shell; `fg` comes back.",
        Scope.APP, "suspend_process", priority=True,
    ),
    Command(
        "app.quit", ("q",), "Quit",
        "Leave; runs go on. Asks whether the demo's run goes on, and where typed work would be lost.",
        Scope.APP, "leave", bar="quit",
    ),
    Command(
        "app.quit-now", ("ctrl+c", "ctrl+q"), "Quit at once",
        "Leave; runs go on, but the demo's own run is stopped. Asks only where typed work would be lost.",
        Scope.APP, "leave_now", priority=True,
    ),
)  # fmt: skip

_KEY_NAMES = {
    "colon": ":", "ampersand": "&",
    "slash": "/", "question_mark": "?", "escape": "esc", "pageup": "PgUp", "pagedown": "PgDn", "f1": "F1",
    "f2": "F2", "f3": "F3", "f4": "F4", "f5": "F5",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "home": "Home", "end": "End",
}  # fmt: skip


def commands(*where: Scope) -> tuple[Command, ...]:
    """Return the commands of some places, in the table's order."""
    return tuple(command for command in COMMANDS if command.where in where)


def bindings(where: Scope) -> list[BindingType]:
    """Return the bindings of a place."""
    return [
        Binding(
            ",".join(command.keys),
            command.action,
            command.title,
            show=False,
            priority=command.priority,
            tooltip=command.help,
            id=command.id,
        )
        for command in commands(where)
        if command.keys
    ]


def key_name(key: str) -> str:
    """Return a key as people write it."""
    return _KEY_NAMES.get(key, key)


def key_tables() -> str:
    """Return the commands as Markdown, for the documentation: `python -m tui.commands`."""
    parts = []
    for where in Scope:
        rows = [
            f"| {' '.join(f'`{key_name(key)}`' for key in command.keys) or '(palette)'} "
            f"| {command.title} | {command.help} |"
            for command in commands(where)
        ]
        parts.append("\n".join([f"### {where.value}", "", "| Key | | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(key_tables(), end="")
