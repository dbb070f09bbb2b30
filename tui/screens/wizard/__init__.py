"""The wizard: from nothing to a submitted run, step by step.

In: what the user types (`WizardState`). Out: a `SubmitRequest`, then a submitted run in the monitor.

    wizard_state    what was typed, and what it comes to, as values; drafts on disk are made from it
    model           fields of each step and their defaults; validation: their errors
    draft_request   the request
    state_changes   fixes and other edits of a state; release: what the checkout at hand knows
    draft_resolver  what a state comes to (`DraftStatus`): cluster, recipe, checks, memory, plan; on a thread
    poller          the thread, and its messages to the screen
    alternatives, pages, review   what can be chosen, the facts beside the fields, the review, as text
    steps, screen   the screen itself
    from_run        the state that repeats an earlier run

May import `launcher` (except `launcher.clusters.slurm`), `recipes` and `tui.widgets`.
"""
