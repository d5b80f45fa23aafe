"""The messages of a WebSocket, from the bytes of one direction (RFC 6455, RFC 7692).

A gateway's processor gets the frames as they cross the wire: masked, deflated, cut anywhere. They
are foreign data: a message has `MOST` bytes, also once it is inflated; beyond it, or where bytes
are no frames, the direction is given up (`Unread`), since what follows cannot be placed any more.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from otel_sealed.wire.parse import MAX_BODY, Unread

MOST: Final = MAX_BODY
"""Bytes of a message: what is longer is read by nobody."""
TEXT: Final = 1
_CONTROL: Final = 8
_FINAL, _COMPRESSED, _MASKED = 0x80, 0x40, 0x80
_LONG: Final = {126: 2, 127: 8}
_TAIL: Final = b"\x00\x00\xff\xff"  # what RFC 7692 has a sender leave out


class Message(NamedTuple):
    """One message: `kind` is 1 for a text, 2 for bytes."""

    kind: int
    data: bytes


class Frames:
    """One direction of one connection."""

    def __init__(self, extensions: str, side: str) -> None:
        """`extensions`: as the server accepted them; `side`: `client` or `server`, who sends."""
        self._deflated = "permessage-deflate" in extensions
        self._keeps = f"{side}_no_context_takeover" not in extensions
        self._inflater = zlib.decompressobj(-15)
        self._bytes = bytearray()
        self._parts: list[bytes] = []
        self._size = 0
        self._kind = 0
        self._compressed = False

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete with these bytes. Raises Unread."""
        self._bytes += data
        while (frame := self._frame()) is not None:
            head, payload = frame
            kind = head & 15
            if kind >= _CONTROL:
                continue
            if kind:
                self._kind, self._compressed = kind, bool(head & _COMPRESSED)
                self._parts, self._size = [], 0
            self._parts.append(payload)
            self._size += len(payload)
            if self._size > MOST:
                raise Unread("size")
            if head & _FINAL:
                message, self._parts = b"".join(self._parts), []
                yield Message(self._kind, self._plain(message))

    def _frame(self) -> tuple[int, bytes] | None:
        """The first byte and the payload of the next frame, None where it is not all there."""
        held = self._bytes
        if len(held) < 2:  # noqa: PLR2004 - the shortest head
            return None
        length, at = held[1] & 127, 2
        if length in _LONG:
            end = at + _LONG[length]
            if len(held) < end:
                return None
            length, at = int.from_bytes(held[at:end]), end
        if length > MOST:
            raise Unread("size")
        mask = b""
        if held[1] & _MASKED:
            mask, at = bytes(held[at : at + 4]), at + 4
        if len(held) < at + length:
            return None
        first, payload = held[0], bytes(held[at : at + length])
        del held[: at + length]
        return first, _unmasked(payload, mask) if mask else payload

    def _plain(self, message: bytes) -> bytes:
        if not (self._deflated and self._compressed):
            return message
        try:
            data = self._inflater.decompress(message + _TAIL, MOST)
        except zlib.error:
            raise Unread("encoding") from None
        if self._inflater.unconsumed_tail:
            raise Unread("size")
        if not self._keeps:
            self._inflater = zlib.decompressobj(-15)
        return data


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    key = (mask * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(len(payload))
