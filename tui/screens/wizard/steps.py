"""The wizard's steps: what the panels show of a state and its status, and moving between fields and steps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.fields import field as field_of
from launcher.fields.stock_values import field_help
from tui.screens.connection_words import Reconnector
from tui.screens.editor.preflight_lines import memory_strip
from tui.screens.host import Host
from tui.screens.wizard.alternatives import FieldChoice, choices_for
from tui.screens.wizard.chosen_lines import chosen_count, chosen_lines
from tui.screens.wizard.draft_keeping import DraftKeeper
from tui.screens.wizard.field_details import FieldDetails
from tui.screens.wizard.findings import Assessment, assess
from tui.screens.wizard.model import (
    STEPS,
    DraftStatus,
    Step,
    WizardState,
    default_text,
    fields_of,
    key_of,
    steps_of,
    text_of,
)
from tui.screens.wizard.pages import (
    check_lines,
    facts_of,
    step_findings,
    step_list,
    summary,
    wrap_hanging,
)
from tui.screens.wizard.poller import DraftResolved, WizardPoller
from tui.screens.wizard.step_layout import StepLayout
from tui.screens.wizard.value_list import value_list
from tui.widgets.form import Form, NextButton, RowNote
from tui.widgets.lines_box import LinesBox

if TYPE_CHECKING:
    from launcher.storage.wizard_drafts import RunDraftWriter

_STEP_COMMANDS = (
    "wizard.back", "wizard.next", "wizard.review", "wizard.choose", "wizard.key", "wizard.edit",
)  # fmt: skip
_REVIEW_COMMANDS = (
    "wizard.submit", "wizard.when", "wizard.fix", "wizard.write", "wizard.skip", "wizard.back",
)  # fmt: skip
_DETAIL_ROWS = 16
"""Rows of a wide screen that its frame, and all of a field's details but its values, may take."""


