"""One value for each field of the wizard, and what it must lead to in the recipe or in the job."""

from __future__ import annotations

from collections.abc import Mapping

RECIPE_SAMPLES: Mapping[str, tuple[str, object]] = {
    "student": ("models/mine", "models/mine"),
    "teacher": ("/data/teacher one", "/data/teacher one"),
    "kl_type": ("reverse", "reverse"),
    "kl_mix": ("0.25", 0.25),
    "topk": ("32", 32),
    "policy_tp": ("4", 4),
    "policy_cp": ("2", 2),
    "policy_pp": ("4", 4),
    "teacher_tp": ("8", 8),
    "teacher_cp": ("4", 4),
    "teacher_pp": ("4", 4),
    "vllm_tp": ("2", 2),
    "generation_gpus": ("3", 3),
    "generation_nodes": ("1", 1),
    "checkpoint_activations": ("off", False),
    "cpu_offload": ("true", True),
    "prompts": ("32", 32),
    "generations": ("2", 2),
    "global_batch": ("16", 16),
    "micro_batch": ("2", 2),
    "generation_batch": ("16", 16),
    "length": ("4096", 4096),
    "temperature": ("0.7", 0.7),
    "lr": ("5e-6", 5e-6),
    "steps": ("77", 77),
    "data_set": ("DAPOMath17K", "DAPOMath17K"),
    "validation_set": ("AIME2025", "AIME2025"),
    "val_period": ("0", 0),
    "val_samples": ("9", 9),
    "save_period": ("7", 7),
    "keep_checkpoints": ("2", 2),
    "checkpoint_dir": ("/scratch/me/ck", "/scratch/me/ck"),
    "log_dir": ("logs/mine", "logs/mine"),
    "wandb_project": ("mine", "mine"),
    "wandb_name": ("first: try", "first: try"),
}
"""Texts and values of fields that set one key."""
COMPOUND_SAMPLES: Mapping[str, tuple[str, ...]] = {
    "generation": ("split", "colocated"),
    "schedule": ("cosine", "linear", "constant"),
    "warmup": ("25", "0"),
    "wandb": ("off", "online"),
}
"""Texts of fields that set several keys; each is read back."""
JOB_SAMPLES: Mapping[str, tuple[tuple[str, ...], str, object]] = {
    "partition": (("--partition", "devel"), "partition", "devel"),
    "account": (("--account", "a"), "account", "a"),
    "qos": (("--qos", "low"), "qos", "low"),
    "reservation": (("--reservation", "r"), "reservation", "r"),
    "profile": (("--profile", "light"), "profile", "light"),
    "modules": (("--modules", "CUDA/12"), "modules", "CUDA/12"),
    "kind": (("--smoke",), "kind", "smoke"),
    "recipe": ((), "recipe", None),
    "checkout": (("--checkout", "/c"), "checkout", "/c"),
    "nodes": (("--nodes", "2"), "nodes", 2),
    "gpus_per_node": (("--gpus-per-node", "2"), "gpus_per_node", 2),
    "gpu_memory": (("--gpu-memory", "40"), "gpu_memory", 40),
    "time": (("--time", "30"), "time", 1800),
    "chain": (("--chain", "3"), "chain", 3),
    "env_file": (("--env-file", "/e"), "env_file", None),
    "env": (("--env", "A=1"), "env", ("A=1",)),
    "no_env": (("--no-env", "B"), "no_env", ("B",)),
    "sbatch_args": (("--sbatch-arg=--exclusive",), "sbatch_args", ("--exclusive",)),
    "launcher": (("--launcher", "ray.sub"), "launcher", "ray.sub"),
    "container": (("--container", "image.sqsh"), "container", "image.sqsh"),
    "mounts": (("--mounts", "/a:/b"), "mounts", ("/a:/b",)),
}
"""Options of `submit`, the attribute of the request, and its value (None: compared as a path)."""
