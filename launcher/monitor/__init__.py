"""State of a run, from its events: status, milestones, attempts, diagnosis, report and notifications.

In: events of `launcher.logs`, job states of `launcher.clusters`. Out: `RunState`, and what is made from it:
JSON (`summary`), a report, notifications. `watch` polls and applies events; `run_status` alone decides
whether a run lives and how it ended. May import `launcher.logs`, `launcher.clusters`, `launcher.transports`,
`launcher.sites` and `launcher.runs`; never `launcher.submit`.
"""
