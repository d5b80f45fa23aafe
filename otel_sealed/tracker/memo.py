"""Messages that were read before, by what they were read from.

A host that slides a window over its history, clears an old result or edits a message sends what
stands behind it again, at another place. Such a message need not be read anew: it is known by the
hash of its bytes (`wire.checkpoint`), and holds digests only.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from otel_sealed.model import Message
from otel_sealed.wire.read import MessageKey

MAX_MESSAGES: Final = 1024
"""Messages kept: a few megabytes."""


class Memo:
    """The messages of one dialect that were used last. Thread-safe."""

    def __init__(self, most: int = MAX_MESSAGES) -> None:
        """`most`: how many are kept."""
        self._most = most
        self._messages: OrderedDict[MessageKey, Message] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: MessageKey) -> Message | None:
        """The message as it was read, under the index it had then."""
        with self._lock:
            message = self._messages.get(key)
            if message is not None:
                self._messages.move_to_end(key)
            return message

    def keep(self, key: MessageKey, message: Message) -> None:
        """Remember a message; the one that was not used for longest goes."""
        with self._lock:
            self._messages[key] = message
            while len(self._messages) > self._most:
                self._messages.popitem(last=False)
