"""Keys of charts, and of runs beside each other."""

from __future__ import annotations

from tui.commands.command import Command, Scope


def _chart_commands(scope: Scope) -> tuple[Command, ...]:
    """Return the commands of a grid of charts."""
    name = scope.name.lower()
    return (
        Command(
            f"{name}.zoom", ("enter",), "One chart",
            "Give the selected chart all of the room; again: all charts.",
            scope, "zoom_chart", footer="zoom",
        ),
        Command(
            f"{name}.closer", ("plus",), "Closer", "Show half as much of the axis, in all charts.",
            scope, "zoom_axis(1)", footer="closer",
        ),
        Command(
            f"{name}.wider", ("minus",), "Wider", "Show twice as much of the axis.",
            scope, "zoom_axis(-1)",
        ),
        Command(
            f"{name}.earlier", ("less_than_sign", "comma"), "Earlier", "Move along the axis.",
            scope, "pan(-1)",
        ),
        Command(
            f"{name}.later", ("greater_than_sign", "full_stop"), "Later", "Move along the axis.",
            scope, "pan(1)",
        ),
        Command(
            f"{name}.whole", ("equals_sign",), "Whole axis", "Show all of the axis.", scope, "whole_axis",
        ),
        Command(
            f"{name}.log", ("L",), "Logarithmic scale",
            "Use a logarithmic scale; again: a linear one.",
            scope, "log_scale", footer="log",
        ),
        Command(
            f"{name}.smooth", ("s",), "Smooth", "Show the mean of 5, 20, 100 or 1,000 values, or each value.",
            scope, "smooth", footer="smooth",
        ),
        Command(
            f"{name}.axis", ("x",), "Step or time",
            "Use the time since the first value as the axis; again: steps.",
            scope, "next_axis", footer="axis",
        ),
        Command(f"{name}.up", ("up", "k"), "Chart above", "", scope, "move(0, -1)", palette=False),
        Command(f"{name}.down", ("down", "j"), "Chart below", "", scope, "move(0, 1)", palette=False),
        Command(
            f"{name}.left", ("left", "h"), "Chart at the left", "In one chart: earlier.",
            scope, "move(-1, 0)", palette=False,
        ),
        Command(
            f"{name}.right", ("right", "l"), "Chart at the right", "In one chart: later.",
            scope, "move(1, 0)", palette=False,
        ),
        Command(
            f"{name}.page-up", ("pageup",), "Previous charts", "", scope, "page(-1)", palette=False,
        ),
        Command(
            f"{name}.page-down", ("pagedown", "space"), "Next charts", "", scope, "page(1)", palette=False,
        ),
    )  # fmt: skip


CHART_COMMANDS: tuple[Command, ...] = (
    *_chart_commands(Scope.CHARTS),
    Command(
        "charts.filter", ("slash",), "Filter the charts", "Show only charts whose names contain all words.",
        Scope.CHARTS, "filter", footer="filter",
    ),
    Command(
        "charts.back", ("escape", "b", "backspace"), "Back",
        "Show the grid again, clear the filter, or close.",
        Scope.CHARTS, "back", footer="back",
    ),
    *_chart_commands(Scope.COMPARISON),
    Command(
        "comparison.pane", ("tab",), "Next pane", "Go on from the curves to the figures and to the recipes.",
        Scope.COMPARISON, "next_pane", footer="pane",
    ),
    Command("comparison.curves", ("1",), "Curves", "Show the curves over each other.",
        Scope.COMPARISON, "show_pane('curves')"),
    Command("comparison.figures", ("2",), "Figures", "Show times, memory and milestones side by side.",
        Scope.COMPARISON, "show_pane('figures')"),
    Command("comparison.recipes", ("3",), "Recipes", "Show the keys whose effective values differ.",
        Scope.COMPARISON, "show_pane('recipes')"),
    Command(
        "comparison.back", ("escape", "b", "backspace"), "Back", "Show the grid again, or close.",
        Scope.COMPARISON, "back", footer="back",
    ),
)  # fmt: skip
