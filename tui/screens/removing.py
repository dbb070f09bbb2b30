"""Removal of runs with their directories, of drafts and of remembered jobs, after a question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.screen import Screen

from launcher.overview.rows import RunRow
from recipes.errors import ExplainedError
from tui.background import call_on, in_background
from tui.formatting import file_size, plural
from tui.screens.dialogs import ChoiceDialog, DialogChoice

if TYPE_CHECKING:
    from launcher.storage.run_edits import RunSize
    from tui.work_machine import WorkMachine

_LISTED = 6


@dataclass(frozen=True, slots=True)
class Removal:
    """What of some rows can be removed."""

    runs: tuple[RunRow, ...]
    """Runs that have ended."""
    drafts: tuple[RunRow, ...]
    jobs: tuple[RunRow, ...]
    """Jobs of other programs that are over: they are forgotten."""
    kept: int
    """Number of runs that have not ended, or of which that is not known."""

    @classmethod
    def of(cls, rows: Sequence[RunRow]) -> Removal:
        """Sort rows."""
        runs = [row for row in rows if row.is_run]
        ended = tuple(row for row in runs if row.removable)
        return cls(
            ended,
            tuple(row for row in rows if row.draft),
            tuple(row for row in rows if row.is_job and row.removable),
            len(runs) - len(ended),
        )

    def __bool__(self) -> bool:
        """Return whether there is anything to remove."""
        return bool(self.runs or self.drafts or self.jobs)

    @property
    def title(self) -> str:
        """The question."""
        runs, drafts = len(self.runs), len(self.drafts)
        if not drafts:
            return "Remove this run?" if runs == 1 else f"Remove {plural(runs, 'run')}?"
        if not runs:
            return "Discard this draft?" if drafts == 1 else f"Discard {plural(drafts, 'draft')}?"
        return f"Remove {plural(runs, 'run')} and discard {plural(drafts, 'draft')}?"

    def text(self, sizes: Sequence[RunSize]) -> str:
        """Return what would be lost; `sizes` are those of the runs."""
        lines = [
            f"{row.name}  {row.id}  {file_size(size.bytes)}"
            for row, size in zip(self.runs, sizes, strict=True)
        ]
        lines += [f"{row.name}  {row.reason}" for row in self.drafts]
        more = [f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
        last = []
        if self.runs:
            last.append(
                f"{total_size(sizes)} on disk. Logs, settings, and checkpoints inside its directory are lost."
            )
        if self.kept:
            last.append(f"{plural(self.kept, 'run')} that may still run: kept.")
        return "\n".join((*lines[:_LISTED], *more, "", *last)).rstrip()


def total_size(sizes: Sequence[RunSize]) -> str:
    """Return the size of runs together."""
    least = "" if all(size.complete for size in sizes) else "at least "
    return f"{least}{file_size(sum(size.bytes for size in sizes))}"


class Remover:
    """Removal from a screen.

    `machine` returns a machine by name, `note` shows a sentence, `done` is called from a thread with
    what was done.
    """

    def __init__(
        self,
        screen: Screen[None],
        machine: Callable[[str], WorkMachine],
        *,
        note: Callable[[str], None],
        done: Callable[[str], None],
        failed: Callable[[ExplainedError], None],
    ) -> None:
        self._screen = screen
        self._machine = machine
        self._note = note
        self._done = done
        self._failed = failed

    def remove(self, rows: Sequence[RunRow]) -> None:
        """Ask with the size, and remove; what is remembered of jobs is forgotten without a question."""
        removal = Removal.of(rows)
        if removal.jobs:
            self._forget(removal.jobs)
        if not removal.runs and not removal.drafts:
            return

        def measure() -> None:
            from launcher.storage.run_edits import size_of

            sizes = [size_of(self._machine(row.host).transport(), row.directory) for row in removal.runs]
            call_on(self._screen, partial(self._ask, removal, sizes))

        if removal.runs:
            self._note("counting the size on disk …")
        in_background(measure, "size", self._failed)

    def _ask(self, removal: Removal, sizes: Sequence[RunSize]) -> None:
        self._note("")
        choices = [
            DialogChoice("y", "remove for good" if removal.runs else "discard", "remove"),
            DialogChoice("n", "keep", "keep"),
        ]

        def answered(answer: str | None) -> None:
            if answer == "remove":
                in_background(lambda: self._remove(removal, sizes), "remove", self._failed)

        dialog = ChoiceDialog(removal.title, removal.text(sizes), choices, chosen=1)
        self._screen.app.push_screen(dialog, answered)

    def _remove(self, removal: Removal, sizes: Sequence[RunSize]) -> None:
        from launcher.overview.draft_rows import discard_draft
        from launcher.storage.run_edits import remove_run

        for row, size in zip(removal.runs, sizes, strict=True):
            remove_run(self._machine(row.host).transport(), row.directory, size.directory)
        for row in removal.drafts:
            discard_draft(row)
        parts = [f"removed {plural(len(removal.runs), 'run')}, {total_size(sizes)}"] if removal.runs else []
        parts += [f"discarded {plural(len(removal.drafts), 'draft')}"] if removal.drafts else []
        self._done("; ".join(parts))

    def _forget(self, rows: Sequence[RunRow]) -> None:
        def forget_all() -> None:
            from launcher.overview.job_rows import forget, remembered_file

            for row in rows:
                forget(remembered_file(), row.job)
            self._done(f"forgot {plural(len(rows), 'job')}")

        in_background(forget_all, "forget", self._failed)
