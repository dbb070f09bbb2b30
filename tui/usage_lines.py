"""What the app takes of the terminal, of Slurm and of the machine: for the help."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from launcher.usage import UsageLimits, own_usage, user_usage
from recipes.errors import ExplainedError
from tui.formatting import file_size

if TYPE_CHECKING:
    from launcher.transports.base import Transport
    from tui.output_meter import OutputMeter


def usage_lines(meter: OutputMeter | None, transport: Transport | None) -> list[str]:
    """Return a line each; reads /proc and the site's facts, so call it on a thread.

    `transport`: that of the run which is watched; None without one.
    """
    lines = []
    if meter is not None:
        slow = ", a slow connection: painted at most once a second" if meter.slow else ""
        lines.append(f"Terminal: {meter.bytes_per_s:.0f} bytes/s, {file_size(meter.total)} in all{slow}")
    commands = getattr(transport, "commands_within", None)
    if commands is not None:
        lines.append(f"Slurm and other commands: {commands(60.0)} in the last minute")
    return [*lines, *machine_lines(_limits(transport))]


def machine_lines(limits: UsageLimits) -> list[str]:
    """Return processes and memory of this app and of the user, against the limits."""
    usage, own = user_usage(), own_usage()
    processes = f"{usage.processes}" + (f" of {limits.processes}" if limits.processes else "")
    line = (
        f"This app: 1 process, {file_size(own.memory)}; you: {processes} processes, {file_size(usage.memory)}"
    )
    allowed = usage.machine_memory * (limits.memory_percent or 0) // 100
    if allowed:
        line += f" of {file_size(allowed)}"
    over = (limits.processes and usage.processes > limits.processes) or (allowed and usage.memory > allowed)
    if over:
        return [line, "! more than a login node of this site allows: processes may be killed"]
    return [line if limits != UsageLimits() else f"{line} (no limit of this site is known)"]


def _limits(transport: Transport | None) -> UsageLimits:
    from launcher.sites import site_here
    from tui.opening import local

    try:
        return site_here(transport or local(), os.environ).login_limits
    except ExplainedError:
        return UsageLimits()
