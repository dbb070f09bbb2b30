"""Settings of the screen: what is read, what is refused, and the theme that is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from launcher.errors import InputError
from launcher.request import SubmitRequest, with_profile
from launcher.settings import SETTINGS, TEMPLATE, load_settings, set_setting, settings_path
from launcher.sites import Machine, Profile, recognise, site_here
from launcher.transports.local import LocalTransport
from tui.cli import main
from tui.screen_settings import ScreenSettings, keep_theme, load_screen_settings


def home(tmp_path: Path, text: str | None = None) -> dict[str, str]:
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    if text is not None:
        path = settings_path(environment)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return environment


def test_what_is_set_is_read(tmp_path: Path) -> None:
    environment = home(tmp_path)
    assert load_screen_settings(environment) == ScreenSettings()
    for key, value in (
        ("screen.theme", "nord"), ("screen.density", "compact"), ("polling.runs_s", "10"),
        ("polling.logs_s", "0.5"),
    ):  # fmt: skip
        set_setting(environment, key, [value])
    assert load_screen_settings(environment) == ScreenSettings("nord", True, 10.0, 0.5)
    text = settings_path(environment).read_text()
    assert "runs_s = 10\n" in text
    assert "# Colour theme" in text


def test_the_theme_that_was_chosen_is_kept_with_the_comments(tmp_path: Path) -> None:
    environment = home(tmp_path, '# mine\n[screen]\ntheme = "nord" # dark\n')
    keep_theme(environment, "dracula")
    assert settings_path(environment).read_text() == '# mine\n[screen]\ntheme = "dracula" # dark\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[screen]\ntheme = 'norf'", "unknown theme 'norf'; did you mean nord?"),
        ("[screen]\ntheme = 3", "invalid screen.theme (expected a text in quotes)"),
        ("[screen]\ndensity = 'tight'", "invalid screen.density (expected comfortable, compact)"),
        ("[polling]\nruns_s = 0.1", "invalid polling.runs_s (expected a number of seconds >= 1)"),
        ("[polling]\nqueue_s = true", "invalid polling.queue_s (expected a number of seconds >= 15)"),
        ("[polling]\nlogs_s = nan", "invalid polling.logs_s"),
        ("[polling]\nlog_s = 1", "unknown setting 'polling.log_s'; did you mean polling.logs_s?"),
    ],
)
def test_what_is_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        load_screen_settings(home(tmp_path, text))
    assert message in refused.value.what


@pytest.mark.parametrize(
    ("key", "value"), [("polling.runs_s", "often"), ("polling.queue_s", "3"), ("screen.density", "wide")]
)
def test_what_is_none_is_not_written(tmp_path: Path, key: str, value: str) -> None:
    environment = home(tmp_path)
    with pytest.raises(InputError, match="invalid"):
        set_setting(environment, key, [value])
    assert not settings_path(environment).exists()


def test_the_command_writes_no_theme_with_which_the_app_would_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in home(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert main("0", ["settings", "screen.theme", "norf"]) == 2
    assert "unknown theme 'norf'; did you mean nord?" in capsys.readouterr().err
    assert not settings_path(home(tmp_path)).exists()
    assert main("0", ["settings", "screen.theme", "nord"]) == 0
    assert load_screen_settings(home(tmp_path)).theme == "nord"


def test_every_setting_of_a_table_is_in_the_commented_file(tmp_path: Path) -> None:
    documented = [item for item in SETTINGS if item.key not in ("storage.earlier_runs",)]
    for item in documented:
        if not item.key.startswith("monitor."):  # the monitor writes those itself
            assert f"# {item.name} = " in TEMPLATE, item.key
    assert load_settings(home(tmp_path, TEMPLATE)) == load_settings(home(tmp_path / "none"))


def test_site_and_queue_of_the_settings_go_before_what_is_recognised(tmp_path: Path) -> None:
    environment = home(tmp_path, '[defaults]\nsite = "juwels-booster"\n[polling]\nqueue_s = 200\n')
    site = site_here(LocalTransport(), environment)
    assert (site.id, site.front_s, site.behind_s) == ("juwels-booster", 200.0, 200.0)
    with pytest.raises(InputError, match=r"invalid defaults\.site: 'nowhere' \(expected .*generic"):
        site_here(LocalTransport(), home(tmp_path, '[defaults]\nsite = "nowhere"\n'))


def test_a_default_profile_answers_where_none_is_named() -> None:

    site = replace(
        recognise(Machine("somewhere")), profiles={"mine": Profile(partition="p")}, default_profile="mine"
    )
    request = SubmitRequest(Path("r.yaml"), 1)
    assert with_profile(request, site).partition == "p"
    assert with_profile(request, site).profile == "mine"
    assert with_profile(replace(request, profile=""), site).profile is None
    with pytest.raises(InputError, match=r"invalid defaults\.profile: unknown profile 'gone'"):
        with_profile(request, replace(site, default_profile="gone"))
