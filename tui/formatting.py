"""Display formats of the app: states, durations, times, numbers, sizes, counts, bars."""

from __future__ import annotations

import math
import time

from launcher.logs.job_state import JobState

GLYPHS = {
    JobState.QUEUED: "◌",
    JobState.STARTING: "◌",
    JobState.RUNNING: "●",
    JobState.COMPLETED: "✓",
    JobState.STOPPED: "◐",
    JobState.FAILED: "✗",
    JobState.CANCELLED: "⊘",
    JobState.UNKNOWN: "?",
}
"""Shown beside the state's word, so that no meaning depends on colour alone."""
STYLES = {
    JobState.QUEUED: "$text-warning",
    JobState.STARTING: "$text-warning",
    JobState.RUNNING: "$text-primary",
    JobState.COMPLETED: "$text-success",
    JobState.STOPPED: "$text-warning",
    JobState.FAILED: "$text-error",
    JobState.CANCELLED: "$text-warning",
    JobState.UNKNOWN: "dim",
}
_BLOCKS = "▁▂▃▄▅▆▇█"
_BAR_PARTS = " ▏▎▍▌▋▊▉█"


def duration(seconds: float, *, tenths: bool = True) -> str:
    """Return an elapsed or remaining time in about six characters: `3.2s`, `42s`, `12m03s`, `3h07m`, `2d03h`.

    `tenths=False` rounds down to whole seconds: tenths of a running time would only flicker.
    """
    seconds = max(seconds, 0.0)
    if tenths and seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds) if tenths else int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 24 * 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02d}h"


def clock_time(moment: float) -> str:
    """Return the local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def number(value: float, digits: int = 4) -> str:
    """Return a number at `digits` significant digits, in scientific notation where it is large or small."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if -4 <= magnitude < 6:
        return f"{value:.{max(digits - 1 - magnitude, 0)}f}"
    return f"{value:.{digits - 1}e}"


def file_size(count: int) -> str:
    """Return a number of bytes, in powers of 1000."""
    if count < 1000:
        return f"{count} B"
    power = min((len(str(count)) - 1) // 3, 4)
    value = count / 1000**power
    unit = ("B", "kB", "MB", "GB", "TB")[power]
    return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"


def plural(count: int, noun: str) -> str:
    """Return a count with its regular noun: `1 run`, `2 runs`, `1,204 lines`, `2 copies`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}s"


def bar(done: float, width: int) -> str:
    """Return a progress bar of `width` cells; `done` from 0 to 1."""
    eighths = round(min(max(done, 0.0), 1.0) * width * 8)
    full, part = divmod(eighths, 8)
    filled = "█" * full + (_BAR_PARTS[part] if part else "")
    return filled.ljust(width)


def sparkline(values: list[float], width: int) -> str:
    """Return values as at most `width` block characters; a value that is not finite is a gap."""
    if len(values) > width:
        step = len(values) / width
        values = [values[min(int((column + 1) * step) - 1, len(values) - 1)] for column in range(width)]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    return "".join(
        _BLOCKS[min(int((value - low) / span * 8), 7)] if math.isfinite(value) else "·" for value in values
    )
