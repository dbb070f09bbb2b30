"""The cluster and the run: where things run, what is submitted, what the logs say. Knows no screen."""
