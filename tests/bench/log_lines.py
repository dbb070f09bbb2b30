"""Lines as a driver prints them, for measurements; other programs' Pythons import it."""

from __future__ import annotations

_LINES = (
    "▶ Generating responses for batch of size 8...",
    "(VllmGenerationWorker pid={pid}, ip=10.0.0.{rank}) Processed prompts: {value}/512 [{value}s, 3 it/s]",
    "▶ Computing teacher logprobs...",
    "(DTensorPolicyWorkerV2[rank={rank}] pid={pid}, ip=10.0.0.3) GPU Memory after offload: {value}.25GB",
    "▶ Training policy...",
    "  • Mean Generation Length: {value}.0625",
    "INFO 11-28 02:14:{rank:02d} [loggers.py:{pid}] Engine 000: avg prompt throughput: {value}.3 tokens/s",
)


def line(number: int) -> str:
    """Return a line of several kinds and lengths."""
    form = _LINES[number * 7919 % len(_LINES)]
    return form.format(pid=70_000 + number % 8, rank=number % 8, value=number * 31 % 512) + "\n"
