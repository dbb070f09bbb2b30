"""The editor's commands: editing keys, fixing findings, and what would fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.events import ScreenResume

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.commands import Scope
from tui.screens.editor.check_commands import CheckCommands
from tui.screens.editor.editor_choices import match_choice, value_choice
from tui.screens.editor.editor_layout import EditorLayout
from tui.screens.editor.file_commands import FileCommands
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.session_worker import OpenedFile, SessionOpened
from tui.screens.editor.text_mode import RecipeTextArea
from tui.screens.editor.text_view import RecipeTextView
from tui.screens.host import Host
from tui.widgets.choice_list import ListChoice
from tui.widgets.entry_dialog import EntryDialog, EntryPlace, EntryRequest
from tui.widgets.keybar import KeyBar

if TYPE_CHECKING:
    from textual.widgets import TextArea

    from recipes.editing import Analysis, EditSession, KeyMatch, LegalValue, OutlineRow, RecipeAnalyser

_MOST_MATCHES = 60
_TYPING_PAUSE_S = 1.0
"""Pause after which typing begins another step to undo."""


class RecipeEditorScreen(EditorLayout):
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
            "comment_out": own,
            "set_both": ready and in_tree and self._details is not None and bool(self._details.counterpart),
            "fix": ready and self._checks.finding() is not None,
            "choose_fix": ready and self._checks.finding() is not None,
            "what_would_fit": ready and self._checks.is_overfull(),
            "undo": view is not None and view.can_undo,
            "redo": view is not None and view.can_redo,
            "diff": view is not None,
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
            self._enter_value(row.key, row.written or row.effective)

    def _enter_value(
        self, key: str, text: str, *, failed: ExplainedError | None = None, adding: bool = False
    ) -> None:
        row = self.analysis.outline.row(key) if self.analysis is not None else None
        if row is not None:
            self.go_to(key)
            # A key that a parent has is set, not added.
            text, adding = text or row.written, False
        offset, width = self.tree_view.value_region()
        in_place = row is not None and not self.text_area and self.tree_view.region.width > 0
        hint = _hint(row)
        title = f"{'Add' if adding else 'Set'} {key}"
        dialog = EntryDialog(
            EntryRequest(title, text, hint if failed is None else str(failed), filtered=True),
            place=EntryPlace(offset, width) if in_place else None,
            typed=lambda typed: self.worker.preview(key, typed),
        )

        def answered(typed: str | None) -> None:
            if typed is None or (
                row is not None and typed == clean(text) and failed is None and row.state == "own"
            ):
                self.worker.preview(key, None)
                return
            self._set(key, typed, adding=adding)

        def offer(values: tuple[LegalValue, ...]) -> None:
            choices = [value_choice(item) for item in values]
            dialog.set_choices(choices)

        self.app.push_screen(dialog, answered)
        self.worker.ask(lambda analyser, analysis: analyser.legal_values(analysis, key), offer)

    def _set(self, key: str, text: str, *, adding: bool = False) -> None:
        def edit(session: EditSession, analysis: Analysis) -> str:
            if adding:
                session.add(key, text, inherited=analysis.recipe)
            else:
                session.set_text(key, text, inherited=analysis.recipe)
            return f"{key}: {text}"

        def retry(error: ExplainedError) -> None:
            self._enter_value(key, text, failed=error, adding=adding)

        self.worker.edit(edit, retry)

    def action_set_both(self) -> None:
        """Give the value to student and teacher."""
        row = self.row
        if row is None:
            return
        key, text = row.key, row.written

        def edit(session: EditSession, analysis: Analysis) -> str:
            session.set_text(key, text, both=True, inherited=analysis.recipe)
            return f"student and teacher: {key.partition('.')[2]} {text}"

        self.worker.edit(edit)

    # ------------------------------------------------------------ other edits of a key

    def action_add_key(self) -> None:
        """Ask for a key below the current section, then for its value."""
        row = self.row
        section = row.key if row is not None and (row.size or row.kind != "value") else ""
        if row is not None and not section:
            section = row.key.rpartition(".")[0]
        inside = self.analysis.outline.row(section) if self.analysis is not None and section else None
        if inside is not None and inside.kind == "list":
            self._enter_value(f"{section}.{inside.size}", "", adding=True)
            return
        prefix = f"{section}." if section else ""
        dialog = EntryDialog(
            EntryRequest(
                "Add a key",
                prefix,
                "dotted, such as policy.optimizer.kwargs.lr; missing sections are made",
                select=False,
            ),
            typed=lambda typed: self._suggest_keys(dialog, typed),
        )

        def answered(key: str | None) -> None:
            if key and key != prefix and not key.endswith("."):
                self._enter_value(key, "", adding=True)

        self.app.push_screen(dialog, answered)
        self._suggest_keys(dialog, prefix)

    def _suggest_keys(self, dialog: EntryDialog, typed: str) -> None:
        def show(matches: tuple[KeyMatch, ...]) -> None:
            if dialog.text == typed:
                unset = [match for match in matches if not match.is_set]
                unset.sort(key=lambda match: not match.key.startswith(typed))
                dialog.set_choices([ListChoice(match.key, match.help, detail=match.help) for match in unset])

        def search(analyser: RecipeAnalyser, analysis: Analysis) -> tuple[KeyMatch, ...]:
            below = analyser.find(analysis, typed, limit=_MOST_MATCHES)
            name = typed.rpartition(".")[2]
            return below or (analyser.find(analysis, name, limit=_MOST_MATCHES) if name else ())

        self.worker.ask(search, show)

    def action_remove_key(self) -> None:
        """Remove the key from the file."""
        self._edit_row(
            lambda session, analysis, key: session.remove(key, inherited=analysis.recipe), "removed {}"
        )

    def action_comment_out(self) -> None:
        """Comment the key out, or take it back in."""
        row = self.row
        if row is not None and row.state == "commented":
            self._edit_row(lambda session, analysis, key: session.comment_in(key), "took {} back in")
        else:
            self._edit_row(lambda session, analysis, key: session.comment_out(key), "commented {} out")

    def _edit_row(self, action: Callable[[EditSession, Analysis, str], object], done: str) -> None:
        row = self.row
        if row is None:
            return
        key = row.key

        def edit(session: EditSession, analysis: Analysis) -> str:
            action(session, analysis, key)
            return f"{done.format(key)} (u undoes)"

        self.worker.edit(edit)

    def action_remark(self) -> None:
        """Ask for the remark beside the key."""
        row = self.row
        if row is None:
            return
        key = row.key

        def ask(remark: str) -> None:
            entry = EntryRequest(
                f"Remark on {key}",
                remark,
                "one line, written behind the value as a comment; empty removes it",
                select=False,
            )
            self.app.push_screen(EntryDialog(entry), answered)

        def answered(text: str | None) -> None:
            if text is not None:
                self._edit_row(
                    lambda session, analysis, name: session.set_comment(name, text), "remark on {}"
                )

        self.worker.with_session(lambda session: session.comment(key).beside, ask)

    # ------------------------------------------------------------ finding

    def action_find(self) -> None:
        """Find a key by any part of it, its value, or its comments."""
        dialog = EntryDialog(
            EntryRequest(
                "Find",
                "",
                "part of a key, a value or a comment; keys that are not set are offered too",
                choose=True,
            ),
            typed=lambda typed: self._search(dialog, typed),
        )

        def answered(key: str | None) -> None:
            if key and not self.go_to(key):
                self._enter_value(key, "", adding=True)
            elif key:
                self.action_show_pane("tree")

        self.app.push_screen(dialog, answered)

    def _search(self, dialog: EntryDialog, typed: str) -> None:
        def show(matches: tuple[KeyMatch, ...]) -> None:
            if dialog.text == typed:
                dialog.set_choices([match_choice(match) for match in matches])
                unmatched = typed and not matches
                dialog.say(
                    "no key, value or comment has this text" if unmatched else "", "warn" if unmatched else ""
                )

        self.worker.ask(lambda analyser, analysis: analyser.find(analysis, typed, limit=_MOST_MATCHES), show)

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
        self.query_one(KeyBar).use_scopes(*self.SCOPES, hidden=("app.quit",))
        self.action_show_pane("text")

    def leave_text_mode(self) -> None:
        """Return to the tree and the text as they are now."""
        area, self.text_area = self.text_area, None
        if area is not None:
            self.text_view.line = area.cursor_location[0] + 1
            self.text_view.display = True
            self.SCOPES = type(self).SCOPES
            self.query_one(KeyBar).use_scopes(*self.SCOPES)
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


def _hint(row: OutlineRow | None) -> str:
    if row is None:
        return ""
    if row.interpolated:
        return f"follows {row.written}: another value stops that"
    return "inherited: enter sets it in this file" if row.state == "inherited" else ""
