"""The editor's commands: editing keys, fixing findings, and what would fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.events import ScreenResume

from launcher.text import clean
from recipes.editing import Placement
from recipes.errors import ExplainedError
from tui.formatting import plural
from tui.screens.editor.editor_layout import EditorLayout
from tui.screens.editor.file_commands import FileCommands
from tui.screens.editor.outline_view import OutlineView
from tui.screens.editor.preflight_lines import placement_text
from tui.screens.editor.session_worker import EditedFile, SessionOpened
from tui.screens.editor.text_mode import RecipeTextArea
from tui.screens.editor.text_view import RecipeTextView
from tui.screens.host import Host
from tui.widgets.choice_list import Choice
from tui.widgets.entry_dialog import Entry, EntryDialog, EntryPlace

if TYPE_CHECKING:
    from textual.widgets import TextArea

    from recipes.checks import Result
    from recipes.editing import Analysis, EditSession, FittingChange, KeyMatch, LegalValue, OutlineRow
    from recipes.planning import Fix

_PLACE = re.compile(
    r"\s*(\d+)\s*[x×*]\s*(\d+)(?:\s*(?:GPUs?)?\s*[x×*]\s*(\d+(?:\.\d+)?)\s*(?:GiB|GB)?)?\s*", re.IGNORECASE
)
_PLACE_HINT = "nodes x GPUs of each node x GiB of a GPU, such as 2 x 4 x 40; empty for the recipe's own"
_MOST_MATCHES = 60
_TYPING_PAUSE_S = 1.0
"""Pause after which typing begins another step to undo."""


class RecipeEditorScreen(EditorLayout):
    """Edits one recipe."""

    def __init__(self, host: Host, file: EditedFile, key: str = "", line: int = 0) -> None:
        super().__init__(host, file, key, line)
        self._files = FileCommands(self)
        self._last_typed = 0.0

    def on_unmount(self) -> None:
        """Leave the file to others."""
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
        ready = view is not None and self.analysis is not None
        own = row is not None and row.lines is not None
        valid = {
            "edit_value": ready,
            "find": ready,
            "add_key": ready,
            "remove_key": own and row is not None and row.state == "own",
            "remark": own,
            "comment_out": own,
            "set_both": ready and self._details is not None and bool(self._details.counterpart),
            "fix": ready and self._finding_to_fix() is not None,
            "choose_fix": ready and self._finding_to_fix() is not None,
            "what_would_fit": ready and self._is_overfull(),
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
            self._go_to_finding()
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
        offset, width = self.tree_view.value_region()
        in_place = row is not None and not self.text_area and self.tree_view.region.width > 0
        hint = _hint(row)
        title = f"{'Add' if adding else 'Set'} {key}"
        dialog = EntryDialog(
            Entry(title, text, hint if failed is None else str(failed), filtered=True),
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
            choices = [Choice(item.text, item.note, "pass" if item.present else "") for item in values]
            if dialog.is_mounted:
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
            Entry(
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
            if dialog.is_mounted and dialog.text == typed:
                fitting = [match for match in matches if not match.is_set and match.key.startswith(typed)]
                dialog.set_choices([Choice(match.key, match.help) for match in fitting])

        self.worker.ask(lambda analyser, analysis: analyser.find(analysis, typed, limit=_MOST_MATCHES), show)

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
            entry = Entry(
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
            Entry(
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
            if dialog.is_mounted and dialog.text == typed:
                dialog.set_choices([_match_choice(match) for match in matches])
                dialog.say(plural(len(matches), "match").replace("matchs", "matches") if typed else "")

        self.worker.ask(lambda analyser, analysis: analyser.find(analysis, typed, limit=_MOST_MATCHES), show)

    # ------------------------------------------------------------ checks

    def _finding_to_fix(self) -> Result | None:
        """Return the finding that `f` is about: the selected one, or the first on the current key."""
        if self.pane == "checks":
            return self.current_finding
        row = self.row
        if self.analysis is None or row is None:
            return None
        on_key = [item for item in self.analysis.findings_on(row.key) if item.outcome in ("fail", "warn")]
        return on_key[0] if on_key else None

    def action_fix(self) -> None:
        """Apply the first fix of the finding."""
        self._with_fixes(lambda result, fixes: self._apply_fix(result, fixes[0], len(fixes) - 1))

    def action_choose_fix(self) -> None:
        """Choose among the fixes of the finding."""

        def choose(result: Result, fixes: tuple[Fix, ...]) -> None:
            choices = tuple(Choice(fix.title, value=str(index)) for index, fix in enumerate(fixes))
            entry = Entry(f"Fixes of {result.id}", "", result.message, choices, choose=True)
            self.app.push_screen(
                EntryDialog(entry),
                lambda answer: self._apply_fix(result, fixes[int(answer)], 0) if answer is not None else None,
            )

        self._with_fixes(choose)

    def _with_fixes(self, use: Callable[[Result, tuple[Fix, ...]], None]) -> None:
        result = self._finding_to_fix()
        if result is None:
            return

        def answered(fixes: tuple[Fix, ...]) -> None:
            if fixes:
                use(result, fixes)
            else:
                self.message.say(
                    f"{result.id} has no fix that is an edit of the recipe: {result.message}", "warn"
                )

        self.worker.ask(lambda analyser, analysis: analyser.fixes(analysis, result), answered)

    def _apply_fix(self, result: Result, fix: Fix, others: int) -> None:
        def edit(session: EditSession, analysis: Analysis) -> str:
            session.apply(fix.edits, fix.title, inherited=analysis.recipe)
            more = f"; F lists {plural(others, 'other')}" if others else ""
            return f"fixed {result.id}: {fix.title} (u undoes{more})"

        self.worker.edit(edit)

    def action_next_finding(self, step: int) -> None:
        """Go to the next finding's key."""
        if self.findings:
            self.finding_list.cursor = (self.finding_list.cursor + step) % len(self.findings)
            self.finding_list.move(0)
            self._go_to_finding()

    def _go_to_finding(self) -> None:
        finding = self.current_finding
        if finding is not None and finding.where and self.go_to(finding.where[0].key):
            self.action_show_pane("tree")
        elif finding is not None:
            self.message.say(f"{finding.id} {finding.message}", finding.outcome)

    # ------------------------------------------------------------ memory

    def _is_overfull(self) -> bool:
        memory = self.analysis.memory if self.analysis is not None else None
        return memory is not None and not memory.fits

    def action_what_would_fit(self) -> None:
        """List the cheapest changes that fit, and apply the chosen one."""
        self.message.say("looking for what would fit …")

        def offer(changes: tuple[FittingChange, ...]) -> None:
            if not changes:
                self.message.say(
                    "nothing that was tried fits: use more nodes, or GPUs with more memory (p)", "warn"
                )
                return
            self.message.say("")
            choices = tuple(_change_choice(change, index) for index, change in enumerate(changes))
            entry = Entry("What would fit", "", "cheapest first; enter applies it", choices, choose=True)
            self.app.push_screen(
                EntryDialog(entry),
                lambda answer: self._apply_change(changes[int(answer)]) if answer is not None else None,
            )

        self.worker.ask(lambda analyser, analysis: analyser.what_would_fit(analysis), offer)

    def _apply_change(self, change: FittingChange) -> None:
        if change.placement != self.placement:
            self.placement = change.placement
            self.worker.place(change.placement)

        def edit(session: EditSession, analysis: Analysis) -> str:
            session.apply(change.fix.edits, change.fix.title, inherited=analysis.recipe)
            return f"applied: {change.fix.title} (u undoes)"

        self.worker.edit(edit)

    def action_change_place(self) -> None:
        """Ask for nodes, GPUs and memory."""
        present = (
            placement_text(self.placement, self.analysis)
            .replace("×", "x")
            .replace(" GPUs", "")
            .replace(" GiB", "")
        )

        def answered(text: str | None) -> None:
            if text is None:
                return
            placement = placement_of(text)
            if placement is None:
                self.message.say(f"invalid place: '{text}' (expected {_PLACE_HINT})", "fail")
                return
            self.placement = placement
            self.worker.place(placement)

        self.app.push_screen(EntryDialog(Entry("Place", present, _PLACE_HINT)), answered)

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
        area, text, line = RecipeTextArea(), self.view.state.text, self.current_line

        def opened() -> None:
            if not area.open_text(text, line):
                self.message.say(
                    "this file's line breaks would not survive the text mode; E opens $EDITOR", "warn"
                )
                self.leave_text_mode()

        self.text_area = area
        self.text_view.display = False
        self.text_panel.mount(area)
        self.call_after_refresh(opened)
        self.action_show_pane("text")

    def leave_text_mode(self) -> None:
        """Return to the tree and the text as they are now."""
        area, self.text_area = self.text_area, None
        if area is not None:
            self.text_view.line = area.cursor_location[0] + 1
            area.remove()
            self.text_view.display = True
            self.action_show_pane("text")

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


