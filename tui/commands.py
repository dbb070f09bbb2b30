"""The table of commands: keys, titles, help, and the screen on which each is valid.

Key bindings, the footer, the command palette, the help screen and the documentation are made from it. Keys
are letters, F-keys, enter, escape, tab and arrows only: tmux takes ctrl+b and does not pass shift+enter.
Whatever escape does, another key does too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from textual.actions import parse
from textual.binding import Binding, BindingType

if TYPE_CHECKING:
    from textual.screen import Screen


class Scope(StrEnum):
    """Screen or widget on which a command is valid; the value is its heading in the help."""

    HOME = "Runs"
    MONITOR = "Monitor"
    LOG = "Log"
    WIZARD = "New run"
    EDITOR = "Recipe editor"
    OUTLINE = "Tree and text"
    TEXT_MODE = "Text mode"
    APP = "Everywhere"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the app."""

    id: str
    """Also the binding's id, by which a keymap may change its keys."""
    keys: tuple[str, ...]
    title: str
    help: str
    scope: Scope
    action: str
    footer: str = ""
    """Label in the footer; empty where it is not shown there."""
    priority: bool = False
    """Whether it takes precedence over the focused field's use of the key."""
    palette: bool = True


PANE_LAYOUTS = {
    "one": "one log",
    "stacked": "driver over head and worker",
    "side": "side by side",
    "grid": "grid",
    "merged": "all by time",
}
"""Layouts of the log panes, by their names in the settings."""

