"""Parts of the doctor's screen: the list of checks, a verdict in full, and commands on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from textual.binding import Binding

from launcher.doctor.fixing import TerminalOpener, run_step, run_step_there
from launcher.text import clean
from tui.widgets.choice_list import ChoiceList, ListChoice
from tui.widgets.fact_lines import Fact

if TYPE_CHECKING:
    from launcher.doctor.fixing import FixStep
    from launcher.doctor.verdict import Examination


class CheckList(ChoiceList, can_focus=True):
    """The checks; the arrows move the cursor."""

    BINDINGS = [  # noqa: RUF012 - as Textual declares it
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
        Binding("pageup", "step(-10)", "Page up", show=False),
        Binding("pagedown", "step(10)", "Page down", show=False),
        Binding("home", "step(-1000)", "First", show=False),
        Binding("end", "step(1000)", "Last", show=False),
    ]
    DEFAULT_CSS = "CheckList { height: 1fr; }"

    def action_step(self, rows: int) -> None:
        """Move the cursor."""
        self.move(rows)
        self.post_message(self.Moved())


def print_line(line: str) -> None:
    """Print a line on the terminal while the screen is suspended."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_on_terminal(
    chosen: Sequence[FixStep], tell: Callable[[str], None], opener: TerminalOpener | None = None
) -> list[int]:
    """Run commands one after the other and return their exit codes; an interrupt ends them.

    `opener` is the host that they run on; None for this machine.

    Raises:
        TransportError: the host cannot be reached.
    """
    codes = []
    for number, step in enumerate(chosen, 1):
        tell(f"\n[{number}/{len(chosen)}] {step.command}")
        try:
            codes.append(
                run_step(step, os.environ)
                if opener is None
                else run_step_there(step, opener, sys.stdout.fileno())
            )
        except KeyboardInterrupt:
            tell("interrupted; the same command goes on where it was")
            codes.append(130)
            break
        tell("done" if codes[-1] == 0 else f"exit code {codes[-1]}")
    return codes


def check_choice(item: Examination) -> ListChoice:
    """Return a verdict as a row of the list."""
    return ListChoice(
        f"{item.check.id} {item.check.title}", item.verdict.evidence, item.verdict.outcome, item.check.id
    )


def verdict_facts(item: Examination, titles: Mapping[str, str]) -> list[Fact]:
    """Return a verdict in full; `titles` are those of the failures that checks foretell."""
    facts = [Fact("evidence", clean(item.verdict.evidence))]
    remedy = item.verdict.remedy
    if remedy is not None and item.verdict.outcome != "pass":
        facts += [Fact("fix", clean(command), "$text-primary") for command in remedy.commands]
        if remedy.changes:
            facts.append(Fact("changes", clean(remedy.changes)))
    facts += [
        Fact("foretells", f"{titles[name]} ({name})" if name in titles else name, "dim")
        for name in item.check.foretells
    ]
    return facts
