"""The thread that owns an edit session: edits, analyses, drafts and queries, in the order of the requests.

The event loop never touches the session: it sends jobs, and gets views and analyses as messages. An analysis
is given up as soon as a job waits that changes what is analysed, so that the latest text is analysed next.
"""

from __future__ import annotations

import gc
import os
import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.message_pump import MessagePump

from recipes.errors import ExplainedError
from recipes.remote_path import environment_at, machine_of, on_machine_of
from tui.background import call_on, post
from tui.screens.editor.job_thread import JobThread, Retry
from tui.screens.editor.key_holds import CHOOSING_KEYS, LIST_KEYS, KeyHolds
from tui.screens.editor.session_messages import (
    NO_CHANGES,
    AnalysisReady,
    JobFailed,
    MeasurementRead,
    OutlineReady,
    PreviewRefused,
    SessionChanged,
    SessionOpened,
    SessionView,
)

if TYPE_CHECKING:
    from launcher.storage.drafts import Draft
    from recipes.editing import Analysis, EditSession, EditState, Outline, Placement, RecipeAnalyser

_PAINT_S = 0.5
"""Longest wait until the tree is painted, before checks share the interpreter with the painting."""
Cancelled = Callable[[], bool]
Answer = TypeVar("Answer")
_END_S = 2.0
"""Longest wait for the last jobs when an editor is closed."""
_DRAFT_FIRST_S = 0.5
"""Longest wait for the draft before an analysis: a state directory that hangs must not hold it up."""


@dataclass(frozen=True)
class OpenedFile:
    """File to edit, and what its analysis counts on."""

    path: Path
    overrides: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    draft: str = ""
    """File of the unsaved edits to go on with; without it, the newest ones are offered."""

    @classmethod
    def at(cls, path: Path, overrides: tuple[str, ...] = (), draft: str = "") -> OpenedFile:
        """Return a file with the environment of its machine."""
        return cls(path, overrides, dict(environment_at(path)), draft)


