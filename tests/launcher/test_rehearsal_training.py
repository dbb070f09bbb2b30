"""Whole rehearsals in this process: learning, epochs, checkpoints, printed lines and written files."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from launcher.scripts.rehearsal_lib import checkpoints, report, training
from launcher.scripts.rehearsal_lib.checkpoints import SavedCheckpoint, superfluous
from launcher.scripts.rehearsal_lib.language import Floats, Ints
from launcher.scripts.rehearsal_lib.settings import RehearsalError, load_recipe, read_settings
from launcher.scripts.rehearsal_lib.student import Divergence, Weights, initial_weights
from launcher.scripts.rehearsal_lib.worker import RehearsalWorker, Task

RECIPE = Path(__file__).parent.parent.parent / "recipes" / "library" / "rehearsal.yaml"
SMALL = (
    "distillation.num_generations_per_prompt=4",
    "policy.train_global_batch_size=32",
    "distillation.val_period=0",
    "distillation.val_at_start=false",
    "checkpointing.enabled=false",
)


class LocalPool:
    """Workers in this process, one after the other."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._workers: list[RehearsalWorker] = []

    def start(self, task: Task, ready: Callable[[int], None]) -> None:
        self._workers = [RehearsalWorker(rank, self.size, task) for rank in range(self.size)]
        ready(self.size)

    def call(self, method: str, *arguments: object, ready: Callable[[int], None] | None = None) -> list[Any]:
        results = [getattr(worker, method)(*arguments) for worker in self._workers]
        if ready is not None:
            ready(self.size)
        return results


class Outcome(NamedTuple):
    """A finished rehearsal."""

    out: str
    losses: list[float]
    accuracies: list[float]
    weights: Weights
    run: training.Distillation


