"""Settings of the user, in `settings.toml` in the configuration directory, and edits that keep its comments.

    load_settings(environment)             all settings; an unknown key is an error
    set_setting(environment, key, values)  writes one key; the other lines stay as they are

No pydantic: the file is read by commands that must start without it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from launcher.base_directories import config_root, default_runs_root, expand
from launcher.cache_location import cache_beside_runs
from launcher.errors import InputError
from launcher.text import clean, did_you_mean
from launcher.toml_edit import TomlValue, with_value
from launcher.user_files import read_user_text

if TYPE_CHECKING:
    from launcher.transports.base import Transport

FILE = "settings.toml"
_SINGLE = ("directory", "text", "choice", "seconds")
"""Kinds of one value."""
_MOST_S = 86400.0
KEEP = "keep"
"""As a value of `storage.runs`: the default directory, as a decision that is not asked for again."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    key: str
    """`TABLE.NAME`, or `NAME` where it stands above all tables."""
    kind: Literal["directory", "directories", "text", "texts", "choice", "seconds"]
    help: str
    choices: tuple[str, ...] = ()
    """Values of a choice."""
    least: float = 0.0
    """Smallest number of seconds."""

    @property
    def table(self) -> str:
        """Table that the key stands in; empty for none."""
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        """Name of the key in its table."""
        return self.key.rpartition(".")[2]


LAYOUTS = ("one", "stacked", "side", "grid", "merged")
"""Layouts of the log panes (`tui.logview.layouts`)."""
COMPACT = "compact"
DENSITIES = ("comfortable", COMPACT)
SETTINGS = (
    Setting("notify", "texts", "notifications of start, failure and end: bell, terminal, or a command"),
    Setting("storage.runs", "directory", "directory of the runs (default: ~/.local/state/distill-tui/runs)"),
    Setting("storage.earlier_runs", "directories", "directories whose runs are listed, too"),
    Setting("hosts.default", "text", "host of commands that name none; `--host here` is this machine"),
    Setting("hosts.list", "texts", "hosts whose runs are listed beside those of this machine"),
    Setting("screen.theme", "text", "colour theme; the screen keeps the one that was chosen last"),
    Setting("screen.density", "choice", "room between the parts of a screen", DENSITIES),
    Setting(
        "defaults.site", "text", "site of this machine, where it is not recognised: an id of `site show`"
    ),
    Setting("defaults.profile", "text", "profile of submissions that name none"),
    Setting("polling.runs_s", "seconds", "seconds between looks at the list of runs (default: 3)", least=1),
    Setting(
        "polling.logs_s", "seconds", "seconds between reads of a log that is shown (default: 0.33)", least=0.2
    ),
    Setting(
        "polling.queue_s", "seconds", "seconds between questions to Slurm (default: the site's)", least=15
    ),
    Setting("monitor.layout", "choice", "layout of the log panes; the monitor keeps the last one", LAYOUTS),
    Setting("monitor.panes", "texts", "sizes of the log panes of each layout, as the monitor keeps them"),
)
_BY_KEY = {setting.key: setting for setting in SETTINGS}

TEMPLATE = """\
# Settings of distill-tui; `distill-tui settings KEY VALUE` edits this file and keeps its comments.

# Notifications of start, failure and end of a run: "bell", "terminal", a command, or a list of these.
# notify = "terminal"

[storage]
# Directory of the runs: settings, logs, and the checkpoints of smoke runs and rehearsals.
# runs = "/scratch/project/me/distill-tui/runs"

[hosts]
# Host that commands without --host work on (`--host here` is this machine), and hosts whose runs are listed
# beside those of this machine; names of ~/.ssh/config.
# default = "juwels"
# list = ["juwels"]

[screen]
# Colour theme, and the room between the parts of a screen: "comfortable" or "compact".
# theme = "distill"
# density = "compact"

[defaults]
# Site of this machine, where it is not recognised, and profile of submissions that name none.
# site = "juwels-booster"
# profile = "training"

[polling]
# Seconds between looks at the list of runs, reads of a log that is shown, questions to Slurm (15 at least).
# runs_s = 3
# logs_s = 0.33
# queue_s = 30
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a user; empty where nothing was decided."""

    notify: tuple[str, ...] = ()
    runs: str = ""
    """Directory of the runs, expanded."""
    earlier_runs: tuple[str, ...] = ()
    """Directories that held the runs before, expanded."""
    layout: str = ""
    """Layout of the log panes."""
    panes: tuple[str, ...] = ()
    """Sizes of the log panes of each layout."""
    theme: str = ""
    density: str = ""
    site: str = ""
    """Id of the site."""
    profile: str = ""
    runs_s: float | None = None
    logs_s: float | None = None
    queue_s: float | None = None
    host: str = ""
    """Host of commands that name none."""
    hosts: tuple[str, ...] = ()
    """Hosts whose runs are listed, too."""


