"""Keys that wait until the session's thread has done what the keys before them asked for.

A key is meant for the screen as it will be then: the text behind `c` for the field that `c` opens, `#` behind
`u` for the key as it is after the undo. Used on the event loop only.
"""

from __future__ import annotations

LIST_KEYS = frozenset({"up", "down", "pageup", "pagedown"})
"""Keys that go through a list of choices."""
LEAVING_KEYS = frozenset({"escape", "q", "b", "ctrl+c", "ctrl+q", "ctrl+z"})
"""Keys that do not wait for a recipe to be read: its file system may hang."""
MOVING_KEYS = frozenset({
    *LIST_KEYS, "left", "right", "home", "end", "tab", "shift+tab", "1", "2", "3",
})  # fmt: skip
"""Keys that need nothing but the tree and the text: the checks of a fork may take seconds at first."""
CHOOSING_KEYS = LIST_KEYS | {"enter"}


class KeyHolds:
    """What is under way, each with the keys that wait for it."""

    def __init__(self) -> None:
        self._keys: dict[int, frozenset[str] | None] = {}
        self._last = 0

    def hold(self, keys: frozenset[str] | None = None) -> int:
        """Hold keys of a dialog back, or with None all keys; returns the number to release them by."""
        self._last += 1
        self._keys[self._last] = keys
        return self._last

    def release(self, number: int) -> None:
        """Let the keys go."""
        self._keys.pop(number, None)

    def holds(self, key: str, *, in_dialog: bool) -> bool:
        """Return whether a key has to wait."""
        return any(keys is None or (in_dialog and key in keys) for keys in self._keys.values())
