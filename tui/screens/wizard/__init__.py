"""The wizard: from nothing to a submitted run, step by step.

In: what the user types (`WizardState`). Out: a `SubmitRequest`, then a submitted run in the monitor.

    model           fields, defaults, validation, the request; no I/O
    draft_resolver  what a state comes to (`DraftStatus`): cluster, recipe, checks, memory, plan; on a thread
    poller          the thread, and its messages to the screen
    alternatives, pages, review   what can be chosen, the facts beside the fields, the review, as text
    steps, screen   the screen itself
    from_run        the state that repeats an earlier run

May import `launcher` (except `launcher.clusters.slurm`), `recipes` and `tui.widgets`.
"""
