"""Rendering of a run for Slurm: its files, and one sbatch command for each link of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launcher.clusters.base import RenderedJobs, RunLayout
from launcher.clusters.slurm.batch import Batch, bare_batch, common_environment, job_script, key_file
from launcher.clusters.slurm.containers import container_batch
from launcher.durations import format_time_limit
from launcher.errors import InputError
from launcher.fields import FIELDS
from launcher.plan import LaunchPlan, new_token
from launcher.request import JobOptions
from launcher.runs import RUN_FILES, SECRETS
from launcher.sites import Site
from launcher.transports.base import Transport
from recipes.inheritance import EffectiveRecipe

SINGLETON = "--dependency=singleton"
"""Jobs of one name follow one another."""


def render(transport: Transport, environment: Mapping[str, str], layout: RunLayout) -> RenderedJobs:
    """Render a run into jobs of Slurm; nothing is written or submitted.

    Raises:
        InputError: there is no such container.
    """
    options, site = layout.options, layout.site
    launch = container_batch if options.request.launcher == "ray.sub" else bare_batch
    saves = _sets_save_deadline(layout.recipe, options)
    batch = launch(transport, environment, site, options, layout.directory, saves=saves)
    files = {**({SECRETS: key_file(options.keys)} if options.keys else {}), **batch.files}
    names = (*RUN_FILES, *files)
    plans = tuple(_plan(layout, names, batch) for _ in range(options.slurm_request.chain))
    return RenderedJobs(files, plans)


def _sets_save_deadline(recipe: EffectiveRecipe, options: JobOptions) -> bool:
    """Return whether to set the save deadline: in a chain, else where the recipe does not set it."""
    if not recipe.get("checkpointing.enabled", False) or options.kind == "smoke":
        return False
    return options.slurm_request.chain > 1 or recipe.get("checkpointing.checkpoint_must_save_by") is None


def _plan(layout: RunLayout, files: tuple[str, ...], batch: Batch) -> LaunchPlan:
    token = new_token()
    options, directory = layout.options, layout.directory
    output = str(directory / "logs" / "slurm-%j.out")
    argv = (
        "sbatch",
        "--parsable",
        *sbatch_options(options, f"dt-{layout.id}", token),
        *((SINGLETON,) if options.slurm_request.chain > 1 else ()),
        f"--output={_file_pattern(output)}",
        f"--chdir={options.checkout.path if options.checkout is not None else directory}",
        *options.profile_of(layout.site).sbatch_args,
        *options.request.sbatch_args,
        str(directory / "job.sh"),
    )
    return LaunchPlan(token, argv, batch.cwd, batch.environment, files, output)


def render_script(
    environment: Mapping[str, str],
    options: JobOptions,
    site: Site,
    identity: str,
    directory: Path,
    script: str,
) -> RenderedJobs:
    """Render a job that runs a script of a run's directory instead of the launcher."""
    files = {"job.sh": job_script(environment, site, options, script)}
    token, output = new_token(), str(directory / "logs" / "slurm-%j.out")
    argv = (
        "sbatch",
        "--parsable",
        *sbatch_options(options, f"dt-{identity}", token),
        f"--output={_file_pattern(output)}",
        f"--chdir={directory}",
        str(directory / "job.sh"),
    )
    variables = {**common_environment(environment, options), "RUN_DIR": str(directory)}
    plan = LaunchPlan(token, argv, str(directory), variables, (*RUN_FILES, *files), output)
    return RenderedJobs(files, (plan,))


def _file_pattern(output: str) -> str:
    """Return the path of a job's output as Slurm's file name pattern, in which `%%` means `%`.

    Raises:
        InputError: it has a backslash, which turns the pattern off and cannot be quoted (man sbatch).
    """
    directory, name = output.rsplit("/", 1)
    if "\\" in directory:
        raise InputError(
            "Slurm writes no output into a directory with a backslash in its name",
            where=directory,
            fix="`distill-tui settings storage.runs DIR` names another directory for runs.",
        )
    return f"{directory.replace('%', '%%')}/{name}"


def again(plan: LaunchPlan, time_s: int | None) -> LaunchPlan:
    """Return a plan with another token that waits for the jobs of its name; `time_s`: another time limit."""
    token = new_token()
    changed = {"--comment=": f"--comment={comment_of(token)}"}
    if time_s is not None:
        changed["--time="] = f"--time={format_time_limit(time_s)}"
    *options, script = plan.argv
    argv = [
        next((text for prefix, text in changed.items() if item.startswith(prefix)), item) for item in options
    ]
    if SINGLETON not in argv:
        argv.append(SINGLETON)
    return replace(plan, job_id=token, argv=(*argv, script))


def comment_of(token: str) -> str:
    """Return the comment that identifies a job."""
    return f"distill-tui {token}"


def sbatch_options(options: JobOptions, name: str, token: str) -> list[str]:
    """Return the options for sbatch: all of them, or SBATCH_* and the script's lines would fill the gaps."""
    request = options.slurm_request
    values: dict[str, Any] = {
        "job-name": name,
        "comment": comment_of(token),
        "clusters": request.cluster,
        **{row.sbatch: value for row in FIELDS if row.sbatch and (value := request.option(row.name))},
        "nodes": options.nodes,
        "ntasks-per-node": 1,
        "gres": f"gpu:{options.gpus_per_node}" if options.gpus_per_node and request.gres else None,
        "mem": 0,
        "time": format_time_limit(request.time_s),
        "open-mode": "append",
        "export": "ALL",
    }
    flags = ("exclusive", "requeue" if request.chain == 1 else "no-requeue")
    return [
        *(
            f"--{key}={value}"
            for key, value in values.items()
            if value is not None and key not in request.without
        ),
        *(f"--{flag}" for flag in flags if flag not in request.without),
    ]


def script_for_test_only() -> Path:
    """Return a script that `sbatch --test-only` may look at."""
    return Path(__file__).parent.parent.parent / "scripts" / "ray_bare.sub"
