"""Bounded reading of the user's own small files (settings, site files): regular content only.

No pydantic: commands that must start without it read settings, too.
"""

from __future__ import annotations

from pathlib import Path

from launcher.errors import InputError
from launcher.text import clean
from recipes.limits import Limit
from recipes.reading import read_limited

USER_FILE_LIMIT = Limit("size of a settings or site file", 1 << 20, "bytes", "real ones have some lines")


def read_user_text(path: Path, what: str) -> str | None:
    """Return a file's text; None where there is none. `what` is its name in an error: "the settings".

    Raises:
        InputError: it cannot be read, is no regular file, too large, or no UTF-8.
    """
    try:
        return read_limited(path, USER_FILE_LIMIT).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {what}: it is not UTF-8 (byte {error.start})", where=path) from error
    except OSError as error:
        raise InputError(f"cannot read {what}: {clean(error.strerror or str(error))}", where=path) from error
