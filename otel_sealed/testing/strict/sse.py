"""Server-sent events: how one is written, and how its bytes are broken up on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .records import Obj, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

# Smaller than the shortest seal, so that every seal spans several writes; a prime, so that the
# breaks fall anywhere: inside a character of several bytes, an escape, a line end.
PIECE = 211


def named(event: Obj) -> bytes:
    """Write an event as Anthropic and OpenAI do: its type as the event's name as well."""
    return b"event: " + str(event.get("type", "message")).encode() + b"\ndata: " + _data(event)


def unnamed(event: Obj) -> bytes:
    """Write an event as Gemini does: data alone, with CRLF line ends."""
    return b"data: " + encode(event) + b"\r\n\r\n"


def pieces(frame: bytes) -> Iterator[bytes]:
    """Break a frame into the pieces that are written one by one."""
    for at in range(0, len(frame), PIECE):
        yield frame[at : at + PIECE]


def deltas(text: str, parts: int = 4) -> list[str]:
    """Cut a text into the deltas a stream brings it in."""
    size = max(1, -(-len(text) // parts))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _data(event: Obj) -> bytes:
    return encode(event) + b"\n\n"
