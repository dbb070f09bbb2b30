"""Units of a recipe's numbers, told from the names of their keys."""

from __future__ import annotations

import re

_BY_NAME = (
    (r"checkpoint_must_save_by|.*timeout_(?:hms|dhms)", "DD:HH:MM:SS"),
    (r"gpus_per_node|(?:tensor|context|pipeline|expert)(?:_model)?_parallel_size|num_gpus", "GPUs"),
    (r"num_nodes", "nodes"),
    (r".*_(?:s|sec|secs|seconds)", "s"),
    (r".*_(?:ms|millis|milliseconds)", "ms"),
    (r".*_mins?|.*_minutes", "min"),
    (r".*_(?:gb|GB)", "GB"),
    (r".*_gib", "GiB"),
    (r".*_(?:mb|MB)", "MB"),
    (
        r".*(?:_tokens|_sequence_length|_seq_len(?:gth)?|_length|max_model_len|chunk_size|divisible_by)",
        "tokens",
    ),
    (r"gpu_memory_utilization|top_p|.*_ratio|.*_fraction", "fraction of 1"),
    (r"num_prompts_per_step", "prompts"),
    (r".*_batch_size", "samples"),
    (r".*(?:_period|_steps|_iters)|total_iters|milestones", "steps"),
    (r".*_epochs", "epochs"),
)
_PATTERNS = tuple((re.compile(pattern), unit) for pattern, unit in _BY_NAME)


def unit_of(name: str) -> str:
    """Return the unit of the number at a key by the key's last step; "" where the name tells none."""
    return next((unit for pattern, unit in _PATTERNS if pattern.fullmatch(name)), "")
