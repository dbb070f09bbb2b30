"""Doctor: whether this place is ready for a run, and the commands that make it so.

    subject = launcher.submit.doctor_subject.subject_of(…)     what is examined; reads little
    report = examine(LOGIN_CHECKS, subject)                    all checks side by side, each with a limit

A check is a value (`check_table`): id, title, where it runs, what it needs, a function that gives a verdict.
Checks of a node judge what the script `launcher/scripts/doctor_node.py` measured there (`node_job`).
Nothing is changed here: a remedy is a command, which `fixing` runs after a question.
"""
