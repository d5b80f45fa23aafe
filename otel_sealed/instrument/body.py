"""Bodies as they crossed the wire: kept while they pass, made readable once the call is over."""

from __future__ import annotations

import base64
import contextlib
import json
import re
from sys import getsizeof
from time import perf_counter
from typing import Any, Final

from otel_sealed.instrument.guard import internal_error
from otel_sealed.wire.inflate import DamagedError, UnknownEncodingError, unpacked
from otel_sealed.wire.parse import Unread

CAP: Final = 32 * 1024 * 1024
"""Most bytes that one streamed body may hold of memory; of a longer one none are kept, and that is
counted."""
SLOT: Final = 24
"""What an object costs besides its own size: a place in a list that grows (9 bytes), and what the
allocator rounds up (15 at most). With the 33 bytes of an empty one, 588,674 chunks are the most."""

_TERMINAL = re.compile(
    rb"^(?:event: ?(?:message_stop|response\.(?:completed|incomplete|failed)"
    rb"|interaction\.completed?)\r?$"
    rb"|data: ?\[DONE\]"
    rb'|data: ?\{"type": ?"(?:message_stop|response\.(?:completed|incomplete|failed))"'
    rb'|data: ?\{"event_type": ?"interaction\.completed?")',
    re.MULTILINE,
)
# Nothing but counts comes behind these. The line has to be there as a whole: a chunk may end before
# what says why the reply ended, while its reader waits for the next one.
_LAST = re.compile(
    rb"^event: ?message_delta\r?\ndata:[^\n]*+\n"
    rb'|^data: ?\{(?!"type")(?>.*?"finish_reason": ?")[^\n]*+\n',
    re.MULTILINE,
)
_LAST_CHUNKS = 3
_GEMINI_TERMINAL = re.compile(r'"finishReason":\s*"')
_BLANK = re.compile(rb"\r?\n\r?\n")
_LONGEST_MARK = 128


class Kept:
    """What has passed of one streamed body: bytes of an HTTP body, or payloads of an SDK stream.

    Written by the reader of the stream alone, without a lock; `over` may be asked by another
    thread, under the lock of its call.
    """

    __slots__ = (
        "_carry",
        "_marked",
        "_scanned",
        "at",
        "chunks",
        "encoding",
        "ended",
        "full",
        "size",
        "whole",
    )

    def __init__(self, encoding: str = "") -> None:
        """`encoding` is the content-encoding of an HTTP body."""
        self.encoding = encoding
        self.chunks: list[Any] = []
        self.at = 0.0
        self.size = 0
        self.full = False
        self.ended = False
        self.whole = False
        self._scanned = 0
        self._carry = b""
        self._marked = False

    def keep(self, chunk: Any) -> None:
        """Remember a chunk that passes; nothing but a reference, a length and the time."""
        if self.full:
            return
        self.at = perf_counter()
        if type(chunk) is bytes or type(chunk) is str:
            self.size += getsizeof(chunk) + SLOT
        else:
            self.size += held(chunk, CAP - self.size)
        if self.size > CAP:
            self.full = True
            self.chunks.clear()
            internal_error("exchange.body", "BodyTooLarge")
            return
        self.chunks.append(chunk)

    def release(self) -> None:
        """Let go of everything, and keep nothing of what may still pass."""
        self.full = True
        self.chunks.clear()
        self._carry = b""

    def over(self) -> bool:
        """Whether the provider's closing event has passed, whoever reads on or does not."""
        if self._marked and not self._carry:
            return True
        count = len(self.chunks)
        fresh = self.chunks[self._scanned : count]
        self._scanned = count
        if fresh and not isinstance(fresh[0], bytes):
            return self._payloads_over(fresh)
        return self.encoding in ("", "identity") and self._bytes_over(b"".join(fresh))

    def left(self, before: float) -> bool:
        """Whether nobody is reading on: the end of the reply had passed `before` that time.

        Who begins another call then has seen how the reply ended, and stopped there.
        """
        if self.at >= before:
            return False
        last = self.chunks[-_LAST_CHUNKS:]
        said = bool(last) and isinstance(last[0], bytes) and _LAST.search(b"".join(last))
        return bool(said) or self.over()

    def _payloads_over(self, fresh: list[Any]) -> bool:
        self._marked = self._marked or any(_closes(payload) for payload in fresh)
        return self._marked

    def _bytes_over(self, fresh: bytes) -> bool:
        data = self._carry + fresh
        if not self._marked:
            mark = _TERMINAL.search(data)
            if mark is None:
                self._carry = data[data.rfind(b"\n") + 1 :][:_LONGEST_MARK]
                return False
            self._marked = True
            data = data[mark.end() :]
        if _BLANK.search(data):
            self._carry = b""
            return True
        self._carry = data[-3:] or b"\0"
        return False