class StepScreen(StepLayout):
    """Edits a wizard state step by step."""

    ABOUT = (
        "Prepares and submits a run. Tab, ↑ and ↓ move between fields, enter goes to the next step. ● marks "
        "what you changed, ✗ what would fail, ! what the site may refuse. Nothing is submitted before the "
        "review, and going back loses nothing that was typed."
    )

    def __init__(
        self,
        host: Host,
        state: WizardState | None = None,
        step: str = "",
        draft: RunDraftWriter | None = None,
        machine: str = "",
    ) -> None:
        super().__init__()
        self._host = host
        self.machine_name = machine
        """Name of the host that the run is for; empty for this machine."""
        self._told_connection = bool(machine)
        self._reconnector = Reconnector(host, machine)
        self._poller = WizardPoller(partial(host.draft_resolver, machine), self)
        if machine:
            self.form.path_base = lambda: self._poller.get_resolver().path("")
        self.wizard_state = state or WizardState()
        self.status = DraftStatus(self.wizard_state)
        self.assessment = Assessment()
        self.step: Step = next((item for item in STEPS if item.id == step), STEPS[0])
        self._draft = DraftKeeper(self.wizard_state, draft, machine)
        self.footer_first: tuple[str, ...] = ()
        self._form_lock = asyncio.Lock()
        self._steps: tuple[Step, ...] = STEPS
        """Those that have fields, as they were shown last."""
        self._message = ""
        """What was done last; shown in place of the summary until something changes."""

    @property
    def facts_box(self) -> LinesBox:
        """The box that the page keys scroll."""
        return self.review_box if self.step.id == "review" else self.field_box

    async def on_mount(self) -> None:
        """Show the first step, and start resolving."""
        if not self.form.is_attached:  # closed before it was composed
            return
        await self._show_step(self.step)
        self._poller.start()
        self._poller.resolve(self.wizard_state)
        self._poller.ask_slurm(refresh=False)
        if self.machine_name:
            self.set_interval(1.0, self._show_connection)

    async def on_unmount(self) -> None:
        """End the thread; what was typed last is on disk then."""
        self._poller.stop()
        await self._draft.leave()

    @property
    def would_lose_entries(self) -> bool:
        """Whether leaving would lose what was typed: no draft of it can be written."""
        return self._draft.failed

    @property
    def unsaved_remark(self) -> str:
        """Words for a draft that is kept; empty where there is none."""
        return "the run that was not submitted is kept, and offered with the next one" * self._draft.kept

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
        default = default_text(event.name, self.wizard_state, self.status)
        state = self.wizard_state.with_text(event.name, event.text, default)
        if field_of(event.name).kind in ("choice", "switch"):
            await self._set_state(state)
            return
        # The form stays as it is until the checks have seen the text: the key is painted at once.
        self._change_state(state)
        for row in self.form.rows:
            if row.item.name == event.name and row.is_attached:
                row.mark(changed=event.name in state.texts, both=event.name in state.both)

    def _say(self, message: str) -> None:
        self._message = message
        self._refresh_view()

    async def _set_state(self, state: WizardState) -> None:
        self._change_state(state)
        await self._refresh_form()

    def _change_state(self, state: WizardState) -> None:
        self.wizard_state, self._message = state, ""
        # Before anything else: a key that was pressed is on disk, whatever happens next.
        self._keep_draft()
        self._poller.resolve(state)

    def _connection(self) -> Content | None:
        """Return what is to be said of the connection to the run's host; None where it is up, or none."""
        state = self._host.machine(self.machine_name).state()
        words = state.in_words(self._host.now()) if state is not None else ""
        return Content.assemble(("! ", "$text-warning"), words) if words else None

    def _show_connection(self) -> None:
        """Show a connection that is lost, or is back: nothing else may change meanwhile."""
        self._reconnector.try_now()
        words = self._connection()
        if words is not None or self._told_connection:
            self._told_connection = words is not None
            self._refresh_view()

    def _keep_draft(self) -> None:
        self.keep_state(self.wizard_state)

    def keep_state(self, state: WizardState) -> None:
        """Have a state written as this wizard's draft, also one that is not taken into the form yet."""
        recipe = Path(text_of("recipe", state, self.status)).name
        models = [text_of(name, state, self.status) for name in ("student", "teacher")]
        title = " from ".join(name.rpartition("/")[2] for name in models if name)
        self._draft.keep(state, self.step.id, f"{recipe} {title}".strip())

    async def on_draft_resolved(self, event: DraftResolved) -> None:
        """Show the new status."""
        event.stop()
        if event.status.state is self.wizard_state:
            self.status = event.status
        await self._refresh_form()
        self.status_changed(event.status)

    def status_changed(self, status: DraftStatus) -> None:
        """React to a new status; the review overrides this."""

    def review_lines(self, width: int) -> list[Content]:
        """Return the review."""
        return []

    def side_lines(self, width: int) -> list[Content]:
        """Return the lines of the checks' panel."""
        return check_lines(self.status, self.assessment, self.step.id, width)

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
                text = text_of(name, self.wizard_state, self.status)
                choices = choices_for(name, self.wizard_state, self.status) if row.lists_values else ()
                values = tuple(choice.value for choice in choices)
                row.show(text, values, self._annotation(name, text, choices))
                row.mark(changed=name in self.wizard_state.texts, both=name in self.wizard_state.both)
        self._refresh_view()

    def _annotation(self, name: str, text: str, choices: Sequence[FieldChoice]) -> RowNote:
        findings = self.assessment.on_field(name)
        if findings:
            checks = dict.fromkeys(item.check for item in findings if item.level == findings[0].level)
            return RowNote(findings[0].text, findings[0].level, ", ".join(filter(None, checks)))
        if name == "recipe":
            return RowNote(self.status.recipe_source)
        return RowNote(next((item.description for item in choices if item.value == text), ""))

    # ------------------------------------------------------------ rendering

    async def _show_step(self, step: Step) -> None:
        self.step = step
        self._keep_draft()
        reviewing = step.id == "review"
        with self.app.batch_update():
            self.set_class(reviewing, "-review")
            await self._refresh_form()
        self.field_box.scroll_home(animate=False)
        self.form.scroll_home(animate=False)
        if reviewing:
            self.review_box.scroll_home(animate=False)
            self.set_focus(self.review_box)
        else:
            self.form.focus_first()

    def _refresh_view(self) -> None:
        if not self.is_attached:
            return
        reviewing = self.step.id == "review"
        self.footer_first = _REVIEW_COMMANDS if reviewing else _STEP_COMMANDS
        width = max(self.size.width, 1)
        state, status, assessment = self.wizard_state, self.status, self.assessment
        self._steps = steps_of(state, status)
        self.title_line.set_lines(
            [step_list(self.step.id, self._steps, assessment, width, self.machine_name)]
        )
        facts: list[Content] = []
        if reviewing:
            self.review_box.set_lines(self.review_lines(self.column_width))
        else:
            facts = self._show_panels()
        checks: list[Content] = []
        if self.is_wide:
            checks = self.side_lines(self.column_width)
            self.check_box.set_lines(checks)
            chosen = chosen_lines(state, status, self.column_width)
            self.chosen_box.set_lines(chosen)
            self.chosen_panel.set_title("your changes", f"{chosen_count(state)}" if state.touched else "")
        self.share_rows(len(facts), len(checks))
        if self.is_wide:
            self.fact_box.set_lines(facts)
        elif status.memory is not None:
            self.strip.set_lines([memory_strip(status.memory, width - 2)])
        self.strip.display = not self.is_wide and status.memory is not None
        said = Content.assemble(("✓ ", "$text-success"), self._message)
        line = said if self._message else summary(status, assessment)
        line = self._connection() or line
        self.summary.set_lines([line.truncate(width - 2, ellipsis=True)])
        self._label_go_button()
        self.key_bar.update_keys()

    def _show_panels(self) -> list[Content]:
        """Show form and field, in one column with the facts below; return the facts."""
        state, status = self.wizard_state, self.status
        row = self.form.focused_row
        name = row.item.name if row is not None else ""
        steps = self._steps
        changed = sum(item.item.name in state.texts for item in self.form.rows)
        title = f"{self._step_index(steps) + 1} {self.step.title}"
        self.form_panel.set_title(title, f"● {changed} changed" if changed else "")
        lines = self._field_lines(name)
        facts = facts_of(self.step.id, state, status, self.column_width)
        if not self.is_wide:
            findings = step_findings(self.assessment, self.step.id, self.status)
            lines += [*wrap_hanging(findings, self.column_width), *facts]
        self.field_box.set_lines(lines)
        return facts

    def _field_lines(self, name: str) -> list[Content]:
        if not name:
            self.field_panel.set_title(self.step.title)
            return []
        item, state, status = field_of(name), self.wizard_state, self.status
        self.field_panel.set_title(item.title, key_of(item, status) if item.key else item.flag)
        text = text_of(name, state, status)
        choices = choices_for(name, state, status)
        rows = max(self.size.height - len(self.form.rows) - _DETAIL_ROWS, 0) if self.is_wide else 0
        details = FieldDetails(item, text, choices, self.assessment, field_help(item, status.stock))
        return details.lines(self.column_width, rows)

    @property
    def _is_current(self) -> bool:
        return self.status.state is self.wizard_state and self.status.settled

    def _label_go_button(self) -> None:
        steps = self._steps
        index = self._step_index(steps)
        label = f"Next: {steps[index + 1].title} →" if index + 1 < len(steps) else "Submit"
        self.form.next_button.set_label(label)

    def _step_index(self, steps: Sequence[Step]) -> int:
        return next((index for index, step in enumerate(steps) if step.id == self.step.id), len(steps) - 1)

    # ------------------------------------------------------------ commands

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        reviewing = self.step.id == "review"
        row = self.form.focused_row
        if action in ("next", "show_review"):
            return not reviewing
        if action == "choose":
            return row is not None and bool(choices_for(row.item.name, self.wizard_state, self.status))
        if action == "reset":
            return row is not None and row.item.name in self.wizard_state.texts
        if action == "refresh_cluster":
            return self.step.id == "cluster"
        if action == "set_both":
            return row is not None and row.item.both
        if action == "field":
            return not reviewing
        return True

    async def action_next(self) -> None:
        """Go to the next step."""
        steps = steps_of(self.wizard_state, self.status)
        index = self._step_index(steps)
        if index + 1 < len(steps):
            await self._show_step(steps[index + 1])

    async def action_show_review(self) -> None:
        """Go to the review."""
        await self._show_step(STEPS[-1])

    async def action_back(self) -> None:
        """Go to the previous step; from the first one to the list of runs, which keeps the state."""
        steps = steps_of(self.wizard_state, self.status)
        index = self._step_index(steps)
        if index == 0:
            await self._draft.leave()
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

        async def take(value: str | None) -> None:
            if value is not None:
                await self._set_state(
                    self.wizard_state.with_text(
                        name, value, default_text(name, self.wizard_state, self.status)
                    )
                )

        present = text_of(name, self.wizard_state, self.status)
        self.app.push_screen(value_list(field_of(name).title, choices, present), take)

    async def action_reset(self) -> None:
        """Reset the focused field to its default."""
        row = self.form.focused_row
        if row is not None:
            await self._set_state(self.wizard_state.without_text(row.item.name))
            row.select()

    async def action_set_both(self) -> None:
        """Give the focused field's value to student and teacher, or to the student alone."""
        row = self.form.focused_row
        if row is None or not row.item.both:
            return
        name, state = row.item.name, self.wizard_state
        text = text_of(name, state, self.status)
        state = replace(state.with_both(name), texts={**state.texts, name: text})
        await self._set_state(state)
        self._say(f"{row.item.title}: {'student and teacher' if name in state.both else 'the student alone'}")

    def action_refresh_cluster(self) -> None:
        """Query Slurm again."""
        self._poller.ask_slurm(refresh=True)

    def settings_changed(self) -> None:
        """Look again which site and profile are the default."""
        self._poller.ask_slurm(refresh=False)
