"""The command line."""

from __future__ import annotations


def main() -> int:
    """Run one command; returns the exit code."""
    return 0
