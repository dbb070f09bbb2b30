"""Settings of one start of the app."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tui.screen_settings import ScreenSettings

if TYPE_CHECKING:
    from launcher.doctor.doctor_request import DoctorRequest
    from launcher.monitor.watch import Watch
    from tui.demo_run import DemoStart
    from tui.screens.wizard.model import WizardState


@dataclass(frozen=True, slots=True)
class AppSettings:
    """Settings of one start of the app."""

    runs_root: Path
    open_run: str | None = None
    """Id or directory of a run to open in the monitor at once."""
    open_watch: tuple[str, Watch] | None = None
    """Title and watch of logs without a run directory, or whose run must not be changed."""
    demo: DemoStart | None = None
    wizard_state: WizardState | None = None
    """Draft to open in the wizard at once."""
    edit: EditStart | None = None
    """Recipe to open in the editor at once."""
    notify: tuple[str, ...] = ()
    """Notification channels for a run's start and end; empty for those of the user's settings."""
    guarded: bool = False
    """Whether to handle signals and a lost terminal; not in tests, which have neither."""
    now: Callable[[], float] = time.time
    doctor: DoctorRequest | None = None
    """What the doctor examines at once."""
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    host: str = ""
    """Name of the host that the first screen works on; empty for this machine."""
    hosts: tuple[str, ...] = ()
    """Hosts whose runs are listed beside those of this machine."""


@dataclass(frozen=True, slots=True)
class EditStart:
    """Recipe to edit (None: ask which one), and overrides to look at it with."""

    path: Path | None
    overrides: tuple[str, ...] = ()
