"""The app on a laptop with `--host`, by keys in a terminal: runs, recipes, the wizard, and a bad line."""

from __future__ import annotations

import getpass
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recipes.library import starting_recipes
from tests.ssh.far_app import FarApp, far_app
from tests.ssh.test_dashboard import NODE, TOKEN, ask, browse, dashboard_page
from tests.tui.replay import running

pytestmark = pytest.mark.long
"""Each takes 3 to 8 s of CPU; those of more than 5 are slow besides."""
SECRET = "3132333435363738393031323334353637383930"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FarApp]:
    """Return a laptop, and a host that a key alone opens."""
    with far_app(tmp_path) as app:
        yield app


@pytest.fixture
def code_app(tmp_path: Path) -> Iterator[FarApp]:
    """Return a laptop, and a host that asks for a code after the key, by a real PAM."""
    if os.geteuid() != 0 or not Path("/lib/x86_64-linux-gnu/security/pam_oath.so").exists():
        pytest.skip("a PAM of its own is made by root only (Debian: libpam-oath)")
    users, pam = tmp_path / "users.oath", tmp_path / "pam"
    users.write_text(f"HOTP/T30/6 {getpass.getuser()} - {SECRET}\n")
    users.chmod(0o600)
    pam.write_text(
        f"auth required pam_oath.so usersfile={users} window=3 digits=6\naccount required pam_permit.so\n"
        "session required pam_permit.so\n"
    )
    wrapper = ["unshare", "-m", "sh", "-c", f'mount --bind {pam} /etc/pam.d/sshd && exec "$@"', "sh"]
    options = (
        "UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication no",
        "AuthenticationMethods publickey,keyboard-interactive",
    )  # fmt: skip
    with far_app(tmp_path, *options, wrapper=wrapper) as app:
        yield app


def some_runs(app: FarApp) -> None:
    """Make a run here, and two on the host, of which one lives."""
    far, here = app.node.runs, app.own_runs
    running(far, host="elsewhere", identity="20261128-040000-live-0004", name="far-live")
    running(far, "", host="elsewhere", identity="20261128-030000-done-0003", name="far-done").finish(0)
    running(here, "", host="elsewhere", identity="20261128-020000-here-0002", name="own-done").finish(0)


def select(app: FarApp, name: str) -> None:
    """Move the cursor to a row of the list; its details name it, the text between the rows does not."""
    rows = {"far-live": "live-0004", "far-done": "done-0003", "own-done": "here-0002"}

    def selected(text: str) -> str:
        return next((row for row, identity in rows.items() if identity in text), "")

    app.tmux.until(lambda text: bool(selected(text)), "a row is selected")
    key = "Down"
    while (before := selected(app.tmux.text)) != name:
        app.tmux.press(key)
        end = time.monotonic() + 5.0
        while selected(app.tmux.text) == before and time.monotonic() < end:
            time.sleep(0.1)
        # At the end of the list nothing moves: once more from its beginning.
        key = "Down" if selected(app.tmux.text) != before else "g"


@pytest.mark.slow
def test_runs_here_and_there_and_a_line_that_breaks(app: FarApp) -> None:
    some_runs(app)
    app.start("--host", "far")
    app.tmux.see("far-live", "far-done", "own-done", "3 runs here and on far")
    app.tmux.until(lambda text: text.count("✓ completed") >= 2, "all runs are read")
    select(app, "own-done")
    assert "on far ·" not in app.tmux.text
    select(app, "far-live")
    app.tmux.see("on far · rehearsal")
    app.tmux.press("Enter")
    app.tmux.see("● running  far: far-live", "All workers connected", "c cancel")
    app.relay.refuse()
    app.tmux.see("● running~ ", "! reconnecting to far (last data")
    app.relay.accept()
    app.tmux.until(lambda text: "reconnecting" not in text and "running~" not in text, "it is back", 60)
    app.tmux.press("b")
    app.tmux.see("own-done")
    app.relay.refuse()
    app.tmux.see("running~", "! reconnecting to far (last data")
    app.relay.accept()
    app.tmux.until(lambda text: "running~" not in text, "it is back", 60)
    app.tmux.resize(160, 48)
    app.tmux.until(lambda text: " far " in text.partition("far-live")[2].partition("\n")[0], "column host")


