"""The wizard's screen: its steps, the review, the submission and its outcome."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from launcher.errors import UnreachableError
from launcher.fields import field as field_of
from launcher.submit.submit import StartEstimate
from recipes.errors import ExplainedError
from tui.opening import ActionFailed
from tui.screens.dialogs import BusyDialog, ChoiceDialog, DialogChoice, error_dialog
from tui.screens.host import Host
from tui.screens.wizard.draft_request import request_of
from tui.screens.wizard.findings import assess
from tui.screens.wizard.model import DraftStatus, WizardState, kind_of
from tui.screens.wizard.pages import line
from tui.screens.wizard.poller import RunsRootDecided, StartEstimated, Submitted
from tui.screens.wizard.readiness import ReadyWatch, ready_fact, ready_section
from tui.screens.wizard.recipe_saving import RecipeSaving
from tui.screens.wizard.review import (
    environment_rows,
    question,
    review,
    review_of_checks,
    review_of_run,
    step_title,
)
from tui.screens.wizard.review_commands import ReviewCommands
from tui.screens.wizard.runs_root_dialog import ask_runs_root
from tui.screens.wizard.state_changes import with_fix
from tui.screens.wizard.steps import StepScreen
from tui.screens.wizard.validation import errors

if TYPE_CHECKING:
    from launcher.doctor.doctor_request import DoctorRequest
    from launcher.storage.wizard_drafts import RunDraftWriter
    from recipes.planning import Fix

_ASKING = "querying Slurm …"
_CHECKING = line(("checking …", "dim"))
_REVIEW_ACTIONS = (
    "submit", "estimate_start", "fix", "skip", "environment", "script", "copy_command", "diff", "save_choices"
)  # fmt: skip


class WizardScreen(StepScreen):
    """Edits a wizard state step by step, reviews it, and submits it."""

    def __init__(
        self,
        host: Host,
        state: WizardState | None = None,
        step: str = "",
        draft: RunDraftWriter | None = None,
        machine: str = "",
    ) -> None:
        super().__init__(host, state, step, draft, machine)
        self._start_estimate: StartEstimate | str | None = None
        self._submitting = False
        self._submit_when_ready = False
        """Whether to submit as soon as the review is complete."""
        self._editor_when_read: bool | None = None
        """Whether the editor that was asked for begins with the search; None if it was not."""
        self._reported_slurm_error = ""
        """Text of the Slurm error that was already shown: asked again, Slurm says the same."""
        self._views = ReviewCommands(self, self._say)
        self._ready = ReadyWatch(self, self._poller.get_resolver, self._refresh_view)

    def _change_state(self, state: WizardState) -> None:
        self._start_estimate, self._submit_when_ready, self._editor_when_read = None, False, None
        super()._change_state(state)

    def status_changed(self, status: DraftStatus) -> None:
        """Submit, or open the editor, if that was requested; report a missing Slurm once."""
        if self._editor_when_read is not None and self._is_current and self.app.screen is self:
            find, self._editor_when_read = self._editor_when_read, None
            self._say("")
            if status.path is not None:
                self._edit_choices(find=find)
        if (
            self._submit_when_ready
            and self._is_current
            and self.app.screen is self
            and self.step.id == "review"
        ):
            self.action_submit()
        error = status.slurm_error
        if error is not None and str(error) != self._reported_slurm_error and self.is_current:
            self._reported_slurm_error = str(error)
            self._show_slurm_error(error)

    def action_refresh_cluster(self) -> None:
        """Ask Slurm again; where it is still missing, that is said again."""
        self._reported_slurm_error = ""
        super().action_refresh_cluster()

    def review_lines(self, width: int) -> list[Content]:
        """Return the review; on a wide screen without what stands beside it."""
        if not self._is_current:
            return [_CHECKING]
        if self.is_wide:
            return review_of_run(self.wizard_state, self.status, self._start_estimate, width)
        ready = self._ready_lines()
        return review(self.wizard_state, self.status, self._start_estimate, width, ready)

    def side_lines(self, width: int) -> list[Content]:
        """Return what stands beside form or review; in the review with the fixes of the checks."""
        if self.step.id != "review" or not self._is_current:
            return super().side_lines(width)
        return review_of_checks(self.wizard_state, self.status, width, self._ready_lines())

    def _refresh_view(self) -> None:
        if self.step.id == "review" and self._is_current:
            self._ready.follow(self.status)
        super()._refresh_view()

    def _ready_lines(self) -> list[Content]:
        plan = self.status.plan
        if plan is None:
            return []
        recipe = plan.submission.spec.recipe.source
        lines = ready_section if self.is_wide else ready_fact
        return lines(self._ready.answer, recipe, self._host.now())

    def doctor_request(self) -> DoctorRequest | None:
        """Return what the doctor examines from here; None for what every run needs."""
        from launcher.doctor.doctor_request import DoctorRequest

        if self._is_current and self.status.plan is not None:
            return DoctorRequest.of_submission(self.status.plan.request)
        if self.status.path is None or errors(self.wizard_state, self.status):
            return None
        return DoctorRequest.of_submission(request_of(self.wizard_state, self.status))

    def on_screen_resume(self) -> None:
        """Take what the doctor has found meanwhile, and check again: its commands fetch what checks miss."""
        self._ready.read_again(self.status, self._poller.refresh)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a command is valid now."""
        if action in ("edit_recipe", "any_key"):
            readable = self.status.path is not None or not self._is_current
            return readable and kind_of(self.wizard_state) != "rehearsal"
        if action not in _REVIEW_ACTIONS:
            return super().check_action(action, parameters)
        planned = self._is_current and self.status.plan is not None
        valid = {
            "submit": True,
            "estimate_start": planned,
            "fix": bool(self._fixes()),
            "skip": bool(self._failing()),
            "environment": self._is_current and bool(environment_rows(self.status)),
            "script": planned,
            "copy_command": planned,
            "diff": self._is_current and self.status.effective is not None,
            "save_choices": self._is_current and self.status.effective is not None,
        }
        return self.step.id == "review" and valid[action]

    def action_edit_recipe(self) -> None:
        """Open the recipe with the choices in the editor."""
        self._edit_choices(find=False)

    def action_any_key(self) -> None:
        """Find any key in the editor."""
        self._edit_choices(find=True)

    def _edit_choices(self, *, find: bool) -> None:
        if self.status.path is None:
            self._editor_when_read = find
            self._say("The editor opens as soon as the recipe is read.")
            return
        from tui.screens.wizard.choices_editor import StateTakers, edit_choices

        takers = StateTakers(self.keep_state, self._take_state)
        edit_choices(self, self._host, self.wizard_state, self.status, takers, find=find)

    def _take_state(self, state: WizardState, message: str = "") -> None:
        async def take() -> None:
            await self._set_state(state)
            self._say(message)

        self.call_later(take)

    def action_save_choices(self) -> None:
        """Ask what becomes of the choices."""
        RecipeSaving(self, self._take_state).ask(self.wizard_state, self.status)

    def action_script(self) -> None:
        """Show the batch script."""
        if self.status.plan is not None:
            self._views.show_script(self.status.plan)

    def action_copy_command(self) -> None:
        """Copy the sbatch line."""
        if self.status.plan is not None:
            self._views.copy_command(self.status.plan)

    def action_diff(self) -> None:
        """Show the changes of the recipe."""
        self._views.show_changes(self.status)

    # ------------------------------------------------------------ the review

    def _failing(self) -> dict[str, str]:
        """Return failing checks by what skips them: each finding by its key, then rules with several."""
        from recipes.checks import skip_id

        results = self.status.report.failing if self.status.report is not None else ()
        counts = Counter(item.id for item in results)
        single = {skip_id(item) if counts[item.id] > 1 else item.id: item.message for item in results}
        whole = {check: f"all {count} findings" for check, count in counts.items() if count > 1}
        return {**single, **whole}

    def _fixes(self) -> list[tuple[str, Fix]]:
        """Return fixes of failing checks with the check's id, and changes under which the memory suffices."""
        if self.status.report is None or not self._is_current:
            return []
        failing = [
            (result.id, fix)
            for result in self.status.report.results
            if result.outcome == "fail"
            for fix in result.fixes
            if fix.edits
        ]
        return [*failing, *(("memory", option.fix) for option in self.status.fitting)]

    async def action_fix(self) -> None:
        """Apply the only fix, or ask which one."""
        fixes = self._fixes()
        if not fixes:
            return
        if len(fixes) == 1:
            await self._set_state(with_fix(self.wizard_state, fixes[0][1], self.status))
            return
        options = [
            DialogChoice(str(count) if count < 10 else "", f"{name}  {fix.title}", str(count))
            for count, (name, fix) in enumerate(fixes, 1)
        ]

        async def take(value: str | None) -> None:
            if value is not None:
                await self._set_state(with_fix(self.wizard_state, fixes[int(value) - 1][1], self.status))

        self.app.push_screen(ChoiceDialog("Apply which fix?", "", options), take)

    def action_skip(self) -> None:
        """Ask for a failing check to skip, or to enforce again."""
        skipped = self.wizard_state.skipped
        options = [
            DialogChoice("", f"{name}  {'skipped: enforce again · ' * (name in skipped)}{message}", name)
            for name, message in self._failing().items()
        ]
        text = "Each predicts that the run fails. The run records what was skipped."

        async def take(value: str | None) -> None:
            if value is not None:
                await self._set_state(self.wizard_state.with_skipped(value))

        self.app.push_screen(ChoiceDialog("Skip which check?", text, options), take)

    def action_environment(self) -> None:
        """List what becomes of each variable in the job."""
        self._views.show_environment(self.status)

    def action_estimate_start(self) -> None:
        """Ask Slurm when the job would start."""
        if self.status.plan is not None:
            self._start_estimate = _ASKING
            self._poller.estimate_start(self.status.plan)
            self._refresh_view()

    def on_start_estimated(self, event: StartEstimated) -> None:
        """Show the start estimate."""
        event.stop()
        plan = self.status.plan
        if plan is None or event.plan.request != plan.request:
            return
        result = event.result
        refused = isinstance(result, ExplainedError)
        self._start_estimate = (
            f"✗ {result.what} {result.fix}".strip() if isinstance(result, ExplainedError) else result
        )
        self._refresh_view()
        if refused:
            self.facts_box.scroll_home(animate=False)

    def action_submit(self) -> None:
        """Ask for confirmation, then submit, once everything is resolved; else report what prevents it."""
        self._submit_when_ready = not self._is_current
        if self._submit_when_ready:
            return
        plan = self.status.plan
        if plan is None or plan.obstacle is not None:
            preventing = assess(self.wizard_state, self.status).preventing
            result = "\n".join(
                f"{field_of(item.field).title}: {item.message} (step {step_title(item.field)})"
                for item in preventing
                if item.field
            )
            self.app.push_screen(
                ChoiceDialog(
                    "Cannot be submitted yet",
                    result or str(self.status.plan_error or (plan.obstacle if plan is not None else "")),
                    [DialogChoice("o", "OK", "ok")],
                )
            )
            return
        if plan.blocking:
            self._show_blocking([f"{result.id} {result.message}" for result in plan.blocking])
            return
        if self.status.storage_question is not None:
            ask_runs_root(self, self.status.storage_question, self._poller.decide_runs_root)
            return

        def answered(answer: str | None) -> None:
            if answer == "submit":
                self.app.push_screen(BusyDialog("submitting …\n\nThis usually takes a few seconds."))
                self._submitting = True
                self._poller.send(plan)

        choices = [DialogChoice("y", "submit", "submit"), DialogChoice("n", "cancel", "no")]
        unready = self._ready.answer.warning(plan.submission.spec.recipe.source, self._host.now())
        dialog = ChoiceDialog(
            "Submit?",
            question(plan, assess(self.wizard_state, self.status), unready),
            choices,
            chosen=1 if plan.asks else 0,
        )
        self.app.push_screen(dialog, answered)

    def on_runs_root_decided(self, event: RunsRootDecided) -> None:
        """Go on with the submission once it is planned again."""
        event.stop()
        self._host.use_runs_root(event.root)
        self.status = replace(self.status, settled=False)
        self._submit_when_ready = True

    def _show_blocking(self, messages: list[str]) -> None:
        async def answered(answer: str | None) -> None:
            if answer == "fix":
                await self.action_fix()
            elif answer == "skip":
                self.action_skip()

        choices = [DialogChoice("x", "skip a check", "skip"), DialogChoice("b", "back to the review", "back")]
        if self._fixes():
            choices.insert(0, DialogChoice("f", "apply a fix", "fix"))
        self.app.push_screen(ChoiceDialog("The run would fail", "\n".join(messages), choices), answered)

    # ------------------------------------------------------------ outcome

    async def on_submitted(self, event: Submitted) -> None:
        """Open the monitor."""
        event.stop()
        self._close_wait_dialogs()
        await self._draft.discard()
        self._host.submitted(self, event.directory, self.machine_name)

    def on_action_failed(self, event: ActionFailed) -> None:
        """Show the error; the wizard's state is kept."""
        event.stop()
        self._close_wait_dialogs()
        self._poller.refresh()
        error = event.error
        if isinstance(error, UnreachableError) and isinstance(error.where, Path):
            directory = str(error.where)

            async def answered(answer: str | None) -> None:
                if answer == "watch":
                    await self._draft.discard()
                    self._host.submitted(self, directory, self.machine_name)

            choices = [
                DialogChoice("w", "watch the run, which resolves this", "watch"),
                DialogChoice("b", "back", "back"),
            ]
            self.app.push_screen(ChoiceDialog("Submission unclear", str(error), choices), answered)
            return
        self.app.push_screen(error_dialog(error))

    def _close_wait_dialogs(self) -> None:
        while self._submitting and self.app.screen is not self:
            self.app.pop_screen()
        self._submitting = False

    def _show_slurm_error(self, error: ExplainedError) -> None:
        async def answered(answer: str | None) -> None:
            if answer == "rehearse":
                self.app.push_screen(BusyDialog("starting a rehearsal on this machine …"))
                self._submitting = True
                self._poller.rehearse_here()
            elif answer == "back":
                await self._draft.leave()
                self._host.put_aside(self, self.wizard_state)

        if self.machine_name:
            self.app.push_screen(error_dialog(error))
            return
        text = (
            f"{error}\n\nA rehearsal on this machine needs no cluster: stand-in models on a "
            "real Ray cluster, about a minute."
        )
        choices = [
            DialogChoice("r", "rehearse on this machine", "rehearse"),
            DialogChoice("l", "continue without Slurm: everything but submitting works", "look"),
            DialogChoice("b", "back to the list of runs", "back"),
        ]
        self.app.push_screen(ChoiceDialog("Slurm is not available here", text, choices), answered)
