"""Schema of site files: every table and key there is. Others are errors, with the nearest one."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveFloat,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from launcher.durations import DurationError, parse_time_limit
from launcher.errors import InputError
from launcher.text import clean, did_you_mean
from recipes.errors import FilePosition

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOUNT = re.compile(r"/[^:]*:/[^:]*(:(ro|rw))?")


def _variables(values: Mapping[str, str | int | float]) -> dict[str, str]:
    for name, value in values.items():
        if not _VARIABLE.fullmatch(name):
            raise PydanticCustomError("name", "'{name}' is no name of a variable", {"name": name})
        if any(character in str(value) for character in "\0\n"):
            raise PydanticCustomError("value", "{name} must be one line", {"name": name})
    return {name: str(value) for name, value in values.items()}


def _mounts(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _MOUNT.fullmatch(value):
            raise PydanticCustomError(
                "mount", "invalid mount '{value}' (expected /SOURCE:/TARGET[:ro])", {"value": value}
            )
    return values


def _time(value: object) -> object:
    """Return a time limit as text or minutes; TOML reads 02:00:00 without quotes as a time of day."""
    if isinstance(value, datetime.time):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise PydanticCustomError("time", 'expected minutes, or a text such as "30m" or "2:00:00"')
    return value


def _time_limit(value: str | int) -> str:
    try:
        parse_time_limit(str(value))
    except DurationError as error:
        raise PydanticCustomError("time", "{problem}", {"problem": str(error)}) from error
    return str(value)


def _word(value: str) -> str:
    if not value or value.startswith("-") or any(character.isspace() for character in value):
        raise PydanticCustomError("word", "'{value}' must be one word", {"value": value})
    return value


Variables = Annotated[dict[str, str | int | float], AfterValidator(_variables)]
Mounts = Annotated[tuple[str, ...], AfterValidator(_mounts)]
TimeLimit = Annotated[str | int, BeforeValidator(_time), AfterValidator(_time_limit)]
Count = Annotated[int, Field(gt=0, strict=True)]  # strict: true is no number
Word = Annotated[str, AfterValidator(_word)]


class SiteTable(BaseModel):
    """One table of a site file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, value: object) -> object:
        if isinstance(value, Mapping):
            for key in value:
                if key not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown_key",
                        "unknown key '{key}'{guess}",
                        {
                            "key": key,
                            "guess": did_you_mean(str(key), cls.model_fields) or _elsewhere(str(key)),
                            "keys": ", ".join(cls.model_fields),
                        },
                    )
        return value


class RecogniseTable(SiteTable):
    """How a machine is recognised."""

    systemname: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class LoginTable(SiteTable):
    """Its login nodes, and what a user may take on one."""

    hosts: tuple[str, ...] = ()
    processes: Count | None = None
    memory_percent: Count | None = None


class JobTable(SiteTable):
    """What its jobs need."""

    host_suffix: str = ""
    offline: bool = False
    environment: Variables = Field(default_factory=dict)
    modules: tuple[str, ...] = ()
    container: str = ""
    mounts: Mounts = ()
    scratch: str = ""
    sbatch_without: tuple[Literal["exclusive", "mem", "gres", "requeue", "no-requeue", "export"], ...] = ()
    stores_environments: bool = False


class PartitionTable(SiteTable):
    """Facts about one partition, where they differ from the site's."""

    offline: bool
    source: str = ""
    date: str | datetime.date = ""


class PollingTable(SiteTable):
    """Seconds between two queries of its controller."""

    front_s: PositiveFloat = 30.0
    behind_s: PositiveFloat = 120.0


class SmokeTable(SiteTable):
    """Where short tests go."""

    partition: str = ""
    reservation: str = ""
    max_nodes: Count | None = None
    max_time_s: Count | None = None


class ProfileTable(SiteTable):
    """Options by the user, under one name."""

    partition: Word | None = None
    account: Word | None = None
    qos: Word | None = None
    reservation: Word | None = None
    time: TimeLimit | None = None
    nodes: Count | None = None
    gpus_per_node: Annotated[int, Field(ge=0, strict=True)] | None = None
    environment: Variables = Field(default_factory=dict)
    sbatch_args: tuple[str, ...] = ()
    container: str = ""
    mounts: Mounts = ()
    modules: tuple[str, ...] = ()


