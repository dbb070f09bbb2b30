"""The wizard's steps on a screen: the form of each, and the facts beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen

from launcher.fields import field as field_of
from launcher.text import clean
from tui.commands import Scope, bindings
from tui.screens.dialogs import ChoiceDialog, DialogChoice
from tui.screens.host import Host
from tui.screens.wizard.alternatives import FieldChoice, choices_for
from tui.screens.wizard.findings import MARKS, Assessment, assess
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    Step,
    WizardState,
    default_text,
    fields_of,
    steps_of,
    text_of,
)
from tui.screens.wizard.pages import facts_of, line, step_list, summary, wrap_hanging
from tui.screens.wizard.poller import DraftResolved, WizardPoller
from tui.widgets.form import Form, NextButton
from tui.widgets.keybar import KeyBar
from tui.widgets.styled_lines import StyledLines


class FactsBox(VerticalScroll):
    """Facts, or the review: the page keys scroll it, also where nothing is left to scroll."""

    def action_page_up(self) -> None:
        """Scroll up."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """Scroll down."""
        self.scroll_page_down(animate=False)


class StepScreen(Screen[None]):
    """Edits a wizard state step by step."""

    BINDINGS = bindings(Scope.WIZARD)
    SCOPES = (Scope.WIZARD, Scope.APP)
    ABOUT = (
        "Prepares and submits a run. Tab, ↑ and ↓ move between fields, enter goes to the next step. Nothing "
        "is submitted before the review, and going back loses nothing that was typed."
    )

    def __init__(self, host: Host, state: WizardState | None = None) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (32, "-high")]
        self._host = host
        self._poller = WizardPoller(host.draft_resolver, self)
        self.wizard_state = state or WizardState()
        self.status = DraftStatus(self.wizard_state)
        self.assessment = Assessment()
        self.step: Step = STEPS[0]
        self.footer_first: tuple[str, ...] = ()
        self._form_lock = asyncio.Lock()
        self.title_line = StyledLines(classes="title-line")
        self.form = Form()
        self.facts = StyledLines()
        self.facts_box = FactsBox(self.facts, id="facts")
        self.help_line = StyledLines(id="wizard-help")
        self.summary = StyledLines(id="wizard-summary")

    def compose(self) -> ComposeResult:
        """Create the widgets."""
        yield self.title_line
        with Container(id="wizard"):
            with Vertical(id="wizard-left"):
                yield self.form
                yield self.help_line
            with Vertical(id="wizard-right"):
                yield self.facts_box
        yield self.summary
        yield KeyBar(*self.SCOPES)

    async def on_mount(self) -> None:
        """Show the first step, and start resolving."""
        await self._show_step(self.step)
        self._poller.start()
        self._poller.resolve(self.wizard_state)
        self._poller.ask_slurm(refresh=False)

    def on_unmount(self) -> None:
        """End the thread."""
        self._poller.stop()

    def on_resize(self) -> None:
        """Redraw for the new size."""
        self.call_after_refresh(self._refresh_view)

    def on_descendant_focus(self) -> None:
        """Show the help of the focused field."""
        self._refresh_view()

    # ------------------------------------------------------------ state and status

    async def on_form_edited(self, event: Form.Edited) -> None:
        """Take the edited text into the state."""
        event.stop()
        await self._set_state(
            self.wizard_state.with_text(
                event.name, event.text, default_text(event.name, self.wizard_state, self.status)
            )
        )

    async def _set_state(self, state: WizardState) -> None:
        self.wizard_state = state
        self._poller.resolve(state)
        await self._refresh_form()

    async def on_draft_resolved(self, event: DraftResolved) -> None:
        """Show the new status."""
        event.stop()
        if event.status.state is self.wizard_state:
            self.status = event.status
        await self._refresh_form()
        self.status_changed(event.status)

    def status_changed(self, status: DraftStatus) -> None:
        """React to a new status; the review overrides this."""

    def review_lines(self) -> list[Content]:
        """Return the review."""
        return []

    async def _refresh_form(self) -> None:
        """Show the fields of this step, which depend on the state, with their texts."""
        # Keys are handled on the app's task and messages on the screen's: one at a time.
        async with self._form_lock:
            self.assessment = assess(self.wizard_state, self.status)
            fields = fields_of(self.step, self.wizard_state, self.status)
            if self.form.names != tuple(item.name for item in fields):
                await self.form.set_fields(fields)
            for row in self.form.rows:
                name = row.item.name
                values = tuple(choice.value for choice in choices_for(name, self.wizard_state, self.status))
                row.show(text_of(name, self.wizard_state, self.status), values, *self._annotation(name))
        self._refresh_view()

    def _annotation(self, name: str) -> tuple[str, str]:
        for finding in self.assessment.on_field(name):
            return finding.text, finding.level
        chosen = text_of(name, self.wizard_state, self.status)
        if name == "recipe":
            return self.status.recipe_source, ""
        if name == "kind":
            chosen_items = (
                item for item in choices_for(name, self.wizard_state, self.status) if item.value == chosen
            )
            return next((item.description for item in chosen_items), ""), ""
        return "", ""

    # ------------------------------------------------------------ rendering

    async def _show_step(self, step: Step) -> None:
        self.step = step
        reviewing = step.id == "review"
        with self.app.batch_update():
            self.set_class(reviewing, "-review")
            await self._refresh_form()
        self.facts_box.scroll_home(animate=False)
        if reviewing:
            self.set_focus(self.facts_box)
        else:
            self.form.focus_first()

    def _refresh_view(self) -> None:
        if not self.is_attached:
            return
        self.footer_first = (
            ("wizard.submit", "wizard.when", "wizard.fix", "wizard.skip", "wizard.environment", "wizard.back")
            if self.step.id == "review"
            else ("wizard.back", "wizard.next", "wizard.choose")
        )
        self.title_line.set_lines([step_list(self.step.id, self.wizard_state, self.status, self.assessment)])
        row = self.form.focused_row
        focused = row.item.name if row is not None else ""
        if self.step.id == "review":
            lines = self.review_lines()
        else:
            lines = facts_of(self.step.id, self.wizard_state, self.status, focused, self.assessment)
        width = self.facts_box.scrollable_content_region.width
        self.facts.set_lines(wrap_hanging(lines, width) if width else lines)
        self.help_line.set_lines(self._help(focused))
        self.summary.set_lines(
            [summary(self.status, self.assessment).truncate(max(self.size.width, 1), ellipsis=True)]
        )
        self._label_go_button()
        self.query_one(KeyBar).update_keys()

    @property
    def _is_current(self) -> bool:
        return self.status.state is self.wizard_state and self.status.settled

    def _label_go_button(self) -> None:
        steps = steps_of(self.wizard_state, self.status)
        index = self._step_index(steps)
        label = f"Next: {steps[index + 1].title} →" if index + 1 < len(steps) else "Submit"
        self.form.next_button.set_label(label)

    def _help(self, focused: str) -> list[Content]:
        if not focused:
            return [Content("")]
        item = field_of(focused)
        lines = [line((item.help, "dim"))]
        for finding in self.assessment.on_field(focused):
            glyph, style = MARKS[finding.level]
            lines.append(line((f"{glyph} {clean(finding.text)}", style)))
        return lines

    def _step_index(self, steps: Sequence[Step]) -> int:
        return next((index for index, step in enumerate(steps) if step.id == self.step.id), len(steps) - 1)

    # ------------------------------------------------------------ commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        reviewing = self.step.id == "review"
        row = self.form.focused_row
        if action == "next":
            return not reviewing
        if action == "choose":
            return row is not None and bool(choices_for(row.item.name, self.wizard_state, self.status))
        if action == "reset":
            return row is not None and row.item.name in self.wizard_state.texts
        if action == "refresh_cluster":
            return self.step.id == "cluster"
        if action == "field":
            return not reviewing
        return True

    async def action_next(self) -> None:
        """Go to the next step."""
        steps = steps_of(self.wizard_state, self.status)
        index = self._step_index(steps)
        if index + 1 < len(steps):
            await self._show_step(steps[index + 1])

    async def action_back(self) -> None:
        """Go to the previous step; from the first one to the list of runs, which keeps the state."""
        steps = steps_of(self.wizard_state, self.status)
        index = self._step_index(steps)
        if index == 0:
            self._host.put_aside(self, self.wizard_state)
        else:
            await self._show_step(steps[index - 1])

    async def on_next_button_pressed(self, event: NextButton.Pressed) -> None:
        """Go to the next step."""
        event.stop()
        await self.action_next()

    def action_field(self, step: int) -> None:
        """Go to the field above or below."""
        if step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def on_form_choices_requested(self, event: Form.ChoicesRequested) -> None:
        """List the field's values."""
        event.stop()
        self._open_choices(event.name, event.candidates)

    def action_choose(self) -> None:
        """List the focused field's values."""
        row = self.form.focused_row
        if row is not None:
            self._open_choices(row.item.name)

    def _open_choices(self, name: str, candidates: tuple[str, ...] = ()) -> None:
        choices = choices_for(name, self.wizard_state, self.status)
        if candidates:
            described = {choice.value: choice for choice in choices}
            choices = tuple(described.get(value, FieldChoice(value)) for value in candidates)
        present = text_of(name, self.wizard_state, self.status)
        labels = [choice.label or choice.value or "none" for choice in choices]
        width = max(map(len, labels), default=0)
        options = [
            DialogChoice("", f"{label:<{width}}  {choice.description}".rstrip(), choice.value)
            for label, choice in zip(labels, choices, strict=True)
        ]
        chosen = next((index for index, item in enumerate(choices) if item.value == present), 0)

        async def take(value: str | None) -> None:
            if value is not None:
                await self._set_state(
                    self.wizard_state.with_text(
                        name, value, default_text(name, self.wizard_state, self.status)
                    )
                )

        self.app.push_screen(ChoiceDialog(field_of(name).title, "", options, chosen=chosen), take)

    async def action_reset(self) -> None:
        """Reset the focused field to its default."""
        row = self.form.focused_row
        if row is not None:
            texts = {name: text for name, text in self.wizard_state.texts.items() if name != row.item.name}
            await self._set_state(replace(self.wizard_state, texts=texts))
            row.select()

    def action_refresh_cluster(self) -> None:
        """Query Slurm again."""
        self._poller.ask_slurm(refresh=True)
