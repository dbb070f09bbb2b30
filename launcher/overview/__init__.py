"""All runs and jobs of the user at a glance: rows, their order, what is usual, runs beside each other."""
