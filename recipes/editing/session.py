"""A recipe under edit: its text with the history, and the file that it is saved to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recipes.chain import decode, read_bytes
from recipes.document import Document
from recipes.editing.edit_state import EditState, first_state, read_text
from recipes.editing.here import add_here, apply_edits, counterpart_of, remove_here, set_here
from recipes.editing.line_changes import LineChanges, line_changes
from recipes.errors import RecipeError
from recipes.files import Saved, save, unified_diff
from recipes.yaml.check import EditRefusedError
from recipes.yaml.comments import Comment
from recipes.yaml.typed import read_typed

if TYPE_CHECKING:
    from pathlib import Path

    from recipes.inheritance import EffectiveRecipe
    from recipes.planning import RecipeEdit
    from recipes.yaml.write import Writable

_TYPING = "typing"
_MOST_STEPS = 2000
"""Steps that can be undone."""
_PARSED_STEPS = 6
"""Latest steps that keep their tree; the others keep their text alone and are parsed again."""


@dataclass(slots=True)
class _Step:
    """Text and the words for what led to it; `state` is the text read, None where that was let go."""

    text: str
    label: str
    state: EditState | None


class EditSession:
    """Editing of one recipe file.

    Every edit is one step of the history, and raises `RecipeError` without changing anything where it
    cannot be made. `inherited` is the effective recipe of the present text: with it, keys can be edited
    that only a parent has.
    """

    def __init__(self, path: Path, opened: bytes | None, text: str) -> None:
        self.path = path
        self.opened = opened
        """Bytes of the file when it was read or written last; None where there was no file."""
        self._steps = [_Step(text, "", first_state(path, text))]
        self._now = 0

    @classmethod
    def open(cls, path: Path, *, text: str | None = None) -> EditSession:
        """Open a file; `text` are unsaved edits of it, which become the first step.

        Raises:
            RecipeError: the file cannot be read, or is no UTF-8 text. One that is no YAML opens.
        """
        data = read_bytes(path)
        session = cls(path, data, decode(data, str(path)))
        if text is not None:
            session.replace_text(text)
        return session

    # Reading

    @property
    def state(self) -> EditState:
        """Present state."""
        return self._state_at(self._now)

    @property
    def text(self) -> str:
        """Text as it would be saved."""
        return self._steps[self._now].text

    @property
    def error(self) -> RecipeError | None:
        """Reason why the text is no YAML."""
        return self.state.error

    @property
    def saved_text(self) -> str:
        """Text of the file as it was read or written last."""
        return "" if self.opened is None else self.opened.decode("utf-8", "replace")

    @property
    def dirty(self) -> bool:
        """Return whether there is something to save."""
        return self.opened is None or self.text.encode("utf-8", "surrogatepass") != self.opened

    def comment(self, key: str) -> Comment:
        """Return the comment of a key that is written here."""
        return self._document().comment(key)

    def changes(self) -> LineChanges:
        """Return the lines of the text that differ from the saved file."""
        return line_changes(self.saved_text, self.text)

    # Editing

    def set_text(
        self,
        key: str,
        text: str,
        *,
        both: bool = False,
        write_out: bool = False,
        inherited: EffectiveRecipe | None = None,
    ) -> None:
        """Set a value as it is typed, in YAML; with `both` for student and teacher."""
        self._edit(f"set {key}", _setting(key, text, both=both, write_out=write_out, inherited=inherited))

    def preview_text(
        self,
        key: str,
        text: str,
        *,
        adding: bool = False,
        write_out: bool = False,
        inherited: EffectiveRecipe | None = None,
    ) -> EditState:
        """Return the state that `set_text`, or `add`, would lead to; nothing changes."""
        if adding:
            return self._edited(_adding(key, text, write_out=write_out, inherited=inherited))
        return self._edited(_setting(key, text, both=False, write_out=write_out, inherited=inherited))

    def set_value(
        self, key: str, value: Writable, *, write_out: bool = False, inherited: EffectiveRecipe | None = None
    ) -> None:
        """Set a value."""
        self._edit(
            f"set {key}",
            lambda document: set_here(document, key, value, write_out=write_out, inherited=inherited),
        )

    def add(
        self, key: str, text: str, *, write_out: bool = False, inherited: EffectiveRecipe | None = None
    ) -> None:
        """Add a key, or a list item by its number, with a value as it is typed."""
        self._edit(f"add {key}", _adding(key, text, write_out=write_out, inherited=inherited))

    def remove(self, key: str, *, inherited: EffectiveRecipe | None = None) -> None:
        """Remove a key: the value is inherited again, or not there any more."""
        self._edit(f"remove {key}", lambda document: remove_here(document, key, inherited=inherited))

    def set_comment(self, key: str, text: str, *, above: bool = False) -> None:
        """Set the remark of a key, beside it or above it; an empty text removes it."""

        def edit(document: Document) -> None:
            document.set_comment(key, text, above=above)

        self._edit(f"remark on {key}", edit)

    def comment_out(self, key: str) -> None:
        """Comment out a key with all below it."""

        def edit(document: Document) -> None:
            document.comment_out(key)

        self._edit(f"comment out {key}", edit)

    def comment_in(self, key: str, line: int | None = None) -> None:
        """Take a key that is commented out back in; `line` says which where several lines have it."""

        def edit(document: Document) -> None:
            document.comment_in(key, line)

        self._edit(f"comment in {key}", edit)

    def apply(
        self, edits: Iterable[RecipeEdit], label: str, *, inherited: EffectiveRecipe | None = None
    ) -> None:
        """Apply edits that belong together, such as a fix."""
        self._edit(label, lambda document: apply_edits(document, edits, inherited))

    def replace_text(self, text: str, *, merge_step: bool = False) -> EditState:
        """Replace the whole text by what was typed; never refused. Returns the new state.

        With `merge_step` it is the same step as the text before it, if that was typed, too.
        """
        return self.take(read_text(self.state, text), merge_step=merge_step)

    def take(self, state: EditState, *, label: str = _TYPING, merge_step: bool = False) -> EditState:
        """Make a state the present one; `merge_step` as for `replace_text`."""
        if state.text == self.text:
            return self.state
        if merge_step and self._now and self._steps[self._now].label == label:
            del self._steps[self._now :]
            self._now -= 1
        del self._steps[self._now + 1 :]
        self._steps.append(_Step(state.text, label, state))
        if len(self._steps) > _MOST_STEPS:
            del self._steps[0]
        self._now = len(self._steps) - 1
        if self._now >= _PARSED_STEPS:
            self._steps[self._now - _PARSED_STEPS].state = None
        return state

    def _edit(self, label: str, action: Callable[[Document], None]) -> None:
        self.take(self._edited(action), label=label)

    def _edited(self, action: Callable[[Document], None]) -> EditState:
        document = self._document()
        action(document)
        if document.revision is self.state.revision:
            return self.state
        return EditState(self.path, document.text, document.revision)

    def _document(self) -> Document:
        return Document.at(self._valid().revision, self.path)

    def _valid(self) -> EditState:
        """Return the present state; raises `EditRefusedError` where its text is no YAML."""
        state = self.state
        if state.error is not None:
            fix = "Correct the text first, or undo."
            raise EditRefusedError(state.error.what, where=state.error.where, fix=fix)
        return state

    # History

    @property
    def undo_label(self) -> str:
        """Words for what `undo` takes back; "" for nothing."""
        return self._steps[self._now].label if self._now else ""

    @property
    def redo_label(self) -> str:
        """Words for what `redo` makes again; "" for nothing."""
        return self._steps[self._now + 1].label if self._now + 1 < len(self._steps) else ""

    @property
    def can_undo(self) -> bool:
        """Return whether there is a step to take back."""
        return self._now > 0

    @property
    def can_redo(self) -> bool:
        """Return whether there is a step to make again."""
        return self._now + 1 < len(self._steps)

    def undo(self) -> str:
        """Go back one step; returns its words, "" where there is none."""
        label = self.undo_label
        self._now -= self.can_undo
        return label

    def redo(self) -> str:
        """Make a step again; returns its words, "" where there is none."""
        label = self.redo_label
        self._now += self.can_redo
        return label

    def _state_at(self, index: int) -> EditState:
        """Return the state of a step, read again where its tree was let go."""
        step = self._steps[index]
        if step.state is not None:
            return step.state
        state = first_state(self.path, step.text)
        for earlier in reversed(self._steps[:index] if state.error is not None else []):
            base = earlier.state or first_state(self.path, earlier.text)
            if earlier.state is not None or base.error is None:
                state = read_text(base, step.text)
                break
        step.state = state
        return state

    # The file

    def diff_saved(self) -> str:
        """Return a unified diff from the file as it was read or written last to the text."""
        return unified_diff(self.saved_text, self.text, str(self.path), f"{self.path} (edited)")

    def diff_disk(self) -> str:
        """Return a unified diff from the file as it is now to the text."""
        now = self._on_disk()
        return unified_diff(now or b"", self.text, f"{self.path} (on disk)", f"{self.path} (edited)")

    def disk_change(self) -> Literal["", "changed", "missing"]:
        """Return what happened to the file since it was read or written last; reads it."""
        now = self._on_disk()
        if now == self.opened:
            return ""
        return "missing" if now is None else "changed"

    def _on_disk(self) -> bytes | None:
        try:
            return read_bytes(self.path)
        except RecipeError:
            return None

    def save(self, *, even_broken: bool = False, accept_changes: bool = False) -> Saved:
        """Write the file atomically.

        Raises:
            ChangedOnDiskError: another program changed it since it was opened; `diff` shows how.
            EditRefusedError: the text is no YAML, and `even_broken` was not said.
            AttributesError: its owner or access rights would change, and `accept_changes` was not said.
            SaveError: the file system refuses; the old file is unchanged.
        """
        if not even_broken:
            self._valid()
        data = _encoded(self.text, self.path)
        saved = save(self.path, data, self.opened, accept_changes=accept_changes)
        self.opened = data
        return saved

    def reload(self) -> None:
        """Take the file's text as it is on disk, as one step: undo brings the edits back.

        Raises:
            RecipeError: the file cannot be read, or is no UTF-8 text.
        """
        data = read_bytes(self.path)
        self.take(read_text(self.state, decode(data, str(self.path))), label="reload")
        self.opened = data

    def keep_mine(self) -> None:
        """Take note of the file as it is on disk: the next `save` replaces it."""
        self.opened = self._on_disk()


def _setting(
    key: str, text: str, *, both: bool, write_out: bool, inherited: EffectiveRecipe | None
) -> Callable[[Document], None]:
    """Return the edit that sets a value as it is typed."""
    typed = read_typed(text)
    keys = [key, counterpart_of(key)] if both else [key]

    def edit(document: Document) -> None:
        with document.group():
            for name in filter(None, keys):
                set_here(
                    document,
                    name,
                    typed.value,
                    spelling=typed.spelling,
                    write_out=write_out or both,
                    inherited=inherited,
                )
                if typed.remark:
                    document.set_comment(name, typed.remark)

    return edit


def _adding(
    key: str, text: str, *, write_out: bool, inherited: EffectiveRecipe | None
) -> Callable[[Document], None]:
    """Return the edit that adds a key or a list item with a value as it is typed."""
    typed = read_typed(text)

    def edit(document: Document) -> None:
        with document.group():
            add_here(
                document,
                key,
                typed.value,
                spelling=typed.spelling,
                write_out=write_out,
                inherited=inherited,
            )
            if typed.remark:
                document.set_comment(key, typed.remark)

    return edit


def _encoded(text: str, path: Path) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        what = f"The text holds half a character (U+{ord(text[error.start]):04X}), which UTF-8 cannot hold"
        raise EditRefusedError(what, where=path, fix="Remove it.") from error
