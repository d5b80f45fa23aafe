"""Records of others that were found genuine, kept for as long as they are in use."""

from __future__ import annotations

import threading
from collections import OrderedDict

from otel_sealed.ledger.memory import WARM_BYTES, WARM_TURNS
from otel_sealed.ledger.shared.trust import Trust


class Genuine:
    """Packed turns by number, bounded as turns kept unpacked are. One lock of its own."""

    def __init__(self, trust: Trust) -> None:
        """`trust` decides what is genuine."""
        self._trust = trust
        self._records: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, number: int) -> bytes | None:
        """A record that is kept."""
        with self._lock:
            data = self._records.get(number)
            if data is not None:
                self._records.move_to_end(number)
            return data

    def read(self, number: int, value: object) -> bytes | None:
        """The record that a store says is of `number`, now kept; None where it is not genuine."""
        data = self._trust.genuine(number, value)
        if data is not None:
            with self._lock:
                self._bytes += len(data) - len(self._records.pop(number, b""))
                self._records[number] = data
                while len(self._records) > WARM_TURNS or self._bytes > WARM_BYTES:
                    self._bytes -= len(self._records.popitem(last=False)[1])
        return data

    def forked(self) -> None:
        """In a child of `fork`, where a thread that is not there may hold the lock."""
        self._lock = threading.Lock()
        self._records, self._bytes = OrderedDict(), 0
