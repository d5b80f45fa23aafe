"""From a digest to the turns that hold it, in nine to fourteen bytes a key.

Theory of operation. A digest is keyed and so spreads evenly: its first 16 bits choose one of many
buckets. A bucket is one run of bytes, and each key has 8 of them there: its next 32 bits, and the
lower 32 bits of the turn's number. Adding is an append, finding a search for those bits from the
end. Keys that begin alike are told apart by whoever asks: what is found is a candidate. Turns that
are gone leave their entries behind, until their bucket has grown by half: then it is swept, so that
forgetting costs nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable
from typing import Final

MAX_SAME_KEY: Final = 16
ENTRY_BYTES: Final = 14
"""What a key costs at most: its entry, half of that for entries left behind, what runs reserve."""
_LIKE: Final = slice(2, 6)
_BEGINS: Final = 6
_ENTRY: Final = 8
_LOWER: Final = 2**32 - 1
_PER_BUCKET: Final = 256
_MOST_BITS: Final = 16
_UNSWEPT: Final = 16 * _ENTRY


class Index:
    """Candidates for keys, oldest first, at most the newest 16 of a key. Not thread-safe."""

    __slots__ = ("_buckets", "_due", "_held", "_newest", "_shift")

    def __init__(self, keys: int, held: Container[int]) -> None:
        """`keys`: how many are expected, more are only slower; `held`: the numbers that count."""
        bits = min(max((keys // _PER_BUCKET).bit_length(), 1), _MOST_BITS)
        self._shift = _MOST_BITS - bits
        self._held = held
        self._newest = 0
        self._buckets: list[bytearray | None] = [None] * (1 << bits)
        self._due = [_UNSWEPT] * (1 << bits)

    def __len__(self) -> int:
        """Entries, those left behind included."""
        return sum(map(len, filter(None, self._buckets))) // _ENTRY

    def add(self, keys: Iterable[bytes], number: int, *, left: bool = True) -> None:
        """`number` is newer than all that `keys` have; `left`: whether any left entries behind."""
        self._newest = number
        told = (number & _LOWER).to_bytes(4, "little")
        buckets, due, shift = self._buckets, self._due, self._shift
        for key in keys:
            begins = key if len(key) >= _BEGINS else key.ljust(_BEGINS, b"\0")
            place = (begins[0] << 8 | begins[1]) >> shift
            bucket = buckets[place]
            if bucket is None:
                bucket = buckets[place] = bytearray()
            elif left and len(bucket) >= due[place]:
                bucket = self._swept(place, bucket)
            bucket += begins[_LIKE] + told

    def find(self, key: bytes) -> list[int]:
        """Numbers that `key` may have, and that count."""
        found: list[int] = []
        begins = key if len(key) >= _BEGINS else key.ljust(_BEGINS, b"\0")
        bucket = self._buckets[(begins[0] << 8 | begins[1]) >> self._shift]
        if bucket is None:
            return found
        like, newest = begins[_LIKE], self._newest
        at = bucket.rfind(like)
        while at >= 0 and len(found) < MAX_SAME_KEY:
            if at % _ENTRY:
                at = bucket.rfind(like, 0, at + 3)
                continue
            lower = int.from_bytes(bucket[at + 4 : at + _ENTRY], "little")
            number = newest - (newest - lower & _LOWER)
            if number in self._held and number not in found:
                found.append(number)
            at = bucket.rfind(like, 0, at)
        found.reverse()
        return found

    def _swept(self, place: int, bucket: bytearray) -> bytearray:
        held, newest = self._held, self._newest
        entries = struct.unpack(f"<{len(bucket) // _ENTRY}Q", bucket)
        kept = [e for e in entries if newest - (newest - (e >> 32) & _LOWER) in held]
        left = self._buckets[place] = bytearray(struct.pack(f"<{len(kept)}Q", *kept))
        self._due[place] = len(left) + max(len(left) >> 1, _UNSWEPT)
        return left
