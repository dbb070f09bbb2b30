"""Clusters and runs: from a request to submitted jobs, and from their logs to a diagnosed state.

    submit      request -> preflight -> plan -> submitted run
    monitor     events -> run state, diagnosis, report, notification
    clusters    rendering, submission and status of jobs: this machine, Slurm
    logs        bytes of logs -> events
    sites       facts about machines, as data
    transports  files and commands of a machine
    scripts     launcher scripts that run in jobs

In: a recipe and a user's options. Out: a run directory (`runs`), and events about it.
May import `recipes`, but neither `textual` nor `rich`: screens are in `tui`.
"""
