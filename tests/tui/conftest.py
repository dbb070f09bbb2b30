"""What all tests of the screens share."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

import launcher.clusters.registry
import launcher.overview.lister
import launcher.submit.doctor_subject
import tui.run_list
import tui.run_poller
from launcher.doctor.last_report import KeptReport
from tests.tui.replay import LATER


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often than a person could see."""
    monkeypatch.setattr(tui.run_poller, "POLL_S", 0.1)
    monkeypatch.setattr(tui.run_list, "LIST_S", 0.2)
    monkeypatch.setattr(launcher.overview.lister, "LIVE_S", 0.2)


@pytest.fixture(autouse=True)
def _own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the layout of panes apart from the user's settings, and from those of other tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep rows of runs, remembered jobs and drafts apart from the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(autouse=True)
def _no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask no Slurm that may be installed on this machine; a test's own commands are found."""
    which = shutil.which

    def only_tests_own(name: str, path: str | None = None) -> str | None:
        found = which(name, path=path)
        return None if found is None or found.startswith(("/usr/", "/opt/")) else found

    monkeypatch.setattr(launcher.clusters.registry, "shutil", SimpleNamespace(which=only_tests_own))


@pytest.fixture(autouse=True)
def _doctor_of_another_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the review say the same of every machine; what the doctor really says is tested in tests/doctor."""
    passed = {"id": "D01", "title": "Slurm answers", "where": "login", "outcome": "pass", "evidence": "Slurm"}
    report = KeptReport(LATER - 180, "login01", "", (passed,))
    monkeypatch.setattr(launcher.submit.doctor_subject, "ready_report", lambda *_: report)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show times of day as the logs have them."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
