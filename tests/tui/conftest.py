"""What all tests of the screens share."""

from __future__ import annotations

import pytest

import tui.listing
import tui.monitoring


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often than a person could see."""
    monkeypatch.setattr(tui.monitoring, "POLL_S", 0.1)
    monkeypatch.setattr(tui.listing, "LIST_S", 0.2)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show times of day as the logs have them."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
