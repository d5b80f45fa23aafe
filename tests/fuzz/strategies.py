"""What is thrown at the library: valid bodies, streams and files, spoiled; and anything at all."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.core.conversations import MATRIX, conversation, events, responses, server_sent

TESTS = Path(__file__).resolve().parents[1]
CANARY = "Zq7w Kp3xVt9"
"""Twelve characters that are in no output. No word has a space, so that none may hold them."""
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63,
    10**400,
    float("inf"),
    float("nan"),
    "",
    "\ud83d",
    "\x00\x1b[2J",
    f"{CANARY} \u202e",
    "_" * 300,
    "=" * 70,
    [],
    {},
    [[[[]]]],
    {"type": CANARY},
    {"type": []},
    [None, 1, CANARY],
)
KEYS = (  # noqa: SIM905 - a list of so many is none that is read
    "type role content parts text thinking signature data id call_id encrypted_content summary "
    "functionCall thoughtSignature thought messages input contents output candidates error delta "
    "index item response message content_block usage model system tools tool_calls choices "
    "reasoning_details extra_content previous_response_id store status input_transformations"
).split()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20).map(lambda text: text + CANARY)
    | st.sampled_from(KEYS)
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=25,
)
values = st.sampled_from(HOSTILE).map(copy.deepcopy) | anything
dialects = st.sampled_from(MATRIX)


def ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every place in a JSON value."""
    yield way
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield from ways(inner, (*way, key))


