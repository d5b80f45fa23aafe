"""One HTTP exchange as Envoy shows it to a processor: headers and pieces of bodies, of both sides.

Model. Envoy sends copies and does not wait for us. A processor that is too slow, or frozen, is cut
off without a word: pieces are then missing, and no end of stream comes. So an exchange is whole
only if both ends of stream were seen, and only a whole one is judged. Of any other, that of a
client that left among them, it is counted that it passed unobserved.

After a 101 the same stream carries the frames of a WebSocket; each of its exchanges is judged when
its closing event has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from otel_sealed.extproc.frames import TEXT, Frames
from otel_sealed.http.lanes import Lanes
from otel_sealed.http.observer import Copy, Held, Seen, lowered
from otel_sealed.wire.parse import Unread

_SWITCHED: Final = "101"


class Exchange:
    """What one gRPC stream of the processor shows. `hand` takes each exchange that is over."""

    def __init__(self, held: Held, hand: Callable[[Seen], None]) -> None:
        """`held` counts what all exchanges hold."""
        self._held = held
        self._hand = hand
        self._seen = self._new({})
        self._asked = self._answered = False
        self._over = False
        self._lanes: Lanes | None = None
        self._sides: dict[str, Frames | None] = {}

    def take(self, kind: str, part: Any) -> None:
        """One message: its kind, as ext_proc names it, and what is in it."""
        if self._over and self._lanes is None:
            return
        if kind == "request_headers":
            self._begin(part)
        elif kind == "response_headers":
            self._answer(part)
        elif kind in ("request_body", "response_body"):
            self._body(kind, part)
        if kind.endswith("_trailers") or getattr(part, "end_of_stream", False):
            self._ended(kind)

    def close(self) -> None:
        """The gRPC stream is over: what has not ended by now does not end any more."""
        if self._lanes is not None:
            self._lanes.close()
        elif not self._over:
            self._finish(whole=False)

    def _new(self, headers: dict[str, str]) -> Seen:
        scheme, host = headers.get(":scheme", "https"), headers.get(":authority", "")
        return Seen(
            method=headers.get(":method", ""),
            url=f"{scheme}://{host}{headers.get(':path', '')}",
            headers=headers,
            request=Copy(self._held),
            response=Copy(self._held),
            started_ns=time.time_ns(),
        )

    def _begin(self, part: Any) -> None:
        self._seen = self._new(_headers(part))

    def _answer(self, part: Any) -> None:
        headers = _headers(part)
        status = headers.get(":status", "")
        self._seen.answered = headers
        self._seen.status = int(status) if status.isdecimal() else None
        if status == _SWITCHED:
            extensions = headers.get("sec-websocket-extensions", "")
            self._sides = {
                "request_body": Frames(extensions, "client"),
                "response_body": Frames(extensions, "server"),
            }
            asked, self._over = self._seen, True
            self._lanes = Lanes(lambda: self._new(asked.headers), self._lane_over)
            early = asked.request.whole()
            asked.release()
            self._frames("request_body", early)

    def _lane_over(self, seen: Seen, complete: bool) -> None:  # noqa: FBT001 - as `Lanes` calls it
        seen.complete, seen.ended_ns = complete, time.time_ns()
        self._hand(seen)

    def _body(self, kind: str, part: Any) -> None:
        if self._lanes is not None:
            self._frames(kind, part.body)
        elif kind == "request_body":
            self._seen.request.add(part.body)
        else:
            self._seen.response.add(part.body)

    def _frames(self, kind: str, data: bytes) -> None:
        frames, lanes = self._sides.get(kind), self._lanes
        if frames is None or lanes is None:
            return
        take = lanes.sent if kind == "request_body" else lanes.answered
        try:
            for message in frames.feed(data):
                if message.kind == TEXT:
                    take(message.data.decode("utf-8", "replace"))
        except Unread:
            self._sides[kind] = None  # nothing that follows can be placed
            lanes.close()

    def _ended(self, kind: str) -> None:
        if kind.startswith("request"):
            self._asked = True
        else:
            self._answered = True
        if self._asked and self._answered and self._lanes is None:
            self._finish(whole=True)

    def _finish(self, *, whole: bool) -> None:
        self._over = True
        self._seen.whole = self._seen.complete = whole
        self._seen.ended_ns = time.time_ns()
        self._hand(self._seen)


def _headers(part: Any) -> dict[str, str]:
    """The headers of a message; Envoy puts values into either of two fields."""
    return lowered((one.key, one.raw_value or one.value) for one in part.headers.headers)