def settings_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the settings file."""
    return config_root(environment) / FILE


def setting(key: str) -> Setting:
    """Return a setting by its key.

    Raises:
        InputError: there is no such setting.
    """
    if key in _BY_KEY:
        return _BY_KEY[key]
    raise InputError(
        f"unknown setting '{clean(key)}'{did_you_mean(key, _BY_KEY)}", fix=f"Settings: {', '.join(_BY_KEY)}."
    )


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the user's settings; the defaults where there is no file.

    Raises:
        InputError: the file cannot be read, or has a key or a value that is none.
    """
    path = settings_path(environment)
    text = read_user_text(path, "the settings")
    if text is None:
        return Settings()
    return settings_of(text, path, environment)


def settings_on(transport: Transport, environment: Mapping[str, str]) -> Settings:
    """Return the user's settings on a transport's machine, whose variables `environment` has.

    Raises:
        InputError: the file cannot be read, or has a key or a value that is none.
        TransportError: the machine does not answer.
    """
    path = settings_path(environment)
    text = read_user_text(transport.path(str(path)), "the settings")
    return Settings() if text is None else settings_of(text, path, environment)


def settings_of(text: str, path: Path, environment: Mapping[str, str]) -> Settings:
    """Return the settings of a file's text; `~` and variables are those of `environment`.

    Raises:
        InputError: it is no TOML, or has a key or a value that is none.
    """
    return _settings(_parse(text, path), path, environment)


def _parse(text: str, path: Path) -> dict[str, Any]:
    if not text:
        return {}
    import tomllib  # takes 8 ms, and most users have no settings

    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise InputError("cannot read the settings: nested too deeply", where=path) from error
    except ValueError as error:  # no TOML, or a number of more digits than Python reads
        raise InputError(f"cannot read the settings: {clean(str(error))}", where=path) from error


def _settings(data: Mapping[str, Any], path: Path, environment: Mapping[str, str]) -> Settings:
    flat = _flat(data, path)
    seconds = {key: _seconds(key, value, path) for key, value in flat if _BY_KEY[key].kind == "seconds"}
    values = {key: _texts(key, value, path) for key, value in flat if key not in seconds}

    def single(key: str) -> str:
        return next(iter(values.get(key, ())), "")

    directories = {
        key: tuple(_expanded(key, text, path, environment) for text in values.get(key, ()))
        for key in ("storage.runs", "storage.earlier_runs")
    }
    return Settings(
        values.get("notify", ()),
        next(iter(directories["storage.runs"]), ""),
        directories["storage.earlier_runs"],
        single("monitor.layout"),
        values.get("monitor.panes", ()),
        single("screen.theme"),
        single("screen.density"),
        single("defaults.site"),
        single("defaults.profile"),
        seconds.get("polling.runs_s"),
        seconds.get("polling.logs_s"),
        seconds.get("polling.queue_s"),
        single("hosts.default"),
        values.get("hosts.list", ()),
    )


def _flat(data: Mapping[str, Any], path: Path) -> list[tuple[str, Any]]:
    """Return the keys with their values; a table's keys with its name.

    Raises:
        InputError: a key is unknown.
    """
    tables = {item.table for item in SETTINGS if item.table}
    items: list[tuple[str, Any]] = []
    for name, value in data.items():
        if name in tables and isinstance(value, Mapping):
            items += [(f"{name}.{inner}", item) for inner, item in value.items()]
        else:
            items.append((name, value))
    for key, _ in items:
        if key not in _BY_KEY:
            guess = did_you_mean(key, [*_BY_KEY, *tables])
            raise InputError(f"unknown setting '{clean(key)}'{guess}", where=path)
    return items


def _seconds(key: str, value: object, path: Path) -> float:
    """Return a number of seconds.

    Raises:
        InputError: it is none, or too small.
    """
    least = _BY_KEY[key].least
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None or not least <= number < _MOST_S:
        raise InputError(f"invalid {key} (expected a number of seconds >= {least:g})", where=path)
    return number


def _texts(key: str, value: object, path: Path) -> tuple[str, ...]:
    """Return a value as texts.

    Raises:
        InputError: it is of another type.
    """
    item = _BY_KEY[key]
    single = item.kind in _SINGLE
    if item.choices and value not in item.choices:
        raise InputError(f"invalid {key} (expected {', '.join(item.choices)})", where=path)
    if isinstance(value, str):
        return (value,) if value or not single else ()
    if not single and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    expected = {
        "directory": "a directory in quotes",
        "directories": "a list of directories",
        "text": "a text in quotes",
        "texts": "bell, terminal, a command, or a list of these" if key == "notify" else "a list of texts",
        "choice": ", ".join(item.choices),
    }[item.kind]
    raise InputError(f"invalid {key} (expected {expected})", where=path)


def _expanded(key: str, text: str, path: Path, environment: Mapping[str, str]) -> str:
    directory = expand(text, environment)
    if not directory.is_absolute():
        problem = "names a variable that is not set" if "$" in str(directory) else "is not an absolute path"
        raise InputError(
            f"{key} {problem}: '{clean(text)}'",
            where=path,
            fix="`distill-tui settings storage.runs DIR` sets another directory.",
        )
    return str(directory)


