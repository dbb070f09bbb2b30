"""Errors of the launcher."""

from __future__ import annotations

from recipes.errors import Exit, ExplainedError


class LaunchError(ExplainedError):
    """A run cannot be started or stopped as asked."""

    exit_code = Exit.FAILED


class InputError(ExplainedError):
    """What the user gave does not name anything, or contradicts itself."""

    exit_code = Exit.USAGE


class TransportError(ExplainedError):
    """A file system, a command or a connection failed."""

    exit_code = Exit.OUTSIDE


class UnreachableError(TransportError):
    """Slurm gave no answer; what was asked of it may have been done."""


class RefusedError(LaunchError):
    """Slurm refused."""


class NotConfiguredError(RefusedError):
    """Slurm's commands are here, but this machine belongs to no cluster."""