def held(value: Any, most: int) -> int:
    """Bytes of memory that a parsed payload holds; of one that holds more than `most`, a part."""
    size, waiting = 0, [value]
    while waiting and size <= most:
        part = waiting.pop()
        size += getsizeof(part) + SLOT
        if isinstance(part, dict):
            waiting.extend(part.values())
            size += sum(map(getsizeof, part.keys()))
        elif isinstance(part, list):
            waiting.extend(part)
    return size


def ended(data: bytes) -> bool:
    """Whether a body, read to whatever place, says how the reply ended."""
    return bool(_TERMINAL.search(data) or _LAST.search(data))


def _closes(payload: Any) -> bool:
    if isinstance(payload, str):
        return _GEMINI_TERMINAL.search(payload) is not None
    candidates = payload.get("candidates") if isinstance(payload, dict) else None
    if not isinstance(candidates, list):
        return False
    return any(isinstance(c, dict) and c.get("finishReason") for c in candidates)


def plain(data: bytes, encoding: str) -> bytes | Unread:
    """`data` without its content-encoding, a cut body as far as it goes; else why there is none."""
    try:
        found = decoded(data, encoding)
    except Unread as error:
        internal_error("exchange.body", "BodyTooLarge")
        return Unread(error.reason)
    return Unread("encoding") if found is None else found


def decoded(data: bytes, encoding: str) -> bytes | None:
    """The same; None if unreadable.

    Raises Unread with reason `size` where more than `MAX_BODY` bytes would come out of it.
    """
    try:
        return unpacked(data, encoding)
    except UnknownEncodingError:
        internal_error("exchange.body", "UnknownEncoding")
    except DamagedError:
        pass
    return None


def is_events(data: bytes) -> bool:
    """Whether a body is an event stream; JSON never starts like one."""
    return data[:64].lstrip().startswith((b"event:", b"data:", b":", b"id:", b"retry:"))


def aws_events(data: bytes) -> list[Any]:
    """The JSON events inside an `application/vnd.amazon.eventstream` body, cut frames left out.

    Frame: total length, headers length, prelude CRC (4 bytes each, big-endian), headers, payload,
    CRC. The payload of a chunk of InvokeModel is `{"bytes": base64 of the event}`, that of others
    is the event, which gets the name that is in its headers as its one key, as botocore has it.
    """
    events: list[Any] = []
    at = 0
    while at + 16 <= len(data):
        total = int.from_bytes(data[at : at + 4])
        head = int.from_bytes(data[at + 4 : at + 8])
        if total < head + 16 or at + total > len(data):
            break
        headers = data[at + 12 : at + 12 + head]
        try:
            frame = json.loads(data[at + 12 + head : at + total - 4])
            if "bytes" in frame:
                events.append(json.loads(base64.b64decode(frame["bytes"])))
            elif name := _EVENT_NAME.search(headers):
                events.append({name[1].decode("ascii"): frame})
        except (ValueError, KeyError, TypeError, RecursionError):
            pass  # a frame without an event
        at += total
    return events


_EVENT_NAME = re.compile(rb":(?:event|exception)-type\x07\0[\x01-\x40]([A-Za-z]{1,64})")
"""The header that names an event: its own name, the type of a text, two bytes of length."""


def payloads(chunks: list[Any]) -> list[Any]:
    """Streamed payloads as the tracker takes them: texts and parsed ones as they are.

    Texts among parsed ones are parsed, too, unless they cannot be.
    """
    if all(isinstance(chunk, str) for chunk in chunks):
        return list(chunks)
    parsed = []
    for chunk in chunks:
        with contextlib.suppress(ValueError, RecursionError):
            parsed.append(json.loads(chunk) if isinstance(chunk, str) else chunk)
    return parsed