@pytest.fixture(autouse=True)
def _in_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rehearse(capsys: pytest.CaptureFixture[str], *overrides: str, workers: int = 1) -> Outcome:
    settings = read_settings(load_recipe(RECIPE, [*SMALL, *overrides]), str(RECIPE))
    run = training.Distillation(settings, LocalPool(workers), report.next_experiment(settings.log_dir))
    run.set_up(1)
    run.train()
    out = capsys.readouterr().out
    losses = [float(value) for value in re.findall(r"• Loss: (\S+)", out)]
    accuracies = [float(value) for value in re.findall(r"• Accuracy: (\S+)", out)]
    return Outcome(out, losses, accuracies, run.weights, run)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_loss_falls_and_the_student_comes_to_agree(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(
        capsys, f"distillation.seed={seed}", "distillation.val_at_start=true", "distillation.val_at_end=true"
    )
    assert len(done.losses) == 30
    assert done.losses[-1] < done.losses[0] / 2.5
    assert done.accuracies[0] < 0.15
    assert done.accuracies[-1] > 0.35


@pytest.mark.parametrize("kind", ["forward", "reverse"])
def test_the_loss_falls_with_every_divergence(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(capsys, f"loss_fn.kl_type={kind}", "distillation.max_num_steps=15")
    assert done.losses[-1] < done.losses[0] / 1.5


def test_a_gradient_of_the_wrong_sign_does_not_learn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Divergence.loss

    def wrong(self: Divergence, logits: Floats, top: Floats, indices: Ints) -> tuple[Floats, Floats]:
        losses, gradient = right(self, logits, top, indices)
        return losses, -gradient

    monkeypatch.setattr(Divergence, "loss", wrong)
    done = rehearse(capsys, "distillation.max_num_steps=10")
    assert done.losses[-1] > 1.5 * done.losses[0]


def test_without_a_learning_rate_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    still = rehearse(capsys, "policy.optimizer.kwargs.lr=0", "distillation.max_num_steps=6")
    fresh = initial_weights(42)
    assert all(np.array_equal(still.weights[name], fresh[name]) for name in fresh)
    assert max(still.losses) < 1.1 * min(still.losses), "other samples, the same student"


def test_the_number_of_workers_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("distillation.max_num_steps=4", "distillation.val_at_end=true")
    one, three = (rehearse(capsys, *options, workers=count) for count in (1, 3))
    assert one.losses == three.losses
    assert one.accuracies == three.accuracies
    for name, value in one.weights.items():
        assert np.allclose(value, three.weights[name], rtol=1e-9, atol=1e-12), name
    logs = [Path(done.run.log_dir, "train_data_step4.jsonl").read_text() for done in (one, three)]
    assert logs[0] == logs[1]


SAVES = (
    "checkpointing.enabled=true",
    "checkpointing.save_period=4",
    "checkpointing.metric_name=train:loss",
    "checkpointing.higher_is_better=false",
    "checkpointing.keep_top_k=null",
)


@pytest.mark.long
def test_a_resumed_run_equals_an_uninterrupted_one(capsys: pytest.CaptureFixture[str]) -> None:
    whole = rehearse(capsys, *SAVES, "checkpointing.checkpoint_dir=whole", "distillation.max_num_steps=14")
    first = rehearse(capsys, *SAVES, "checkpointing.checkpoint_dir=part", "distillation.max_num_steps=4")
    second = rehearse(capsys, *SAVES, "checkpointing.checkpoint_dir=part", "distillation.max_num_steps=14")
    assert first.losses + second.losses == whole.losses
    assert all(np.array_equal(second.weights[name], whole.weights[name]) for name in whole.weights)
    assert "Loading weights from part/step_4/policy/weights" in second.out
    assert "Loading optimizer from part/step_4/policy/optimizer" in second.out
    assert "No weights path provided" in first.out
    infos = [Path(folder, "step_14", "training_info.json").read_text() for folder in ("whole", "part")]
    assert infos[0] == infos[1]
    assert sorted(path.name for path in Path("logs/rehearsal").iterdir()) == ["exp_001", "exp_002", "exp_003"]
    assert second.run.log_dir.name == "exp_003"
    assert first.run.train_prompts.shape[0] // 16 == 11, "the resumed run crosses the end of an epoch"


def test_without_the_optimizers_state_a_resumed_run_differs(capsys: pytest.CaptureFixture[str]) -> None:
    options = (*SAVES, "checkpointing.save_optimizer=false", "policy.train_global_batch_size=64")
    whole = rehearse(capsys, *options, "checkpointing.checkpoint_dir=a", "distillation.max_num_steps=8")
    rehearse(capsys, *options, "checkpointing.checkpoint_dir=b", "distillation.max_num_steps=4")
    second = rehearse(capsys, *options, "checkpointing.checkpoint_dir=b", "distillation.max_num_steps=8")
    assert not Path("b/step_4/policy/optimizer").exists()
    assert "Loading optimizer" not in second.out
    assert second.losses[0] == whole.losses[4]
    assert second.losses[-1] != whole.losses[-1]


def test_a_checkpoint_has_nemo_rls_layout(capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(
        capsys,
        "checkpointing.enabled=true",
        "distillation.max_num_steps=12",
        "distillation.val_at_end=true",
        "checkpointing.save_period=5",
        "checkpointing.metric_name=train:loss",
        "checkpointing.keep_top_k=null",
    )
    folder = Path("checkpoints/rehearsal")
    assert sorted(path.name for path in folder.iterdir()) == ["step_10", "step_12", "step_5"]
    info = json.loads((folder / "step_12" / "training_info.json").read_text())
    tokens = info.pop("total_valid_tokens")
    assert info == {
        "total_steps": 12,
        "current_epoch": 1,
        "current_step": 1,
        "consumed_samples": 192,
        "val_reward": pytest.approx(done.accuracies[0], abs=1e-4),
        "train:loss": pytest.approx(done.losses[-1], abs=1e-4),
    }
    lengths = [float(value) for value in re.findall(r"Mean Generation Length: (\S+)", done.out)]
    assert tokens == pytest.approx(64 * sum(lengths), rel=1e-6)
    assert "val_reward" not in json.loads((folder / "step_5" / "training_info.json").read_text())
    config = yaml.safe_load((folder / "step_12" / "config.yaml").read_text())
    assert config["logger"]["log_dir"] == str(done.run.log_dir)
    assert config["distillation"]["max_num_steps"] == 12
    files = {str(path.relative_to(folder / "step_12")) for path in (folder / "step_12").rglob("*.*")}
    assert files >= {"policy/weights/weights.npz", "policy/optimizer/optimizer.npz", "training_info.json"}


def test_a_checkpoint_of_another_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rehearse(capsys, *SAVES, "distillation.max_num_steps=1")
    file = Path("checkpoints/rehearsal/step_1/policy/weights/weights.npz")
    with file.open("wb") as stream:
        np.savez(stream, embedding=np.zeros((3, 3)))
    with pytest.raises(RehearsalError, match="Cannot load the checkpoint") as caught:
        rehearse(capsys, *SAVES)
    assert str(file) in str(caught.value)
    file.write_bytes(b"cut off")
    with pytest.raises(RehearsalError, match="Cannot load the checkpoint"):
        rehearse(capsys, *SAVES)


def test_a_save_that_was_cut_off_is_not_resumed_from(capsys: pytest.CaptureFixture[str]) -> None:
    stale = Path("checkpoints/rehearsal/tmp_step_4/policy")
    stale.mkdir(parents=True)
    done = rehearse(capsys, *SAVES, "distillation.max_num_steps=4")
    assert "No weights path provided" in done.out
    assert [path.name for path in Path("checkpoints/rehearsal").iterdir()] == ["step_4"]


@pytest.mark.parametrize(
    ("metric", "higher", "keep", "removed"),
    [
        ("val:accuracy", True, 2, [4, 8]),
        ("val:accuracy", False, 2, [2, 6]),
        (None, True, 2, [2, 4]),
        ("val:accuracy", True, 0, [2, 4, 6, 8]),
        ("val:accuracy", True, None, []),
    ],
)
def test_the_best_and_the_latest_checkpoints_stay(
    metric: str | None, higher: bool, keep: int | None, removed: list[int]
) -> None:
    saving = read_settings(load_recipe(RECIPE, []), "r").saving
    saving = replace(saving, metric=metric, higher_is_better=higher, keep_top_k=keep, period=2)
    scores = {2: 0.9, 4: 0.1, 6: 0.5, 8: 0.1}
    saved = [
        SavedCheckpoint(Path(f"step_{step}"), step, {"val:accuracy": score}) for step, score in scores.items()
    ]
    last = SavedCheckpoint(Path("step_9"), 9, {})
    assert [one.step for one in superfluous([*saved, last], saving)] == removed


def test_without_its_metric_a_checkpoint_ranks_last(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(UserWarning, match="no val metrics were collected"):
        rehearse(
            capsys,
            "checkpointing.enabled=true",
            "checkpointing.save_period=2",
            "checkpointing.keep_top_k=1",
            "distillation.max_num_steps=4",
            "distillation.val_period=4",
        )
    assert [one.step for one in checkpoints.history(Path("checkpoints/rehearsal"))] == [4]


def test_an_unknown_metric_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RehearsalError, match="Metric los not found in train metrics"):
        rehearse(capsys, *SAVES, "checkpointing.metric_name=train:los", "distillation.max_num_steps=1")


def test_the_run_saves_and_stops_before_its_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(capsys, *SAVES, "checkpointing.checkpoint_must_save_by='00:00:00:00'")
    assert len(done.losses) == 1
    assert done.out.splitlines()[-1] == "Timeout has been reached, stopping training early"
    assert Path("checkpoints/rehearsal/step_1").is_dir()


def test_a_deadline_leaves_room_for_one_more_step() -> None:
    now = time.monotonic()
    assert not training.Deadline(100.0, now - 40.0).after_step()
    late = training.Deadline(100.0, now - 60.0)
    assert late.after_step()
    assert not late.after_step(), "it is told once"


def steps_and_epochs(out: str) -> list[str]:
    return re.findall(r"^=+ ((?:Epoch|Step) \d+/\d+) =+$", out, re.MULTILINE)


def test_steps_count_within_their_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("distillation.num_prompts_per_step=64", "distillation.num_generations_per_prompt=1")
    done = rehearse(capsys, *options, "distillation.max_num_epochs=2")
    one = ["Step 1/2", "Step 2/2"]
    assert steps_and_epochs(done.out) == ["Epoch 1/2", *one, "Epoch 2/2", *one]
    assert done.out.splitlines()[-1].startswith("  • "), "nothing is said when the epochs run out"
    assert re.findall(r"train_data_step(\d+)", done.out) == ["1", "2", "3", "4"]


def test_resuming_at_an_epochs_end_repeats_its_banner_only(capsys: pytest.CaptureFixture[str]) -> None:
    options = (*SAVES, "distillation.num_prompts_per_step=64", "distillation.num_generations_per_prompt=1")
    rehearse(capsys, *options, "distillation.max_num_steps=2")
    done = rehearse(capsys, *options, "distillation.max_num_steps=3")
    assert steps_and_epochs(done.out) == ["Epoch 1/10", "Epoch 2/10", "Step 1/2"]
    again = rehearse(capsys, *options, "distillation.max_num_steps=3")
    assert steps_and_epochs(again.out) == []


def test_an_epoch_takes_every_prompt_at_most_once(capsys: pytest.CaptureFixture[str]) -> None:
    run = rehearse(capsys, "distillation.max_num_steps=0").run
    first, second = run._order(0), run._order(1)
    assert first.shape == (11, 16)
    assert len(set(first.ravel())) == first.size
    assert not np.array_equal(first, second)
    assert np.array_equal(first, run._order(0))


def test_more_prompts_than_the_data_has_still_make_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(
        capsys,
        "distillation.num_prompts_per_step=256",
        "distillation.num_generations_per_prompt=1",
        "distillation.max_num_steps=1",
    )
    assert "Training dataset loaded with 256 samples" in done.out
    assert len(done.losses) == 1


def test_the_jsonl_files_are_nemo_rls(capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(capsys, "distillation.max_num_steps=1", "distillation.val_at_start=true")
    train = [
        json.loads(line) for line in (done.run.log_dir / "train_data_step1.jsonl").read_text().splitlines()
    ]
    assert len(train) == 64
    assert [row["idx"] for row in train] == list(range(64))
    prompt, answer, verdict = train[5]["content"][0]
    assert train[5]["input_lengths"] == [len(prompt) + len(answer)]
    assert verdict.startswith("Environment: ")
    assert all(row["content"][0][0] == train[4]["content"][0][0] for row in train[4:8]), "four answers each"
    validation = [
        json.loads(line) for line in (done.run.log_dir / "val_data_step0.jsonl").read_text().splitlines()
    ]
    assert [message["role"] for message in validation[0]["content"][0]] == [
        "user",
        "assistant",
        "environment",
    ]
    rewards = [row["rewards"][0] for row in validation]
    assert sum(rewards) / len(rewards) == pytest.approx(done.accuracies[0], abs=1e-4)
    assert set(rewards) <= {0.0, 1.0}


def test_panels_are_eighty_columns_wide(capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(capsys, "distillation.max_num_steps=0", "distillation.val_at_start=true")
    panel = [line for line in done.out.splitlines() if line[:1] in ("│", "╭", "╰", "─")]
    assert len(panel) > 20
    assert {len(line) + sum(line.count(face) for face in "🔥🟠") for line in panel} == {80}
    assert "╭──────────────────────── 🟠 Sample 1 | Reward: 0.0000 ────────────────────────╮" in panel


def test_shown_samples_are_the_best_the_worst_and_one_between() -> None:
    samples = [report.Sample("p", str(at), "v", at / 10) for at in range(10)]
    assert [sample.answer for sample in report.choose(samples, 3)] == ["9", "0", "4"]
    assert [sample.answer for sample in report.choose(samples, 4)] == ["9", "8", "1", "0"]
    assert report.choose(samples[:2], 5) == samples[:2]


OWN_LINE = re.compile(
    r"\s*(?:▶ [^.]+\.\.\.|✓ .*|- Loaded .*|=+(?: (?:Epoch|Step) .*)?|SETUP COMPLETE|🔍 .*|📊 .*|⏱️ .*"
    r"|Sample Conversations|─+ .* ─+|Saving checkpoint .*|Logged data to .*|Max number.*"
    r"|• (?:Loss|Mean Generation Length|Accuracy|Average response|Samples processed|Total).*)$"
)
VARIES = re.compile(
    r"(?<=loaded with )\d+|(?<=size )\d+|(?<=Logged data to ).*/|(?<=• Loss: )\S+|(?<=Length: )\S+"
    r"|(?<=Accuracy: )\S+|(?<=length: )\S+|(?<=processed: )\d+|(?<=time: )\S+|(?<=generation with ).*"
    r"|\d+(?= workers)|(?<=initialized in )\S+|(?<=dataset )\S+(?= with)|\d+(?= samples)"
)


def skeleton(text: str) -> list[str]:
    """Return the driver's own lines without what differs from run to run."""
    return [VARIES.sub("…", line) for line in text.splitlines() if OWN_LINE.match(line)]


def test_the_lines_are_those_of_a_real_run(capsys: pytest.CaptureFixture[str], shared: Path) -> None:
    real = (shared / "nemo-driver" / "A" / "ray-driver.log").read_text(encoding="utf-8")
    done = rehearse(
        capsys,
        "checkpointing.enabled=true",
        "checkpointing.save_period=2",
        "checkpointing.keep_top_k=3",
        "distillation.num_prompts_per_step=63",
        "distillation.num_generations_per_prompt=1",
        "policy.train_global_batch_size=63",
        "distillation.val_at_start=true",
        "distillation.val_period=2",
        "distillation.max_num_steps=6",
        "distillation.max_num_epochs=2",
    )
    assert skeleton(done.out) == skeleton(real)
    assert len(skeleton(real)) > 100
