"""From a request to submitted jobs: request, preflight, plan, submission, resumption.

    complete    request + detection -> `JobOptions`: every choice made
    layout      options -> `Submission`: run, effective recipe, files, launch plans; nothing is written
    preflight   checks and memory with the job's environment
    hints       remarks that do not block
    submit      `plan_submission`, `estimate_start`, `send`: what the command and the wizard share
    resume      one more job of a run that ended
    rehearsal   a rehearsal on this machine

In: a `SubmitRequest` and a `Detection`. Out: a `SubmissionPlan`, then a `Run` with its jobs.
May import `launcher.clusters` (except `slurm`) and `launcher.monitor`; neither of them imports it.
"""
