"""The wizard's question "ready?": asked beside the review, kept by site and checkout, told by `submit`."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import distill_tui
import launcher.submit.doctor_subject
from launcher.doctor.check_table import LOGIN_CHECKS
from launcher.doctor.last_report import KeptReport, latest_report, load_report, save_report
from launcher.doctor.runner import examine
from tests.doctor.place import FROM_HUB, MODEL, VLLM, Place
from tests.tui.pilot import NARROW, WIDE, shown
from tui.cli import main
from tui.screens.doctor import DoctorScreen
from tui.screens.wizard.model import WizardState
from tui.screens.wizard.readiness import ReadyAnswer, ReadyWatch

NOW = 1_000_000.0


def kept(at: float | None = NOW - 600, recipe: str = "/r/a.yaml", **outcomes: str) -> KeptReport:
    rows = [
        {"id": name, "title": f"title {name}", "where": "login", "outcome": outcome, "evidence": "evidence"}
        for name, outcome in outcomes.items()
    ]
    return KeptReport(at, "login01", recipe, tuple(rows))


def text(answer: ReadyAnswer, recipe: str = "/r/a.yaml") -> str:
    return "\n".join(line.plain for line in answer.lines(recipe, NOW))


def test_what_is_known_so_far_is_told() -> None:
    assert text(ReadyAnswer()) == "not examined yet"
    assert text(ReadyAnswer(examining=True)) == "examining this login node …"
    assert text(ReadyAnswer(problem="no answer")) == "? not examined: no answer"
    good = kept(D01="pass", D02="pass", D05="warn")
    assert text(ReadyAnswer(good)) == "✓ ready, 2 checks passed, 1 warning  10 min ago"
    again = text(ReadyAnswer(good, examining=True), "/r/b.yaml")
    assert again.endswith("10 min ago, for a.yaml; examining again …")
    bad = text(ReadyAnswer(kept(NOW - 2, **{f"D0{number}": "fail" for number in range(6)})))
    assert bad.splitlines() == [
        "✗ 6 not ready  just now", *(f"✗ D0{n} title D0{n}: evidence" for n in range(4)), "… and 2 more"
    ]  # fmt: skip
    six = kept(NOW - 2, **{f"D0{number}": "fail" for number in range(6)}, D11="warn")
    (brief,) = ReadyAnswer(six).lines("/r/a.yaml", NOW, brief=True)
    assert brief.plain == "✗ 6 not ready (D00, D01, D02, D03, …), 1 warning  just now"


def test_failures_are_one_line_before_a_submission() -> None:
    report = kept(D18="fail", D22="fail", D01="pass")
    line = "2 not ready 10 min ago: D18 title D18, D22 title D22"
    assert ReadyAnswer(report).warning("/r/a.yaml", NOW) == report.failures_in_words(NOW) == line
    assert ReadyAnswer(report).warning("/r/b.yaml", NOW) == ""  # of another recipe
    assert ReadyAnswer(report).warning("/r/a.yaml", NOW + 2 * 86400) == ""  # of another day
    assert report.failures_in_words(NOW, within_s=300) == ""
    ready = ReadyAnswer(kept(D01="pass"))
    assert ready.warning("/r/a.yaml", NOW) == ReadyAnswer().warning("/r/a.yaml", NOW) == ""
    assert kept(None, D1="fail").failures_in_words(NOW).startswith("1 not ready at an unknown time: ")


def test_reports_are_kept_by_site_and_checkout(tmp_path: Path) -> None:
    place = Place.at(tmp_path / "p")
    subject = place.subject()
    assert latest_report(place.environment) is None
    report = save_report(subject, examine(LOGIN_CHECKS[:2], subject, limit_s=20))
    assert [item["id"] for item in report.checks] == ["D01", "D02"]
    assert load_report(place.environment, subject.site.id, str(place.root)) == report
    assert load_report(place.environment, subject.site.id, "/another") is None
    assert load_report(place.environment, "another", str(place.root)) is None
    assert latest_report(place.environment) == report
    for path in (place.root / "home" / ".cache").rglob("report-*.json"):
        path.write_text("[" * 100_000)
    assert latest_report(place.environment) is None


class Loop:
    """The event loop, as far as a watch uses it: what a thread posts is called by `run`."""

    def __init__(self) -> None:
        self.posted: list[Any] = []
        self.arrived = threading.Semaphore(0)

    def post_message(self, message: Any) -> None:
        self.posted.append(message)
        self.arrived.release()

    def run(self, count: int) -> None:
        for _ in range(count):
            assert self.arrived.acquire(timeout=30)
            self.posted.pop(0).callback()


def test_each_request_is_examined_once_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    go = threading.Semaphore(0)

    def answer(plan: Any, *_: object) -> KeptReport:
        asked.append(plan.request)
        go.acquire(timeout=30)
        return kept(NOW + len(asked), D01="pass" if plan.request == "b" else "fail")

    monkeypatch.setattr(launcher.submit.doctor_subject, "ready_report", answer)
    site = SimpleNamespace(layout=SimpleNamespace(site=SimpleNamespace(id="s")))

    def status(request: str) -> Any:
        plan = SimpleNamespace(request=request, options=SimpleNamespace(checkout=None), submission=site)
        return SimpleNamespace(plan=plan, detection="detected")

    loop, shown_times = Loop(), []
    resolver: Any = SimpleNamespace(environment={"HOME": str(tmp_path)}, store=None, path=Path)
    watch = ReadyWatch(loop, lambda: resolver, lambda: shown_times.append(1))  # type: ignore[arg-type]
    watch.follow(SimpleNamespace(plan=None, detection=None))  # type: ignore[arg-type]
    for request in ("a", "a", "b", "c", "b"):
        watch.follow(status(request))
    assert watch.answer.examining
    go.release(2)
    loop.run(2)  # what was kept, and the answer for a, which nobody waits for any more
    assert watch.answer == ReadyAnswer(examining=True)
    loop.run(2)
    assert asked == ["a", "b"]
    assert watch.answer.report is not None
    assert (watch.answer.examining, watch.answer.report.checks[0]["outcome"]) == (False, "pass")
    watch.follow(status("b"))
    assert asked == ["a", "b"]
    assert shown_times


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Return a place in which a worker's environment is missing, in this process's environment."""
    place = Place.at(tmp_path / "p")
    shutil.rmtree(place.root / "venvs" / VLLM)
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in {**place.environment, "DISTILL_TUI_RUNS": str(place.root / "runs")}.items():
        monkeypatch.setenv(name, value)
    return place