class SessionWorker(JobThread):
    """Owns the session and its analyser."""

    def __init__(self, target: MessagePump, file: OpenedFile, placement: Placement) -> None:
        super().__init__("editor")
        self._target = target
        self._file = file
        self._placement = placement
        self._typed: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()
        self._session: EditSession | None = None
        self._analyser: RecipeAnalyser | None = None
        self._analysis: Analysis | None = None
        self._preview: EditState | None = None
        self._offer: Callable[[], None] | None = None
        """A query to answer while no job waits."""
        self.holds = KeyHolds()
        self._offer_hold = 0
        self._stale = False
        """Whether the session changed since the last analysis."""
        self._measured_about: tuple[object, ...] | None = None
        """Nodes and models of the measurement."""
        self._opened: bytes | None = None
        """Bytes of the file that the session counts from."""

    # ------------------------------------------------------------ jobs, from the event loop

    def start(self) -> None:
        """Read the file, and look for drafts of it."""
        self._put(self._open)
        self._begin()

    def open_again(self) -> None:
        """Read the file once more, which could not be read."""
        self._put(self._open)

    def wait(self) -> None:
        """Wait for the end of the thread, so that the app does not end before the draft is written."""
        self._wait(_END_S)

    def edit(
        self,
        action: Callable[[EditSession, Analysis], str],
        retry: Retry | None = None,
    ) -> None:
        """Edit the session; `action` returns words for what was done."""

        def run() -> None:
            session = self._current_session
            self._changed(session, action(session, self._current_analysis))

        self._put(run, retry, supersedes=True)
        self._hold_until_analysed()

    def type_text(self, text: str, *, merge_step: bool) -> None:
        """Take the text of the text mode; of texts that wait only the last is read.

        It is a draft at once: reading it takes longer than the next key press may leave.
        """
        if self._session is not None:
            self._writer.put(text, self._opened)
        self._typed.put((text, merge_step))
        self._put(self._take_typed, supersedes=True)

    def preview(self, key: str, text: str | None, *, adding: bool = False) -> None:
        """Analyse the recipe as it would be with a typed value; None: as it is again."""

        def run() -> None:
            session = self._current_session
            analysis, self._preview = self._current_analysis, None
            if text is None:
                post(self._target, AnalysisReady(analysis, preview=False))
                return
            try:
                self._preview = session.preview_text(key, text, adding=adding, inherited=analysis.recipe)
            except ExplainedError as error:
                post(self._target, PreviewRefused(error))

        self._put(run, supersedes=True)

    def place(self, placement: Placement) -> None:
        """Analyse for another place."""

        def run() -> None:
            self._placement, self._stale = placement, True

        self._put(run, supersedes=True)
        self._hold_until_analysed()

    def ask(
        self, query: Callable[[RecipeAnalyser, Analysis], Answer], answered: Callable[[Answer], None]
    ) -> None:
        """Ask the analyser; `answered` is called on the event loop."""
        self._put(lambda: self._answer(query, answered))

    def ask_first(
        self, query: Callable[[RecipeAnalyser, Analysis], Answer], answered: Callable[[Answer], None]
    ) -> None:
        """Ask the analyser; keys wait for the answer."""
        self._holding(lambda: self._answer(query, answered))

    def search(
        self, query: Callable[[RecipeAnalyser, Analysis], Answer], answered: Callable[[Answer], None]
    ) -> None:
        """Ask for the choices of a dialog; the keys that choose among them wait for the answer."""
        self._holding(lambda: self._answer(query, answered), CHOOSING_KEYS)

    def offer(
        self,
        query: Callable[[RecipeAnalyser, Analysis, Cancelled], Answer],
        answered: Callable[[Answer], None],
    ) -> None:
        """Ask for choices that take a while: while no job waits, and again after one that came between."""
        self.withdraw_offer()
        self._offer_hold = number = self.holds.hold(LIST_KEYS)

        def run() -> None:
            assert self._analyser is not None
            answer = query(self._analyser, self._current_analysis, self._is_superseded)
            self._offer = None
            call_on(self._target, lambda: answered(answer))
            call_on(self._target, lambda: self.holds.release(number))

        def begin() -> None:
            self._offer = run

        self._put(begin)

    def withdraw_offer(self) -> None:
        """Forget the query for choices: nobody waits for its answer."""
        self.holds.release(self._offer_hold)

        def withdraw() -> None:
            self._offer = None

        self._put(withdraw)

    def with_session(
        self, query: Callable[[EditSession], Answer], answered: Callable[[Answer], None]
    ) -> None:
        """Ask the session; `answered` is called on the event loop."""
        self._put(lambda: self._answer_by_session(query, answered))

    def with_session_first(
        self, query: Callable[[EditSession], Answer], answered: Callable[[Answer], None]
    ) -> None:
        """Ask the session; keys wait for the answer."""
        self._holding(lambda: self._answer_by_session(query, answered))

    def _holding(self, run: Callable[[], None], keys: frozenset[str] | None = None) -> None:
        """Have a job done; keys wait until its answer has been used."""
        number = self.holds.hold(keys)

        def release_after() -> None:
            try:
                run()
            finally:
                call_on(self._target, lambda: self.holds.release(number))

        self._put(release_after)

    def _hold_until_analysed(self) -> None:
        """Hold keys back until the analysis of the text as it is after the jobs so far has been shown."""

        def analyse() -> None:
            if self._session is not None:
                self._writer.flush(_DRAFT_FIRST_S)
                _ = self._current_analysis

        self._holding(analyse)

    def discard_orphan(self, draft: Draft) -> None:
        """Forget a draft that an editor left behind."""
        self._put(lambda: self._drafts.discard(draft))

    # ------------------------------------------------------------ on the thread

    def _answer(
        self, query: Callable[[RecipeAnalyser, Analysis], Answer], answered: Callable[[Answer], None]
    ) -> None:
        assert self._analyser is not None
        answer = query(self._analyser, self._current_analysis)
        call_on(self._target, lambda: answered(answer))

    def _answer_by_session(
        self, query: Callable[[EditSession], Answer], answered: Callable[[Answer], None]
    ) -> None:
        answer = query(self._current_session)
        call_on(self._target, lambda: answered(answer))

    @property
    def _current_session(self) -> EditSession:
        assert self._session is not None, "jobs follow the opening"
        return self._session

    @property
    def _current_analysis(self) -> Analysis:
        """The analysis of the present text: an edit needs the recipe that the text gives now."""
        if self._analysis is None or self._stale:
            self._analyse(self._current_session.state, patient=True)
        assert self._analysis is not None
        return self._analysis

    def _failed(self, error: ExplainedError, retry: Retry | None) -> None:
        post(self._target, JobFailed(error, retry))

    def _end(self) -> None:
        if self._session is not None:
            self._flush()
            self._writer.close()

    def _open(self) -> None:
        """Read the file and show its tree; what is not needed for that is imported behind it."""
        from recipes.editing import EditSession, RecipeAnalyser

        file = self._file
        session = EditSession.open(file.path)
        analyser = RecipeAnalyser(
            file.path,
            checkout=checkout_for(file.path, file.environment),
            environment=file.environment,
            overrides=file.overrides,
        )
        view = SessionView(session.state, dirty=False, changes=NO_CHANGES, can_undo=False, can_redo=False)
        post(self._target, SessionChanged(view, ""))
        self._show_outline(analyser.first_outline(session.state))
        self._open_drafts(session)
        self._analyser, self._session, self._stale = analyser, session, True

    def _open_drafts(self, session: EditSession) -> None:
        from launcher.storage.drafts import DraftStore

        file = self._file
        # Drafts of a host's recipes, too, are kept here.
        self._drafts = DraftStore.of(os.environ if machine_of(file.path) else file.environment)
        self._writer = self._drafts.writer(file.path)
        self._opened = session.opened
        drafts = tuple(
            draft for draft in self._drafts.orphans(file.path) if draft.differs_from(session.opened or b"")
        )
        post(self._target, SessionOpened(drafts))

    def _take_typed(self) -> None:
        text, merge_step = None, True
        while not self._typed.empty():
            text, merges = self._typed.get()
            merge_step = merge_step and merges
        self._writer.flush(_DRAFT_FIRST_S)
        if text is not None and text != self._current_session.text:
            self._current_session.replace_text(text, merge_step=merge_step)
            self._changed(self._current_session, "")

    def _changed(self, session: EditSession, done: str, *, edited: bool = True) -> None:
        self._opened = session.opened
        if edited:
            self._stale, self._preview = True, None
            self._keep_draft(session)
        view = SessionView(
            session.state,
            session.dirty,
            session.changes() if session.dirty else NO_CHANGES,
            session.can_undo,
            session.can_redo,
            self._writer.error is not None and session.dirty,
        )
        post(self._target, SessionChanged(view, done))

    def _keep_draft(self, session: EditSession) -> None:
        if session.dirty:
            self._writer.put(session.text, session.opened)
        else:
            self._writer.discard()

    def _flush(self) -> None:
        """Wait for the draft; where it could not be written, the screen says so before the edits are lost."""
        if not self._writer.flush() or self._writer.error is not None:
            self._changed(self._current_session, "", edited=False)

    def _catch_up(self) -> None:
        """Analyse what changed, unless another job waits.

        The draft goes first: its thread would otherwise share the interpreter with the analysis.
        """
        if self._session is None:
            return
        self._writer.flush(_DRAFT_FIRST_S)
        if self._preview is not None:
            self._analyse(self._preview, preview=True)
        elif self._stale:
            self._analyse(self._current_session.state)
        if self._offer is not None and self._is_idle:
            self._make_offer(self._offer)

    def _make_offer(self, offer: Callable[[], None]) -> None:
        from recipes.editing import SupersededError

        try:
            offer()
        except SupersededError:
            return  # a job came between: the offer is made behind it
        except ExplainedError:
            self._offer = None
            raise

    def _analyse(self, state: EditState, *, preview: bool = False, patient: bool = False) -> None:
        from recipes.editing import SupersededError, prepare_reading
        from recipes.editing.predictor import never

        assert self._analyser is not None
        cancelled = never if patient else self._is_superseded
        try:
            analysis = self._analyser.update(
                state,
                self._placement,
                cancelled=cancelled,
                outlined=self._outlined if self._analysis is None else None,
            )
        except SupersededError:
            return
        if preview:
            self._preview = None
        else:
            if self._analysis is None:
                # What was read so far stays. Scanning it as garbage held the screen for 110 to 220 ms.
                gc.freeze()
                self._put(prepare_reading)
            self._analysis, self._stale = analysis, False
        post(self._target, AnalysisReady(analysis, preview=preview))
        self._look_for_measurement(analysis)

    def _look_for_measurement(self, analysis: Analysis) -> None:
        """Have the peak of an earlier run looked up, again where nodes or models are other ones."""
        from launcher.overview.measured_memory import measured_here, models_in

        recipe, path = analysis.recipe, self._file.path
        about = (recipe.get("cluster.num_nodes"), *models_in(recipe))
        if analysis.memory is not None and about != self._measured_about:
            self._measured_about = about
            self._put(lambda: post(self._target, MeasurementRead(measured_here(recipe, path))))

    def _show_outline(self, outline: Outline) -> None:
        """Show the first tree, and wait until it is painted: what follows would share the interpreter."""
        painted = threading.Event()
        post(self._target, OutlineReady(outline, complete=False, painted=painted.set))
        painted.wait(_PAINT_S)

    def _outlined(self, outline: Outline) -> None:
        post(self._target, OutlineReady(outline, complete=True))


def checkout_for(path: Path, environment: Mapping[str, str]) -> Path | None:
    """Return the checkout that a recipe is edited for: $NEMO_RL_ROOT, else the one that holds the file."""
    from recipes.schema.algorithms import holding_checkout

    named = environment.get("NEMO_RL_ROOT")
    return on_machine_of(path, named).expanduser().absolute() if named else holding_checkout(path)
