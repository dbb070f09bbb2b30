"""Time in which others had the cores, so that a deadline is that of the program on a machine of its own."""

from __future__ import annotations

from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")


def waited_s() -> float:
    """Return for how long, since the machine started, some process has been ready without a core; 0: unknown."""
    try:
        first = _PRESSURE.read_text().splitlines()[0]
    except (OSError, IndexError):
        return 0.0
    return int(first.rpartition("total=")[2]) / 1e6