@pytest.mark.slow
def test_an_order_goes_to_the_host(app: FarApp) -> None:
    some_runs(app)
    app.start("--host", "far")
    app.tmux.see("far-done", "3 runs")
    app.tmux.until(lambda text: text.count("✓ completed") >= 2, "all runs are read")
    select(app, "far-done")
    app.tmux.press("F2")
    app.tmux.see("Rename the run")
    app.tmux.type("renamed there")
    app.tmux.press("Enter")
    app.tmux.see("renamed far-done to renamed there")
    spec = json.loads((app.node.runs / "20261128-030000-done-0003" / "run.json").read_text())
    assert spec["name"] == "renamed there"
    app.tmux.press("d")
    app.tmux.see("Remove this run?", "on disk")
    app.tmux.press("y")
    app.tmux.until(lambda text: "removed 1 run, " in text and "renamed there" not in text, "removed")
    assert "at least" not in app.tmux.text
    assert not (app.node.runs / "20261128-030000-done-0003").exists()
    assert (app.own_runs / "20261128-020000-here-0002").exists()


@pytest.mark.slow
def test_the_wizard_over_the_host_to_the_review_and_a_job(app: FarApp) -> None:
    app.start("new", str(app.node.recipe), "--host", "far")
    app.tmux.see("booster", "distill", "far")
    for _ in range(6):
        app.tmux.press("NPage")
    app.tmux.see("Review", "Job", "of booster for", limit_s=60)
    app.tmux.press("F8" if "F8 submit" in app.tmux.text else "s")
    app.tmux.see("Submit?", limit_s=60)
    app.tmux.press("y")
    app.tmux.see("far: recipe  ", "b runs", limit_s=60)
    (run,) = [path for path in app.node.runs.iterdir() if not path.name.startswith(".")]
    assert json.loads((run / "jobs.json").read_text())["jobs"][0]["id"] == "4711"
    assert not app.own_runs.exists()
    assert sum("--test-only" not in line for line in app.node.asked("sbatch")) == 1


def test_the_editor_saves_a_recipe_there_with_only_the_meant_line_changed(app: FarApp) -> None:
    recipe = app.node.recipe
    before = recipe.read_text().splitlines()
    app.start("edit", "--host", "far", str(recipe))
    app.tmux.see("recipe.yaml  on far", "num_prompts_per_step", "no failure predicted", limit_s=60)
    app.tmux.press("/")
    app.tmux.type("num_prompts_per_step")
    app.tmux.see("num_prompts_per_step")
    app.tmux.press("Enter", "Enter")
    app.tmux.type("8")
    app.tmux.press("Enter")
    app.tmux.see("modified, 1 line", limit_s=60)
    assert recipe.read_text().splitlines() == before
    app.tmux.press("w")
    app.tmux.see("saved recipe.yaml: 1 line changed", limit_s=60)
    after = recipe.read_text().splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert [line.split("#")[0].strip() for line in changed] == ["num_prompts_per_step: 8"]


def test_a_code_is_asked_for_once_on_the_screen_and_not_shown(code_app: FarApp) -> None:
    app = code_app
    some_runs(app)
    app.start("--host", "far")
    app.tmux.see("Log in to far", "One-time password", "far asks a question")
    code = subprocess.run(["oathtool", "--totp", SECRET], check=True, capture_output=True, text=True)
    app.tmux("send-keys", "-l", code.stdout.strip())
    app.tmux.see("••••••")
    assert code.stdout.strip() not in app.tmux.text
    app.tmux.press("Enter")
    app.tmux.see("far-live", "far-done")
    app.tmux.until(lambda text: text.count("✓ completed") >= 2, "all runs are read")
    select(app, "far-live")
    app.tmux.press("Enter")
    app.tmux.see("● running  far: far-live", "All workers connected")
    assert "Log in" not in app.tmux.text
    assert app.relay.connections == 1


def test_giving_up_is_no_loop(code_app: FarApp) -> None:
    app = code_app
    app.start("--host", "far")
    app.tmux.see("Log in to far")
    app.tmux.press("Escape")
    app.tmux.see("far: no answer; not connected", "OK")
    app.tmux.press("o")
    app.tmux.see("not connected: far: no answer", "f5 tries again")
    app.tmux.press("F5")
    app.tmux.see("Log in to far")


def test_a_host_key_that_is_not_known_is_refused_with_its_fingerprint(app: FarApp) -> None:
    config = app.directory / "config"
    known = next(line for line in config.read_text().split("\n") if "UserKnownHostsFile" in line).split()[1]
    right = Path(known).read_text()
    Path(known).write_text("")
    app.start("--host", "far")
    app.tmux.see("the host key of 127.0.0.1 is unknown", "SHA256:", "ssh far")
    app.tmux.press("o")
    app.tmux.see("not connected: far: the host key", "n new")
    Path(known).write_text(right)
    some_runs(app)
    app.tmux.press("F5")
    app.tmux.see("far-live")