@pytest.mark.long
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_the_review_says_what_is_not_ready_and_opens_the_doctor(
    place: Place, size: tuple[int, int]
) -> None:
    state = WizardState({"recipe": str(place.root / "recipe.yaml")}, ("checkpointing.enabled=false",))
    async with shown(place.root / "runs", size, wizard_state=state, now=time.time) as screen:
        await screen.see("booster", limit_s=30)
        await screen.press("f8")
        named = "D18 Workers' environments are built" if size == WIDE else "(D18)"
        title = "Ready?" if size == WIDE else "ready?"
        await screen.see(title, "✗ 1 not ready", named, limit_s=60)
        await screen.press("s")
        await screen.see("Submit?", "Doctor: 1 not ready just now: D18", limit_s=30)
        await screen.press("escape")
        (place.root / "venvs" / VLLM / "bin").mkdir(parents=True)
        shutil.copy(place.root / ".venv" / "bin" / "python", place.root / "venvs" / VLLM / "bin")
        await screen.press("f9")
        await screen.see("doctor", "recipe.yaml", "✓ ready", limit_s=60)
        assert isinstance(screen.app.screen, DoctorScreen)
        await screen.press("b")
        await screen.see(title, "✓ ready, ", "just now", limit_s=30)


@pytest.mark.long
def test_submit_tells_what_the_doctor_missed_last(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(place.root / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}")
    monkeypatch.chdir(place.root)
    subject = place.subject()
    save_report(subject, examine([item for item in LOGIN_CHECKS if item.id == "D22"], subject, limit_s=30))
    arguments = ["submit", "recipe.yaml", *FROM_HUB, "--nodes", "1", "--time", "1:00:00"]
    main(distill_tui.__version__, [*arguments, "--dry-run"])
    assert "doctor: 1 not ready just now: D22 Models are in the cache" in capsys.readouterr().err
    for path in (place.root / "home" / ".cache").rglob("report-*.json"):
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, "at": time.time() - 100_000}))
    main(distill_tui.__version__, [*arguments, "--dry-run"])
    assert "doctor:" not in capsys.readouterr().err
