"""Slurm: detection, rendering of jobs, submission, and job status.

In: a `RunLayout` and a `Transport`. Out: `Detection`, `RenderedJobs`, recorded jobs, `JobChanged`.

    client, parse, messages          Slurm's commands, their output, their errors
    detect, partitions, accounts, budgets, gres   what the cluster offers
    submission, batch, containers    a run as sbatch commands, files and environment
    cluster                          `SlurmCluster`: submit once, follow, cancel
    queue, jobs, job_status          the user's jobs, and what their states mean
    external_jobs, accounting        jobs of other programs; accounting's fields for reports

Only `launcher.clusters.registry` imports this package. It may import what `launcher.clusters` may.
"""
