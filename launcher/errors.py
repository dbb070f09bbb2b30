"""Errors of the launcher."""

from __future__ import annotations

from recipes.errors import Exit, ExplainedError


class LaunchError(ExplainedError):
    """A run cannot be started or stopped."""

    exit_code = Exit.FAILED


class InputError(ExplainedError):
    """Invalid or contradictory input."""

    exit_code = Exit.USAGE


class AmbiguousError(InputError):
    """Input that could mean several things."""


class TransportError(ExplainedError):
    """A file system, a command or a connection failed."""

    exit_code = Exit.OUTSIDE


class ConnectionLostError(TransportError):
    """The connection to another machine broke, or could not be made; nothing was carried out."""


class UnclearError(ConnectionLostError):
    """The connection broke while a command ran: it may have been carried out, or not."""


class LateError(TransportError):
    """A command on another machine did not end in time, and was terminated."""


class UnreachableError(TransportError):
    """No answer from Slurm; the command may still have been carried out."""


class RefusedError(LaunchError):
    """A refusal by Slurm."""


class NotConfiguredError(RefusedError):
    """Slurm's commands are installed, but this machine belongs to no cluster."""
