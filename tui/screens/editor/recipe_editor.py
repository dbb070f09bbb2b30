"""The editor's commands: editing keys, fixing findings, and what would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import ScreenResume

from tui.commands import Scope
from tui.screens.editor.check_commands import CheckCommands
from tui.screens.editor.file_commands import FileCommands
from tui.screens.editor.key_editing import KeyEditingScreen
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.session_messages import SessionOpened
from tui.screens.editor.session_worker import OpenedFile
from tui.screens.editor.text_mode import RecipeTextArea
from tui.screens.editor.text_view import RecipeTextView
from tui.screens.host import Host

if TYPE_CHECKING:
    from textual.widgets import TextArea


_MOST_MATCHES = 60
_TYPING_PAUSE_S = 1.0
"""Pause after which typing begins another step to undo."""


class RecipeEditorScreen(KeyEditingScreen):
    """Edits one recipe."""

    def __init__(self, host: Host, file: OpenedFile, key: str = "", line: int = 0) -> None:
        super().__init__(host, file, key, line)
        self._files = FileCommands(self)
        self._checks = CheckCommands(self)
        self._last_typed = 0.0

    async def on_unmount(self) -> None:
        """Leave the file to others; the thread ends after that."""
        self._files.leave()

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Look at the file again: another program may have changed it."""
        self._files.look()

    def on_session_opened(self, event: SessionOpened) -> None:
        """Offer unsaved edits."""
        event.stop()
        self._files.watch()
        self._files.offer(event.drafts)

    # ------------------------------------------------------------ which commands are valid

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        row, view = self.row, self.view
        if action == "leave_text":
            return self.text_area is not None
        ready = view is not None and self.analysis is not None
        in_tree = self.pane != "checks"
        own = in_tree and row is not None and row.lines is not None
        valid = {
            "edit_value": ready,
            "find": ready,
            "add_key": ready and in_tree,
            "remove_key": own and row is not None and row.state == "own",
            "remark": own,
            "comment_out": own or (in_tree and self.commented_row is not None),
            "set_both": ready and in_tree and self._details is not None and bool(self._details.counterpart),
            "fix": ready and self._checks.is_fixable(),
            "choose_fix": ready and self._checks.is_fixable(),
            "what_would_fit": ready and self._checks.is_overfull(),
            "undo": view is not None and view.can_undo,
            "redo": view is not None and view.can_redo,
            "diff": view is not None,
            "edit_text": view is not None,
            "external_editor": view is not None,
            "change_place": view is not None,
            "save": view is not None and view.dirty,
            "open_origin": ready and self._foreign_origin() is not None,
            "next_finding": bool(self.findings),
        }
        return valid.get(action, True)

    # ------------------------------------------------------------ editing a value

    def on_outline_view_value_requested(self, event: OutlineView.ValueRequested) -> None:
        """Edit the key that was clicked."""
        event.stop()
        self.action_edit_value()

    def action_edit_value(self) -> None:
        """Edit the current key's value in place; a section folds, the text is edited as text."""
        if self.pane == "text":
            self.action_edit_text()
            return
        if self.pane == "checks":
            self._checks.go_to_finding()
            return
        row = self.row
        if row is None:
            return
        if row.state == "commented":
            self.action_comment_out()
        elif row.size:
            self.tree_view.toggle_fold()
        else:
            self.enter_value(row.key, row.written or row.effective)

    # ------------------------------------------------------------ checks and memory

    def action_fix(self) -> None:
        """Apply the first fix of the finding."""
        self._checks.fix()

    def action_choose_fix(self) -> None:
        """Choose among the fixes of the finding."""
        self._checks.choose_fix()

    def action_next_finding(self, step: int) -> None:
        """Go to the next finding's key."""
        self._checks.next_finding(step)

    def action_what_would_fit(self) -> None:
        """List the cheapest changes that fit."""
        self._checks.what_would_fit()

    def action_change_place(self) -> None:
        """Ask for nodes, GPUs and memory."""
        self._checks.change_place()

    # ------------------------------------------------------------ text mode

    def on_recipe_text_view_text_requested(self, event: RecipeTextView.TextRequested) -> None:
        """Edit the text that was clicked."""
        event.stop()
        self.action_edit_text()

    def action_edit_text(self) -> None:
        """Enter the text mode at the current line, or leave it."""
        if self.text_area is not None:
            self.leave_text_mode()
            return
        if self.view is None:
            return
        text = self.view.state.text
        area = RecipeTextArea(text, self.current_line)
        if area.text != text:
            self.message.say("the text mode would change this file's line breaks; E opens $EDITOR", "warn")
            return
        self.text_area = area
        self.text_view.display = False
        self.text_panel.mount(area)
        self.SCOPES = (Scope.TEXT_MODE, Scope.APP)
        self.key_bar.use_scopes(*self.SCOPES)
        self.action_show_pane("text")

    def leave_text_mode(self) -> None:
        """Return to the tree and the text as they are now."""
        area, self.text_area = self.text_area, None
        if area is not None:
            self.text_view.line = area.cursor_location[0] + 1
            self.text_view.display = True
            self.SCOPES = type(self).SCOPES
            self.key_bar.use_scopes(*self.SCOPES)
            self.action_show_pane("text")
            self.set_text_title(f"line {self.text_view.line}")
            # Removed last: removing what has the focus would leave nothing focused.
            area.remove()

    def action_leave_text(self) -> None:
        """Leave the text mode."""
        self.leave_text_mode()

    async def on_recipe_text_area_command_requested(self, event: RecipeTextArea.CommandRequested) -> None:
        """Run a command that was asked for in the text mode."""
        event.stop()
        await self.run_action(event.command)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Read the text on the thread."""
        event.stop()
        if self.text_area is None or event.text_area is not self.text_area or self.view is None:
            return
        now = self.host.now()
        self.worker.type_text(self.text_area.text, merge_step=now - self._last_typed < _TYPING_PAUSE_S)
        self._last_typed = now

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """Keep the tree in step with the cursor."""
        event.stop()
        if self.text_area is not None:
            self._go_to_line(event.selection.end[0] + 1)

    # ------------------------------------------------------------ history, file

    def action_undo(self) -> None:
        """Take the last change back."""
        self.worker.edit(lambda session, analysis: f"undone: {session.undo()}")

    def action_redo(self) -> None:
        """Make a change again."""
        self.worker.edit(lambda session, analysis: f"redone: {session.redo()}")

    def action_diff(self) -> None:
        """Show what would be saved."""
        self._files.diff()

    def action_save(self) -> None:
        """Write the file."""
        self._files.save()

    def action_external_editor(self) -> None:
        """Open $EDITOR at the line."""
        self._files.external_editor()

    def _foreign_origin(self) -> tuple[str, int] | None:
        row = self.row
        origin = row.origin if row is not None else None
        if origin is None or origin.how == "override" or origin.file == str(self.file.path):
            return None
        return origin.file, origin.line

    def action_open_origin(self) -> None:
        """Open the parent that a value comes from."""
        self._files.open_origin(self._foreign_origin())

    def action_back(self) -> None:
        """Leave the text mode, or the editor."""
        if self.text_area is not None:
            self.leave_text_mode()
        else:
            self._files.close()
