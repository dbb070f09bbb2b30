"""Keys of the monitor and its log panes, and the layouts of the panes."""

from __future__ import annotations

from tui.commands.command import Command, Scope

PANE_LAYOUTS = {
    "one": "one log",
    "stacked": "driver over head and worker",
    "side": "side by side",
    "grid": "grid",
    "merged": "all by time",
}
"""Layouts of the log panes, by their names in the settings."""

MONITOR_COMMANDS: tuple[Command, ...] = (
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
        "monitor.charts", ("M",), "Charts", "Show all metrics of the run, and of its GPUs, as charts.",
        Scope.MONITOR, "open_charts",
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
        "Search upwards as you type, for text (ignoring case) or a /pattern/ (a regular expression of RE2, "
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
    Command(
        "monitor.dashboard", ("U",), "Ray dashboard",
        "Open a local port to the Ray dashboard of this run, show its address (URL) and copy it.",
        Scope.MONITOR, "open_dashboard",
    ),
    Command("log.up", ("up", "k"), "Line up", "", Scope.LOG, "scroll_up", palette=False),
    Command("log.down", ("down", "j"), "Line down", "", Scope.LOG, "scroll_down", palette=False),
    Command("log.page-up", ("pageup",), "Page up", "", Scope.LOG, "page_up", palette=False),
    Command("log.page-down", ("pagedown", "space"), "Page down", "", Scope.LOG, "page_down", palette=False),
    Command("log.home", ("home", "g"), "First line", "", Scope.LOG, "scroll_home", palette=False),
    Command("log.end", ("end", "G"), "Last line, and follow", "", Scope.LOG, "scroll_end", palette=False),
    Command("log.left", ("left",), "Scroll left", "", Scope.LOG, "scroll_left", palette=False),
)  # fmt: skip
