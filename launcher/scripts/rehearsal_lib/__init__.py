"""Library of `rehearsal.py`: a real on-policy distillation between models small enough for any machine.

`language` has the text, the teacher and the prompts; `student` the learner and its loss; `worker` the methods
of each Ray actor; `training` the loop; `report` the printed lines; `checkpoints` and `settings` those of the
recipe; `cluster` the connection to Ray; `driver` the command. Nothing here imports the packages around it.
"""
