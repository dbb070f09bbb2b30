"""Time limits and durations: parsing of Slurm's and typed forms, formatting as Slurm's and in sentences."""

from __future__ import annotations

import re
import time

_UNLIMITED = ("", "UNLIMITED", "INFINITE", "N/A", "NONE", "NOT_SET", "INVALID", "PARTITION_LIMIT")
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
EXPECTED = "expected MM, HH:MM:SS, D-HH:MM:SS, 30m or 2h30"


class DurationError(ValueError):
    """An invalid duration."""


def parse_duration(text: str) -> int | None:
    """Return a duration in seconds (`30`, `30:00`, `4:00:00`, `1-00`); None for no limit or unknown.

    A number alone means minutes, as everywhere in Slurm. sinfo cuts long durations: `10-00:00:0` are 10 days.

    Raises:
        DurationError: the text is not a duration.
    """
    text = text.strip()
    if text.upper() in _UNLIMITED:
        return None
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.\d+)?", text, re.ASCII)
    if match is None:
        raise DurationError(f"invalid duration '{text[:40]}'")
    days, *parts = match.groups()
    values = [int(part) for part in parts if part is not None]
    if days is not None:
        hours, minutes, rest = values + [0] * (3 - len(values))
        return int(days) * 86400 + hours * 3600 + minutes * 60 + rest
    if len(values) == 3:
        return values[0] * 3600 + values[1] * 60 + values[2]
    return values[0] * 60 + (values[1] if len(values) == 2 else 0)


def parse_time_limit(text: str) -> int:
    """Return a typed time limit in seconds: Slurm's forms, and `30m`, `2h`, `2h30`, `1d12h`.

    Two parts are minutes and seconds in Slurm (`30:00`), but often meant as hours and minutes: those with
    seconds are asked back.

    Raises:
        DurationError: the text is not a duration above zero, or may mean another one.
    """
    typed = text.strip()
    if question := _ambiguity(typed):
        raise DurationError(question)
    limit_s = _with_units(typed.lower())
    if limit_s is None:
        try:
            limit_s = parse_duration(typed)
        except DurationError:
            limit_s = None
    if not limit_s:
        raise DurationError(f"invalid time limit '{typed[:40]}' ({EXPECTED})")
    return limit_s


def _ambiguity(text: str) -> str:
    """Return what two parts with seconds mean, and how to write the other meaning; empty for other texts."""
    match = re.fullmatch(r"(\d{1,4}):(\d{1,2})", text, re.ASCII)
    if match is None:
        return ""
    first, second = int(match[1]), int(match[2])
    if match[2] == "00" or not (first or second):
        return ""
    hours, minutes = divmod(first * 60 + second, 60)
    meant = f"{hours}h{minutes:02d}" if hours and minutes else f"{hours}h" if hours else f"{minutes}m"
    parts = [(first, "minute"), (second, "second")]
    means = " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count)
    return f"{text} is {means} in Slurm: write {meant} or {hours:02d}:{minutes:02d}:00"


def _with_units(text: str) -> int | None:
    """Return the seconds of `1d2h30m`; a number without a unit at the end counts in the next smaller one."""
    match = re.fullmatch(r"((?:\d+[dhms])+)(\d*)", text.replace(" ", ""), re.ASCII)
    if match is None:
        return None
    parts = re.findall(r"(\d+)([dhms])", match[1])
    units = [unit for _, unit in parts]
    if units != sorted(units, key="dhms".index) or len(set(units)) != len(units):
        return None
    if match[2] and units[-1] == "s":
        return None
    rest = int(match[2]) * _UNITS["dhms"["dhms".index(units[-1]) + 1]] if match[2] else 0
    return sum(int(number) * _UNITS[unit] for number, unit in parts) + rest


def format_time_limit(total_s: int) -> str:
    """Return seconds as Slurm writes them: `D-HH:MM:SS`, without days below one."""
    days, rest = divmod(total_s, 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def in_words(seconds: float) -> str:
    """Return a span of time for a sentence, rounded: `8.2 s`, `33 s`, `12 min`, `2 h 10 min`, `3 d 4 h`."""
    seconds = max(seconds, 0.0)
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h" + f" {minutes} min" * bool(minutes)
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d" + f" {hours} h" * bool(hours)


def day_and_time(when: float) -> str:
    """Return a moment, in seconds since the epoch, as local day and time to the minute."""
    return time.strftime("%b %d %H:%M", time.localtime(when))


def moment(when: float) -> str:
    """Return a moment, in seconds since the epoch, as local date and time for a sentence."""
    return time.strftime("%b %d %H:%M:%S", time.localtime(when))
