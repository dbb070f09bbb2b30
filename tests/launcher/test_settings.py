"""The settings file: what is read, what is refused, edits that keep the rest."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.errors import InputError
from launcher.paths import cache_root, config_root, default_runs_root, earlier_runs_roots, runs_root
from launcher.settings import KEEP, load_settings, set_setting, settings_path


def home(tmp_path: Path, text: str | None = None) -> dict[str, str]:
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    if text is not None:
        path = settings_path(environment)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return environment


def test_the_variable_goes_before_the_setting_which_goes_before_the_default(tmp_path: Path) -> None:
    environment = home(tmp_path)
    assert runs_root(environment) == tmp_path / ".local/state/distill-tui/runs"
    set_setting(environment, "storage.runs", [str(tmp_path / "big")])
    assert runs_root(environment) == tmp_path / "big"
    assert runs_root({**environment, "DISTILL_TUI_RUNS": "/r"}) == Path("/r")


def test_paths_may_name_the_home_and_variables_that_are_set(tmp_path: Path) -> None:
    environment = home(tmp_path, '[storage]\nruns = "$SCRATCH/runs"\n')
    assert runs_root({**environment, "SCRATCH": "/s"}) == Path("/s/runs")
    with pytest.raises(InputError, match="a variable that is not set"):
        runs_root(environment)
    assert runs_root(home(tmp_path, '[storage]\nruns = "~/x"\n')) == tmp_path / "x"
    with pytest.raises(InputError, match="not an absolute path"):
        runs_root(home(tmp_path, '[storage]\nruns = "x"\n'))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('notfy = "bell"', "unknown setting 'notfy'; did you mean notify?"),
        ("[storage]\nrun = '/r'", "unknown setting 'storage.run'; did you mean storage.runs?"),
        ("[storge]\nruns = '/r'", "unknown setting 'storge'; did you mean storage?"),
        ("[storage]\nruns = 3", "invalid storage.runs"),
        ("[storage]\nearlier_runs = [3]", "invalid storage.earlier_runs"),
        ("storage = 3", "unknown setting 'storage'"),
        ("[storage", "cannot read the settings"),
    ],
)
def test_what_is_none_is_refused(tmp_path: Path, text: str, says: str) -> None:
    environment = home(tmp_path, text)
    with pytest.raises(InputError) as refused:
        load_settings(environment)
    assert says in refused.value.what
    assert refused.value.where == settings_path(environment)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '\n[storage]\nruns = "/r"\n'.lstrip()),
        ("# mine\n[storage] # here\n", '# mine\n[storage] # here\nruns = "/r"\n'),
        ("[storage]\nruns = '/a'  # why\n\n# end\n", '[storage]\nruns = "/r"  # why\n\n# end\n'),
        (
            '[storage]\r\nruns = "/a#b" # c\r\nearlier_runs = []\r\n',
            '[storage]\r\nruns = "/r" # c\r\nearlier_runs = []\r\n',
        ),
        ("notify = [\n 'bell', # [\n 'a ] b',\n] # x\n", "notify = [\n 'bell', # [\n 'a ] b',\n] # x\n"),
    ],
)
def test_an_edit_keeps_the_other_lines(tmp_path: Path, before: str, after: str) -> None:
    environment = home(tmp_path, before)
    path = set_setting(environment, "storage.runs", ["/r"])
    text = path.read_bytes().decode()
    assert text.startswith(after)
    assert load_settings(environment).runs == "/r"


def test_a_value_over_several_lines_is_replaced_as_a_whole(tmp_path: Path) -> None:
    text = "notify = [\n 'bell', # [\n 'a ] b',\n] # x\n# storage\n[storage]\nruns = '/r'\n"
    environment = home(tmp_path, text)
    path = set_setting(environment, "notify", ["terminal"])
    assert path.read_text() == "notify = \"terminal\" # x\n# storage\n[storage]\nruns = '/r'\n"


def test_a_first_key_goes_above_the_comment_of_the_next_table(tmp_path: Path) -> None:
    environment = home(tmp_path, "# top\n\n# of storage\n[storage]\n")
    path = set_setting(environment, "notify", ["bell"])
    assert path.read_text() == '# top\nnotify = "bell"\n\n# of storage\n[storage]\n'


@pytest.mark.parametrize("text", ['storage = {runs = "/a"}\n', 'storage.runs = "/a"\n'])
def test_forms_that_are_not_edited_are_left_alone(tmp_path: Path, text: str) -> None:
    environment = home(tmp_path, text)
    with pytest.raises(InputError, match=r"cannot edit storage\.runs"):
        set_setting(environment, "storage.runs", ["/r"])
    assert settings_path(environment).read_text() == text


def test_an_earlier_directory_of_runs_stays_listed(tmp_path: Path) -> None:
    environment = home(tmp_path)
    default = runs_root(environment)
    default.mkdir(parents=True)
    first, second = tmp_path / "first", tmp_path / "second"
    for directory in (first, second):
        directory.mkdir()
        set_setting(environment, "storage.runs", [str(directory)])
    assert runs_root(environment) == second
    assert earlier_runs_roots(environment) == (first, default)
    set_setting(environment, "storage.runs", [KEEP])
    assert runs_root(environment) == default
    assert earlier_runs_roots(environment) == (first, second)
    assert earlier_runs_roots({**environment, "DISTILL_TUI_RUNS": "/r"}) == ()


def test_a_file_is_no_directory_of_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="a file, not a directory"):
        set_setting(home(tmp_path), "storage.runs", [str(tmp_path / "file")])


@given(
    values=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1), min_size=2)
)
def test_any_text_can_be_a_value(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    environment = home(tmp_path_factory.mktemp("s"))
    path = set_setting(environment, "notify", values)
    assert tomllib.loads(path.read_text(encoding="utf-8"))["notify"] == values
    assert "# Notifications" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("value", ["relative/config", "./x", ""])
def test_a_base_directory_that_is_relative_counts_as_none(value: str) -> None:
    environment = {
        "HOME": "/home/u",
        "XDG_CONFIG_HOME": value,
        "XDG_CACHE_HOME": value,
        "XDG_STATE_HOME": value,
    }
    assert config_root(environment) == Path("/home/u/.config/distill-tui")
    assert cache_root(environment) == Path("/home/u/.cache/distill-tui")
    assert default_runs_root(environment) == Path("/home/u/.local/state/distill-tui/runs")
