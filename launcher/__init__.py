"""Clusters and runs: submission, logs and state. Never imports `tui` or a screen library."""
