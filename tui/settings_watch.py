"""Looks whether the settings' file was changed by another program, and tells the app what it says now."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from textual.message import Message
from textual.message_pump import MessagePump

from launcher.errors import InputError
from launcher.settings import settings_path
from tui.background import in_background, post
from tui.screen_settings import ScreenSettings, load_screen_settings

LOOK_S = 3.0
"""Seconds between looks at the file, each of which is one `stat`."""


class SettingsChanged(Message):
    """The settings' file has other contents; `error` says why they cannot be used."""

    def __init__(self, settings: ScreenSettings, error: InputError | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.error = error


class SettingsWatch:
    """Watches the file from its state at the first look on."""

    def __init__(self, environment: Mapping[str, str], target: MessagePump) -> None:
        self._environment = environment
        self._target = target
        self._stamp: tuple[int, ...] | None = None
        self._began = False
        self._looking = threading.Lock()

    def look(self) -> None:
        """Look on a thread: a home directory may hang. Nothing is done while an earlier look goes on."""
        if self._looking.acquire(blocking=False):
            in_background(self._look, "settings", lambda error: None)

    def _look(self) -> None:
        try:
            stamp, began = self._stamp_now(), self._began
            changed, self._stamp, self._began = began and stamp != self._stamp, stamp, True
            if changed:
                post(self._target, self._read())
        finally:
            self._looking.release()

    def _stamp_now(self) -> tuple[int, ...] | None:
        try:
            status = os.stat(settings_path(self._environment))
        except OSError:  # there is none, or it cannot be reached now
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _read(self) -> SettingsChanged:
        try:
            return SettingsChanged(load_screen_settings(self._environment))
        except InputError as error:
            return SettingsChanged(ScreenSettings(), error)
