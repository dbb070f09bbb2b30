"""The log panes of a run: their layout, the logs they show, and the pane that has the keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import DescendantFocus, MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.widget import Widget

from launcher.logs.events import Role
from tui.logview.border_drag import BorderDrag
from tui.logview.layouts import (
    LAYOUT_TITLES,
    PaneLayout,
    Rectangle,
    Shares,
    default_layout,
    even,
    fits,
    rectangles,
    resized,
    shape_of,
)
from tui.logview.log_choice import LogChoice
from tui.logview.pane import LogPane
from tui.logview.pane_area import PaneArea
from tui.logview.reader_thread import ReaderThread
from tui.logview.tabs import LogTabs
from tui.run_view import LogRef

_COLUMNS_A_KEY = 4
"""Columns by which a key resizes a pane."""


class LogPanes(Vertical):
    """The logs of a run, in one pane or several."""

    class LayoutChanged(Message):
        """The user changed the layout or the sizes of its panes."""

    def __init__(self, lines_shown: Callable[[], None] = lambda: None) -> None:
        """`lines_shown` is called where lines are about to be painted, so that more is painted with them."""
        super().__init__()
        self.lines_shown = lines_shown
        self.tabs = LogTabs()
        self.area = PaneArea()
        self._panes = [LogPane(self._status_changed)]
        """The visible panes in the order of the layout, then those kept for later."""
        self._visible = 1
        self._focus = 0
        self._thread: ReaderThread | None = None
        self._choice = LogChoice()
        self._before_merge = PaneLayout.ONE
        self._drag = BorderDrag()
        self._handovers = 0
        self.layout_choice: PaneLayout | None = None
        """The user's choice; None for the one that the width suggests."""
        self.shares: dict[PaneLayout, Shares] = {}
        self.zoomed = False
        """Whether the focused pane takes the whole area."""
        self.across = False
        """Whether a search goes on in the next pane."""

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.tabs
        with self.area:
            yield from self._panes

    # ------------------------------------------------------------ state

    @property
    def logs(self) -> tuple[LogRef, ...]:
        """The logs of the run."""
        return self._choice.logs

    @property
    def panes(self) -> list[LogPane]:
        """The panes of the layout, in its order; zoomed, only one of them is painted."""
        return self._panes[: self._visible]

    @property
    def focused(self) -> LogPane:
        """The pane that commands apply to."""
        return self._panes[min(self._focus, self._visible - 1)]

    @property
    def pane_layout(self) -> PaneLayout:
        """The layout that was chosen, or that the width suggests."""
        return self.layout_choice or default_layout(self.app.size.width)

    @property
    def merged(self) -> bool:
        """Whether all logs are shown merged."""
        return self.pane_layout is PaneLayout.MERGED

    def read_on(self, thread: ReaderThread) -> None:
        """Read logs on this thread from now on."""
        self._thread = thread
        for pane in self._panes:
            pane.text.read_on(thread)

    def set_logs(self, logs: tuple[LogRef, ...], *, first: frozenset[str] = frozenset()) -> None:
        """Set the run's logs; `first`: paths of those with a failure, which panes show first."""
        if self._choice.set_logs(logs, first):
            self.rearrange()

    def set_places(self, places: Mapping[str, tuple[str, str]]) -> None:
        """Set node and ranks of logs, by their paths, as far as their contents say."""
        if self._choice.set_places(places):
            self.rearrange()

    def set_choices(self, layout: PaneLayout | None, shares: Mapping[PaneLayout, Shares]) -> None:
        """Adopt the layout and sizes that the user chose before."""
        self.layout_choice, self.shares = layout, dict(shares)
        if self.logs:
            self.rearrange()

    # ------------------------------------------------------------ arrangement

    def rearrange(self) -> None:
        """Let each pane show its log, at its place."""
        layout = self.pane_layout
        logs = self._choice.of_layout(layout)
        shape = shape_of(layout, len(logs))
        width, height = self.area.size
        if width and not fits(shape, width, height):
            shape = (1,)
        count = max(min(sum(shape), len(logs) or 1), 1)
        active = self.focused
        self._order_panes(layout, logs[:count], count)
        if layout is PaneLayout.MERGED and len(self.logs) > 1:
            self._panes[0].show_merged(self.logs)
        else:
            for pane, log in zip(self._panes, logs[:count], strict=False):
                pane.show(log)
        self._visible = count
        self._focus = self.panes.index(active) if active in self.panes else min(self._focus, count - 1)
        self._place(shape)
        self.update_status()

    def _order_panes(self, layout: PaneLayout, logs: Sequence[LogRef], count: int) -> None:
        """Order the panes so that those which show one of the logs keep it; make those that lack."""
        free = list(self._panes)
        ordered: list[LogPane | None] = []
        for log in logs if layout is not PaneLayout.MERGED else ():
            same = next((pane for pane in free if _shows(pane, log)), None)
            ordered.append(same)
            if same is not None:
                free.remove(same)
        if layout is PaneLayout.MERGED:
            merged = next((pane for pane in free if pane.merged), None)
            ordered = [merged]
            if merged is not None:
                free.remove(merged)
        ordered += [None] * (count - len(ordered))
        missing = max(ordered.count(None) - len(free), 0)
        spare = [*free, *self._new_panes(missing)]
        placed = [pane if pane is not None else spare.pop(0) for pane in ordered]
        self._panes = [*placed, *spare]

    def _new_panes(self, count: int) -> list[LogPane]:
        """Make panes, mounted together."""
        panes = [LogPane(self._status_changed) for _ in range(count)]
        for pane in panes:
            pane.display = False
            if self._thread is not None:
                pane.text.read_on(self._thread)
        if panes:
            self.area.mount_all(panes)
        return panes

    def _place(self, shape: Sequence[int]) -> None:
        width, height = self.area.size
        places: dict[Widget, Rectangle] = {}
        if self.zoomed or len(self.panes) == 1:
            places[self.focused] = Rectangle(0, 0, width, height)
        else:
            shares = self.shares.get(self.pane_layout) or even(shape)
            places = dict(zip(self.panes, rectangles(shape, shares, width, height), strict=True))
        for pane in self._panes:
            pane.title.display = len(self.panes) > 1
            pane.title.show_active(pane is self.focused)
            pane.text.set_reading(pane in places)
        self.area.set_places(places)

    def on_pane_area_resized(self) -> None:
        """Arrange the panes anew."""
        self.rearrange()

    # ------------------------------------------------------------ layouts and focus

    def set_layout(self, layout: PaneLayout) -> None:
        """Use a layout from now on."""
        if layout is PaneLayout.MERGED and self.pane_layout is not PaneLayout.MERGED:
            self._before_merge = self.pane_layout
        self.layout_choice, self.zoomed = layout, False
        self._focus = 0
        self.rearrange()
        self.focus_pane()
        self.post_message(self.LayoutChanged())

    def next_layout(self, direction: int) -> None:
        """Go on to the next layout (1) or the previous one (-1)."""
        layouts = list(PaneLayout)
        self.set_layout(layouts[(layouts.index(self.pane_layout) + direction) % len(layouts)])

    def leave_merge(self) -> None:
        """Return from all logs by time to the layout before."""
        if self.merged:
            self.set_layout(self._before_merge)

    def toggle_zoom(self) -> None:
        """Let the focused pane take the whole area, or return to the layout."""
        self.zoomed = not self.zoomed and len(self.panes) > 1
        self.rearrange()
        self.post_message(LogPane.StatusChanged())

    def focus_next(self, direction: int) -> None:
        """Give the keys to the next pane (1) or the previous one (-1)."""
        self._focus = (self._focus + direction) % len(self.panes)
        self.rearrange()
        self.focus_pane()

    def focus_pane(self, pane: LogPane | None = None) -> None:
        """Give the keys to a pane (default: the active one)."""
        if pane is not None and pane in self.panes:
            self._focus = self.panes.index(pane)
        self.focused.text.focus(scroll_visible=False)
        self._mark_active()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Note which pane has the keys; of a widget that has lost them since, nothing."""
        if event.widget is not self.screen.focused:
            return
        pane = next((pane for pane in self.panes if pane in event.widget.ancestors), None)
        if pane is not None and pane is not self.focused:
            self._focus = self.panes.index(pane)
            self._mark_active()

    def _mark_active(self) -> None:
        for pane in self.panes:
            pane.title.show_active(pane is self.focused)
        self.update_status()
        self.post_message(LogPane.StatusChanged())

    def resize(self, columns: int, rows: int) -> None:
        """Make the focused pane wider and taller, by steps."""
        width, height = self.area.size
        if width and height and not self.zoomed:
            self._resize(self._focus, columns * _COLUMNS_A_KEY / width, rows / height)

    def _resize(self, pane: int, wider: float, taller: float) -> None:
        shape = shape_of(self.pane_layout, len(self.panes))
        shares = self.shares.get(self.pane_layout) or even(shape)
        self.shares[self.pane_layout] = resized(shape, shares, pane, wider, taller)
        self.rearrange()
        self.post_message(self.LayoutChanged())

    def equalise(self) -> None:
        """Give all panes their default sizes again."""
        self.shares.pop(self.pane_layout, None)
        self.rearrange()
        self.post_message(self.LayoutChanged())

    def on_mouse_down(self, event: MouseDown) -> None:
        """Begin to move a border."""
        if len(self.panes) < 2 or self.zoomed:
            return
        places = [self.area.places[pane] for pane in self.panes if pane in self.area.places]
        shape = shape_of(self.pane_layout, len(self.panes))
        if self._drag.begin(shape, places, *self._cell(event)):
            self.capture_mouse()
        pane = next((pane for pane in self.panes if pane.title is event.widget), None)
        if pane is not None:
            self.focus_pane(pane)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Move a border."""
        width, height = self.area.size
        moved = self._drag.moved(*self._cell(event)) if width and height else None
        if moved is not None:
            pane, columns, rows = moved
            self._resize(pane, columns / width, rows / height)

    def on_mouse_up(self, event: MouseUp) -> None:
        """Leave a border where it is."""
        if self._drag.end():
            self.release_mouse()

    def _cell(self, event: MouseDown | MouseMove) -> tuple[int, int]:
        """Return the cell of the area that the mouse is at."""
        origin = self.area.region.offset
        return int(event.screen_x) - origin.x, int(event.screen_y) - origin.y

    # ------------------------------------------------------------ logs

    def choose(self, log: LogRef) -> None:
        """Show a log: the pane that shows it gets the keys, else it replaces the log of the focused one."""
        self.leave_merge()
        log = self._choice.listed(log)
        shown = next((pane for pane in self.panes if _shows(pane, log)), None)
        if shown is None:
            self._put(log, self._focus)
        self.focus_pane(shown)

    def _put(self, log: LogRef, index: int) -> None:
        self._choice.put(self.pane_layout, log, index, [pane.shown for pane in self.panes])
        self.rearrange()

    def choose_role(self, role: Role) -> bool:
        """Show the log of a role; of several, the next one at each call. False when there is none."""
        same = [log for log in self.logs if log.role is role]
        if not same:
            return False
        self.leave_merge()
        shown = self.focused.shown
        if shown in same:
            log = same[(same.index(shown) + 1) % len(same)]
        else:
            log = next((log for log in same if any(_shows(pane, log) for pane in self.panes)), same[0])
        self.choose(log)
        return True

    def open_grid(self, logs: Sequence[LogRef]) -> None:
        """Show these logs side by side in a grid."""
        self._choice.put_grid(logs)
        self.set_layout(PaneLayout.GRID)

    def merge(self) -> None:
        """Show all logs merged, in the order of time."""
        if len(self.logs) > 1:
            self.set_layout(PaneLayout.MERGED)

    def go_to(self, log: LogRef, offset: int, note: str) -> None:
        """Show the line at an offset of a log, and a note; in the pane that shows it, or one of its role."""
        pane = self.focused
        if not self.merged:
            same = [pane for pane in self.panes if _shows(pane, log)]
            alike = [pane for pane in self.panes if pane.shown is not None and pane.shown.role is log.role]
            pane = [*same, *alike, self.panes[-1]][0]
            if not same:
                self._put(log, self.panes.index(pane))
            self.focus_pane(pane)
        pane.go_to_line(log.path, offset, note)

    # ------------------------------------------------------------ searching across panes

    def next_match(self, direction: int) -> None:
        """Go to the next match in the focused pane; across panes, then to that of the next pane."""
        self._handovers = 0
        for pane in self._panes:
            pane.text.navigator.handover = self._hand_over if self.across else None
        self.focused.text.navigator.next_match(direction)

    def toggle_across(self) -> None:
        """Search in all panes, or only in the focused one."""
        self.across = not self.across
        self.update_status()

    def _hand_over(self, direction: int) -> bool:
        """Continue a search in the next pane; False once all were searched."""
        query = self.focused.text.navigator.query
        self._handovers += 1
        if query is None or self._handovers > len(self.panes) or len(self.panes) < 2:
            return False
        self.focus_next(direction)
        self.focused.text.navigator.search_from_edge(query, direction)
        return True

    # ------------------------------------------------------------ status

    def update_status(self) -> None:
        """Show what has changed above the logs."""
        for pane in self.panes:
            pane.update_status()
        self.tabs.show(self.logs, self.focused.shown, self._status(), merged=self.focused.merged)

    def _status(self) -> str:
        across = "searching all panes" if self.across and len(self.panes) > 1 else ""
        if len(self.panes) == 1:
            return self.focused.status
        zoom = f"pane {self._focus + 1} of {len(self.panes)}, zoomed" if self.zoomed else ""
        return " · ".join(part for part in (across, zoom or LAYOUT_TITLES[self.pane_layout]) if part)

    def on_log_pane_status_changed(self, event: LogPane.StatusChanged) -> None:
        """Show the status above the logs."""
        self.update_status()

    def _status_changed(self) -> None:
        self.update_status()
        self.lines_shown()


def _shows(pane: LogPane, log: LogRef) -> bool:
    return pane.shown is not None and pane.shown.path == log.path
