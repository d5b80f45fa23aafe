"""What is believed of a store: the one place where a value read from it becomes a value of ours.

Whoever holds the hash key is trusted, and nobody else. Who may write the store without the key can
delete, withhold, move, repeat or replace what is in it; all of that costs knowledge (a turn is
`unknown`), and none of it makes a verdict:

* a record counts with a MAC under the hash key over its number and all its bytes. The keys that
  find it, its conversation and its parent are among these bytes, so a record under another number,
  or with one bit changed, is none;
* an entry of an index is a hint: it counts where the genuine record it names holds the key that was
  asked for, so entries that are added, swapped or repeated change nothing;
* a number counts if it is an integer from 0 to a day from now (`AHEAD_S`), and moves the clock only
  with a genuine record;
* an older genuine record that is put back is what a process saw: records never change.

What fails is counted, and is unknown. Where the key itself lies in the store (in a file of mode
0600, or in Redis if asked), whoever reads the store holds the key.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterable
from typing import Final

from otel_sealed.ledger.packed import VERSION, whole
from otel_sealed.ledger.shared.clock import MOST, Clock

KEY_BYTES: Final = range(16, 65)
"""Lengths of a hash key, as the settings take them."""
MAX_RECORD: Final = 256 * 1_024
"""Most bytes of a record: 100 times a turn of some seals. A greater turn is not shared."""
_SIGNED: Final = 0x80
"""In the first byte, with the version of `packed`: a MAC is at the end.

A record that begins with a version alone, and has its checksum, is of a release before there was a
MAC: unknown, and not counted.
"""
_OLD: Final = bytes((VERSION,))
MAC: Final = 8
"""A forger has to have 2**63 guesses looked up, each of which is counted; more would cost space."""
_PURPOSE: Final = b"otel_sealed ledger record 2"
"""No digest begins with it (`digest` has a domain byte in front), so no two uses of a key meet."""


class Trust:
    """What a store says, checked. `refused` is called for everything that fails."""

    def __init__(self, clock: Clock, refused: Callable[[], object]) -> None:
        """Until there is a key, one that nobody else has."""
        self._clock = clock
        self._refused = refused
        self.key(secrets.token_bytes(32))

    def key(self, key: bytes) -> None:
        """The hash key that those who share the store have."""
        self._key = hmac.digest(key, _PURPOSE, "sha256")

    def number(self, value: object) -> int:
        """A number, or -1 where it is none or later than any can be."""
        if type(value) is int and 0 <= value <= self._clock.latest():
            return value
        self._refused()
        return -1

    def numbers(self, values: Iterable[object]) -> list[int]:
        """Those of several that are numbers, ascending."""
        return sorted({number for number in map(self.number, values) if number >= 0})

    def count(self, value: object) -> int:
        """How many there are; 0 where that is no such number."""
        if type(value) is int and 0 <= value <= MOST:
            return value
        self._refused()
        return 0

    def signed(self, number: int, data: bytes) -> bytes:
        """A packed turn as a store keeps it."""
        record = bytes((data[0] | _SIGNED,)) + data[1:]
        return record + self._mac(number, record)

    def genuine(self, number: int, value: object) -> bytes | None:
        """The packed turn that a holder of the key put under `number`; None where it is none."""
        if value is None or (type(value) is bytes and value[:1] == _OLD and whole(value)):
            return None
        if type(value) is bytes and len(value) > MAC and fits(value):
            mac = self._mac(number, value[:-MAC])
            if hmac.compare_digest(value[-MAC:], mac):
                return bare(value)
        self._refused()
        return None

    def _mac(self, number: int, record: bytes) -> bytes:
        return hmac.digest(self._key, number.to_bytes(8, "big") + record, "sha256")[:MAC]


def bare(record: bytes) -> bytes:
    """The packed turn in a record that is not empty, genuine or not."""
    return bytes((record[0] & ~_SIGNED,)) + record[1:-MAC]


def fits(record: bytes) -> bool:
    """Whether a record is not too large to be shared."""
    return len(record) <= MAX_RECORD


def usable_key(value: object) -> bytes:
    """A hash key read from a store; nothing where it is none."""
    return value if type(value) is bytes and len(value) in KEY_BYTES else b""