def test_the_dashboard_is_opened_by_a_key_and_closed_with_the_app(app: FarApp) -> None:
    some_runs(app)
    (logs,) = (app.node.runs / "20261128-040000-live-0004" / "logs").glob("*-logs")
    with dashboard_page() as port:
        with (logs / "launcher.log").open("a") as file:
            file.write(f"[x] ray_bare.sub started (job=1 nodes=1 node={NODE})\n")
        with (logs / "ray-head.log").open("a") as file:
            file.write(f"\nView the dashboard at \n  127.0.0.1:{port}\n".lower())
        (logs / ".ray-token").write_text(TOKEN)
        app.start("--host", "far")
        app.tmux.see("far-live", "3 runs here and on far")
        app.tmux.until(lambda text: text.count("✓ completed") >= 2, "all runs are read")
        select(app, "far-live")
        app.tmux.see("● running: its logs")
        app.tmux.press("U")
        app.tmux.see("Ray dashboard of far-live", "/?open=", "the port stays open", limit_s=60)
        first = shown_address(app)
        assert ask(first, browse(first), "/nodes")[:2] == (200, b"/nodes")
        app.tmux.press("o", "Enter")
        app.tmux.see("● running  far: far-live", "All workers connected")
        app.tmux.press("U")
        app.tmux.see("Ray dashboard of far-live", "/?open=", limit_s=60)
        second = shown_address(app)
        assert second.partition("?")[0] == first.partition("?")[0]
        assert second != first
        cookies = browse(second)
        app.tmux.press("x")
        app.tmux.until(lambda text: "Ray dashboard of" not in text, "the dialog is closed")
        app.tmux.see("the port to the dashboard is closed")
        with pytest.raises(ConnectionRefusedError):
            ask(second, cookies, "/nodes")


def shown_address(app: FarApp) -> str:
    """Return the address in the dialog, also where it is on two rows."""
    text = re.sub(r"[│|\s]+", "", app.tmux.text.partition("Ray dashboard of")[2])
    match = re.search(r"http://127\.0\.0\.1:\d+/\?open=[\w-]{32}", text)
    assert match, app.tmux.text
    return match[0]


@pytest.mark.slow
def test_the_editor_opens_on_the_choices_of_the_wizard_and_writes_nothing_there(app: FarApp) -> None:
    files = app.node.checkout
    app.start("new", "--host", "far")
    app.tmux.see("booster", "F6 editor", limit_s=60)
    app.tmux.press("NPage")
    app.tmux.see("2 Models", "packaged", "Qwen/Qwen3-1.7B-Base", limit_s=60)
    app.tmux.press("F6")
    app.tmux.see("recipe  choices-", "on far", "set here of", "would fail", limit_s=90)
    app.tmux.press("/")
    app.tmux.type("max_num_steps")
    app.tmux.see("distillation.max_num_steps")
    app.tmux.press("Enter", "Enter")
    app.tmux.type("77")
    app.tmux.press("Enter")
    app.tmux.see("modified, ", "max_num_steps: 77", limit_s=60)
    app.relay.refuse()
    app.tmux.see("modified, ", "! reconnecting to ", limit_s=60)
    app.relay.accept()
    app.tmux.until(lambda text: "reconnecting" not in text, "it is back", 90)
    app.tmux.press("b")
    app.tmux.see(" far: ", "2 Models", limit_s=60)
    app.tmux.press("F8")
    app.tmux.see("Review", "Job", "of booster for", limit_s=90)
    app.tmux.press("D")
    app.tmux.see("- distillation.max_num_steps: 500", "+ distillation.max_num_steps: 77", limit_s=60)
    assert not list(files.rglob("choices-*"))
    library = app.node.root / "state" / "distill-tui" / "library"
    assert {path.name for path in library.glob("*/*")} == {path.name for path in starting_recipes()}


@pytest.mark.slow
def test_the_doctor_examines_the_host_and_goes_on_after_a_break(app: FarApp) -> None:
    app.start("new", str(app.node.recipe), "--host", "far")
    app.tmux.see("booster", limit_s=60)
    app.tmux.press("F8")
    app.tmux.see("Review", "ready?", "checks passed", limit_s=90)
    app.tmux.press("F9")
    app.tmux.see("doctor", "recipe.yaml", "on far", limit_s=60)
    app.relay.refuse()
    app.tmux.see("! reconnecting to far (last data", limit_s=60)
    app.relay.accept()
    app.tmux.until(lambda text: "reconnecting" not in text and "passed, not listed" in text, "examined", 120)
    app.tmux.see("D10 uv is installed", "login node of far")
    app.tmux.press("b")
    app.tmux.see("Review", "ready?", "just now")
