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
