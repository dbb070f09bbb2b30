"""Choices that are remembered for a site."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.environment import EnvironmentChoices
from launcher.errors import InputError
from launcher.site_choices import load_choices, remember_choices
from launcher.transports.local import LocalTransport

HERE = LocalTransport()


def test_choices_come_back_for_their_site_only(tmp_path: Path) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    chosen = EnvironmentChoices({"HF_HOME": "/a"}, frozenset({"OPENAI_API_KEY"}), frozenset({"NCCL_DEBUG"}))
    remember_choices(HERE, own, "juwels-booster", chosen)
    remember_choices(HERE, own, "juwels-booster", EnvironmentChoices(dropped=frozenset({"HF_HOME"})))
    remembered = load_choices(HERE, own, "juwels-booster").environment
    assert remembered == EnvironmentChoices(
        {}, frozenset({"OPENAI_API_KEY"}), frozenset({"NCCL_DEBUG", "HF_HOME"})
    )
    assert load_choices(HERE, own, "generic").environment == EnvironmentChoices()


def test_a_secrets_value_is_never_written(tmp_path: Path) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    remember_choices(HERE, own, "s", EnvironmentChoices({"MY_TOKEN": "tok-123", "URL": "http://u:pw9@h/"}))
    (file,) = tmp_path.rglob("sites.json")
    assert "tok-123" not in file.read_text()
    assert "pw9" not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{", '{"sites": 3}', '{"sites": {"s": {"passed": 1}}}', "\ud800"])
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path)}
    remember_choices(HERE, own, "s", EnvironmentChoices(dropped=frozenset({"A"})))
    (file,) = tmp_path.rglob("sites.json")
    data = text.encode("utf-8", "surrogatepass")
    file.write_bytes(data)
    with pytest.raises(InputError, match="damaged") as caught:
        load_choices(HERE, own, "s")
    assert str(file) in str(caught.value)
    remember_choices(HERE, own, "s", EnvironmentChoices(dropped=frozenset({"B"})))
    assert file.read_bytes() == data