class SiteFile(SiteTable):
    """A site file; the user's own has only what it changes."""

    id: str = ""
    name: str = ""
    source: str = ""
    date: str | datetime.date = ""
    recognise: RecogniseTable = RecogniseTable()
    login: LoginTable = LoginTable()
    gpu_memory_gib: dict[str, PositiveFloat] = Field(default_factory=dict)
    job: JobTable = JobTable()
    partitions: dict[str, PartitionTable] = Field(default_factory=dict)
    polling: PollingTable = PollingTable()
    smoke: SmokeTable = SmokeTable()
    profiles: dict[str, ProfileTable] = Field(default_factory=dict)


TABLES: Mapping[str, type[SiteTable]] = {
    "[recognise]": RecogniseTable,
    "[login]": LoginTable,
    "[job]": JobTable,
    "[partitions.NAME]": PartitionTable,
    "[polling]": PollingTable,
    "[profiles.NAME]": ProfileTable,
    "[smoke]": SmokeTable,
}


def _elsewhere(key: str) -> str:
    """Return the table that a key belongs to; empty where there is none."""
    return next(
        (f"; it belongs to {name}" for name, table in TABLES.items() if key in table.model_fields), ""
    )


def parse(text: str, path: Path | str) -> dict[str, Any]:
    """Return the data of a site file, checked; `path` is named in errors.

    Raises:
        InputError: it is no TOML, or has an unknown key or an invalid value.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        where = FilePosition(str(path), int(line[1]) if line else 0)
        raise InputError(f"invalid site file: {clean(str(error))}", where=where) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; brackets in brackets
        raise InputError(f"invalid site file: {clean(str(error))}", where=path) from error
    validate(data, path, text)
    return data


Model = TypeVar("Model", bound=BaseModel)


def validate(data: Mapping[str, Any], path: Path | str, text: str = "") -> SiteFile:
    """Return a site file's data as its tables.

    Raises:
        InputError: it has an unknown key or an invalid value.
    """
    try:
        return SiteFile.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        context = first.get("ctx", {})
        location = [str(part) for part in first["loc"] if str(part) != "[key]"]
        if first["type"] == "unknown_key":
            key, table = str(context["key"]), location
            what, fix = str(first["msg"]), f"Keys{_of(table)}: {context['keys']}."
        else:
            location = _existing_keys(location, data)
            *table, key = location or [""]
            what, fix = f"invalid {key}: {_lower(str(first['msg']))}", ""
        position = FilePosition(str(path), _line(text, table, key))
        raise InputError(clean(what + _in(table)), where=position, fix=clean(fix)) from error


def _existing_keys(location: Sequence[str], data: Mapping[str, Any]) -> list[str]:
    """Return a location without what pydantic adds to it: the members of a union, places in lists."""
    path: list[str] = []
    value: Any = data
    for part in location:
        if not isinstance(value, Mapping) or part not in value:
            break
        path.append(part)
        value = value[part]
    return path


def _in(table: Sequence[str]) -> str:
    return f" (in [{'.'.join(table)}])" if table else ""


def _of(table: Sequence[str]) -> str:
    return f" of [{'.'.join(table)}]" if table else ""


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


def _line(text: str, table: Sequence[str], key: str) -> int:
    """Return the line of a key in its table, of the table where it is written otherwise; 0 if neither."""
    header = re.compile(r"""\s*\[\s*(?P<name>[^\[\]]+?)\s*\]\s*(#.*)?""")
    assignment = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*(=|\.)""")
    own = re.compile(rf"{re.escape('.'.join((*table, key)))}(\..*)?")
    current, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        match = header.fullmatch(line)
        if match:
            current = re.sub(r"""["'\s]""", "", match["name"])
            if own.fullmatch(current):
                return number
            first = first or number * (current == ".".join(table))
        elif current == ".".join(table) and assignment.match(line):
            return number
    return first
