"""Which machine a command works on: `--host` before or behind it, the settings, and a name that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.transports.ssh.ssh_config import similar_host
from tui.cli import parse
from tui.cli.parser import UsageError
from tui.work_machine import LineState


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "distill-tui" / "settings.toml"
    path.parent.mkdir()
    return path


@pytest.mark.parametrize(
    ("words", "without", "with_default"),
    [
        ([], None, "usual"),
        (["--host", "far"], "far", "far"),
        (["--host", "here"], None, None),
        (["runs"], None, "usual"),
        (["--host", "far", "runs", "--json"], "far", "far"),
        (["--host", "far", "runs", "--host", "other"], "other", "other"),
        (["runs", "--host=here"], None, None),
        (["--no-mouse", "--host=far", "watch", "RUN"], "far", "far"),
        (["fetch", "RUN", "--to", "x", "--host", "far"], "far", "far"),
    ],
)
def test_the_host_of_a_command(
    settings: Path, words: list[str], without: str | None, with_default: str | None
) -> None:
    assert parse("0", words).host == without
    settings.write_text('[hosts]\ndefault = "usual"\nlist = ["a", "b"]\n')
    assert parse("0", words).host == with_default


def test_a_command_of_this_machine_alone_says_so(settings: Path) -> None:
    settings.write_text('[hosts]\ndefault = "usual"\n')
    assert not getattr(parse("0", ["launcher", "export", "d"]), "host", None)
    with pytest.raises(UsageError, match="launcher export: takes no --host"):
        parse("0", ["--host", "far", "launcher", "export", "d"])


def test_a_name_that_is_nearly_a_host(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host juwels jureca\n")
    environment = {"HOME": str(tmp_path)}
    assert similar_host("juwles", environment) == "; did you mean juwels?"
    assert similar_host("juwels", environment) == similar_host("quite-another", environment) == ""


def test_what_a_screen_says_of_a_connection() -> None:
    assert LineState("far", "up", 1.0).in_words(99.0) == ""
    assert LineState("far", "connecting").in_words(0) == "connecting to far …"
    lost = LineState("far", "lost", 100.0, 4.6, "no answer in time")
    expected = "reconnecting to far (last data 12s ago): no answer in time; next attempt in 5 s"
    assert lost.in_words(112.0) == expected
    assert LineState("far", "refused", problem="far: no").in_words(0) == "not connected: far: no"
