"""The wizard: its steps, then the review, the submission, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

from textual.content import Content

from launcher.clusters.slurm.messages import UnreachableError
from launcher.submit.submit import StartEstimate
from recipes.errors import ExplainedError
from recipes.fields import field as field_of
from tui.opening import OpenFailed
from tui.screens.dialogs import Ask, DialogChoice, Wait, tell
from tui.screens.host import Host
from tui.screens.wizard.model import DraftStatus, WizardState, errors
from tui.screens.wizard.pages import line
from tui.screens.wizard.poller import StartEstimated, Submitted
from tui.screens.wizard.review import question, review
from tui.screens.wizard.steps import StepScreen

_ASKING = "asking Slurm …"
_LOOKING = line(("checking …", "dim"))
_OF_REVIEW = ("submit", "estimate_start", "fix", "skip")


class WizardScreen(StepScreen):
    """Asks for what a run needs, tells what comes of it, and submits."""

    def __init__(self, host: Host, draft: WizardState | None = None) -> None:
        super().__init__(host, draft)
        self._forecast: StartEstimate | str | None = None
        self._submitting = False
        self._wanted = False
        """Whether the review is to be submitted as soon as it is complete."""
        self._told: ExplainedError | None = None
        """Why there is no Slurm, as the user was told."""

    async def _take(self, draft: WizardState) -> None:
        self._forecast, self._wanted = None, False
        await super()._take(draft)

    def found_out(self, seen: DraftStatus) -> None:
        """Go on with what waited; say that there is no Slurm."""
        if self._wanted and self._is_current and self.app.screen is self and self.step.id == "review":
            self.action_submit()
        if seen.no_slurm is not None and seen.no_slurm is not self._told:
            self._told = seen.no_slurm
            self._tell_no_slurm(seen.no_slurm)

    def review_lines(self) -> list[Content]:
        """Return the review."""
        return review(self.draft, self.seen, self._forecast) if self._is_current else [_LOOKING]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tell which commands are valid now."""
        if action not in _OF_REVIEW:
            return super().check_action(action, parameters)
        valid = {
            "submit": True,
            "estimate_start": self._is_current and self.seen.proposal is not None,
            "fix": bool(self._fixes()),
            "skip": bool(self._failing()),
        }
        return self.step.id == "review" and valid[action]

    # ------------------------------------------------------------ the review

    def _failing(self) -> list[str]:
        report = self.seen.report
        return list(dict.fromkeys(item.id for item in report.failing)) if report is not None else []

    def _fixes(self) -> list[tuple[str, int, int]]:
        """Return fixes of failing checks: id of the check, its place in the report, place of the fix."""
        if self.seen.report is None or not self._is_current:
            return []
        return [
            (result.id, place, number)
            for place, result in enumerate(self.seen.report.results)
            if result.outcome == "fail"
            for number, fix in enumerate(result.fixes)
            if fix.edits
        ]

    async def action_fix(self) -> None:
        """Apply the fix there is, or let one be chosen."""
        report, fixes = self.seen.report, self._fixes()
        if report is None or not fixes:
            return
        found = [report.results[place].fixes[number] for _, place, number in fixes]
        if len(found) == 1:
            await self._take(self.draft.with_fix(found[0], self.seen))
            return
        options = [
            DialogChoice(str(count) if count < 10 else "", f"{fixes[count - 1][0]}  {fix.title}", str(count))
            for count, fix in enumerate(found, 1)
        ]

        async def take(value: str | None) -> None:
            if value is not None:
                await self._take(self.draft.with_fix(found[int(value) - 1], self.seen))

        self.app.push_screen(Ask("Apply which fix?", "", options), take)

    def action_skip(self) -> None:
        """Let a check be chosen that is not to block, or is to block again."""
        options = [
            DialogChoice(
                "",
                f"{name}  {'skipped: let it block again' if name in self.draft.skipped else 'skip it'}",
                name,
            )
            for name in self._failing()
        ]
        text = "It foretells that the run fails; the run records that it was skipped."

        async def take(value: str | None) -> None:
            if value is not None:
                await self._take(self.draft.with_skipped(value))

        self.app.push_screen(Ask("Skip which check?", text, options), take)

    def action_estimate_start(self) -> None:
        """Ask Slurm when it would start."""
        if self.seen.proposal is not None:
            self._forecast = _ASKING
            self._feed.estimate_start(self.seen.proposal)
            self._arrange()

    def on_start_estimated(self, event: StartEstimated) -> None:
        """Show when it would start."""
        event.stop()
        if event.proposal is not self.seen.proposal:
            return
        told = event.told
        refused = isinstance(told, ExplainedError)
        self._forecast = f"✗ {told.what} {told.fix}".strip() if isinstance(told, ExplainedError) else told
        self._arrange()
        if refused:
            self.facts_box.scroll_home(animate=False)

    def action_submit(self) -> None:
        """Ask, then submit, as soon as everything is looked at; say what stands against it."""
        self._wanted = not self._is_current
        if self._wanted:
            return
        proposal = self.seen.proposal
        if proposal is None:
            missing = errors(self.draft, self.seen).items()
            told = "\n".join(f"{field_of(name).title}: {text}" for name, text in missing)
            self.app.push_screen(
                Ask(
                    "It cannot be submitted yet",
                    told or str(self.seen.problem or ""),
                    [DialogChoice("o", "OK", "ok")],
                )
            )
            return
        if proposal.blocking:
            self._tell_blocking([f"{result.id} {result.message}" for result in proposal.blocking])
            return

        def answered(answer: str | None) -> None:
            if answer == "submit":
                self.app.push_screen(
                    Wait("submitting …\n\nSlurm is asked once; that takes a second or a few.")
                )
                self._submitting = True
                self._feed.send(proposal)

        choices = [DialogChoice("y", "submit", "submit"), DialogChoice("n", "not yet", "no")]
        self.app.push_screen(
            Ask("Submit?", question(proposal), choices, chosen=1 if proposal.asks else 0), answered
        )

    def _tell_blocking(self, said: list[str]) -> None:
        async def answered(answer: str | None) -> None:
            if answer == "fix":
                await self.action_fix()
            elif answer == "skip":
                self.action_skip()

        choices = [DialogChoice("x", "skip a check", "skip"), DialogChoice("b", "back to the review", "back")]
        if self._fixes():
            choices.insert(0, DialogChoice("f", "apply a fix", "fix"))
        self.app.push_screen(Ask("It would fail", "\n".join(said), choices), answered)

    # ------------------------------------------------------------ what becomes of it

    def on_submitted(self, event: Submitted) -> None:
        """Go to the monitor."""
        event.stop()
        self._stop_waiting()
        self._host.submitted(self, event.directory)

    def on_open_failed(self, event: OpenFailed) -> None:
        """Say what Slurm said; what was typed stays."""
        event.stop()
        self._stop_waiting()
        self._feed.again()
        error = event.error
        if isinstance(error, UnreachableError) and isinstance(error.where, Path):
            directory = str(error.where)

            def answered(answer: str | None) -> None:
                if answer == "watch":
                    self._host.submitted(self, directory)

            choices = [
                DialogChoice("w", "watch the run: it finds out", "watch"),
                DialogChoice("b", "back", "back"),
            ]
            self.app.push_screen(Ask("Perhaps submitted", str(error), choices), answered)
            return
        self.app.push_screen(tell(error))

    def _stop_waiting(self) -> None:
        while self._submitting and self.app.screen is not self:
            self.app.pop_screen()
        self._submitting = False

    def _tell_no_slurm(self, error: ExplainedError) -> None:
        def answered(answer: str | None) -> None:
            if answer == "rehearse":
                self.app.push_screen(Wait("starting a rehearsal on this machine …"))
                self._submitting = True
                self._feed.rehearse_here()
            elif answer == "back":
                self._host.put_aside(self, self.draft)

        text = (
            f"{error}\n\nA rehearsal on this machine goes the same way without a cluster: stand-in models, "
            "a real Ray cluster, about a minute."
        )
        choices = [
            DialogChoice("r", "rehearse on this machine", "rehearse"),
            DialogChoice("l", "look around: everything but submitting works", "look"),
            DialogChoice("b", "back to the runs", "back"),
        ]
        self.app.push_screen(Ask("There is no Slurm here", text, choices), answered)
