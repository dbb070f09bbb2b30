"""What the rehearsal reads of a recipe, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.scripts import rehearsal_lib
from launcher.scripts.rehearsal_lib.language import VOCABULARY
from launcher.scripts.rehearsal_lib.settings import (
    RehearsalError,
    RehearsalSettings,
    load_recipe,
    read_settings,
)

ROOT = Path(__file__).parent.parent.parent
RECIPE = ROOT / "recipes" / "library" / "rehearsal.yaml"
SCRIPT = ROOT / "launcher" / "scripts" / "rehearsal.py"


def settings(*overrides: str, recipe: Path = RECIPE) -> RehearsalSettings:
    return read_settings(load_recipe(recipe, list(overrides)), str(recipe))


def test_the_library_recipe_needs_no_cut() -> None:
    read = settings()
    assert read.notes == ()
    assert (read.prompts, read.generations, read.steps, read.top_k) == (16, 48, 30, 24)
    assert read.rate == pytest.approx(0.02)
    assert read.saving.metric == "val:accuracy"
    assert read.gpus == 1
    assert not read.log_dir.is_absolute()
    assert not read.saving.folder.is_absolute()


def test_a_real_recipe_is_cut_to_the_stand_ins_and_says_so() -> None:
    read = settings("policy.max_total_sequence_length=8192", "distillation.topk_logits_k=64")
    assert (read.length, read.top_k) == (64, len(VOCABULARY))
    assert len(read.notes) == 2
    assert "8192" in " ".join(read.notes)


def test_a_real_nemo_rl_recipe_is_understood(shared: Path) -> None:
    file = shared / "nemo-driver" / "A" / "checkpoints" / "step_6" / "config.yaml"
    read = settings(recipe=file)
    assert (read.prompts, read.steps, read.epochs, read.gpus) == (16, 6, 2, 4)
    assert read.divergence.kind == "reverse"


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("loss_fn.kl_type=revers", "AssertionError: Invalid KL type"),
        ("loss_fn.mixed_kl_weight=1.5", "AssertionError: Invalid mixed KL weight"),
        ("distillation.topk_logits_k=0", "topk must be positive, got 0"),
        (
            "policy.train_global_batch_size=500",
            "Total batch size (768) is not a multiple of batch_size (500)",
        ),
        (
            "checkpointing.checkpoint_must_save_by='1:00:00'",
            "not enough values to unpack (expected 4, got 3)",
        ),
        ("checkpointing.checkpoint_must_save_by=1:00:00:00", "expected 4, got 1"),
        ("checkpointing.metric_name=accuracy", "must start with 'val:' or 'train:'"),
        ("checkpointing.save_period=0", "save_period must be at least 1"),
        ("data.validation=null", "Validation dataset is required if validation is enabled"),
        ("distillation.max_num_steps=1.5", "Input should be a valid int, not 1.5"),
        ("distillation.max_num_steps=true", "Input should be a valid int"),
        ("distillation.val_at_end=yes please", "Input should be a valid bool"),
        ("policy.optimizer.kwargs.lr=fast", "Input should be a valid float"),
        ("policy.model_name=null", "Input should be a valid str"),
        ("policy.model_name=${teacher.model_name}", "Not resolved"),
        ("policy.max_total_sequence_length=12", "leaves none of 12"),
        ("distillation.num_prompts_per_step=0", "must be at least 1"),
    ],
)
def test_what_cannot_run_is_refused_in_nemo_rls_words(override: str, text: str) -> None:
    with pytest.raises(RehearsalError) as caught:
        settings(override)
    lines = str(caught.value).splitlines()
    assert text in lines[0]
    assert override.partition("=")[0] in lines[1]
    assert len(lines) <= 3


def test_a_missing_key_is_named() -> None:
    recipe = load_recipe(RECIPE, [])
    del recipe["distillation"]["num_prompts_per_step"]
    with pytest.raises(RehearsalError, match=r"Field required: distillation\.num_prompts_per_step"):
        read_settings(recipe, "r.yaml")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("policy.optimizer.kwargs.lr=1e-5", 0.01),
        ("policy.optimizer.kwargs.lr=1.0e-5", 0.01),
        ("policy.optimizer.kwargs.lr='1e-5'", 0.01),
        ("policy.optimizer.kwargs.lr=0", 0.0),
    ],
)
def test_learning_rates_in_any_spelling(override: str, expected: float) -> None:
    assert settings(override).rate == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("null", float("inf")), ("'00:00:00:09'", 9.0), ("'01:02:03:04'", 93784.0)],
)
def test_times_to_save_by(text: str, seconds: float) -> None:
    assert settings(f"checkpointing.checkpoint_must_save_by={text}").saving.must_save_by_s == seconds


def test_overrides_change_add_and_refuse() -> None:
    assert settings("distillation.seed=7").seed == 7
    assert load_recipe(RECIPE, ["+policy.new.key=[1, 2]"])["policy"]["new"] == {"key": [1, 2]}
    with pytest.raises(RehearsalError, match="Could not override") as caught:
        settings("distillation.sead=7")
    assert "+distillation.sead=7" in str(caught.value)
    with pytest.raises(RehearsalError, match="Failed to parse"):
        settings("distillation.seed")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [1", "not YAML"),
        ("- a", "Dictionary"),
        ("defaults: base.yaml", "parents"),
        (None, "Cannot read"),
        ("a: \xff", "not YAML"),
    ],
)
def test_files_that_are_no_recipe(tmp_path: Path, text: str | None, what: str) -> None:
    file = tmp_path / "r.yaml"
    if text is not None:
        file.write_text(text, encoding="latin-1")
    with pytest.raises(RehearsalError, match=what) as caught:
        load_recipe(file, [])
    assert str(file) in str(caught.value)


def run_script(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "PYTHONPATH"))}
    return subprocess.run(
        [sys.executable, "-I", str(SCRIPT), *arguments],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.long
def test_the_command_explains_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = run_script("--config", str(RECIPE), "loss_fn.kl_type=revers", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("REHEARSAL with stand-in models")
    assert done.stderr.splitlines()[0] == "AssertionError: Invalid KL type"
    unreachable = run_script("--config", str(RECIPE), cwd=tmp_path, RAY_ADDRESS="127.0.0.1:1")
    assert unreachable.returncode == 1
    assert unreachable.stderr.startswith("Cannot connect to Ray: ")
    assert "RAY_ADDRESS=127.0.0.1:1" in unreachable.stderr
    assert "Traceback" not in unreachable.stderr
    assert list(tmp_path.iterdir()) == []
    assert run_script(cwd=tmp_path).returncode == 2


def test_the_script_imports_nothing_of_the_packages_around_it() -> None:
    folder = Path(rehearsal_lib.__file__).parent
    for file in [SCRIPT, *folder.glob("*.py")]:
        text = file.read_text(encoding="utf-8")
        assert not any(
            f"{word} {name}" in text for word in ("import", "from") for name in ("launcher", "recipes")
        )
