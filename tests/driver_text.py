"""Text that NeMo-RL's driver prints, made for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BAR = "=" * 25


@dataclass(frozen=True)
class DriverText:
    """A driver's log: how many steps, where it validates and saves, and how it ends."""

    losses: Sequence[float]
    steps_per_epoch: int = 0
    first_step: int = 1
    validate_at: Sequence[int] = ()
    save_at: Sequence[int] = ()
    end: str = "Max number of steps has been reached, stopping training early"
    batch: int = 8
    samples: int = 800
    model_text: Sequence[str] = ()
    """Lines of a sampled answer, shown in a panel."""

    def text(self) -> str:
        """Return the whole log."""
        return "\n".join(self.lines()) + "\n"

    def lines(self) -> Iterator[str]:
        yield from self.setup()
        per_epoch = self.steps_per_epoch or len(self.losses) + self.first_step - 1
        total = self.first_step - 1 + len(self.losses)
        epochs = -(-total // per_epoch)
        if self.first_step > 1:
            yield f"(DTensorPolicyWorkerV2 pid=7) Loading weights from /c/step_{self.first_step - 1}/policy/weights"
        if 0 in self.validate_at:
            yield from self.validation(0)
        for step, loss in enumerate(self.losses, self.first_step):
            within = (step - 1) % per_epoch + 1
            if within == 1:
                yield f"{BAR} Epoch {(step - 1) // per_epoch + 1}/{epochs} {BAR}"
            yield from ("", f"{BAR} Step {within}/{per_epoch} {BAR}", "▶ Preparing batch...")
            yield f"▶ Generating responses for batch of size {self.batch}..."
            yield "\x1b[36m(VllmGenerationWorker pid=9)\x1b[0m \rProcessed prompts:  50%|███  | 2/4\rProcessed prompts: 100%"
            yield from ("▶ Computing teacher logprobs...", "▶ Training policy...")
            if step in self.validate_at:
                yield from self.validation(step)
            if step in self.save_at:
                yield f"Saving checkpoint for step {step}..."
            yield from self.results(step, loss)
        if self.end:
            yield self.end
        yield "\x1b[36m(DTensorPolicyWorkerV2[rank=0] pid=7)\x1b[0m GPU Memory after optimizer offload: 0.01GB"

    def setup(self) -> Iterator[str]:
        yield "INFO:nemo_rl.distributed.virtual_cluster:virtual_cluster.py:358: Connected to existing Ray cluster: {}"
        yield "▶ Setting up data..."
        yield f"  ✓ Training dataset loaded with {self.samples} samples."
        yield f"  ✓ Training dataloader loaded with {self.samples} samples"
        yield "  ✓ Validation dataloader loaded with 24 samples"
        for group in ("teacher", "vllm_policy", "student"):
            yield f"\rInitializing {group} workers:   0%|     | 0/4\rInitializing {group} workers: 100%|█████| 4/4"
            yield "  ✓ 4 workers initialized in 9.41s"
            if group == "vllm_policy":
                yield "  ✓ Using vLLM backend for generation with Qwen/Qwen3-1.7B-Base"
        yield from ("=" * 60, " " * 18 + "SETUP COMPLETE", "=" * 60)

    def validation(self, step: int) -> Iterator[str]:
        yield f"▶ Starting validation at step {step}..."
        yield "╭──────────── Sample ────────────╮"
        yield from (f"│ {line} │" for line in self.model_text)
        yield "╰────────────────────────────────╯"
        yield f"Logged data to /out/exp_001/val_data_step{step}.jsonl"
        yield "📊 Validation Results:"
        yield f"    • Accuracy: 0.{step:04d}"
        yield "    • Average response length: 32.5 tokens"
        yield "  ⏱️  Validation Timing:"
        yield "    • Total validation time: 0.25s"

    def results(self, step: int, loss: float) -> Iterator[str]:
        yield f"Logged data to /out/exp_001/train_data_step{step}.jsonl"
        yield "📊 Training Results:"
        yield f"  • Loss: {loss:.4f}"
        yield "  • Mean Generation Length: 43.0625"
        yield "⏱️  Timing:"
        yield f"  • Total step time: {step}.50s"
        yield "  • policy_training: 3.59s (40.3%)"


LAUNCHER = """\
[NRL_PHASE][2026-11-28T02:00:00+0000][+0s] ray_bare.sub started (job=41 nodes=2 node=jwb0001)
[NRL_PHASE][2026-11-28T02:00:01+0000][+1s] launching Ray head + workers
[NRL_PHASE][2026-11-28T02:00:05+0000][+5s] Ray head GCS up (10.0.0.1:6379)
[INFO][2026-11-28T02:00:08+0000] Number of actors online: 4/8
[INFO][2026-11-28T02:00:09+0000] Number of actors online: 8/8
All workers connected!
[NRL_PHASE][2026-11-28T02:00:10+0000][+10s] launching driver (node=jwb0001)
"""


def launcher_end(code: int) -> str:
    """Return the launcher's last lines."""
    return (
        f"[NRL_PHASE][2026-11-28T02:10:00+0000][+600s] driver exited (exit_code={code})\n"
        f"[NRL_PHASE][2026-11-28T02:10:02+0000][+602s] ray_bare.sub exiting (exit_code={code})\n"
    )
