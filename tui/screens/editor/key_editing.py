"""Editing of single keys: values in place, new keys, remarks, comments, and finding a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from launcher.text import clean
from recipes.errors import ExplainedError
from tui.screens.dialogs import ChoiceDialog, DialogChoice
from tui.screens.editor.editor_choices import match_choice, value_choice
from tui.screens.editor.editor_layout import EditorLayout
from tui.widgets.choice_list import ListChoice
from tui.widgets.entry_dialog import EntryDialog, EntryPlace, EntryRequest

if TYPE_CHECKING:
    from recipes.editing import Analysis, EditSession, KeyMatch, LegalValue, OutlineRow, RecipeAnalyser
    from recipes.inheritance import EffectiveRecipe

_MOST_MATCHES = 60
_MOST_ALTERNATIVES = 9


class KeyEditingScreen(EditorLayout):
    """Asks for what is to be written at a key, and has it written."""

    def enter_value(
        self, key: str, text: str, *, failed: ExplainedError | None = None, adding: bool = False
    ) -> None:
        """Ask for a key's value, in place where it is set; `failed`: why the text was refused before."""
        row = self.analysis.outline.row(key) if self.analysis is not None else None
        if row is not None:
            self.go_to(key)
            # A key that a parent has is set, not added.
            text, adding = text or row.written, False
        offset, width = self.tree_view.value_region()
        in_place = row is not None and failed is None and self.tree_view.region.width > 0
        hint = _hint(row)
        title = f"{'Add' if adding else 'Set'} {key}"
        dialog = EntryDialog(
            EntryRequest(title, text, hint if failed is None else str(failed), filtered=True),
            place=EntryPlace(offset, width) if in_place else None,
            typed=lambda typed: self.worker.preview(key, typed, adding=adding),
        )

        def answered(typed: str | None) -> None:
            self.worker.withdraw_offer()
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
        self.worker.offer(
            lambda analyser, analysis, cancelled: analyser.legal_values(analysis, key, cancelled=cancelled),
            offer,
        )

    def _set(self, key: str, text: str, *, adding: bool = False, write_out: bool = False) -> None:
        if adding and not text.strip():
            self.message.say(f"no value was typed: {key} was not added (null is a value)", "warn")
            return

        def edit(session: EditSession, analysis: Analysis) -> str:
            if adding:
                session.add(key, text, write_out=write_out, inherited=analysis.recipe)
            else:
                session.set_text(key, text, write_out=write_out, inherited=analysis.recipe)
            return f"{key}: {text}"

        def retry(error: ExplainedError) -> None:
            self._ask_to_write_out(key, text, error, adding=adding)

        self.next_key = key
        self.worker.edit(edit, retry)

    def _ask_to_write_out(self, key: str, text: str, error: ExplainedError, *, adding: bool) -> None:
        """Offer a copy of what the key is in, where it stands in an anchor or follows another key."""

        def correct() -> None:
            self.enter_value(key, text, failed=error, adding=adding)

        def decide(answer: str | None) -> None:
            if answer == "copy":
                self._set(key, text, adding=adding, write_out=True)
            elif answer == "correct":
                correct()

        def tried(accepted: bool) -> None:
            if not accepted:
                correct()
                return
            choices = [
                DialogChoice("y", "write a copy of the section here, and set it there", "copy"),
                DialogChoice("e", "edit the value", "correct"),
            ]
            self.app.push_screen(ChoiceDialog("Not set", str(error), choices, chosen=1), decide)

        inherited = self.analysis.recipe if self.analysis is not None else None
        self.worker.with_session_first(
            lambda session: _accepts_copy(session, key, text, inherited, adding=adding), tried
        )

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
            self.enter_value(f"{section}.{inside.size}", "", adding=True)
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
                self.enter_value(key, "", adding=True)

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

        self.worker.search(search, show)

    def action_remove_key(self) -> None:
        """Remove the key from the file."""
        self._edit_row(
            lambda session, analysis, key: session.remove(key, inherited=analysis.recipe), "removed {}"
        )

    def action_comment_out(self) -> None:
        """Comment the key out, or take it back in."""
        row = self.commented_row
        if row is None:
            self._edit_row(lambda session, analysis, key: session.comment_out(key), "commented {} out")
        elif row.alternatives:
            self._choose_alternative(row)
        else:
            self._comment_in(None)

    def _comment_in(self, line: int | None) -> None:
        self._edit_row(lambda session, analysis, key: session.comment_in(key, line), "took {} back in")

    def _choose_alternative(self, row: OutlineRow) -> None:
        """Ask which of the lines that have the key is meant; the keys are the digits."""
        choices = [
            DialogChoice(str(number), f"line {one.line}: {one.value}", str(one.line))
            for number, one in enumerate(row.alternatives[:_MOST_ALTERNATIVES], 1)
        ]

        def answered(line: str | None) -> None:
            if line is not None:
                self._comment_in(int(line))

        text = f"{row.key} is commented out on several lines."
        self.app.push_screen(ChoiceDialog("Take back in", text, choices), answered)

    @property
    def commented_row(self) -> OutlineRow | None:
        """The row of the current key as it is commented out; None where it is not, or set in this file."""
        row = self.row
        if row is None or self.analysis is None or row.state == "own":
            return None
        rows = self.analysis.outline.rows
        return next((item for item in rows if item.key == row.key and item.state == "commented"), None)

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

        before = ""

        def ask(remark: str) -> None:
            nonlocal before
            before = remark
            entry = EntryRequest(
                f"Remark on {key}",
                remark,
                "one line, written behind the value as a comment; empty removes it",
                select=False,
            )
            self.app.push_screen(EntryDialog(entry), answered)

        def answered(text: str | None) -> None:
            if text is not None and text != clean(before):
                self._edit_row(
                    lambda session, analysis, name: session.set_comment(name, text), "remark on {}"
                )

        self.worker.with_session_first(lambda session: session.comment(key).beside, ask)

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
                self.enter_value(key, "", adding=True)
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

        self.worker.search(
            lambda analyser, analysis: analyser.find(analysis, typed, limit=_MOST_MATCHES), show
        )


def _accepts_copy(
    session: EditSession, key: str, text: str, inherited: EffectiveRecipe | None, *, adding: bool
) -> bool:
    """Return whether the value can be set once what the key is in has been written out here."""
    try:
        session.preview_text(key, text, adding=adding, write_out=True, inherited=inherited)
    except ExplainedError:
        return False
    return True


def _hint(row: OutlineRow | None) -> str:
    if row is None:
        return ""
    if row.interpolated:
        return f"follows {row.written}: another value stops that"
    return "inherited: enter sets it in this file" if row.state == "inherited" else ""
