"""Failures that checks of the doctor would have foretold: the id of a check -> ids of signatures."""

from __future__ import annotations

from collections.abc import Mapping

FORETOLD: Mapping[str, tuple[str, ...]] = {
    "D02": ("slurm-alloc", "raysub-gres"),
    "D03": ("slurm-alloc",),
    "D05": ("quota", "no-space"),
    "D06": ("quota", "no-space"),
    "D07": ("quota",),
    "D08": ("permission",),
    "D09": ("raysub-sharedfs",),
    "D10": ("venv-build",),
    "D11": ("uv-fetch",),
    "D13": ("submodule-missing",),
    "D14": ("ray-not-found", "environment-missing"),
    "D15": ("python-start", "lib-missing"),
    "D16": ("uv-lock-stale", "ray-version"),
    "D17": ("python-start",),
    "D18": ("venv-build", "uv-fetch"),
    "D20": ("vllm-missing",),
    "D22": ("hf-offline", "hf-notfound", "hf-gated"),
    "D23": ("hf-offline",),
    "D24": ("hf-offline",),
    "D25": ("prompt-file",),
    "D26": ("weights-corrupt",),
    "D27": ("hf-offline",),
    "D28": ("wandb-net", "wandb-key"),
    "D29": ("ray-sock-path",),
    "D30": ("ray-fds",),
    "D33": ("port-in-use", "ray-session"),
    "D34": ("container-import",),
    "D35": ("container-import",),
    "D36": ("container-socket",),
    "D37": ("container-networks",),
    "D41": ("torch-abi", "glibc", "lib-missing"),
    "D42": ("cudnn-symbol", "cudnn-version", "cudnn-load"),
    "D44": ("lib-missing",),
    "D45": ("driver-too-old", "no-kernel-image"),
    "D46": ("no-gpu",),
    "D48": ("gpu-ecc",),
    "D49": ("vllm-free-mem",),
    "D51": ("gloo-mesh",),
    "D52": ("nccl-ib",),
    "D53": ("gloo-mesh",),
    "D54": ("rdzv-timeout", "ray-head-only"),
    "D55": ("gloo-mesh",),
    "D56": ("nccl-sys", "nccl-internal"),
    "D57": ("shm-full",),
    "D58": ("ray-out-of-disk", "ray-disk-95"),
    "D59": ("raysub-sharedfs",),
    "D60": ("hf-offline",),
    "D61": ("ibverbs-header",),
    "D62": ("ray-fds",),
}


def checks_foretelling(signature: str) -> tuple[str, ...]:
    """Return the checks that would have foretold a failure, by the id of its signature."""
    return tuple(check for check, signatures in FORETOLD.items() if signature in signatures)
