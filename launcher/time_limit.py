"""Time limits as users write them."""

from __future__ import annotations

import re

from launcher.errors import InputError

EXPECTED = "MM, HH:MM:SS, D-HH:MM:SS, 30m, 2h or 2h30"

# sbatch(1), --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]].
_SLURM = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)
_UNITS = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m|(?<=h)(\d{1,9}))?(?:(\d{1,9})s)?", re.ASCII)


class TimeLimitError(InputError):
    """A text is not a time limit."""

    def __init__(self, text: str) -> None:
        super().__init__(f"invalid time limit '{text}' (expected {EXPECTED})")


def parse_time_limit(text: str) -> int:
    """Return a time limit in seconds, from Slurm's notation or from units (`1d12h`, `2h30`, `90m`, `90s`).

    A number alone means minutes, as in Slurm; minutes right after hours need no `m`.

    Raises:
        TimeLimitError: the text is no time limit, or is zero.
    """
    seconds = 0
    if (match := _SLURM.fullmatch(text.strip())) is not None:
        seconds = _slurm_seconds(*match.groups())
    elif (match := _UNITS.fullmatch(text.strip().lower())) is not None:
        days, hours, minutes, bare_minutes, rest = (int(part or 0) for part in match.groups())
        seconds = days * 86400 + hours * 3600 + (minutes + bare_minutes) * 60 + rest
    if seconds == 0:
        raise TimeLimitError(text)
    return seconds


def _slurm_seconds(days: str | None, first: str, second: str | None, third: str | None) -> int:
    numbers = [int(part) for part in (first, second, third) if part is not None]
    if days is None and len(numbers) < 3:  # minutes[:seconds]
        numbers.insert(0, 0)
    hours, minutes, rest = (*numbers, 0, 0)[:3]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest
