"""Streams: whoever reads them, however they end, the bytes are handed on and observed once."""

from __future__ import annotations

import gc
import gzip
import json
import subprocess
import sys
import threading
import weakref
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from otel_sealed.instrument import body as bodies
from otel_sealed.instrument import finalizing, guard, instrument, uninstrument
from otel_sealed.wire.inflate import MEMBER, unpacked
from otel_sealed.wire.parse import Unread

if TYPE_CHECKING:
    from pathlib import Path

    from tests.instrument.conftest import Recorder, Spans, Wire

pytestmark = pytest.mark.usefixtures("handle")

ASK: dict[str, Any] = {"model": "claude-x", "max_tokens": 9, "messages": []}
MESSAGE = (
    b'{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],'
    b'"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}'
)
START = b'event: message_start\ndata: {"type":"message_start","message":' + MESSAGE + b"}\n\n"
BLOCK = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
EVENTS = START + BLOCK + STOP
RESPONSE = json.dumps({"id": "resp_1", "object": "response", "output": []}).encode()
OPENAI = [
    b'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":'
    + RESPONSE
    + b"}\n\n",
    b'event: response.completed\ndata: {"type":"response.completed","sequence_number":1,"response":'
    + RESPONSE
    + b"}\n\n",
]


def claude(wire: Wire) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=0)


def compressed(name: str, data: bytes) -> bytes:
    if name == "gzip":
        return gzip.compress(data)
    if name == "deflate":
        return zlib.compress(data)
    if name == "raw deflate":
        return zlib.compress(data, wbits=-zlib.MAX_WBITS)
    raise ValueError(name)


@pytest.mark.parametrize("name", ["gzip", "deflate", "raw deflate"])
def test_encoded_stream(tracker: Recorder, wire: Wire, name: str) -> None:
    """A compressed stream reaches the application as it would, and us decompressed."""
    data = compressed(name, EVENTS)
    wire.streams(data[:9], data[9:], headers={"content-encoding": name.rsplit(maxsplit=1)[-1]})
    with claude(wire) as client:
        types = [event.type for event in client.messages.create(**ASK, stream=True)]
    assert types == ["message_start", "content_block_start", "message_stop"]
    assert (tracker.one.events, tracker.one.complete) == (EVENTS, True)


def test_encoded_whole(tracker: Recorder, wire: Wire) -> None:
    """A compressed whole reply is read as the SDK reads it."""
    wire.answers(gzip.compress(MESSAGE), headers={"content-encoding": "gzip"})
    with claude(wire) as client:
        client.messages.create(**ASK)
    assert tracker.one.response == MESSAGE


