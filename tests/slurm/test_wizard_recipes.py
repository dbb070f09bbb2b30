"""The wizard writes recipes: in a terminal of 80x24, by keyboard alone, on the test cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from recipes.inheritance import Resolver
from tests.slurm.tmux import Tmux
from tests.slurm.user import User, ray_processes

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

STOCK = "examples/configs/distillation_math.yaml"
FOLDER = "examples/configs/recipes/llm"
STEPS = ("Cluster", "Models", "Parallelism", "Batches and lengths", "Data and output",
         "Nodes and time", "review")  # fmt: skip


@dataclass(frozen=True)
class Author:
    """A user who writes recipes in the wizard, with a clone of NeMo-RL."""

    user: User
    tmux: Tmux

    @property
    def checkout(self) -> Path:
        """The clone."""
        return self.user.place / "nemo-rl"

    def git(self, *arguments: str) -> str:
        """Return what git says in the clone."""
        return self.user.cluster.as_user("git", "-C", str(self.checkout), *arguments)

    def start(self, profile: str = "light") -> None:
        """Open the wizard at its second step; the default profile is for jobs that run on pretended nodes."""
        changes = {"NEMO_RL_ROOT": str(self.checkout), "RAY_BARE_VENV": sys.prefix}
        self.tmux.start(self.user.argv("--no-mouse", **changes))
        self.tmux.see("n new")
        self.tmux.press("n")
        self.tmux.see("1 Cluster", "booster", "distill", "1-00:00:00")
        self.choose("Profile", profile)
        self.on("Models")

    def on(self, step: str) -> None:
        """Go on to a step."""
        for _ in STEPS:
            if _step(self.tmux.text) == step:
                return
            self._turn("NPage")
        raise AssertionError(f"never: {step}\n{self.tmux.text}")

    def _turn(self, key: str) -> None:
        """Go to another step."""
        before = _step(self.tmux.text)
        self.tmux.press(key)
        self.tmux.until(lambda text: _step(text) not in (before, ""), "another step")
        self.settle()

    def settle(self) -> None:
        """Wait until the screen stays as it is: keys are painted one after the other."""
        text = ""
        while text != (text := self.tmux.text):
            time.sleep(0.6)

    def back_to(self, step: str) -> None:
        """Go back to a step."""
        for _ in STEPS:
            if _step(self.tmux.text) == step:
                return
            self._turn("F3")
        raise AssertionError(f"never: {step}\n{self.tmux.text}")

    def to(self, title: str) -> None:
        """Go to a field of the step: the panel below the form is named after it."""
        for _ in range(20):
            text = self.tmux.text
            if _panel(text) == title:
                return
            self.tmux.press("Down")
            before = _panel(text)
            self.tmux.until(lambda text, before=before: _panel(text) != before, "the next field")  # type: ignore[misc]
            self.settle()
        raise AssertionError(f"never: {title}\n{self.tmux.text}")

    def fill(self, title: str, text: str) -> None:
        """Type into a field."""
        self.to(title)
        self.tmux.type(text)
        self.tmux.see(f"● {title}")

    def choose(self, title: str, value: str) -> None:
        """Choose a value of a field."""
        self.to(title)
        for _ in range(8):
            if f"‹ {value} ›" in self.row(title):
                return
            row = self.row(title)
            self.tmux.press("Right")
            self.tmux.until(lambda _, row=row: self.row(title) != row, "another value")  # type: ignore[misc]
        raise AssertionError(f"never: {value}\n{self.tmux.text}")

    def row(self, title: str) -> str:
        """Return the line of a field."""
        return next((line for line in self.tmux.text.splitlines() if line[3:].startswith(f"{title}  ")), "")

    def review(self) -> None:
        """Go to the review, and wait until everything is planned."""
        self.on("review")
        self.tmux.until(lambda text: "checking …" not in text and "Job" in text, "the review")

    def save(self, choice: str) -> None:
        """Save the choices: the dialog's entry that begins so."""
        self.tmux.press("w")
        self.tmux.see("Your choices", "use once")
        for _ in range(8):
            if re.search(rf"▸ +{choice}", self.tmux.text):
                break
            self.tmux.press("Down")
        self.tmux.press("Enter")

    def save_child(self) -> None:
        """Save a new recipe where the wizard offers it."""
        self.save("new recipe distillation-")
        self.tmux.see("New recipe", "nothing that exists is overwritten")
        self.tmux.press("Enter")
        self.tmux.see("what is saved in", "+defaults:")
        self.tmux.press("w")
        self.tmux.see("✓ saved")

    def apply_first_fix(self) -> None:
        """Apply the fix of the failing check; where several are offered, the first."""
        self.tmux.until(lambda text: "The run would fail" not in text, "the answer")
        self.settle()
        if "Apply which fix?" in self.tmux.text:
            self.tmux.press("Enter")

    def rehearse(self) -> None:
        """Make it a rehearsal, submit it, and wait for its end."""
        self.back_to("Models")
        self.choose("Kind", "rehearsal")
        self.review()
        self.tmux.see("rehearsal of", "4 GPUs of booster for 00:10:00")
        self.tmux.press("s")
        self.tmux.see("Submit?", "rehearsal: 1 node")
        self.tmux.press("y")
        self.tmux.see("✓ Completed", "✓ completed", limit_s=240)


