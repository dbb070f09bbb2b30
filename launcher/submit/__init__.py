"""From a request to submitted jobs: request, preflight, plan, submission, resumption.

In: a `SubmitRequest` and what the cluster has. Out: a `SubmissionPlan`, then a `Run` with its jobs.
May import `launcher.clusters` and `launcher.monitor`; neither of them imports it.
"""