def test_cut_encoded_stream(tracker: Recorder, wire: Wire) -> None:
    """Of a compressed stream that broke off, what came is read."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    first = packer.compress(START) + packer.flush(zlib.Z_SYNC_FLUSH)
    wire.streams(first, headers={"content-encoding": "gzip"}, cut=True)
    with claude(wire) as client, pytest.raises(Exception, match=r"(?i)peer|incomplete|closed"):
        list(client.messages.create(**ASK, stream=True))
    assert (tracker.one.events, tracker.one.complete) == (START, False)


@pytest.mark.parametrize(("name", "module"), [("br", "brotli"), ("zstd", "zstandard")])
def test_optional_encodings(name: str, module: str) -> None:
    """Brotli and zstd are read where a library for them is there, cut bodies as far as they go."""
    library: Any = pytest.importorskip(module)
    data = library.compress(EVENTS)
    assert bodies.decoded(data, name) == EVENTS
    assert bodies.decoded(data[:-3], name) is not None
    assert bodies.decoded(b"this is neither", name) is None


def test_unreadable_encoding() -> None:
    """An encoding that nothing here reads leaves the body unread, and is counted."""
    told: list[tuple[str, str]] = []
    guard.on_error(lambda where, kind: told.append((where, kind)))
    assert bodies.decoded(b"x", "acme") is None
    assert told == [("exchange.body", "UnknownEncoding")]
    assert bodies.decoded(b"this is no gzip", "gzip") is None
    assert bodies.decoded(gzip.compress(zlib.compress(b"x")), "deflate, gzip") == b"x"
    guard.on_error(None)


def test_cut_stream(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """A stream that breaks off raises as it would, and is observed as cut, with an error."""
    wire.streams(START, BLOCK, cut=True)
    with claude(wire) as client:
        stream = client.messages.create(**ASK, stream=True)
        with pytest.raises(Exception, match=r"(?i)peer|incomplete|closed") as raised:
            list(stream)
    seen = tracker.one
    assert (seen.events, seen.complete, seen.status) == (START + BLOCK, False, 200)
    (span,) = spans.ended
    assert str((span.attributes or {})["error.type"]).endswith(type(raised.value).__name__)


def test_early_close(tracker: Recorder, wire: Wire) -> None:
    """A stream that is closed early is observed once, as cut, with what had arrived."""
    pause = threading.Event()
    wire.streams(START, BLOCK + STOP, pause=pause)
    with claude(wire) as client:
        stream = client.messages.create(**ASK, stream=True)
        assert next(iter(stream)).type == "message_start"
        stream.close()
        pause.set()
        stream.close()
    assert (tracker.one.events, tracker.one.complete) == (START, False)


async def test_early_close_async(tracker: Recorder, wire: Wire) -> None:
    """The same for an async stream."""
    pause = threading.Event()
    wire.streams(START, BLOCK + STOP, pause=pause)
    async with anthropic.AsyncAnthropic(api_key="k", base_url=wire.url) as client:
        async with await client.messages.create(**ASK, stream=True) as stream:
            assert (await anext(stream)).type == "message_start"
        pause.set()
    assert (tracker.one.events, tracker.one.complete) == (START, False)


def test_chunks_are_not_held_back(wire: Wire) -> None:
    """An event reaches the application before the server has sent the next one."""
    pause = threading.Event()
    wire.streams(START, BLOCK, STOP, pause=pause)
    with claude(wire) as client:
        stream = iter(client.messages.create(**ASK, stream=True))
        assert next(stream).type == "message_start"
        assert not pause.is_set()
        pause.set()
        assert [e.type for e in stream] == ["content_block_start", "message_stop"]


def test_dropped_openai(tracker: Recorder, wire: Wire) -> None:
    """A stream in a reference cycle that is dropped half-read is settled after the collection."""
    pause = threading.Event()
    wire.streams(*OPENAI, pause=pause)
    seen: list[int] = []

    def step() -> None:
        stream = client.responses.create(model="m", input="x", stream=True)
        next(iter(stream))

    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        gc.disable()
        try:
            step()
            gc.collect()
            seen.append(len(tracker.exchanges))
        finally:
            gc.enable()
        pause.set()
        finalizing.catch_up()
    assert (seen, tracker.one.events, tracker.one.complete) == ([0], OPENAI[0], False)


def abandoned(client: anthropic.Anthropic, model: str) -> None:
    """Read up to its closing event and dropped, in a cycle that only a collection ends."""
    stream = client.messages.create(**ASK | {"model": model}, stream=True)
    for event in stream:
        if event.type == "message_stop":
            break
    cycle: list[Any] = [stream]
    cycle.append(cycle)


def models(tracker: Recorder) -> list[str]:
    """Those asked for, in the order in which the core heard of it."""
    return [json.loads(exchange.request)["model"] for exchange in tracker.exchanges]


@pytest.mark.parametrize("collected", ["all at once", "two of four", "none"])
def test_streams_that_nobody_closes_are_observed_in_their_order(
    tracker: Recorder, wire: Wire, collected: str
) -> None:
    """And before a later request is judged, whatever the collector found first."""
    for _ in range(4):
        wire.streams(EVENTS)
    wire.answers(MESSAGE)
    gc.disable()
    try:
        with claude(wire) as client:
            for number in range(4):
                abandoned(client, f"m{number}")
                if collected == "two of four" and number == 1:
                    gc.collect()
            if collected == "all at once":
                gc.collect()
            client.messages.create(**ASK)
    finally:
        gc.enable()
    assert models(tracker) == ["m0", "m1", "m2", "m3", "claude-x"]


CHUNK = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}\n\n'
)
SAID = CHUNK % b'{"index":0,"delta":{"role":"assistant","content":"x"},"finish_reason":null}'
FINISHED = CHUNK % b'{"index":0,"delta":{},"finish_reason":"stop"}'
DELTA = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
    b'"stop_sequence":null},"usage":{"output_tokens":2}}\n\n'
)


@pytest.mark.parametrize("dialect", ["messages", "chat"])
def test_a_reader_that_stops_where_the_reply_says_how_it_ended_has_read_it(
    tracker: Recorder, wire: Wire, dialect: str
) -> None:
    """It is observed before the next call, though its stream hangs open."""
    pause = threading.Event()
    streams: list[Any] = []
    with claude(wire) as client, openai.OpenAI(api_key="k", base_url=wire.url) as other:
        for number in range(3):
            body: dict[str, Any] = {"model": f"m{number}", "stream": True, "messages": []}
            if dialect == "chat":
                wire.streams(SAID + FINISHED, CHUNK % b"" + b"data: [DONE]\n\n", pause=pause)
                streams.append(other.chat.completions.create(**body))
                next(c for c in streams[-1] if c.choices and c.choices[0].finish_reason)
            else:
                wire.streams(START + DELTA, STOP, pause=pause)
                streams.append(client.messages.create(**ASK | body))
                next(event for event in streams[-1] if event.type == "message_delta")
        assert models(tracker) == ["m0", "m1"]
        wire.answers(MESSAGE)
        client.messages.create(**ASK)
        assert models(tracker) == ["m0", "m1", "m2", "claude-x"]
        pause.set()
        for stream in streams:
            list(stream)
    assert len(tracker.exchanges) == 4


def test_a_stream_that_is_read_on_beside_a_newer_call_is_not_cut_short(
    tracker: Recorder, wire: Wire
) -> None:
    """The newer one began before its last event came."""
    pause = threading.Event()
    wire.streams(START, DELTA, STOP, pause=pause)
    wire.streams(START, DELTA + STOP)
    with claude(wire) as client:
        old, new = [client.messages.create(**ASK | {"model": m}, stream=True) for m in "ab"]
        next(iter(old))
        pause.set()
        next(event for event in old if event.type == "message_delta")
        list(new)
        assert models(tracker) == ["b"]
        list(old)
    assert models(tracker) == ["b", "a"]
    assert tracker.exchanges[1].events == START + DELTA + STOP


def test_what_hangs_open_when_the_process_ends_is_observed(tmp_path: Path, wire: Wire) -> None:
    """As a cut stream, once, in the order of the calls."""
    script = tmp_path / "agent.py"
    script.write_text(
        "import json, sys, anthropic, otel_sealed\n"
        "class Tracker:\n"
        "    def observe(self, exchange):\n"
        "        asked = json.loads(exchange.request)['model']\n"
        "        print(asked, exchange.complete, exchange.events.count(b'data:'))\n"
        "        raise RuntimeError\n"
        "otel_sealed.instrument('anthropic', tracker=Tracker())\n"
        "client = anthropic.Anthropic(api_key='k', base_url=sys.argv[1])\n"
        "ask = {'max_tokens': 9, 'messages': [], 'stream': True}\n"
        "streams = [client.messages.create(model=m, **ask) for m in 'ab']\n"
        "for stream in streams: next(iter(stream))\n"
    )
    pause = threading.Event()
    for _ in "ab":
        wire.streams(START, BLOCK + STOP, pause=pause)
    command = [sys.executable, str(script), wire.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    pause.set()
    assert done.stdout.splitlines() == ["a False 1", "b False 1"]


def test_what_the_collector_found_is_not_observed_before_an_older_stream(
    tracker: Recorder, wire: Wire
) -> None:
    """Of two that were read to their end and not closed, it found the newer one."""
    wire.streams(EVENTS)
    wire.streams(EVENTS)
    gc.disable()
    try:
        with claude(wire) as client:
            old = client.messages.create(**ASK | {"model": "old"}, stream=True)
            next(event for event in old if event.type == "message_stop")
            abandoned(client, "new")
            gc.collect()
            finalizing.catch_up()
    finally:
        gc.enable()
    assert models(tracker) == ["old", "new"]


@pytest.mark.parametrize("turns", [9])
async def test_async_streams_that_nobody_closes_are_observed_in_their_order(
    tracker: Recorder, wire: Wire, turns: int
) -> None:
    """An event loop closes what the collector found, in tasks of its own, in any order."""

    async def one(model: str) -> None:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=wire.url) as client:
            stream = await client.messages.create(**ASK | {"model": model}, stream=True)
            async for event in stream:
                if event.type == "message_stop":
                    break
            cycle: list[Any] = [stream]
            cycle.append(cycle)

    for number in range(turns):
        wire.streams(START, DELTA, STOP)
        await one(f"m{number}")
        if number % 3 == 2:
            gc.collect()
    wire.answers(MESSAGE)
    async with anthropic.AsyncAnthropic(api_key="k", base_url=wire.url) as client:
        await client.messages.create(**ASK)
    assert models(tracker) == [*(f"m{number}" for number in range(turns)), "claude-x"]


def test_a_stream_that_is_closed_late_is_not_observed_after_a_newer_one(
    tracker: Recorder, wire: Wire
) -> None:
    """Both had come to their end when it was closed."""
    wire.streams(EVENTS)
    wire.streams(EVENTS)
    with claude(wire) as client:
        streams = [client.messages.create(**ASK | {"model": m}, stream=True) for m in ("a", "b")]
        for stream in streams:
            next(event for event in stream if event.type == "message_stop")
        streams[0].close()
        assert models(tracker) == ["a"]
        streams[1].close()
    assert models(tracker) == ["a", "b"]


def test_finished_but_not_read_on(tracker: Recorder, wire: Wire, spans: Spans) -> None:
    """What a stream brought is recorded before a later request is judged, though it hangs open."""
    pause = threading.Event()
    wire.streams(EVENTS, b": still open\n\n", pause=pause)
    wire.answers(MESSAGE)
    with claude(wire) as client:
        stream = client.messages.create(**ASK, stream=True)
        for event in stream:
            if event.type == "message_stop":
                break
        client.messages.create(**ASK)
        first, second = tracker.exchanges
        assert (first.events, first.complete, second.response) == (EVENTS, True, MESSAGE)
        pause.set()
        stream.close()
    assert len(tracker.exchanges) == 2
    assert spans.names == ["chat claude-x"] * 2


def test_unfinished_stream_is_left_alone(tracker: Recorder, wire: Wire) -> None:
    """A stream that is still running is not settled by another call."""
    pause = threading.Event()
    wire.streams(START, BLOCK + STOP, pause=pause)
    wire.answers(MESSAGE)
    with claude(wire) as client:
        stream = iter(client.messages.create(**ASK, stream=True))
        next(stream)
        client.messages.create(**ASK)
        assert [e.response for e in tracker.exchanges] == [MESSAGE]
        pause.set()
        list(stream)
    assert [e.events for e in tracker.exchanges] == [None, EVENTS]


def test_too_long_a_stream(monkeypatch: pytest.MonkeyPatch, tracker: Recorder, wire: Wire) -> None:
    """Of a stream beyond the cap nothing is kept, the application gets it all."""
    monkeypatch.setattr(bodies, "CAP", len(START) + 1)
    wire.streams(START, BLOCK, STOP)
    with claude(wire) as client:
        assert len(list(client.messages.create(**ASK, stream=True))) == 3
    seen = tracker.one
    assert isinstance(seen.response, Unread)
    assert (seen.events, seen.response.reason, seen.complete) == (None, "size", False)
    assert seen.request == wire.seen[0].body


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_a_bomb(
    monkeypatch: pytest.MonkeyPatch, tracker: Recorder, wire: Wire, encoding: str
) -> None:
    """What inflates beyond the cap is reported as too long; the application gets it all."""
    monkeypatch.setattr(bodies, "unpacked", partial(unpacked, most=MEMBER * 3))
    told: list[tuple[str, str]] = []
    guard.on_error(lambda where, kind: told.append((where, kind)))
    padding = b":" + bytes(1 << 20) + b"\n\n"
    for body in (EVENTS, EVENTS + padding):
        for _ in encoding.split(","):
            body = gzip.compress(body)  # noqa: PLW2901 - packed as often as the header says
        wire.streams(body, headers={"content-encoding": encoding})
    with claude(wire) as client:
        for _ in range(2):
            assert len(list(client.messages.create(**ASK, stream=True))) == 3
    guard.on_error(None)
    first, second = tracker.exchanges
    assert (first.events, first.response, first.complete) == (EVENTS, None, True)
    assert isinstance(second.response, Unread)
    assert (second.events, second.response.reason, second.complete) == (None, "size", False)
    assert told == [("exchange.body", "BodyTooLarge")]


def test_nothing_is_held(tracker: Recorder, wire: Wire) -> None:
    """Once a call is over its bodies and requests are released, even while its stream lives on."""
    wire.streams(START, BLOCK, STOP)
    with claude(wire) as client:
        stream = client.messages.create(**ASK, stream=True)
        request = weakref.ref(stream.response.request)
        list(stream)
        tee: Any = stream.response.stream
        while not hasattr(type(tee), "_over"):  # the SDK may have wrapped ours
            tee = tee._body
        assert tee._kept.chunks == []
        del stream, tee
    tracker.exchanges.clear()
    gc.collect()
    assert request() is None


def test_a_stream_is_freed_as_before(tracker: Recorder, spans: Spans, wire: Wire) -> None:
    """Observing adds no reference cycle: a response is freed without the collector as it was."""
    wire.streams(START, BLOCK, STOP)

    def freed() -> bool:
        with claude(wire) as client:
            gc.disable()
            try:
                raw = client.messages.with_raw_response.create(**ASK, stream=True)
                dead = weakref.ref(raw.http_response)
                raw.http_response.close()
                del raw
                return dead() is None
            finally:
                gc.enable()

    uninstrument()
    before = freed()
    instrument("anthropic", tracer_provider=spans.provider, tracker=tracker)
    assert freed() is before
    assert len(tracker.exchanges) == 1


@pytest.mark.parametrize("pieces", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("data", "over"),
    [
        (EVENTS, True),
        (EVENTS.replace(b"\n", b"\r\n"), True),
        (b'data: {"type":"message_stop"}\n\n', True),
        (b"data: [DONE]\n\n", True),
        (b"".join(OPENAI), True),
        (START + BLOCK, False),
        (EVENTS[:-1], False),
        (b"".join(OPENAI)[:-2], False),
        (b'data: {"text":"event: message_stop\\n\\n"}\n\n', False),
        (b'data: {"x":"data: [DONE]"}\n\n', False),
        (b"", False),
    ],
)
def test_over(data: bytes, pieces: int, *, over: bool) -> None:
    """The closing event is seen in any cutting of the stream, and text never looks like it."""
    kept = bodies.Kept()
    asked = []
    for at in range(0, len(data), pieces):
        kept.keep(data[at : at + pieces])
        asked.append(kept.over())
    assert kept.over() is over
    assert asked.count(True) in (0, 1)


LAST = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n',
    b'event: message_delta\r\ndata: {"type":"message_delta"}\r\n',
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n',
)


@pytest.mark.parametrize("event", LAST)
def test_a_stream_is_left_once_its_last_event_is_there_as_a_whole(event: bytes) -> None:
    """Another thread may ask while the reader waits for the rest of it."""
    for end in range(1, len(event) + 1):
        kept = bodies.Kept()
        kept.keep(event[:end])
        there = end == len(event)
        assert (there, there) == (kept.left(float("inf")), bodies.ended(event[:end]))


def frame(payload: bytes) -> bytes:
    total = 16 + len(payload)
    return total.to_bytes(4) + b"\0\0\0\0" + b"crc." + payload + b"crc."


def test_aws_events() -> None:
    """The events in an AWS event stream are read; odd and cut frames are left out."""
    import base64

    event = {"type": "message_stop"}
    chunk = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode()
    data = frame(chunk) + frame(b"{}") + frame(b"no json") + frame(chunk)[:-1]
    assert bodies.aws_events(data) == [event]
    assert bodies.aws_events(b"\0" * 40) == []


def test_later_runs_outside_collections() -> None:
    """What a finalizer queues is done outside of the collection, in order."""
    done: list[str] = []
    seen: list[bool] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            seen.append(finalizing.running())
            finalizing.later(2.0, lambda: done.append("late"))
            finalizing.later(1.0, lambda: done.append("early"))
            finalizing.catch_up()

    finalizing.watch()
    finalizing.watch()
    try:
        Cycle()
        gc.collect()
        assert (seen, done, finalizing.running()) == ([True], [], False)
        finalizing.catch_up(before=2.0)
        assert done == ["early"]
        finalizing.catch_up()
        assert done == ["early", "late"]
    finally:
        finalizing.unwatch()
        finalizing.unwatch()


@pytest.mark.parametrize(
    ("chunk", "real"),
    [
        (b"A", 33 + 1),
        ("–" * 100, 2 * 100),
        ({"candidates": [{"content": {"parts": [{"text": "x" * 1000}]}}]}, 4 * 184 + 1000),
        ([0] * 1000, 8 * 1000),
        (object(), 16),
    ],
    ids=["bytes", "text", "payload", "list", "object"],
)
def test_what_is_kept_counts_as_the_memory_it_holds(chunk: Any, real: int) -> None:
    """With what each object costs beside its content; a payload with all that is in it."""
    kept = bodies.Kept()
    kept.keep(chunk)
    assert real <= kept.size <= 9 * real


@pytest.mark.parametrize("chunk", [b"A", {"text": "x" * 1000}], ids=["bytes", "payload"])
def test_a_stream_of_small_chunks_is_given_up_at_the_cap(
    monkeypatch: pytest.MonkeyPatch, chunk: Any
) -> None:
    """However small its chunks are, and however deep their content."""
    monkeypatch.setattr(bodies, "CAP", 1 << 16)
    kept = bodies.Kept()
    for _ in range(2000):
        kept.keep(chunk)
    assert (kept.full, kept.chunks) == (True, [])


def test_the_size_of_a_payload_is_counted_as_far_as_the_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A payload of any size takes no more steps than the cap allows."""
    seen = 0

    def counted(part: Any) -> int:
        nonlocal seen
        seen += 1
        return sys.getsizeof(part)

    monkeypatch.setattr(bodies, "getsizeof", counted)
    bodies.held([[n] for n in range(100_000)], 1 << 16)
    assert seen < (1 << 16) // bodies.SLOT