COMMANDS: tuple[Command, ...] = (
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
    Command(
        "monitor.back", ("b", "escape", "backspace"), "Back to the runs",
        "Close the monitor; the run continues.", Scope.MONITOR, "back", footer="runs",
    ),
    Command(
        "monitor.timeline", ("1",), "Timeline", "Show the milestones, with their times and durations.",
        Scope.MONITOR, "show_pane('timeline')", footer="timeline",
    ),
    Command(
        "monitor.curve", ("2",), "Curve", "Show a metric over the steps.",
        Scope.MONITOR, "show_pane('curve')", footer="curve",
    ),
    Command(
        "monitor.logs", ("3",), "Logs", "Show the logs of the run.",
        Scope.MONITOR, "show_pane('logs')", footer="logs",
    ),
    Command(
        "monitor.metric", ("m",), "Next metric",
        "Show the next metric: loss, accuracy, seconds per step, generation length.",
        Scope.MONITOR, "next_metric", footer="metric",
    ),
    Command(
        "monitor.cancel", ("c",), "Cancel the run",
        "Stop this run, after a confirmation that names the steps that would be lost, or let it go on until "
        "its next checkpoint.",
        Scope.MONITOR, "cancel_run", footer="cancel",
    ),
    Command(
        "monitor.again", ("R",), "Run again",
        "Resume a run that saved and stopped; or open the wizard with its settings and, if you choose, "
        "the changes advised for its failure.",
        Scope.MONITOR, "run_again", footer="run again",
    ),
    Command(
        "monitor.remove", ("D",), "Remove the checkpoint",
        "Remove the checkpoint of a smoke run or rehearsal that has ended; its logs are kept.",
        Scope.MONITOR, "remove_checkpoint", footer="remove checkpoint",
    ),
    Command(
        "monitor.edit", ("f6",), "Edit the recipe",
        "Open the recipe that this run was made from in the editor.",
        Scope.MONITOR, "edit_recipe",
    ),
    Command(
        "log.driver", ("d",), "Driver log", "Show the driver's log.",
        Scope.MONITOR, "log('show_log', 'driver')",
    ),
    Command(
        "log.head", ("h",), "Head log", "Show the log of the Ray head.",
        Scope.MONITOR, "log('show_log', 'head')",
    ),
    Command(
        "log.worker", ("w",), "Worker log", "Show a worker's log; press again for the next worker.",
        Scope.MONITOR, "log('show_log', 'worker')",
    ),
    Command(
        "log.launcher", ("L",), "Launcher log", "Show the log of the launcher (the batch script).",
        Scope.MONITOR, "log('show_log', 'slurm')",
    ),
    Command(
        "log.choose", ("l",), "Choose logs",
        "Choose from a list of all logs by node and rank, those that fail, are silent or missing first; "
        "typing filters, tab marks several.",
        Scope.MONITOR, "log('choose_log')", footer="logs…",
    ),
    Command(
        "log.search", ("slash",), "Search in the log",
        "Search upwards as you type, for text (ignoring case) or a /pattern/ (a Python regular expression, "
        "case-sensitive if it contains a capital letter). Enter keeps the match, n and N go to the next and "
        "previous one, esc returns.",
        Scope.MONITOR, "log('search')", footer="search",
    ),
    Command(
        "log.next", ("n",), "Next match", "Go to the next match below.",
        Scope.MONITOR, "log('next_match', 1)",
    ),
    Command(
        "log.previous", ("N",), "Previous match", "Go to the next match above.",
        Scope.MONITOR, "log('next_match', -1)",
    ),
    Command(
        "log.across", ("asterisk",), "Search all panes",
        "Let n and N go on in the next log pane where the matches of one end; again: in one pane only.",
        Scope.MONITOR, "log('toggle_across')",
    ),
    Command(
        "log.follow", ("f",), "Follow or pause",
        "Follow the end of the log, or pause. Scrolling up pauses; scrolling to the end follows again.",
        Scope.MONITOR, "log('toggle_follow')", footer="follow",
    ),
    Command(
        "log.finding", ("e",), "Next finding", "Go to the cause of a failure, then to the next finding.",
        Scope.MONITOR, "log('next_finding', 1)", footer="finding",
    ),
    Command(
        "log.finding-before", ("E",), "Previous finding", "Go to the previous finding.",
        Scope.MONITOR, "log('next_finding', -1)",
    ),
    Command(
        "log.milestone", ("t",), "Next milestone",
        "Go to the line of the latest milestone, then to the next one from the beginning.",
        Scope.MONITOR, "log('next_milestone', 1)",
    ),
    Command(
        "log.milestone-before", ("T",), "Previous milestone", "Go to the line of the milestone before.",
        Scope.MONITOR, "log('next_milestone', -1)",
    ),
    Command(
        "log.go", ("colon",), "Go to a line",
        "Go to a line of the file (`1234`) or to a percentage of it (`50%`).",
        Scope.MONITOR, "log('go_to')",
    ),
    Command(
        "log.only", ("ampersand",), "Filter the lines",
        "Show only lines that contain a text, match a /pattern/ or were printed by a process (`rank=3`, "
        "`actor=Name`, `actor=none`, `pid=7`, `ip=10.0.0.3`); `!` in front excludes them. Filters add up.",
        Scope.MONITOR, "log('filter')", footer="filter",
    ),
    Command(
        "log.level", ("v",), "Warnings and errors",
        "Show only warnings and errors; press again for only errors, then for all lines.",
        Scope.MONITOR, "log('next_level')", footer="errors",
    ),
    Command(
        "log.all-lines", ("x",), "Show all lines", "Clear all filters of the log.",
        Scope.MONITOR, "log('show_all_lines')", footer="all lines",
    ),
    Command(
        "log.merge", ("a",), "Merge all logs",
        "Show all logs as one, in the order of time, as far as times are known; again: the layout before.",
        Scope.MONITOR, "log('merge_logs')",
    ),
    Command(
        "log.wrap", ("W",), "Wrap long lines",
        "Continue long lines on the next row, or beyond the edge (`left` and `right` then scroll).",
        Scope.MONITOR, "log('toggle_wrap')",
    ),
    Command(
        "log.copy", ("y",), "Copy",
        "Copy the line of the current match or finding, or else all visible lines.",
        Scope.MONITOR, "log('copy_lines')",
    ),
    Command(
        "log.page", ("o",), "Open in the pager",
        "Open the log in $PAGER (default: less), at the line that is shown.",
        Scope.MONITOR, "log('open_pager')",
    ),
    Command(
        "log.layout", ("p",), "Next layout",
        "Show the logs in the next layout: one log, driver over head and worker, side by side, a grid, all "
        "by time. The choice is remembered.",
        Scope.MONITOR, "log('next_layout', 1)", footer="layout",
    ),
    Command(
        "log.layout-before", ("P",), "Previous layout", "Show the logs in the previous layout.",
        Scope.MONITOR, "log('next_layout', -1)",
    ),
    *(
        Command(
            f"log.layout-{name}", (), f"Layout: {title}", f"Show the logs in this layout: {title}.",
            Scope.MONITOR, f"log('set_layout', '{name}')",
        )
        for name, title in PANE_LAYOUTS.items()
    ),
    Command(
        "log.pane", ("tab",), "Next pane", "Give the keys to the next log pane.",
        Scope.MONITOR, "log('next_pane', 1)", footer="pane", priority=True,
    ),
    Command(
        "log.pane-before", ("shift+tab",), "Previous pane", "Give the keys to the previous log pane.",
        Scope.MONITOR, "log('next_pane', -1)", priority=True,
    ),
    Command(
        "log.zoom", ("z",), "Zoom the pane",
        "Show only the log pane that has the keys, below the state; again: all panes.",
        Scope.MONITOR, "log('zoom')", footer="zoom",
    ),
    Command(
        "log.taller", ("plus",), "Taller pane", "Make the log pane taller; with the mouse, drag its title.",
        Scope.MONITOR, "log('resize', 'taller')",
    ),
    Command(
        "log.shorter", ("minus",), "Shorter pane", "Make the log pane shorter.",
        Scope.MONITOR, "log('resize', 'shorter')",
    ),
    Command(
        "log.wider", ("greater_than_sign",), "Wider pane",
        "Make the log pane wider; with the mouse, drag the line between two panes.",
        Scope.MONITOR, "log('resize', 'wider')",
    ),
    Command(
        "log.narrower", ("less_than_sign",), "Narrower pane", "Make the log pane narrower.",
        Scope.MONITOR, "log('resize', 'narrower')",
    ),
    Command(
        "log.equal", ("equals_sign",), "Even panes", "Give all log panes their first sizes again.",
        Scope.MONITOR, "log('equalise')",
    ),
    Command(
        "monitor.resume", ("r",), "Resume the run",
        "Submit one more job of this run from its last checkpoint, after a confirmation with its cost.",
        Scope.MONITOR, "resume_run", footer="resume",
    ),
    Command(
        "monitor.report", ("i",), "Report",
        "Write a report of this run without secrets (report.md in its directory) and open it in the pager.",
        Scope.MONITOR, "report_run",
    ),
    Command(
        "monitor.shell", ("s",), "Shell on a node",
        "Open a shell on a node of the running job (srun --overlap), or copy its command.",
        Scope.MONITOR, "open_shell", footer="shell",
    ),
    Command("log.up", ("up", "k"), "Line up", "", Scope.LOG, "scroll_up", palette=False),
    Command("log.down", ("down", "j"), "Line down", "", Scope.LOG, "scroll_down", palette=False),
    Command("log.page-up", ("pageup",), "Page up", "", Scope.LOG, "page_up", palette=False),
    Command("log.page-down", ("pagedown", "space"), "Page down", "", Scope.LOG, "page_down", palette=False),
    Command("log.home", ("home", "g"), "First line", "", Scope.LOG, "scroll_home", palette=False),
    Command("log.end", ("end", "G"), "Last line, and follow", "", Scope.LOG, "scroll_end", palette=False),
    Command("log.left", ("left",), "Scroll left", "", Scope.LOG, "scroll_left", palette=False),
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
    Command(
        "editor.edit", ("enter",), "Edit the value",
        "Edit the value in place; where only some values are allowed, choose one, legal ones first. "
        "An inherited value is then set in this file. In the text, edit the text.",
        Scope.EDITOR, "edit_value", footer="edit",
    ),
    Command(
        "editor.find", ("slash",), "Find",
        "Find by any part of a key, a value or a comment, also keys that are not set.",
        Scope.EDITOR, "find", footer="find",
    ),
    Command(
        "editor.add", ("a",), "Add a key", "Add a key to this section, or an item to this list.",
        Scope.EDITOR, "add_key", footer="add",
    ),
    Command(
        "editor.remove", ("d", "delete"), "Remove the key",
        "Remove the key from this file; a parent's value is then inherited again.",
        Scope.EDITOR, "remove_key", footer="remove",
    ),
    Command(
        "editor.remark", ("c",), "Remark", "Write, change or remove the remark beside a key of this file.",
        Scope.EDITOR, "remark", footer="remark",
    ),
    Command(
        "editor.comment-out", ("number_sign",), "Comment out, or in",
        "Comment the key out with everything below it, or take it back in.",
        Scope.EDITOR, "comment_out",
    ),
    Command(
        "editor.both", ("B",), "Set both",
        "Give the student's value to the teacher too, or the other way round.",
        Scope.EDITOR, "set_both",
    ),
    Command(
        "editor.fix", ("f",), "Fix",
        "Apply the first fix of the finding on this key, or of the finding that is selected.",
        Scope.EDITOR, "fix", footer="fix",
    ),
    Command(
        "editor.fixes", ("F",), "Choose a fix", "Choose among all fixes of the finding.",
        Scope.EDITOR, "choose_fix",
    ),
    Command(
        "editor.fit", ("m",), "What would fit",
        "List the cheapest changes with which the recipe fits into the GPUs' memory, and apply one.",
        Scope.EDITOR, "what_would_fit", footer="fit",
    ),
    Command(
        "editor.place", ("p",), "Place",
        "Change the nodes, the GPUs of each, and their memory, which checks and memory are computed for.",
        Scope.EDITOR, "change_place", footer="place",
    ),
    Command(
        "editor.undo", ("u", "f3"), "Undo", "Take the last change back.", Scope.EDITOR, "undo", footer="undo",
    ),
    Command(
        "editor.redo", ("ctrl+r", "f4"), "Redo", "Make the change again that was taken back.",
        Scope.EDITOR, "redo",
    ),
    Command(
        "editor.diff", ("D",), "Diff", "Show what would be saved; from there, what differs from the parents.",
        Scope.EDITOR, "diff", footer="diff",
    ),
    Command(
        "editor.save", ("w", "f8", "ctrl+s"), "Save", "Write the file; asks if it was changed on disk.",
        Scope.EDITOR, "save", footer="save",
    ),
    Command(
        "editor.text", ("t", "f2"), "Edit the text", "Edit the file's text; F2 or esc returns to the tree.",
        Scope.EDITOR, "edit_text", footer="text",
    ),
    Command(
        "editor.external", ("E",), "Open $EDITOR",
        "Edit the text in $VISUAL or $EDITOR at this line, and take the result back as one change.",
        Scope.EDITOR, "external_editor", footer="$EDITOR",
    ),
    Command(
        "editor.origin", ("o",), "Open the origin",
        "Open the parent file that the value comes from, at its line.",
        Scope.EDITOR, "open_origin",
    ),
    Command(
        "editor.next-pane", ("tab",), "Next pane", "Go to the next pane: tree, text, checks.",
        Scope.EDITOR, "next_pane(1)", footer="pane",
    ),
    Command(
        "editor.previous-pane", ("shift+tab",), "Previous pane", "Go to the pane before.",
        Scope.EDITOR, "next_pane(-1)",
    ),
    Command("editor.tree", ("1",), "Tree", "Show the effective recipe.", Scope.EDITOR, "show_pane('tree')"),
    Command("editor.file", ("2",), "Text", "Show the file's text.", Scope.EDITOR, "show_pane('text')"),
    Command(
        "editor.checks", ("3",), "Checks", "Show the checks and the memory.",
        Scope.EDITOR, "show_pane('checks')",
    ),
    Command(
        "editor.finding", ("n",), "Next finding", "Go to the key of the next finding.",
        Scope.EDITOR, "next_finding(1)",
    ),
    Command(
        "editor.finding-before", ("N",), "Previous finding", "Go to the key of the finding before.",
        Scope.EDITOR, "next_finding(-1)",
    ),
    Command(
        "editor.back", ("b", "escape", "backspace"), "Back",
        "Leave the text mode, or close the editor; unsaved edits are kept and offered the next time.",
        Scope.EDITOR, "back", footer="back",
    ),
    Command(
        "text.leave", ("escape", "f2"), "Leave the text mode", "Return to the tree; the text stays as it is.",
        # Before the text, which would take escape to leave the field.
        Scope.TEXT_MODE, "leave_text", footer="leave text mode", priority=True,
    ),
    Command(
        "text.undo", ("f3", "ctrl+u"), "Undo", "Take the last change back.",
        Scope.TEXT_MODE, "undo", footer="undo",
    ),
    Command(
        "text.redo", ("f4", "ctrl+r"), "Redo", "Make the change again that was taken back.",
        Scope.TEXT_MODE, "redo", footer="redo",
    ),
    Command(
        "text.diff", ("f5",), "Diff", "Show what would be saved.", Scope.TEXT_MODE, "diff", footer="diff",
    ),
    Command(
        "text.save", ("f8", "ctrl+s"), "Save", "Write the file; asks if it was changed on disk.",
        Scope.TEXT_MODE, "save", footer="save",
    ),
    Command("outline.up", ("up", "k"), "Up", "", Scope.OUTLINE, "cursor(-1)", palette=False),
    Command("outline.down", ("down", "j"), "Down", "", Scope.OUTLINE, "cursor(1)", palette=False),
    Command("outline.page-up", ("pageup",), "Page up", "", Scope.OUTLINE, "page(-1)", palette=False),
    Command(
        "outline.page-down", ("pagedown", "space"), "Page down", "", Scope.OUTLINE, "page(1)", palette=False,
    ),
    Command("outline.home", ("home", "g"), "First line", "", Scope.OUTLINE, "edge(-1)", palette=False),
    Command("outline.end", ("end", "G"), "Last line", "", Scope.OUTLINE, "edge(1)", palette=False),
    Command(
        "outline.fold", ("left", "h"), "Fold, or scroll left",
        "Fold the section; in a key, go to its section.",
        Scope.OUTLINE, "fold", palette=False,
    ),
    Command(
        "outline.unfold", ("right", "l"), "Unfold, or scroll right",
        "Unfold the section, or go to its first key.",
        Scope.OUTLINE, "unfold", palette=False,
    ),
    Command(
        "outline.fold-all", ("z",), "Fold all", "Fold all sections, or unfold them all.",
        Scope.OUTLINE, "fold_all", palette=False,
    ),
    Command(
        "app.help", ("f1", "question_mark"), "Help", "List all keys of this screen.",
        Scope.APP, "help", footer="help",
    ),
    Command(
        "app.palette", ("ctrl+p",), "Commands", "Find a command by its name.",
        Scope.APP, "command_palette", footer="commands", priority=True, palette=False,
    ),
    Command(
        "app.theme", (), "Change the theme", "Choose another colour theme for this session.",
        Scope.APP, "change_theme",
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
        Scope.APP, "leave_now", priority=True,
    ),
)  # fmt: skip

