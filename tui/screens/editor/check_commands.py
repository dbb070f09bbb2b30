"""The editor's commands on findings and memory: fixes, what would fit, and the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.screens.editor.editor_choices import PLACE_HINT, change_choice, fix_choice, placement_of
from tui.screens.editor.preflight_lines import placement_text
from tui.widgets.entry_dialog import EntryDialog, EntryRequest

if TYPE_CHECKING:
    from recipes.checks import Result
    from recipes.editing import Analysis, EditSession, FittingChange
    from recipes.planning import Fix
    from tui.screens.editor.editor_layout import EditorLayout


class CheckCommands:
    """Commands of one editor on what its checks say."""

    def __init__(self, screen: EditorLayout) -> None:
        self._screen = screen

    def finding(self) -> Result | None:
        """Return the finding that `f` is about: the selected one, or the first on the current key."""
        screen = self._screen
        if screen.pane == "checks":
            return screen.current_finding
        row = screen.row
        if screen.analysis is None or row is None:
            return None
        on_key = [item for item in screen.analysis.findings_on(row.key) if item.outcome in ("fail", "warn")]
        return on_key[0] if on_key else None

    def is_fixable(self) -> bool:
        """Return whether an edit is proposed for the finding that `f` is about."""
        finding = self.finding()
        return finding is not None and any(fix.edits for fix in finding.fixes)

    def is_overfull(self) -> bool:
        """Return whether a phase does not fit."""
        memory = self._screen.analysis.memory if self._screen.analysis is not None else None
        return memory is not None and not memory.fits

    # ------------------------------------------------------------ fixes

    def fix(self) -> None:
        """Apply the first fix of the finding."""
        self._with_fixes(lambda result, fixes: self._apply_fix(result, fixes[0]))

    def choose_fix(self) -> None:
        """Choose among the fixes of the finding."""

        def choose(result: Result, fixes: tuple[Fix, ...]) -> None:
            choices = tuple(fix_choice(fix, index) for index, fix in enumerate(fixes))
            self._screen.app.push_screen(
                EntryDialog(EntryRequest(f"Fixes of {result.id}", "", result.message, choices, choose=True)),
                lambda answer: self._apply_fix(result, fixes[int(answer)]) if answer is not None else None,
            )

        self._with_fixes(choose)

    def _with_fixes(self, use: Callable[[Result, tuple[Fix, ...]], None]) -> None:
        result = self.finding()
        if result is None:
            return

        def answered(fixes: tuple[Fix, ...]) -> None:
            if fixes:
                use(result, fixes)
            else:
                self._screen.message.say(
                    f"{result.id}: no edit of the recipe alone repairs this: {result.message}", "warn"
                )

        self._screen.worker.ask_first(lambda analyser, analysis: analyser.fixes(analysis, result), answered)

    def _apply_fix(self, result: Result, fix: Fix) -> None:
        self._apply(fix, f"fixed {result.id}: {fix.title} (u undoes)")

    def _apply(self, fix: Fix, done: str) -> None:
        def edit(session: EditSession, analysis: Analysis) -> str:
            session.apply(fix.edits, fix.title, inherited=analysis.recipe)
            return done

        self._screen.worker.edit(edit)

    # ------------------------------------------------------------ findings

    def next_finding(self, step: int) -> None:
        """Go to the next finding's key."""
        screen = self._screen
        if screen.findings:
            screen.finding_list.cursor = (screen.finding_list.cursor + step) % len(screen.findings)
            screen.finding_list.move(0)
            self.go_to_finding()

    def go_to_finding(self) -> None:
        """Go to the key of the selected finding; one without a key is shown in the list."""
        screen, finding = self._screen, self._screen.current_finding
        if finding is None:
            return
        if finding.where and screen.go_to(finding.where[0].key):
            screen.action_show_pane("tree")
        screen.message.say(f"{finding.id} {finding.message}", finding.outcome)

    # ------------------------------------------------------------ memory

    def what_would_fit(self) -> None:
        """List the cheapest changes that fit, and apply the chosen one."""
        screen = self._screen
        screen.message.say("looking for what would fit …")

        def offer(changes: tuple[FittingChange, ...]) -> None:
            if not changes:
                screen.message.say(
                    "no change that was tried fits: more nodes, or GPUs with more memory (p)", "warn"
                )
                return
            screen.message.say("")
            choices = tuple(change_choice(change, index) for index, change in enumerate(changes))
            screen.app.push_screen(
                EntryDialog(EntryRequest("What would fit, cheapest first", choices=choices, choose=True)),
                lambda answer: self._apply_change(changes[int(answer)]) if answer is not None else None,
            )

        screen.worker.ask_first(lambda analyser, analysis: analyser.what_would_fit(analysis), offer)

    def _apply_change(self, change: FittingChange) -> None:
        screen = self._screen
        if change.placement != screen.placement:
            self._place(change.placement.nodes, change.placement.gpus_per_node)
        self._apply(change.fix, f"applied: {change.fix.title} (u undoes)")

    def _place(self, nodes: int | None, gpus_per_node: int | None) -> None:
        screen = self._screen
        screen.placement = replace(screen.placement, nodes=nodes, gpus_per_node=gpus_per_node)
        screen.worker.place(screen.placement)

    def change_place(self) -> None:
        """Ask for nodes, GPUs and memory."""
        screen = self._screen
        present = placement_text(screen.placement, screen.analysis)
        present = present.replace("×", "x").replace(" GPUs", "").replace(" GiB", "")

        def answered(text: str | None) -> None:
            if text is None:
                return
            placement = placement_of(text)
            if placement is None:
                screen.message.say(f"invalid place: '{text}' (expected {PLACE_HINT})", "fail")
                return
            screen.placement = placement
            screen.worker.place(placement)

        screen.app.push_screen(EntryDialog(EntryRequest("Place", present, PLACE_HINT)), answered)
