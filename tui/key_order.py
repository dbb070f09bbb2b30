"""Keys one at a time: each is dispatched to the focus that the keys before it left.

Textual hands a key to the focused widget's queue at once. A key that moves the focus takes effect only when
it has bubbled up to the app, so that keys that arrive together (typed ahead over a slow link, or sent by a
macro) would all land in the field that had the focus before the first of them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable

from textual.app import App
from textual.events import Key
from textual.message import Message
from textual.message_pump import MessagePump

LIMIT_S = 0.5
"""Longest wait for a key: a widget that is removed while it handles one reports nothing."""
HOLD_LIMIT_S = 10.0
"""Longest time that a screen may hold keys: a file system that hangs must not take the keyboard."""
_HOLD_POLL_S = 0.01
_ROUNDS = 3
"""A key's message may cause another one, and that one the change of focus."""


class KeyPassed(Message):
    """Follows a key through the same queues, and then what the key set in motion."""

    def __init__(self, key: Key, number: int) -> None:
        super().__init__()
        self.key = key
        self.number = number


class KeyOrder:
    """Holds keys back while an earlier one takes effect."""

    def __init__(self, app: App[None], dispatch: Callable[[Key], Awaitable[None]]) -> None:
        self._app = app
        self._dispatch = dispatch
        self._waiting: deque[Key] = deque()
        self._pending: Key | None = None
        self._target: MessagePump = app
        self._round = 0
        self._held_since: float | None = None
        self._polling = False

    async def take(self, key: Key) -> None:
        """Dispatch a key now, or after those before it."""
        self._waiting.append(key)
        if self._pending is None:
            await self._next()

    async def reached_app(self, key: Key) -> None:
        """Note that no widget took a key, and that the app has handled it."""
        if key is self._pending:
            await self._follow()

    async def passed(self, event: KeyPassed) -> None:
        """Follow the key again, or dispatch the next one."""
        if event.key is not self._pending or event.number != self._round:
            return
        if self._round < _ROUNDS:
            await self._follow()
        else:
            await self._release(event.key)

    async def _follow(self) -> None:
        assert self._pending is not None
        self._round += 1
        if not self._app.screen_stack:
            await self._release(self._pending)
            return
        target = self._target if self._target.is_attached else self._app.screen
        if not target.post_message(KeyPassed(self._pending, self._round)):
            await self._release(self._pending)

    async def _release(self, key: Key) -> None:
        if key is self._pending:
            self._pending = None
            if not self._app.screen_stack:  # the app ends
                self._waiting.clear()
            await self._next()

    async def _next(self) -> None:
        while self._pending is None and self._waiting:
            if self._is_held(self._waiting[0]):
                self._poll()
                return
            self._pending = key = self._waiting.popleft()
            self._target, self._round = self._app.focused or self._app.screen, 0
            await self._dispatch(key)
            if not key.is_forwarded:  # a command that goes before all widgets
                self._pending = None
                continue
            self._app.set_timer(LIMIT_S, lambda key=key: self._release(key))
            await self._follow()

    def _is_held(self, key: Key) -> bool:
        """Return whether a screen is not ready for a key: what the key before it asked for is under way."""
        screens = self._app.screen_stack
        if not any(getattr(screen, "holds_key", _never)(key.key) for screen in screens):
            self._held_since = None
            return False
        now = time.monotonic()
        self._held_since = self._held_since or now
        return now - self._held_since < HOLD_LIMIT_S

    def _poll(self) -> None:
        if not self._polling:
            self._polling = True
            self._app.set_timer(_HOLD_POLL_S, self._try_again)

    async def _try_again(self) -> None:
        self._polling = False
        await self._next()


def _never(key: str) -> bool:
    return False
