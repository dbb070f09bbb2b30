"""Curve of a metric over the steps."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from tui.formatting import number, plural
from tui.run_view import Curve, RunView
from tui.widgets.plot import Plot, plot


class CurveView(Widget):
    """One metric at a time; `next_metric` cycles through those of the run."""

    def __init__(self) -> None:
        super().__init__()
        self._curves: tuple[Curve, ...] = ()
        self._name = ""
        self._ended = False

    def show(self, view: RunView) -> None:
        """Show a view's curves; repaints only if they changed."""
        if view.curves != self._curves or view.state.ended != self._ended:
            self._curves, self._ended = view.curves, view.state.ended
            self.refresh()

    def next_metric(self) -> None:
        """Show the next metric."""
        names = [curve.name for curve in self._curves]
        if names:
            index = names.index(self._name) if self._name in names else 0
            self._name = names[(index + 1) % len(names)]
            self.refresh()

    @property
    def position(self) -> str:
        """Which of the metrics is shown, in words; empty where there is no other."""
        names = [curve.name for curve in self._curves]
        index = names.index(self._name) if self._name in names else 0
        return f"metric {index + 1} of {len(names)}" if len(names) > 1 else ""

    @property
    def metrics(self) -> int:
        """Number of metrics that can be shown."""
        return len(self._curves)

    def render(self) -> Content:
        """Return the title and the plot."""
        curve = next((item for item in self._curves if item.name == self._name), None)
        curve = curve or next(iter(self._curves), None)
        if curve is None:
            return Content("no completed steps" if self._ended else "no completed steps yet").stylize("dim")
        return Content("\n").join(curve_lines(curve, self.size.width, self.size.height))


def curve_lines(curve: Curve, width: int, height: int) -> list[Content]:
    """Return the title and the plot, at most `height` lines."""
    step, value = curve.points[-1]
    drawn = plot(curve.points, width, height - 1)
    title: list[tuple[str, str]] = [
        (curve.title, "bold"),
        (f"  {number(value)}", "$text-primary bold"),
        (f" at step {step:.0f}", "dim"),
    ]
    if drawn is None:
        return [Content.assemble(*title).truncate(width, ellipsis=True)]
    if drawn.gaps:
        title.append((f"   ! {plural(drawn.gaps, 'value')} not finite", "$text-warning"))
    return [Content.assemble(*title).truncate(width, ellipsis=True), *_rows(drawn)]


def _rows(drawn: Plot) -> list[Content]:
    lines = [
        Content.assemble((label, "dim"), (row, "$text-primary"))
        for label, row in zip(drawn.labels, drawn.rows, strict=True)
    ]
    margin = len(drawn.labels[0]) - 1
    if drawn.axis:
        lines.append(Content.assemble((" " * margin + "└" + drawn.axis, "dim")))
    lines.append(Content.assemble((" " * (margin + 1) + drawn.scale, "dim")))
    return lines
