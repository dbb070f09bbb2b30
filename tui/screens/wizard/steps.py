"""The steps of the wizard on a screen: the form of each, and what is known beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen

from launcher.text import clean
from recipes.fields import field as field_of
from tui.commands import Scope, bindings
from tui.screens.dialogs import Ask, DialogChoice
from tui.screens.host import Host
from tui.screens.wizard.alternatives import choices_for
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    FieldNote,
    Step,
    WizardState,
    error_in,
    fields_of,
    note_on,
    results_on,
    step_state,
    steps_of,
    text_of,
    usual,
)
from tui.screens.wizard.pages import facts_of, hang, line, summary
from tui.screens.wizard.poller import DraftResolved, WizardPoller
from tui.widgets.form import Form, Go
from tui.widgets.keybar import KeyBar
from tui.widgets.styled_lines import StyledLines

_HERE = "bold $background on $primary"


class StepScreen(Screen[None]):
    """Asks for what a run needs, step by step, and tells what comes of it."""

    BINDINGS = bindings(Scope.WIZARD)
    PLACES = (Scope.WIZARD, Scope.APP)
    ABOUT = (
        "From nothing to a submitted run. Tab, ↑ and ↓ go through the fields, enter goes on. Nothing is "
        "submitted before the review, and nothing typed is lost by going back."
    )

    def __init__(self, host: Host, draft: WizardState | None = None) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-high")]
        self._host = host
        self._feed = WizardPoller(host.lookout, self)
        self.draft = draft or WizardState()
        self.seen = DraftStatus(self.draft)
        self.step: Step = STEPS[0]
        self.bar_first: tuple[str, ...] = ()
        self._laying_out = asyncio.Lock()
        self.title_line = StyledLines(classes="title-line")
        self.form = Form()
        self.facts = StyledLines()
        self.facts_box = VerticalScroll(self.facts, id="facts")
        self.help_line = StyledLines(id="wizard-help")
        self.summary = StyledLines(id="wizard-summary")

    def compose(self) -> ComposeResult:
        """Lay out."""
        yield self.title_line
        with Container(id="wizard"):
            with Vertical(id="wizard-left"):
                yield self.form
                yield self.help_line
            with Vertical(id="wizard-right"):
                yield self.facts_box
        yield self.summary
        yield KeyBar(*self.PLACES)

    async def on_mount(self) -> None:
        """Show the first step, and begin to look."""
        await self._show_step(self.step)
        self._feed.start()
        self._feed.consider(self.draft)
        self._feed.ask_slurm(refresh=False)

    def on_unmount(self) -> None:
        """End the thread."""
        self._feed.stop()

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.call_after_refresh(self._arrange)

    def on_descendant_focus(self) -> None:
        """Help with the field that has the keys now."""
        self._arrange()

    # ------------------------------------------------------------ what is typed, what is found out

    async def on_form_edited(self, event: Form.Edited) -> None:
        """Take what is typed."""
        event.stop()
        await self._take(
            self.draft.with_text(event.name, event.text, usual(event.name, self.draft, self.seen))
        )

    async def _take(self, draft: WizardState) -> None:
        self.draft = draft
        self._feed.consider(draft)
        await self._arrange_form()

    async def on_draft_resolved(self, event: DraftResolved) -> None:
        """Show what was found out."""
        event.stop()
        if event.seen.draft is self.draft:
            self.seen = event.seen
        await self._arrange_form()
        self.found_out(event.seen)

    def found_out(self, seen: DraftStatus) -> None:
        """Do what waited for something to be found out: for the review."""

    def review_lines(self) -> list[Content]:
        """Return the review."""
        return []

    async def _arrange_form(self) -> None:
        """Show the fields of this step, which depend on what is chosen, with what stands in them."""
        # Keys are handled on the app's task and messages on the screen's: one at a time.
        async with self._laying_out:
            fields = fields_of(self.step, self.draft, self.seen)
            if self.form.names != tuple(item.name for item in fields):
                await self.form.ask(fields)
            for row in self.form.rows:
                name = row.item.name
                note = note_on(row.item, self.draft, self.seen)
                values = tuple(choice.value for choice in choices_for(name, self.draft, self.seen))
                row.show(text_of(name, self.draft, self.seen), values, *self._beside(name, note))
        self._arrange()

    def _beside(self, name: str, note: FieldNote) -> tuple[str, str]:
        if note.text:
            return note.text, note.level
        chosen = text_of(name, self.draft, self.seen)
        if name in ("kind", "recipe"):
            known = (item for item in choices_for(name, self.draft, self.seen) if item.value == chosen)
            return next((item.about for item in known), ""), ""
        return "", ""

    # ------------------------------------------------------------ laying out

    async def _show_step(self, step: Step) -> None:
        self.step = step
        reviewing = step.id == "review"
        with self.app.batch_update():
            self.set_class(reviewing, "-review")
            await self._arrange_form()
        self.facts_box.scroll_home(animate=False)
        if reviewing:
            self.facts_box.focus()
        else:
            self.form.focus_first()

    def _arrange(self) -> None:
        if not self.is_attached:
            return
        self.bar_first = (
            ("wizard.submit", "wizard.when", "wizard.fix", "wizard.skip", "wizard.back")
            if self.step.id == "review"
            else ("wizard.back", "wizard.next", "wizard.choose")
        )
        self.title_line.say([self._title()])
        row = self.form.focused_row
        focused = row.item.name if row is not None else ""
        if self.step.id == "review":
            told = self.review_lines()
        else:
            told = facts_of(self.step.id, self.draft, self.seen, focused)
        width = self.facts_box.scrollable_content_region.width
        self.facts.say(hang(told, width) if width else told)
        self.help_line.say(self._help(focused))
        self.summary.say([summary(self.draft, self.seen).truncate(max(self.size.width, 1), ellipsis=True)])
        self._name_next()
        self.query_one(KeyBar).look_again()

    @property
    def _is_current(self) -> bool:
        return self.seen.draft is self.draft and self.seen.settled

    def _name_next(self) -> None:
        steps = steps_of(self.draft, self.seen)
        place = self._place(steps)
        self.form.go.say(f"Next: {steps[place + 1].title} →" if place + 1 < len(steps) else "Submit")

    def _title(self) -> Content:
        parts: list[tuple[str, str]] = [(" New run ", "bold $text-primary")]
        for number, step in enumerate(steps_of(self.draft, self.seen), 1):
            state = step_state(step, self.draft, self.seen) if self.seen.recipe is not None else ""
            glyph, style = {"error": ("✗", "$text-error"), "warn": ("!", "$text-warning"), "": ("", "")}[
                state
            ]
            here = step.id == self.step.id
            parts += [(f" {number} {step.title} ", _HERE if here else "dim"), (glyph, style)]
        return Content.assemble(*parts)

    def _help(self, focused: str) -> list[Content]:
        if not focused:
            return [Content("")]
        item = field_of(focused)
        lines = [line((item.help, "dim"))]
        error = error_in(item, self.draft, self.seen)
        if error:
            return [*lines, line((f"✗ {item.title}: {error}", "$text-error"))]
        for result in results_on(item, self.seen)[:1]:
            style = "$text-error" if result.outcome == "fail" else "$text-warning"
            return [*lines, line((f"{result.id} {clean(result.message)}", style))]
        note = note_on(item, self.draft, self.seen)
        return [*lines, line((clean(note.text), "$text-warning"))] if note.text else lines

    def _place(self, steps: Sequence[Step]) -> int:
        return next((place for place, step in enumerate(steps) if step.id == self.step.id), len(steps) - 1)

    # ------------------------------------------------------------ commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which commands are valid now."""
        reviewing = self.step.id == "review"
        row = self.form.focused_row
        if action == "next":
            return not reviewing
        if action == "choose":
            return row is not None and bool(choices_for(row.item.name, self.draft, self.seen))
        if action == "reset":
            return row is not None and row.item.name in self.draft.texts
        if action == "refresh_cluster":
            return self.step.id == "cluster"
        if action == "field":
            return not reviewing
        return True

    async def action_next(self) -> None:
        """Go to the next step."""
        steps = steps_of(self.draft, self.seen)
        place = self._place(steps)
        if place + 1 < len(steps):
            await self._show_step(steps[place + 1])

    async def action_back(self) -> None:
        """Go to the step before; from the first one to the list of runs, which keeps the draft."""
        steps = steps_of(self.draft, self.seen)
        place = self._place(steps)
        if place == 0:
            self._host.put_aside(self, self.draft)
        else:
            await self._show_step(steps[place - 1])

    async def on_go_pressed(self, event: Go.Pressed) -> None:
        """Go on."""
        event.stop()
        await self.action_next()

    def action_field(self, step: int) -> None:
        """Go to the field above or below."""
        if step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def on_form_choices_requested(self, event: Form.ChoicesRequested) -> None:
        """List what can be chosen."""
        event.stop()
        self._list(event.name)

    def action_choose(self) -> None:
        """List what can be chosen in the field."""
        row = self.form.focused_row
        if row is not None:
            self._list(row.item.name)

    def _list(self, name: str) -> None:
        choices = choices_for(name, self.draft, self.seen)
        present = text_of(name, self.draft, self.seen)
        width = max((len(choice.value) for choice in choices), default=0)
        options = [
            DialogChoice("", f"{choice.value or 'none':<{width}}  {choice.about}".rstrip(), choice.value)
            for choice in choices
        ]
        chosen = next((place for place, item in enumerate(choices) if item.value == present), 0)

        async def take(value: str | None) -> None:
            if value is not None:
                await self._take(self.draft.with_text(name, value, usual(name, self.draft, self.seen)))

        self.app.push_screen(Ask(field_of(name).title, "", options, chosen=chosen), take)

    async def action_reset(self) -> None:
        """Take back what was typed in the field."""
        row = self.form.focused_row
        if row is not None:
            texts = {name: text for name, text in self.draft.texts.items() if name != row.item.name}
            await self._take(WizardState(texts, self.draft.overrides, self.draft.skipped))

    def action_refresh_cluster(self) -> None:
        """Ask Slurm again."""
        self._feed.ask_slurm(refresh=True)
