"""What `rehearsal.py` runs: a real on-policy distillation between models small enough for any machine.

`language` has the text, the teacher and the prompts; `student` the learner and its loss; `worker` what each
Ray actor does; `training` the loop; `report` the lines; `checkpoints` and `settings` what their names say;
`cluster` the ways to Ray; `driver` the command. Nothing here imports the packages around it.
"""
