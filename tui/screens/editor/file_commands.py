"""The editor's commands on the file: save, differences, drafts, $EDITOR, and other editors of it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from launcher.errors import ConnectionLostError
from launcher.text import clean
from recipes.errors import ExplainedError
from recipes.files import AttributesError, ChangedOnDiskError
from recipes.remote_path import look_again, machine_of, on_machine_of
from recipes.yaml.check import EditRefusedError
from tui.formatting import duration, plural
from tui.screens.dialogs import ChoiceDialog, DialogChoice, error_dialog
from tui.screens.editor.diff_screen import DiffScreen
from tui.screens.editor.external_editor import edit_copy

if TYPE_CHECKING:
    from launcher.storage.drafts import Draft
    from launcher.storage.editors import EditorPresence, OtherEditor
    from recipes.editing import Analysis, EditSession
    from tui.screens.editor.editor_layout import EditorLayout

WATCH_S = 2.0
"""Period of looking at the file, and for other editors of it."""
FAR_WATCH_S = 5.0
"""The same for a file of a host: each look is a request."""


class FileCommands:
    """Commands of one editor on its file."""

    def __init__(self, screen: EditorLayout) -> None:
        self._screen = screen
        self._presence: EditorPresence | None = None
        self._disk = ""
        self._leaving = False
        self._asking = False
        """Whether the user is being asked about the file on disk."""
        self._decisions = 0
        """Answers about the file on disk: a look from before the last one is out of date."""

    # ------------------------------------------------------------ drafts

    def offer(self, drafts: tuple[Draft, ...]) -> None:
        """Offer unsaved edits that an editor left behind: the newest. Those that were asked for are taken."""
        if not drafts:
            return
        chosen = next((item for item in drafts if str(item.file) == self._screen.file.draft), None)
        draft = chosen or max(drafts, key=lambda item: item.saved_at)
        worker = self._screen.worker

        def answered(answer: str | None) -> None:
            if answer == "continue":
                worker.edit(lambda session, analysis: _take_draft(session, draft.text))
                worker.discard_orphan(draft)
            elif answer == "discard":
                worker.discard_orphan(draft)
            elif answer == "diff":
                show_diff()

        def show_diff() -> None:
            def shown(diff: str) -> None:
                self._screen.app.push_screen(
                    DiffScreen("Unsaved edits", {"against the file": diff}), lambda _: ask()
                )

            worker.with_session_first(lambda session: _draft_diff(session, draft.text), shown)

        def ask() -> None:
            choices = [
                DialogChoice("g", "continue with them", "continue"),
                DialogChoice("D", "show them first", "diff"),
                DialogChoice("x", "discard them", "discard"),
            ]
            age = duration(max(time.time() - _timestamp(draft), 0.0), tenths=False)
            text = f"Edits of this file from {age} ago were not saved."
            self._screen.app.push_screen(ChoiceDialog("Unsaved edits", text, choices), answered)

        if chosen is not None:
            answered("continue")
        else:
            ask()

    # ------------------------------------------------------------ watching

    def watch(self) -> None:
        """Note that this editor has the file open, and look at it from now on."""
        self._screen.worker.with_session(self._enter, self._noticed)
        self._screen.set_interval(FAR_WATCH_S if machine_of(self._screen.file.path) else WATCH_S, self.look)

    def look(self) -> None:
        """Look at the file and for other editors; says what is new."""
        if not self._leaving and self._screen.view is not None:
            decisions = self._decisions
            self._screen.worker.with_session(
                self._look_around, lambda state: self._noticed(state, current=decisions == self._decisions)
            )

    def leave(self) -> None:
        """Note that the file is no longer open here."""
        self._leaving = True
        presence, self._presence = self._presence, None
        if presence is not None:
            self._screen.worker.with_session(lambda session: presence.leave(), lambda _: None)

    def _enter(self, session: EditSession) -> tuple[str, str]:
        from launcher.storage.editors import EditorPresence

        self._presence = EditorPresence.enter(self._screen.file.path, os.environ)
        return self._look_around(session)

    def _look_around(self, session: EditSession) -> tuple[str, str]:
        """Return who else edits the file, and what became of it on disk; on the worker's thread."""
        look_again(session.path)
        others = self._presence.others() if self._presence is not None else ()
        try:
            change: str = session.disk_change()
        except ConnectionLostError:  # the title says so; it is looked at again
            change = self._disk
        return ", ".join(map(_editor_text, others)), change

    def _noticed(self, state: tuple[str, str], *, current: bool = True) -> None:
        others, disk = state
        screen = self._screen
        if others != screen.others:
            screen.others = others
            if others:
                screen.message.say(f"another editor has this file open: {others}", "warn")
            screen.show_title()
        if disk != self._disk and current:
            self._disk = disk
            if disk == "missing":
                screen.message.say("the file is gone from the disk; w writes it again", "warn")
            elif disk == "changed":
                self._ask_about_disk(saving=False)

    def _ask_about_disk(self, *, saving: bool) -> None:
        view = self._screen.view
        if view is not None and not view.dirty and not saving:
            self._reload()
            return
        if not self._asking:
            # It is not asked again because of this change, also where nothing is decided.
            self._asking, self._disk = True, "changed"
            self._ask_which_text()

    def _ask_which_text(self) -> None:
        choices = [
            DialogChoice("r", "reload: take the file; u brings your edits back", "reload"),
            DialogChoice("k", "keep mine: the next save replaces the file", "keep"),
            DialogChoice("D", "see both", "both"),
        ]
        text = f"{self._screen.file.path.name} was changed on disk by another program while you edited it."
        self._screen.app.push_screen(ChoiceDialog("Changed on disk", text, choices), self._decide_disk)

    def _decide_disk(self, answer: str | None) -> None:
        worker = self._screen.worker
        self._asking = answer == "both"
        self._decisions += 1
        if answer == "reload":
            self._reload()
        elif answer == "keep":
            worker.edit(lambda session, analysis: _keep_mine(session))
            self._disk = ""
        elif answer == "both":

            def shown(diff: str) -> None:
                screen = DiffScreen("Changed on disk", {"- on disk, + yours": diff})
                self._screen.app.push_screen(screen, lambda _: self._ask_which_text())

            worker.with_session_first(lambda session: session.diff_disk(), shown)

    def _reload(self) -> None:
        self._disk = ""
        self._screen.worker.edit(lambda session, analysis: _reload(session))

    # ------------------------------------------------------------ saving

    def save(self) -> None:
        """Write the file; asks where it changed on disk, is no YAML, or would change its owner."""
        self._save()

    def _save(self, *, even_broken: bool = False, accept_changes: bool = False) -> None:
        name = self._screen.file.path.name

        def edit(session: EditSession, analysis: Analysis) -> str:
            changed = session.changes().total
            saved = session.save(even_broken=even_broken, accept_changes=accept_changes)
            others = "; other names of it (hard links) keep the old text" if saved.other_names else ""
            return f"saved {name}: {plural(changed, 'line')} changed{others}"

        def failed(error: ExplainedError) -> None:
            self._not_saved(error, even_broken=even_broken)

        self._screen.worker.edit(edit, failed)

    def _not_saved(self, error: ExplainedError, *, even_broken: bool) -> None:
        if isinstance(error, ChangedOnDiskError):
            self._ask_about_disk(saving=True)
        elif isinstance(error, AttributesError):
            choices = [
                DialogChoice("n", "do not save", "stay"),
                DialogChoice("y", "save all the same", "save"),
            ]
            text = f"By saving, this file would change besides its text: {', '.join(error.changes)}."
            self._screen.app.push_screen(
                ChoiceDialog("Owner or access rights", text, choices),
                lambda answer: (
                    self._save(even_broken=even_broken, accept_changes=True) if answer == "save" else None
                ),
            )
        elif isinstance(error, EditRefusedError):
            choices = [
                DialogChoice("n", "stay, and correct it", "stay"),
                DialogChoice("y", "save it as it is", "save"),
            ]
            self._screen.app.push_screen(
                ChoiceDialog("Not YAML", f"{error}\n\nNeMo-RL could not read the file.", choices),
                lambda answer: self._save(even_broken=True) if answer == "save" else None,
            )
        else:
            self._screen.app.push_screen(error_dialog(error))

    def diff(self) -> None:
        """Show what would be saved, and what differs from the parents."""
        analysis = self._screen.analysis

        def shown(diff: str) -> None:
            parts = {"what would be saved": diff}
            if analysis is not None and len(analysis.recipe.files) > 1:
                parts["what differs from the parents"] = analysis.diff_parent_text()
            self._screen.app.push_screen(DiffScreen("Diff", parts), save_then)

        def save_then(answer: str | None) -> None:
            if answer == "save":
                self.save()

        self._screen.worker.with_session_first(lambda session: session.diff_saved(), shown)

    # ------------------------------------------------------------ other programs

    def external_editor(self) -> None:
        """Open the text in the user's editor, and take the result back as one step."""
        screen = self._screen
        if screen.view is None:
            return
        text, line = screen.view.state.text, screen.current_line
        error: ExplainedError | None = None
        after = text
        with screen.app.suspend():
            try:
                after = edit_copy(text, screen.file.path.name, line, os.environ)
            except ExplainedError as failure:
                error = failure
        screen.refresh(layout=True)
        if error is not None:
            screen.app.push_screen(error_dialog(error))
        elif after == text:
            screen.message.say("nothing was changed in the editor")
        else:
            screen.worker.edit(lambda session, analysis: _take_text(session, after, "taken from the editor"))

    def open_origin(self, origin: tuple[str, int] | None) -> None:
        """Open the parent that a value comes from, at its line."""
        if origin is not None:
            self._screen.host.edit_recipe(on_machine_of(self._screen.file.path, origin[0]), line=origin[1])

    def close(self) -> None:
        """Close the editor; asks only where the edits could not be kept."""
        if not self._screen.would_lose_edits:
            self._screen.host.close_editor(self._screen, self._screen.unsaved_remark)
        else:
            choices = [DialogChoice("n", "stay", "stay"), DialogChoice("x", "discard the edits", "discard")]
            text = "The edits are not saved, and no draft of them can be written: they would be lost."
            self._screen.app.push_screen(
                ChoiceDialog("Close?", text, choices),
                lambda answer: (
                    self._screen.host.close_editor(self._screen, "") if answer == "discard" else None
                ),
            )


def _take_text(session: EditSession, text: str, done: str) -> str:
    session.replace_text(text)
    return f"{done} (u undoes)"


def _take_draft(session: EditSession, text: str) -> str:
    return _take_text(session, text, "continued with the unsaved edits")


def _draft_diff(session: EditSession, text: str) -> str:
    from recipes.files import unified_diff

    return unified_diff(session.saved_text, text, str(session.path), "unsaved edits")


def _keep_mine(session: EditSession) -> str:
    session.keep_mine()
    return "keeping yours: w replaces the file"


def _reload(session: EditSession) -> str:
    session.reload()
    return "reloaded from the disk (u brings the text back)"


def _editor_text(other: OtherEditor) -> str:
    owner = f"{other.user}@{other.host}" if other.user else other.host
    return clean(f"{owner} (pid {other.pid})")


def _timestamp(draft: Draft) -> float:
    return draft.saved_at
