"""Parser events of PyYAML, the parser under NeMo-RL's loader (OmegaConf 2.3: PyYAML's own, in Python).

Where both give the same events and marks, libyaml's scanner is used: 3 ms instead of 41 for the largest
stock recipe (849 lines). They differ on what `_DIFFERENT` lists (tested on random texts and all stock
recipes). What libyaml refuses is parsed again by PyYAML, which decides and words the error.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import yaml

from recipes.limits import VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIFFERENT = re.compile(
    r"""
    # A tab, U+0085, U+2028, U+2029, a byte order mark, or what PyYAML does not allow at all.
      [^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]
    # A directive.
    | ^%
    # A question mark that is not surely in a comment: PyYAML ends a plain scalar in brackets there.
    | ^(?:[^#\n\r"']|(?<=\S)\#)*\?
    | ^[^\n\r"']*["'][^\n\r]*\?
    # Escapes of code points, which may be none.
    | \\[uUx]
    """,
    re.MULTILINE | re.VERBOSE,
)
_MOST_EVENTS = 6 * VALUES.value + 10
"""Events of a text at the limit of values: at least one in three is a node, and every second node a key."""
_SUSPECT = re.compile(r"[^\n\r\x20-\x7e]|[%?\\]")


def parser_events(text: str) -> Iterator[Any]:
    """Return PyYAML's events of a text. Raises what PyYAML raises, while they are taken.

    They end early in a text with far more values than the limit allows.
    """
    if yaml.__with_libyaml__ and not scanners_differ(text):
        try:
            return iter(list(islice(yaml.parse(text, Loader=yaml.CSafeLoader), _MOST_EVENTS)))
        except (yaml.YAMLError, UnicodeEncodeError):
            pass
    return yaml.parse(text, Loader=yaml.SafeLoader)


@lru_cache(maxsize=2)  # an edit asks it of the text before and after, by each of its readers
def scanners_differ(text: str) -> bool:
    """Return whether a text holds what libyaml and PyYAML's own scanner may take differently."""
    if text.isascii() and not _SUSPECT.search(text):  # a tenth of the time of the pattern below
        return False
    return _DIFFERENT.search(text) is not None
