"""The terminal driver: Textual's, but only cells that differ are sent, and the output is measured."""

from __future__ import annotations

import os
import select
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from tui.cell_frame import CellFrame
from tui.output_meter import MeteredFile, OutputMeter

_SYNC_BEGIN, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
_INPUT_BYTES = 4096
_PARSER_S = 0.1
"""Seconds between looks whether an escape sequence goes on."""
_QUIET_S = 1.0
"""Seconds after input in which such looks are made."""
_BCE = (
    "xterm", "tmux", "rxvt", "alacritty", "kitty", "foot", "wezterm", "ghostty", "konsole", "linux", "st-",
    "vte", "gnome", "contour",
)  # fmt: skip
"""Beginnings of $TERM of terminals that erase with the current background; GNU screen by default does not."""


def erases_in_colour(environ: Mapping[str, str]) -> bool:
    """Return whether erased cells get the current background."""
    return bool(environ.get("TMUX")) or environ.get("TERM", "").startswith(_BCE)


class CellDriver(LinuxDriver):
    """Sends what changes on the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as Textual calls drivers
        super().__init__(*arguments, **options)
        self._frame = CellFrame(erases_in_colour=erases_in_colour(os.environ))
        self._wake: tuple[int, int] | None = None
        """Pipe that wakes the thread of the input for its end."""
        self._held = ""
        """The begin of a synchronised update that is sent only before output."""
        self.meter = OutputMeter()
        output: Any = self._file
        if not output.isatty() and sys.__stdout__ is not None and sys.__stdout__.isatty():
            output = sys.__stdout__  # errors are written to a file, which is no place for a screen
        self._file = cast(Any, MeteredFile(output, self.meter))

    def start_application_mode(self) -> None:
        """Take the terminal over, also again after it was left to another program."""
        self._wake = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def disable_input(self) -> None:
        """End the thread that reads input."""
        wake, self._wake = self._wake, None
        if wake is not None:
            os.write(wake[1], b"x")  # stays there: the thread sees it until it is told to end
        super().disable_input()
        for descriptor in wake or ():
            os.close(descriptor)

    def run_input_thread(self) -> None:
        """Dispatch input; sleeps while there is none.

        Textual's own looks ten times a second, which takes 0.1 % of a core.
        """
        wake = self._wake
        assert wake is not None, "made before this thread"
        parser, decode = XTermParser(self._debug), getincrementaldecoder("utf-8")("replace").decode
        quiet_at = 0.0

        def take(descriptors: list[int], pause_s: float | None) -> bool:
            ready = self.fileno in select.select(descriptors, [], [], pause_s)[0]
            text = decode(os.read(self.fileno, _INPUT_BYTES)) if ready else ""
            for event in (*(parser.feed(text) if text else ()), *parser.tick()):
                self.process_message(event)
            return ready

        while not self.exit_event.is_set():
            if take([self.fileno, wake[0]], _PARSER_S if time.monotonic() < quiet_at else None):
                quiet_at = time.monotonic() + _QUIET_S
        take([self.fileno], _PARSER_S)  # what was typed before
        with suppress(EOFError, ParseError):
            list(parser.feed(""))

    def write(self, data: str) -> None:
        """Write output of Textual, reduced."""
        if data == _SYNC_BEGIN:
            self._held = data
            return
        if data == _SYNC_END and self._held:
            self._held = ""
            return
        reduced = self._frame.reduce(data)
        if reduced:
            super().write(self._held + reduced)
            self._held = ""

    def resized(self, width: int, height: int) -> None:
        """Adopt the terminal's size; all cells are sent again."""
        self._frame.resize(width, height)

    def forget(self) -> None:
        """Send all cells again that are painted from now on."""
        self._frame.forget()
