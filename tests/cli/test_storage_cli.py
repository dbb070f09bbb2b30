"""Where runs are kept, on the command line: the question, settings, disk use, moves, profiles."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import distill_tui
from launcher.request import SubmitRequest
from launcher.submit.submit import plan_submission, storage_of
from tests.launcher.ordering import Desk
from tests.slurm.commands import install
from tui.cli import main

Run = Callable[..., tuple[int, str, str]]
NAMES = ("HF_HOME", "HF_HUB_CACHE", "RAY_BARE_VENV", "SLURM_CONF", "HF_TOKEN", "WANDB_API_KEY")
PROGRAM = "import distill_tui, sys; sys.exit(distill_tui.main())"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a login node whose user has decided nothing, and has a scratch directory."""
    desk = Desk.at(tmp_path / "home")
    for name in [*NAMES, *(name for name in os.environ if name.startswith(("SCRATCH", "PROJECT", "WORK")))]:
        monkeypatch.delenv(name, raising=False)
    for name, value in install(desk).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DISTILL_TUI_RUNS")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("SCRATCH", str(tmp_path / "scratch"))
    return desk


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(distill_tui.__version__, list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return command


def at_terminal(arguments: list[str], typed: str) -> tuple[int, str]:
    """Run the command at a terminal where something is typed; return its exit code and what it showed."""
    own, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    os.close(its)
    os.write(own, typed.encode())
    shown = b""
    while True:
        try:
            piece = os.read(own, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(own)
    return process.wait(60), shown.decode().replace("\r\n", "\n")


def smoke(desk: Desk) -> list[str]:
    return ["submit", str(desk.recipe), "--nodes", "1", "--time", "30m", "--smoke"]


def test_without_a_terminal_a_hint_names_the_command(desk: Desk, run: Run, tmp_path: Path) -> None:
    code, out, said = run(*smoke(desk), "--dry-run", "--json")
    assert code == 0, said
    assert "which is in your home directory" in said
    assert "`distill-tui settings storage.runs DIR`" in said
    assert f"such as {tmp_path}/scratch/u/distill-tui/runs" in said
    storage = json.loads(out)["storage"]
    assert (storage["runs_in_home"], storage["checkpoints_kept"]) == (True, 1)
    assert storage["checkpoint_bytes"] == storage["peak_bytes"] > 1e9
    run("settings", "storage.runs", "keep")
    assert "in your home directory" not in run(*smoke(desk), "--dry-run")[2]


@pytest.mark.long
def test_at_a_terminal_it_is_asked_once(desk: Desk, tmp_path: Path) -> None:
    code, shown = at_terminal(smoke(desk), "7\n/dev/null/x\n1\n")
    assert code == 0, shown
    assert "A checkpoint of models/student with Adam is about" in shown
    assert "there is no answer 7" in shown
    assert "runs cannot be kept there" in shown
    root = tmp_path / "scratch" / "u" / "distill-tui" / "runs"
    (directory,) = root.glob("[0-9]*")
    effective = (directory / "effective.yaml").read_text()
    assert f"{root}/" in effective
    assert "removes its checkpoint" in shown
    assert not (Path(os.environ["HOME"]) / ".local").exists()
    code, shown = at_terminal(smoke(desk), "")
    assert code == 0
    assert "home directory" not in shown
    assert len(list(root.glob("[0-9]*"))) == 2


def test_a_smoke_run_saves_once_whatever_the_recipe_says(desk: Desk, run: Run) -> None:
    ours = ["checkpointing.save_period=1", "++checkpointing.ft_save_period=2", "checkpointing.keep_top_k=9"]
    code, out, said = run(*smoke(desk), *ours, "--dry-run", "--json")
    assert code == 0, said
    effective = json.loads(out)["effective"]
    for line in ("save_period: 5", "ft_save_period: 5", "keep_top_k: 1", "max_num_steps: 5"):
        assert f"  {line}\n" in effective


def test_disk_use_moves_and_removal(desk: Desk, run: Run, tmp_path: Path) -> None:
    assert run(*smoke(desk), "--yes")[0] == 0
    (row,) = json.loads(run("runs", "--json")[1])["runs"]
    directory = Path(row["dir"])
    checkpoint = directory / "output" / "checkpoints" / "step_5"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_bytes(b"x" * 100_000)
    code, out, _ = run("runs", "--move", str(tmp_path / "big"), row["run"])
    assert code == 1
    assert "not moved: " in out
    summary = {"schema": 1, "state": "completed", "reason": "", "metrics": {"step": 5, "max_steps": 5}}
    (directory / "summary.json").write_text(json.dumps(summary))
    used = json.loads(run("runs", "--disk-use", "--json")[1])
    assert 100_000 <= used["checkpoints_bytes"] < 200_000
    assert used["bytes"] == used["runs"][0]["bytes"] > used["checkpoints_bytes"]
    assert "checkpoints 1" in run("runs", "--disk-use")[1]
    code, out, _ = run("runs", "--move", str(tmp_path / "big"), "--json")
    assert code == 0
    (moved,) = json.loads(out)["runs"]
    assert (moved["moved"], moved["to"]) == (True, str(tmp_path / "big" / row["run"]))
    for root in (None, str(tmp_path / "big")):
        if root:
            run("settings", "storage.runs", root)
        (listed,) = json.loads(run("runs", "--json")[1])["runs"]
        assert (listed["run"], listed["state"]) == (row["run"], "completed")
        assert json.loads(run("report", row["run"], "--json")[1])["run"] == row["run"]
    assert "checkpoints removed" in run("runs", "--remove-checkpoints", row["run"])[1]
    assert run("runs", "--remove-checkpoints")[0] == 2
    assert not (tmp_path / "big" / row["run"] / "output" / "checkpoints").exists()


def test_profiles_and_sites(desk: Desk, run: Run, tmp_path: Path) -> None:
    site = Path(os.environ["XDG_CONFIG_HOME"], "distill-tui", "site.toml")
    text = site.read_text()
    site.write_text(text + "[profiles.debug]\npartition = 'devel'\ntime = '30m'\nnodes = 1\n")
    assert run("profile", "check")[0] == 0
    assert 'partition = "devel"' in run("profile", "show", "debug")[1]
    assert json.loads(run("profile", "show", "--json")[1])["profiles"]["debug"]["nodes"] == 1
    code, out, said = run("submit", str(desk.recipe), "--profile", "debug", "--dry-run", "--json")
    assert code == 0, said
    assert {"--partition=devel", "--nodes=1", "--time=00:30:00"} <= set(json.loads(out)["plan"]["argv"])
    code, _, said = run("submit", str(desk.recipe), "--profile", "debgu", "--dry-run")
    assert code == 2
    assert "did you mean debug?" in said
    assert run("submit", str(desk.recipe), "--dry-run")[0] == 2
    site.write_text(text + "[profiles.debug]\npartition = 'devle'\naccount = 'frist'\n")
    code, out, _ = run("profile", "check", "debug")
    assert code == 1
    assert "Slurm lists no 'devle'; did you mean devel?" in out
    assert "'frist' is none of yours; did you mean first?" in out
    site.write_text(text + "[profiles.debug]\npartitoin = 'devel'\n")
    code, _, said = run("submit", str(desk.recipe), "--time", "1", "--profile", "debug", "--dry-run")
    assert code == 2
    assert "unknown key 'partitoin'; did you mean partition? (in [profiles.debug])" in said
    assert f"{site}:4" in said


def test_a_site_travels_as_a_file_without_secrets(desk: Desk, run: Run, tmp_path: Path) -> None:
    site = Path(os.environ["XDG_CONFIG_HOME"], "distill-tui", "site.toml")
    site.write_text('[job.environment]\nA = "b"\nMY_API_KEY = "s3cret"\n[profiles.a]\ntime = "30m"\n')
    exported = run("site", "export")[1]
    assert "s3cret" not in exported
    (tmp_path / "site.toml").write_text(exported)
    assert run("site", "import", str(tmp_path / "site.toml"))[0] == 2
    assert "s3cret" in site.read_text()
    assert run("site", "import", str(tmp_path / "site.toml"), "--replace")[0] == 0
    assert json.loads(run("site", "show", "--json")[1])["job"]["environment"] == {"A": "b"}
    (tmp_path / "wrong.toml").write_text("[jobs]\n")
    assert run("site", "import", str(tmp_path / "wrong.toml"), "--replace")[0] == 2
    assert site.read_text() == exported
    site.unlink()
    assert run("site", "import", str(tmp_path / "site.toml"))[0] == 0


def test_an_edit_is_checked_and_can_be_gone_back_to(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = Path(os.environ["XDG_CONFIG_HOME"], "distill-tui", "site.toml")
    site.unlink()
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        'if grep -q nodess "$1"; then sed -i s/nodess/nodes/ "$1"; else echo "nodess = 2" >> "$1"; fi\n'
    )
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    code, shown = at_terminal(["profile", "edit", "debug"], "y\n")
    assert code == 0, shown
    assert "unknown key 'nodess'; did you mean nodes?" in shown
    assert "[profiles.debug]" in site.read_text()
    assert site.read_text().startswith("# Facts about your site")
    site.write_text("[profiles.debug]\nnode = 2\n")
    code, shown = at_terminal(["profile", "edit", "debug"], "n\n")
    assert code == 2


# ------------------------------------------------------------ a small home directory


@pytest.fixture
def small_home(tmp_path: Path) -> Iterator[Path]:
    """Return a home directory on a file system of 1 MB; only root can make one."""
    home = tmp_path / "small"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(home)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs root to mount a small file system")
    yield home
    subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_small_home_directory_is_told_to_be_too_small(
    small_home: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environment = {**os.environ, "HOME": str(small_home)}
    store = desk.store.__class__(desk.transport, str(small_home / "runs"))

    request = SubmitRequest(desk.recipe, 1, "30m", kind="smoke")
    storage = storage_of(plan_submission(request, desk.detection, store, environment), store, environment)
    assert storage.root.in_home is True
    assert storage.root.free_bytes is not None
    assert storage.root.free_bytes <= 1 << 20
    (warning,) = storage.warnings()
    assert warning.startswith("checkpoints do not fit: 1.0 MB free in ")
    elsewhere = desk.store.__class__(desk.transport, str(tmp_path / "scratch"))
    plan = plan_submission(request, desk.detection, elsewhere, environment)
    assert storage_of(plan, elsewhere, environment).root.in_home is False
