"""Effects: what the app says a tool call did, kept as digest and size until its result goes out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from otel_sealed.digest import Digest, spelled, utf8
from otel_sealed.model import ToolReceipt
from otel_sealed.model.record import replace

_MAX_PENDING = 10_000


class Effects:
    """Effects told and not yet on a span. One lock; at most 10,000; lives with its tracker."""

    def __init__(self, digest: Digest) -> None:
        """`digest` keys what is kept."""
        self._digest = digest
        self._pending: OrderedDict[bytes, tuple[bytes, int]] = OrderedDict()
        self._lock = threading.Lock()

    def tell(self, call_id: str, effect: Any) -> None:
        """Remember digest and size of `effect` (text, bytes or JSON) for the call of that id."""
        data = effect if isinstance(effect, bytes) else None
        if data is None:
            data = utf8(effect) if isinstance(effect, str) else spelled(effect)
        with self._lock:
            self._pending[self._digest.name(call_id)] = (self._digest.raw(b"e", data), len(data))
            while len(self._pending) > _MAX_PENDING:
                self._pending.popitem(last=False)

    def on(self, receipt: ToolReceipt) -> ToolReceipt:
        """`receipt` with the effect told for its call, if one was."""
        with self._lock:
            found = self._pending.pop(receipt.call, None) if receipt.call else None
        if found is None:
            return receipt
        return replace(receipt, effect=found[0], effect_size=found[1])
