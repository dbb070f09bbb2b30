"""The table of modules that are mutated, and the fast tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A module, by its file's path from the project's root."""

    module: str
    tests: tuple[str, ...]
    """Test files, those that notice most first."""
    functions: tuple[str, ...] = ()
    """Names of functions and classes, where only these are mutated."""


SLURM = "launcher/clusters/slurm"
GUARDED = (
    Target(f"{SLURM}/job_status.py", ("tests/slurm/test_job_status.py",)),
    Target(f"{SLURM}/jobs.py", ("tests/slurm/test_job_status.py",)),
    Target(
        "launcher/monitor/run_status.py",
        ("tests/launcher/test_run_status.py", "tests/launcher/test_run_end.py"),
    ),
    Target(
        "launcher/monitor/state.py",
        ("tests/launcher/test_run_state.py", "tests/launcher/test_run_failures.py"),
    ),
    Target(
        "launcher/monitor/open_evidence.py",
        ("tests/launcher/test_open_evidence.py", "tests/launcher/test_start_retries.py"),
    ),
    Target("launcher/monitor/attempts.py", ("tests/launcher/test_run_attempts.py",)),
    Target("launcher/submit/submission.py", ("tests/launcher/test_submission.py",)),
    Target("launcher/submit/env_file.py", ("tests/launcher/test_submission.py",)),
    Target("launcher/effective.py", ("tests/launcher/test_submission.py",)),
    Target(
        f"{SLURM}/render.py",
        ("tests/launcher/test_submission.py", "tests/launcher/test_containers.py"),
    ),
    Target(
        f"{SLURM}/cluster.py",
        tuple(
            f"tests/slurm/test_{name}.py" for name in ("submit_once", "follow_jobs", "stop_jobs", "plan_jobs")
        ),
    ),
    Target("launcher/monitor/redact.py", ("tests/launcher/test_redact.py",)),
    Target("launcher/logs/follow.py", ("tests/launcher/test_follow.py",)),
    Target("recipes/files.py", ("tests/recipes/test_files.py",)),
    Target("launcher/transports/replies.py", ("tests/launcher/test_transport_files.py",), ("access_error",)),
    Target(
        "launcher/transports/local.py",
        ("tests/launcher/test_transport_files.py",),
        (
            "_write",
            "_read",
            "_scan",
            "_entry",
            "_start_ticks",
            "LocalTransport.write_atomic",
            "LocalTransport.read",
        ),
    ),
)
"""Where a mistake loses a job, a file or a secret, or says that a run is over which is not."""
CHECKS = ("tests/checks/test_rules.py",)
SAMPLED = (
    *(
        Target(f"recipes/checks/{name}.py", CHECKS)
        for name in ("backend_rules", "batch_rules", "checkpoint_rules", "generation_rules", "parallel_rules")
    ),
    Target("recipes/planning/edits.py", ("tests/checks/test_planning.py",)),
    Target("recipes/planning/scale.py", ("tests/checks/test_planning.py",)),
    Target("recipes/planning/setup.py", ("tests/checks/test_planning.py",)),
    Target("recipes/planning/sizes.py", ("tests/checks/test_planning.py",)),
    Target("recipes/merge.py", ("tests/recipes/test_inh_resolve.py", "tests/recipes/test_inh_origins.py")),
    Target("recipes/compare.py", ("tests/recipes/test_rec_compare.py",)),
    Target("recipes/lint.py", ("tests/recipes/test_rec_lint.py",)),
    Target("launcher/monitor/stuck.py", ("tests/launcher/test_stuck.py",)),
    Target("launcher/monitor/diagnosis.py", ("tests/launcher/test_diagnosis.py",)),
    Target("tui/screens/wizard/model.py", ("tests/tui/test_wizard_model.py",)),
)
"""Modules of which only a few mutants are tried."""