def _step(text: str) -> str:
    """Return the title of the step that is shown; its number depends on the steps that have fields."""
    match = re.search(rf"^[━─] (?:\d )?({'|'.join(STEPS)}) [━─]", text, re.MULTILINE)
    return match[1] if match is not None else ""


def _panel(text: str) -> str:
    """Return the title of the panel of the focused field."""
    match = re.search(r"^─ (?!\d )(.+?) ─", text, re.MULTILINE)
    return match[1] if match is not None else ""


@pytest.fixture
def author(user: User, tmux: Tmux, shared: Path) -> Iterator[Author]:
    release = shared / "nemo-versions" / "v0.6.0.tar.gz"
    if not release.is_file():
        pytest.skip(f"no {release}")
    one = Author(user, tmux)
    with tarfile.open(release) as archive:
        archive.extractall(user.place, filter="data")
    (top,) = (path for path in user.place.iterdir() if (path / "examples").is_dir())
    top.rename(one.checkout)
    for path in (one.checkout, *one.checkout.rglob("*")):
        os.chown(path, user.cluster.settings.uid, user.cluster.settings.uid, follow_symlinks=False)
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "as it came"),
    ):
        one.git(*arguments)
    yield one
    shutil.rmtree(one.checkout, ignore_errors=True)


def short(author: Author) -> None:
    """Choose a stock recipe, and few steps."""
    author.fill("Recipe", f"{author.checkout}/{STOCK}")
    author.on("Batches and lengths")
    author.fill("Steps", "6")
    author.on("Data and output")
    author.fill("Validation period", "3")
    author.fill("Save period", "3")


@pytest.mark.ray
def test_from_nothing_to_a_new_recipe_and_a_finished_rehearsal(author: Author) -> None:
    author.start()
    short(author)
    author.on("Nodes and time")
    author.fill("GPUs per node", "4")
    author.review()
    author.save_child()
    author.rehearse()
    status = author.git("status", "--porcelain").splitlines()
    assert len(status) == 1, status
    name = status[0].removeprefix("?? ")
    assert re.fullmatch(rf"{FOLDER}/distillation-qwen3-\S+-from-qwen3-\S+-1n4g\.yaml", name), name
    text = (author.checkout / name).read_text()
    assert "defaults: ../../distillation_math.yaml\n" in text
    assert "  max_num_steps: 6\n" in text
    (run,) = author.user.runs.glob("2*")
    assert json.loads((run / "run.json").read_text())["recipe"]["source"] == str(author.checkout / name)
    deadline = time.monotonic() + 60
    while ray_processes(author.user.cluster):
        assert time.monotonic() < deadline, "processes of Ray are left"
        time.sleep(1)


def test_saving_into_the_file_changes_the_chosen_lines_alone(author: Author) -> None:
    author.start()
    short(author)
    author.review()
    author.save("save into distillation_math")
    author.tmux.see("what is saved in distillation_math.yaml", "max_num_steps: 6")
    author.tmux.press("w")
    author.tmux.see("✓ saved into")
    changed = [
        line for line in author.git("diff", "-U0").splitlines() if line[:1] in "+-" and line[1:2] == " "
    ]
    assert sorted(line[1:].split("#")[0].strip() for line in changed if line[0] == "+") == [
        "max_num_steps: 6", "save_period: 3", "val_period: 3",
    ]  # fmt: skip
    assert sum(line[0] == "-" for line in changed) == 3
    assert author.git("status", "--porcelain").splitlines() == [f" M {STOCK}"]


