"""From events to the state of a run: its attempts, milestones, diagnosis, report and notifications.

In: events of `launcher.logs`, job states of `launcher.clusters`. Out: `RunState`, and documents made from it.
Never imports `launcher.submit`.
"""