_KEY_NAMES = {
    "colon": ":", "ampersand": "&", "number_sign": "#", "delete": "Del", "plus": "+",
    "minus": "-", "greater_than_sign": ">", "less_than_sign": "<", "equals_sign": "=", "asterisk": "*",
    "slash": "/", "question_mark": "?", "escape": "esc", "pageup": "PgUp", "pagedown": "PgDn", "f1": "F1",
    "f2": "F2", "f3": "F3", "f4": "F4", "f5": "F5", "f6": "F6", "f8": "F8",
    "up": "↑", "down": "↓", "left": "←", "right": "→", "home": "Home", "end": "End",
}  # fmt: skip


def commands(*scopes: Scope) -> tuple[Command, ...]:
    """Return the commands of some scopes, in the table's order."""
    return tuple(command for command in COMMANDS if command.scope in scopes)


def enabled(command: Command, screen: Screen[object]) -> bool:
    """Return whether a command is valid on the screen now."""
    if command.scope is Scope.APP:
        return True
    _, name, parameters = parse(command.action)
    return bool(screen.check_action(name, parameters))


def bindings(scope: Scope) -> list[BindingType]:
    """Return the key bindings of a scope."""
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
        for command in commands(scope)
        if command.keys
    ]


def key_name(key: str) -> str:
    """Return a key as it is shown to the user."""
    return _KEY_NAMES.get(key, key)


def key_tables() -> str:
    """Return the commands as Markdown tables, for the documentation: `python -m tui.commands`."""
    parts = []
    for scope in Scope:
        rows = [
            f"| {' '.join(f'`{key_name(key)}`' for key in command.keys) or '(palette)'} "
            f"| {command.title} | {command.help} |"
            for command in commands(scope)
        ]
        parts.append("\n".join([f"### {scope.value}", "", "| Key | | |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(key_tables(), end="")
