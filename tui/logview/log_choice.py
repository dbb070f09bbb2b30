"""The logs of a run, and those of them that each layout shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tui.logview.layouts import PANE_LIMIT, PaneLayout, default_logs
from tui.run_view import LogRef


class LogChoice:
    """Logs with their nodes and ranks, and the user's choice of them for each layout."""

    def __init__(self) -> None:
        self._given: tuple[LogRef, ...] = ()
        self._placed: dict[str, tuple[str, str]] = {}
        """Path -> node and ranks, as far as the contents say."""
        self._first: frozenset[str] = frozenset()
        self._chosen: dict[PaneLayout, list[LogRef | None]] = {}
        self.logs: tuple[LogRef, ...] = ()
        """The given ones, with what is known of nodes and ranks."""

    def set_logs(self, logs: tuple[LogRef, ...], first: frozenset[str]) -> bool:
        """Set the run's logs; `first`: paths of those shown first. Returns whether anything changed."""
        changed = first != self._first
        self._first = first
        if logs == self._given:
            return changed
        self._given = logs
        return self._apply() or changed

    def set_places(self, places: Mapping[str, tuple[str, str]]) -> bool:
        """Set node and ranks of logs, by their paths; returns whether anything changed.

        What was known stays where nothing else is: a log that was rotated no longer has its first lines.
        """
        for path, (node, ranks) in places.items():
            former_node, former_ranks = self._placed.get(path, ("", ""))
            self._placed[path] = (node or former_node, ranks or former_ranks)
        return self._apply()

    def _apply(self) -> bool:
        logs = tuple(self._with_place(log) for log in self._given)
        changed = logs != self.logs
        self.logs = logs
        return changed

    def _with_place(self, log: LogRef) -> LogRef:
        node, ranks = self._placed.get(log.path, ("", ""))
        return replace(log, node=node or log.node, ranks=ranks or log.ranks)

    def of_layout(self, layout: PaneLayout) -> list[LogRef]:
        """Return the log of each pane of a layout."""
        if layout is PaneLayout.MERGED:
            return list(self.logs[:1])
        present = {log.path: log for log in self.logs}
        chosen = [present.get(log.path) if log is not None else None for log in self._chosen.get(layout, [])]
        limit = 1 if layout is PaneLayout.ONE else PANE_LIMIT
        return default_logs(layout, self.logs, chosen[:limit], first=self._first)[:limit]

    def listed(self, log: LogRef) -> LogRef:
        """Return a log as it is listed: with its node and ranks."""
        return next((item for item in self.logs if item.path == log.path), log)

    def put(self, layout: PaneLayout, log: LogRef, index: int, shown: Sequence[LogRef | None]) -> None:
        """Show a log in a pane of a layout from now on; `shown`: what its panes show."""
        chosen = list(shown) if layout is PaneLayout.GRID else []
        chosen = chosen or self._chosen.get(layout, [])
        chosen += [None] * (index + 1 - len(chosen))
        chosen[index] = log
        self._chosen[layout] = chosen

    def put_grid(self, logs: Sequence[LogRef]) -> None:
        """Show these logs in the grid from now on, as many as there may be panes."""
        self._chosen[PaneLayout.GRID] = list(logs[:PANE_LIMIT])
