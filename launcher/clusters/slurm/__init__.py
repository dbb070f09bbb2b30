"""Slurm: what there is, what is submitted, and what became of it."""