def placement_of(text: str) -> Placement | None:
    """Read `nodes x GPUs [x GiB]`; empty text is the recipe's own place, None is no place."""
    if not text.strip():
        return Placement()
    match = _PLACE.fullmatch(text)
    if match is None or int(match[1]) < 1 or int(match[2]) < 1:
        return None
    memory = float(match[3]) if match[3] else None
    return Placement(int(match[1]), int(match[2]), memory) if memory is None or memory > 0 else None


def _hint(row: OutlineRow | None) -> str:
    if row is None:
        return ""
    if row.interpolated:
        return f"follows {row.written}: another value stops that"
    return "inherited: enter sets it in this file" if row.state == "inherited" else ""


def _match_choice(match: KeyMatch) -> Choice:
    value = match.value if match.is_set else "(not set)"
    reason = match.help if match.reason in ("comment", "help") or not match.is_set else ""
    return Choice(match.key, f"{value}  {reason}".strip(), value=match.key)


def _change_choice(change: FittingChange, index: int) -> Choice:
    needed = ", ".join(f"{phase} {gib:.0f}" for phase, gib in change.needed)
    note = f"{' and '.join(change.overfull)} still would not fit" if change.overfull else f"{needed} GiB"
    return Choice(change.fix.title, note, "warn" if change.overfull else "pass", str(index))