# ------------------------------------------------------------ edits


def set_setting(environment: Mapping[str, str], key: str, values: Sequence[str]) -> Path:
    """Write a setting into the file, which is made where there is none; return its path.

    An earlier directory of runs stays listed: it goes into `storage.earlier_runs`.

    Raises:
        InputError: there is no such setting, the value is none, or the file cannot be edited.
    """
    item, path = setting(key), settings_path(environment)
    value = _value(item, values, environment, lambda text: Path(os.path.abspath(text)))
    stored = read_user_text(path, "the settings")
    is_kept = Path(load_settings(environment).runs or os.devnull).is_dir()
    _write(path, _edited(stored, item, value, path, environment, is_kept=is_kept))
    if key == "storage.runs":
        cache_beside_runs(environment, Path(str(value)))
    return path


def set_setting_on(transport: Transport, key: str, values: Sequence[str]) -> Path:
    """Write a setting into the user's file on a transport's machine, like `set_setting`.

    Raises:
        InputError: there is no such setting, the value is none, or the file cannot be edited.
        TransportError: the machine does not answer.
    """
    environment = transport.environment()
    item, path = setting(key), settings_path(environment)
    value = _value(item, values, environment, lambda text: transport.path(text).absolute())
    runs = settings_on(transport, environment).runs
    is_kept = bool(runs) and transport.path(runs).is_dir()

    def change(stored: bytes | None) -> bytes:
        text = None if stored is None else stored.decode("utf-8", "surrogateescape")
        edited = _edited(text, item, value, path, environment, is_kept=is_kept)
        return edited.encode("utf-8", "surrogateescape")

    transport.change(str(path), change)
    return path


def _edited(
    stored: str | None,
    item: Setting,
    value: TomlValue,
    path: Path,
    environment: Mapping[str, str],
    *,
    is_kept: bool,
) -> str:
    """Return the file's text with a setting; `is_kept`: the directory of runs before is still there."""
    before = Settings() if stored is None else settings_of(stored, path, environment)
    text = _with(TEMPLATE if stored is None else stored, item, value, path)
    if item.key == "storage.runs" and is_kept and before.runs != value:
        others = [item for item in before.earlier_runs if item not in (before.runs, value)]
        text = _with(text, setting("storage.earlier_runs"), [*others, before.runs], path)
    _settings(_parse(text, path), path, environment)
    return text


def _value(
    item: Setting, values: Sequence[str], environment: Mapping[str, str], absolute_of: Callable[[str], Path]
) -> TomlValue:
    """Return the value to be written; `absolute_of` returns a path of the machine from its root.

    Raises:
        InputError: it is no value of the setting.
    """
    if item.kind == "texts":
        return values[0] if len(values) == 1 else list(values)
    if item.kind in _SINGLE and len(values) != 1:
        raise InputError(f"{item.key} takes one value, not {len(values)}")
    if item.kind in ("choice", "text"):
        return values[0]
    if item.kind == "seconds":
        return _number(item, values[0])
    if item.key == "storage.runs" and values[0] == KEEP:
        return str(default_runs_root(environment))
    paths = []
    for text in values:
        directory = expand(text, environment)
        if "$" in str(directory) or not text.strip():
            raise InputError(f"{item.key}: '{clean(text)}' is no directory (a variable in it is not set)")
        absolute = absolute_of(str(directory))
        if absolute.exists() and not absolute.is_dir():
            raise InputError(f"{item.key}: this is a file, not a directory", where=absolute)
        paths.append(str(absolute))
    return paths[0] if item.kind == "directory" else paths


def _number(item: Setting, text: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(
            f"invalid {item.key}: '{clean(text)}' (expected a number of seconds >= {item.least:g})"
        ) from None
    return int(number) if number.is_integer() else number


def _with(text: str, item: Setting, value: TomlValue, path: Path) -> str:
    """Return the file's text with a key set; all other lines stay.

    Raises:
        InputError: the key stands in a form that is not edited here (an inline table, a dotted key).
    """
    import tomllib

    expected = _parse(text, path)
    table = expected.setdefault(item.table, {}) if item.table else expected
    if isinstance(table, dict):
        table[item.name] = value
    edited = with_value(text, item.table, item.name, value)
    try:
        matches = tomllib.loads(edited) == expected
    except tomllib.TOMLDecodeError:
        matches = False
    if not matches:
        raise InputError(f"cannot edit {item.key} in this file", where=path, fix="Change it in an editor.")
    return edited


def _write(path: Path, text: str) -> None:
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        target = path.resolve()  # a link to a file in a directory of settings stays a link
        descriptor, temporary = tempfile.mkstemp(prefix=f".{FILE}.", dir=target.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"cannot write the settings: {error.strerror or error}", where=path) from error
