"""Kinds of cluster behind one protocol (`base.Cluster`): this machine, and Slurm.

In: a `RunLayout` (a run with every choice made). Out: `RenderedJobs`, then jobs recorded in the run, and
their states as `JobChanged` events. `registry` chooses the kind; `inventory` is what a cluster offers.
May import `launcher.logs`, `launcher.sites`, `launcher.transports`, `launcher.scripts` and the modules of
`launcher` itself; never `launcher.submit` or `launcher.monitor`.
"""