@pytest.mark.ray
def test_choices_that_are_used_once_change_no_file(author: Author) -> None:
    author.start()
    short(author)
    author.review()
    author.rehearse()
    assert author.git("status", "--porcelain") == ""
    (run,) = author.user.runs.glob("2*")
    overrides = json.loads((run / "run.json").read_text())["recipe"]["overrides"]
    assert "++distillation.max_num_steps=6" in overrides


def test_the_first_users_recipe_by_choices(author: Author, shared: Path) -> None:
    template = shared / "seed-template" / "my-distillation-1n4g.yaml"
    author.start()
    author.fill("Recipe", f"{author.checkout}/{STOCK}")
    author.fill("Student", "<YOUR_STUDENT_MODEL>")
    author.fill("Teacher", "<YOUR_TEACHER_MODEL>")
    author.on("Parallelism")
    author.fill("Student TP", "1")
    author.fill("Student CP", "1")
    author.fill("Teacher TP", "1")
    author.fill("Teacher CP", "1")
    author.fill("Generation TP", "2")
    author.choose("Generation", "split")
    author.fill("GPUs that generate", "2")
    author.on("Batches and lengths")
    for title, text in (
        ("Prompts per step", "16"), ("Global batch", "16"), ("Generation batch", "16"),
        ("Sequence length", "4096"), ("Steps", "100"),
    ):  # fmt: skip
        author.fill(title, text)
    author.on("Data and output")
    author.fill("Validation set", "AIME2024")
    author.fill("Log directory", "logs/my-distillation")
    author.fill("W&B project", "nemo-distillation")
    author.fill("W&B name", "my-distillation-1n4g")
    author.on("Nodes and time")
    author.fill("GPUs per node", "4")
    author.review()
    author.save_child()
    status = author.git("status", "--porcelain").splitlines()
    (name,) = (line.removeprefix("?? ") for line in status)
    copy = author.checkout / FOLDER / "template.yaml"
    shutil.copy(template, copy)
    assert Resolver().resolve(author.checkout / name).values == Resolver().resolve(copy).values


def test_the_scale_out_is_refused_fixed_and_submitted(author: Author, shared: Path) -> None:
    template = (shared / "seed-template" / "my-distillation-1n4g.yaml").read_text()
    recipe = author.checkout / FOLDER / "my-distillation-1n4g.yaml"
    recipe.write_text(
        template.replace("<YOUR_STUDENT_MODEL>", "Qwen/Qwen3-1.7B").replace(
            "<YOUR_TEACHER_MODEL>", "Qwen/Qwen3-4B"
        )
    )
    author.start(profile="none")  # the nodes' own CPUs: two of them would be too few (C61)
    author.fill("Recipe", str(recipe))
    author.on("Parallelism")
    author.fill("Teacher TP", "2")
    author.on("Batches and lengths")
    author.fill("Prompts per step", "32")
    author.on("Nodes and time")
    author.fill("Nodes", "2")
    author.fill("GPUs per node", "4")
    author.review()
    author.tmux.see("would fail", "C60")
    assert set(re.findall(r"✗ (C\d+)", author.tmux.text)) == {"C60"}
    author.tmux.press("s")
    author.tmux.see("The run would fail", "C60")
    author.tmux.press("f")
    author.apply_first_fix()
    author.tmux.until(
        lambda text: "Job" in text and "checking …" not in text and "C60" not in text, "the fixed review"
    )
    author.tmux.press("s")
    author.tmux.see("Submit?", "training: 2 nodes × 4 GPUs")
    author.tmux.press("y")
    author.tmux.until(lambda text: "Submit?" not in text and "submitting" not in text, "the monitor")
    (run,) = author.user.runs.glob("2*")
    record = json.loads((run / "run.json").read_text())
    assert (record["kind"], record["nodes"], record["gpus_per_node"]) == ("training", 2, 4)
    assert author.user.jobs()
    values = Resolver().resolve(run / "effective.yaml").values
    resources = values["policy"]["generation"]["colocated"]["resources"]
    assert (resources["num_nodes"], resources["gpus_per_node"]) == (1, 4)
    assert values["teacher"]["dtensor_cfg"]["tensor_parallel_size"] == 2
    assert values["distillation"]["num_prompts_per_step"] == 32
    assert author.git("status", "--porcelain").splitlines() == [f"?? {FOLDER}/{recipe.name}"]
