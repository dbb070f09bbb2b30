"""Which NeMo-RL checkout a job runs in, and what its files tell of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.checkout import VARIABLE, check_venv, choose, driver_venv, probe, remember, with_driver_of
from launcher.errors import InputError, TransportError
from launcher.transports.local import LocalTransport

DISTILLATION = "nemo_rl/algorithms/distillation.py"
INFO = "nemo_rl/package_info.py"
NEW = {
    "examples/run_distillation.py": "",
    INFO: 'MAJOR = 0\nMINOR = 7\nPATCH = 0\nPRE_RELEASE = "rc0"\n',
    DISTILLATION: "class MasterConfig(BaseModel, extra='allow'):\n    pass\n# checkpoint_must_save_by\n",
    "ray.sub": "log_phase() { echo [NRL_PHASE]; }\n",
    "nemo_rl/models/generation/vllm/vllm_worker_async.py": "pass\n",
    ".venv/bin/python": "",
}
OLD = {
    "examples/run_distillation_math.py": "",
    INFO: 'MAJOR = 0\nMINOR = 4\nPATCH = 1\nPRE_RELEASE = ""\n',
    DISTILLATION: "class MasterConfig(TypedDict):\n    pass\n",
    "ray.sub": "echo starting\n",
}
TRANSPORT = LocalTransport()


def checkout(place: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), **more}


def test_a_new_one(tmp_path: Path) -> None:
    found = probe(TRANSPORT, str(checkout(tmp_path, NEW)))
    assert (found.version, found.driver) == ("0.7.0rc0", "examples/run_distillation.py")
    assert found.features == {"validates", "save-by", "phases", "async"}
    assert found.python == str(tmp_path / ".venv/bin/python")


def test_an_old_one_has_another_driver_and_can_less(tmp_path: Path) -> None:
    found = probe(TRANSPORT, str(checkout(tmp_path, OLD)))
    assert (found.version, found.driver) == ("0.4.1", "examples/run_distillation_math.py")
    assert (found.features, found.python) == (frozenset(), None)


@pytest.mark.parametrize("text", [None, "", "MAJOR = 0\nMINOR = 7\n", "__version__ = '1'\n"])
def test_a_version_that_is_not_told_is_not_guessed(tmp_path: Path, text: str | None) -> None:
    files = {name: content for name, content in NEW.items() if name != INFO}
    found = probe(TRANSPORT, str(checkout(tmp_path, files | ({INFO: text} if text is not None else {}))))
    assert found.version is None
    assert "validates" in found.features


def test_the_flag_goes_before_the_variable_and_that_before_the_last(tmp_path: Path) -> None:
    one, two, three = (str(checkout(tmp_path / name, NEW)) for name in ("one", "two", "three"))
    known = environment(tmp_path)
    remember(TRANSPORT, probe(TRANSPORT, three), known)
    assert choose(TRANSPORT, None, known).path == three
    assert choose(TRANSPORT, None, known | {VARIABLE: two}).path == two
    assert choose(TRANSPORT, one, known | {VARIABLE: two}).path == one


def test_a_relative_path_and_one_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout(tmp_path / "rl", NEW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("rl", "~/rl"):
        assert choose(TRANSPORT, given, environment(tmp_path)).path == str(tmp_path / "rl")


def test_none_is_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not known") as refused:
        choose(TRANSPORT, None, environment(tmp_path))
    assert "--checkout" in refused.value.fix


@pytest.mark.parametrize("how", ["--checkout", VARIABLE, "checkout"])
def test_one_that_is_none_says_who_named_it(tmp_path: Path, how: str) -> None:
    nothing = str(tmp_path / "nothing")
    known = environment(tmp_path)
    if how == "checkout":
        (tmp_path / "config" / "distill-tui").mkdir(parents=True)
        (tmp_path / "config" / "distill-tui" / how).write_text(f"{nothing}\n")
    elif how == VARIABLE:
        known[VARIABLE] = nothing
    with pytest.raises(InputError, match=f"as given by .*{how}") as refused:
        choose(TRANSPORT, nothing if how == "--checkout" else None, known)
    assert refused.value.where == nothing


def test_a_place_that_cannot_be_written_forgets_and_does_not_fail(tmp_path: Path) -> None:
    found = probe(TRANSPORT, str(checkout(tmp_path / "rl", NEW)))
    (tmp_path / "config").write_text("a file")
    remember(TRANSPORT, found, environment(tmp_path))
    with pytest.raises(InputError, match="is not known"):
        choose(TRANSPORT, None, environment(tmp_path))


def test_the_driver_is_the_recipes(tmp_path: Path) -> None:
    gym = "examples/nemo_gym/run_distillation_nemo_gym.py"
    usual = probe(TRANSPORT, str(checkout(tmp_path, {**NEW, gym: "", "examples/run_grpo.py": ""})))
    plain: dict[str, object] = {"policy": {}, "teacher": {}, "distillation": {}}
    assert with_driver_of(TRANSPORT, usual, plain) == (usual, "")
    found, note = with_driver_of(TRANSPORT, usual, {**plain, "env": {"should_use_nemo_gym": True}})
    assert (found.driver, found.path) == (gym, usual.path)
    assert gym in note
    assert "should_use_nemo_gym" in note
    kept, note = with_driver_of(TRANSPORT, usual, {**plain, "teachers": []})
    assert kept == usual
    assert "no driver" in note


def test_the_driver_s_environment(tmp_path: Path) -> None:
    """RAY_BARE_VENV of the job, else the checkout's own, else the one that uv has for projects."""
    checkout, other = str(tmp_path / "c"), tmp_path / "other venv"
    transport = LocalTransport()

    def venv(job: dict[str, str], shell: dict[str, str]) -> str:
        return str(driver_venv(transport, checkout, job, shell))

    of_uv = {"UV_PROJECT_ENVIRONMENT": str(other)}
    assert venv({}, of_uv) == f"{checkout}/.venv"  # there is no Ray in it
    for path in (other, tmp_path / "c" / "made"):
        (path / "bin").mkdir(parents=True)
        (path / "bin" / "ray").write_text("")
    assert venv({}, of_uv) == str(other)
    assert venv({}, {"UV_PROJECT_ENVIRONMENT": "made"}) == f"{checkout}/made"
    assert venv({"RAY_BARE_VENV": "/v"}, of_uv) == "/v"
    (tmp_path / "c" / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "c" / ".venv" / "bin" / "python").write_text("")
    assert venv({}, of_uv) == f"{checkout}/.venv"
    with pytest.raises(TransportError) as raised:
        check_venv(transport, tmp_path / "none", {"CONDA_PREFIX": str(other)})
    assert raised.value.fix.endswith(f"export RAY_BARE_VENV='{other}'")
