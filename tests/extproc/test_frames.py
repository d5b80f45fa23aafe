"""Messages of a WebSocket from raw frames: masked, deflated, in pieces, hostile."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    ServerPerMessageDeflateFactory,
)
from websockets.frames import Frame, Opcode
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from otel_sealed.extproc import frames as module
from otel_sealed.extproc.frames import Frames, Message
from otel_sealed.wire.parse import Unread

MESSAGES = ["{}", "hé" * 3000, '{"type":"response.create"}', "x" * 70_000, ""]


def connected(*, deflate: bool, keeps: bool) -> tuple[ClientProtocol, ServerProtocol, str]:
    """Both ends of a connection after its handshake, without a network; the extensions."""
    offered = [ClientPerMessageDeflateFactory(client_no_context_takeover=not keeps)]
    taken = [ServerPerMessageDeflateFactory(server_no_context_takeover=not keeps)]
    client = ClientProtocol(parse_uri("ws://x/"), extensions=offered if deflate else None)
    server = ServerProtocol(extensions=taken if deflate else None)
    client.send_request(client.connect())
    server.receive_data(b"".join(client.data_to_send()))
    (asked,) = server.events_received()
    server.send_response(server.accept(asked))  # type: ignore[arg-type]
    sent = b"".join(server.data_to_send())
    client.receive_data(sent)
    lines = [x for x in sent.decode().split("\r\n") if x.lower().startswith("sec-websocket-ext")]
    return client, server, lines[0].partition(": ")[2] if lines else ""


def pieces(data: bytes, seed: int) -> Iterator[bytes]:
    drawn = random.Random(seed)
    at = 0
    while at < len(data):
        end = at + drawn.choice((1, 2, 3, 17, 4096))
        yield data[at:end]
        at = end


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("deflate", "keeps"), [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("seed", range(3))
def test_messages_come_back_however_they_are_cut(
    side: str,
    deflate: bool,  # noqa: FBT001 - with and without
    keeps: bool,  # noqa: FBT001 - with and without
    seed: int,
) -> None:
    client, server, extensions = connected(deflate=deflate, keeps=keeps)
    end: Any = client if side == "client" else server
    for text in MESSAGES:
        end.send_text(text.encode())
        end.send_ping(b"still there?")
    end.send_binary(b"\x00\x01")
    data = b"".join(end.data_to_send())
    reader = Frames(extensions, side)
    found = [message for piece in pieces(data, seed) for message in reader.feed(piece)]
    assert found == [*(Message(1, text.encode()) for text in MESSAGES), Message(2, b"\x00\x01")]


def test_a_message_in_several_frames_is_one() -> None:
    parts = [
        Frame(Opcode.TEXT, b'{"a":', fin=False),
        Frame(Opcode.PING, b""),
        Frame(Opcode.CONT, b"1}"),
    ]
    data = b"".join(one.serialize(mask=True) for one in parts)
    assert list(Frames("", "client").feed(data)) == [Message(1, b'{"a":1}')]


def test_a_frame_that_claims_too_much_is_given_up_at_its_head() -> None:
    with pytest.raises(Unread, match="size"):
        list(Frames("", "client").feed(b"\x81\xff" + (1 << 60).to_bytes(8) + b"mask"))


def deflated(payload: bytes) -> bytes:
    """A frame with a text that says it is deflated."""
    return b"\xc1\x7e" + len(payload).to_bytes(2) + payload


def test_a_message_that_inflates_beyond_the_bound_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST", 10_000)
    packed = zlib.compressobj(wbits=-15)
    bomb = packed.compress(b"\0" * 1_000_000) + packed.flush(zlib.Z_SYNC_FLUSH)
    data = deflated(bomb[:-4])
    with pytest.raises(Unread, match="size"):
        list(Frames("permessage-deflate", "server").feed(data))


def test_bytes_that_do_not_inflate_are_given_up() -> None:
    data = deflated(b"\xff\xff\xff")
    with pytest.raises(Unread, match="encoding"):
        list(Frames("permessage-deflate", "server").feed(data))