def spoil(draw: st.DrawFn, value: Any, most: int = 3) -> Any:
    """A copy in which a few places are replaced, left out, repeated, swapped or renamed."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, most))):
        places = [way for way in ways(value) if way]
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        at = value
        for step in way:
            at = at[step]
        how = draw(st.sampled_from(["replace", "drop", "repeat", "swap", "rename", "stretch"]))
        if how == "drop":
            del at[last]
        elif how == "repeat" and isinstance(at, list):
            at.insert(draw(st.integers(0, len(at))), copy.deepcopy(at[last]))
        elif how == "swap" and isinstance(at, list):
            other = draw(st.integers(0, len(at) - 1))
            at[last], at[other] = at[other], at[last]
        elif how == "rename" and isinstance(at, dict):
            at[draw(st.sampled_from(KEYS))] = at.pop(last)
        elif how == "stretch" and isinstance(at[last], str):
            at[last] = at[last] * draw(st.integers(2, 40))
        else:
            at[last] = draw(values)
    return value


def damage(draw: st.DrawFn, data: bytes, most: int = 3) -> bytes:
    """The bytes cut, overwritten, or with pieces put in, taken out or doubled."""
    for _ in range(draw(st.integers(0, most))):
        at = draw(st.integers(0, max(len(data), 1)))
        size = draw(st.integers(0, 40))
        how = draw(st.sampled_from(["cut", "overwrite", "insert", "remove", "double"]))
        if how == "cut":
            data = data[:at]
        elif how == "overwrite":
            data = data[:at] + draw(st.binary(max_size=8)) + data[at + size :]
        elif how == "insert":
            data = data[:at] + draw(st.binary(max_size=40)) + data[at:]
        elif how == "remove":
            data = data[:at] + data[at + size :]
        else:
            data = data[:at] + data[at : at + 4 * size] * 2 + data[at + size :]
    return data


@st.composite
def bodies(draw: st.DrawFn) -> list[Any]:
    """(exchange of a conversation, request, response) of which one pair is spoiled."""
    dialect = draw(dialects)
    plan = conversation(dialect, draw(st.integers(0, 3)))
    number = draw(st.integers(0, len(plan) - 1))
    found = []
    for at, one in enumerate(plan):
        asked, answer = one.request, one.response
        if at == number:
            asked = draw(st.one_of(st.just(asked), values, st.just(spoil(draw, asked))))
            answer = draw(st.one_of(st.just(answer), values, st.just(spoil(draw, answer))))
        if draw(st.booleans()):
            asked, answer = (
                as_bytes(draw, asked, at == number),
                as_bytes(draw, answer, at == number),
            )
        found.append((one, asked, answer))
    return found


def as_bytes(draw: st.DrawFn, body: Any, spoiled: bool) -> bytes:  # noqa: FBT001 - internal
    data = json.dumps(body).encode()
    return damage(draw, data) if spoiled else data


@st.composite
def streams(draw: st.DrawFn) -> tuple[str, int, Any, bool]:
    """(dialect, number of the turn, its events or bytes, whether it came to its end)."""
    dialect = draw(dialects)
    number = draw(st.integers(0, 3))
    sent: Any = events(dialect, responses(dialect, draw(st.integers(0, 3)))[number])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(sent) - 1)) if sent else 0
        how = draw(st.sampled_from(["drop", "repeat", "swap", "cut", "spoil", "anything"]))
        if how == "cut" or not sent:
            sent = sent[:at]
        elif how == "drop":
            del sent[at]
        elif how == "repeat":
            sent.insert(draw(st.integers(0, len(sent))), sent[at])
        elif how == "swap":
            other = draw(st.integers(0, len(sent) - 1))
            sent[at], sent[other] = sent[other], sent[at]
        elif how == "spoil":
            sent[at] = spoil(draw, sent[at])
        else:
            sent[at] = draw(values)
    if draw(st.booleans()):
        named = all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in sent)
        sent = damage(draw, server_sent(sent, named=named and draw(st.booleans())))
    return dialect, number, sent, draw(st.booleans())


def recordings() -> dict[str, bytes]:
    """A valid file of every kind of evidence that is read."""
    found = {path.name: path.read_bytes() for path in sorted((TESTS / "data/evidence").iterdir())}
    for path in sorted((TESTS / "data/sessions").rglob("*.jsonl"))[:4]:
        found[f"session {path.parent.name} {path.name}"] = path.read_bytes()
    found["otlp.jsonl"] = b"\n".join(json.dumps(line).encode() for line in otlp())
    return found


def otlp() -> list[Any]:
    """Spans and log events as the file exporter of a Collector writes them."""
    attributes = [
        {"key": "otel_sealed.conversation.key", "value": {"stringValue": "11" * 16}},
        {"key": "otel_sealed.verdict", "value": {"stringValue": "breaks"}},
        {
            "key": "otel_sealed.findings",
            "value": {"arrayValue": {"values": [{"stringValue": "dropped x.y.z A2 breaks"}]}},
        },
        {"key": "gen_ai.provider.name", "value": {"stringValue": "anthropic"}},
    ]
    span = {
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "name": "chat",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": attributes,
    }
    record = {
        "timeUnixNano": "1700000000000000000",
        "eventName": "otel_sealed.violation",
        "body": {"stringValue": CANARY},
        "attributes": attributes,
    }
    return [
        {"resourceSpans": [{"scopeSpans": [{"spans": [span, span]}]}]},
        {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]},
    ]


RECORDINGS = recordings()


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A file of evidence, spoiled as JSON or as bytes, packed or not, or another one's head."""
    data = RECORDINGS[draw(st.sampled_from(sorted(RECORDINGS)))]
    if draw(st.booleans()):
        data = spoiled_lines(draw, data)
    if draw(st.integers(0, 9)) == 0:
        data = data[: len(data) // 2] + RECORDINGS[draw(st.sampled_from(sorted(RECORDINGS)))]
    data = damage(draw, data)
    if draw(st.integers(0, 3)) == 0:
        data = damage(draw, gzip.compress(data, 1, mtime=0), 1)
    return data


def spoiled_lines(draw: st.DrawFn, data: bytes) -> bytes:
    """A line of JSON, or the whole of it, with places spoiled; as it was where it is none."""
    for separator in (b"\n", None):
        parts = data.splitlines() if separator else [data]
        at = draw(st.integers(0, max(len(parts) - 1, 0)))
        try:
            parts[at] = json.dumps(spoil(draw, json.loads(parts[at]))).encode()
        except (ValueError, IndexError):
            continue
        return b"\n".join(parts)
    return data


cells = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=30),
    st.binary(max_size=200),
)
replies = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [b"+OK\r\n", b"$-1\r\n", b"*-1\r\n", b":1\r\n", b"-ERR no\r\n", b"*0\r\n", b"_\r\n"]
        ),
        st.integers(-5, 2**70).map(lambda number: b":%d\r\n" % number),
        st.integers(-5, 10**9).map(lambda size: b"$%d\r\nxx\r\n" % size),
        st.integers(-5, 10**9).map(lambda size: b"*%d\r\n$2\r\nxx\r\n" % size),
        st.binary(max_size=40).map(lambda data: b"$%d\r\n%s\r\n" % (len(data), data)),
        st.lists(st.binary(max_size=20), max_size=4).map(
            lambda many: (
                b"*%d\r\n" % len(many)
                + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in many)
            )
        ),
    ),
    max_size=12,
)
