"""Messages of the session's thread to the screen: what the text is now, and what the checks say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from recipes.editing.line_changes import LineChanges
from recipes.errors import ExplainedError

if TYPE_CHECKING:
    from launcher.overview.measured_memory import MeasuredEstimate
    from launcher.storage.drafts import Draft
    from recipes.editing import Analysis, EditState, Outline


NO_CHANGES = LineChanges(frozenset(), 0)


@dataclass(frozen=True, slots=True)
class SessionView:
    """What the screen shows of a session."""

    state: EditState
    dirty: bool
    changes: LineChanges
    can_undo: bool
    can_redo: bool
    unsaved_draft: bool = False
    """Whether the draft could not be kept, so that leaving would lose the edits."""


class SessionChanged(Message):
    """The text, or what is known of its file, changed; `done` says by what."""

    def __init__(self, view: SessionView, done: str) -> None:
        super().__init__()
        self.view, self.done = view, done


class AnalysisReady(Message):
    """The text was analysed; `preview`: with a value that is still being typed."""

    def __init__(self, analysis: Analysis, *, preview: bool) -> None:
        super().__init__()
        self.analysis, self.preview = analysis, preview


class MeasurementRead(Message):
    """The peak of an earlier run of the recipe was looked up; None: there is none."""

    def __init__(self, measured: MeasuredEstimate | None) -> None:
        super().__init__()
        self.measured = measured


class OutlineReady(Message):
    """The tree was read, the checks were not applied yet.

    `complete`: with what the checkout says of its keys. `painted` is to be called once it is shown.
    """

    def __init__(
        self, outline: Outline, *, complete: bool, painted: Callable[[], object] | None = None
    ) -> None:
        super().__init__()
        self.outline, self.complete, self.painted = outline, complete, painted


class PreviewRefused(Message):
    """The value that is being typed cannot stand there."""

    def __init__(self, error: ExplainedError) -> None:
        super().__init__()
        self.error = error


class JobFailed(Message):
    """A job could not be done, and changed nothing; `retry` is called with the error where there is one."""

    def __init__(self, error: ExplainedError, retry: Callable[[ExplainedError], None] | None) -> None:
        super().__init__()
        self.error, self.retry = error, retry


class SessionOpened(Message):
    """The file was read; `drafts` are unsaved edits of it that an editor left behind."""

    def __init__(self, drafts: tuple[Draft, ...]) -> None:
        super().__init__()
        self.drafts = drafts
