"""Bytes to JSON and streams to payloads, whatever comes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_sealed.wire import parse
from otel_sealed.wire.parse import Unread, as_json, as_payloads, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
SPELLINGS = st.one_of(
    VALUES.map(json.dumps),
    VALUES.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
    st.text(
        alphabet='0123456789.eE+-{}[]",:\\ \n\t\x00abcdefnulltrueNaNInfinityué\ufeff', max_size=20
    ),
    st.from_regex(r"-?\d{1,25}(\.\d{1,25})?([eE][+-]?\d{1,4})?", fullmatch=True),
    st.from_regex(r'"(\\u[0-9a-fA-F]{4}|\\.|[^"\\])*"', fullmatch=True),
)


def outcome(read: Any, text: Any) -> str:
    """The value with its types, or that there is none."""
    try:
        return repr(read(text))
    except ValueError:
        return "ValueError"


@given(SPELLINGS)
@example('"\\ud800"')
@example('"\ud800"')
@example("9" * 5000)
@example("-0")
@example("[" * 500 + "]" * 500)
@example('{"a": 1, "a": 2}')
@example("\ufeff1")
def test_texts_and_bytes_are_parsed_as_the_standard_library_parses_them(text: str) -> None:
    """The same value with the same types, or no value."""
    expected = outcome(json.loads, text)
    assert expected == outcome(loads, text)
    assert expected == outcome(loads, text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": 1}', {"a": 1}),
        (bytearray(b"[1]"), [1]),
        (memoryview(b'"x"'), "x"),
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ([1], [1]),
        (7, 7),
        (None, None),
        (b'"\xed\xa0\xbd"', "\ud83d"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        ('{"a": NaN}'.replace("NaN", "1e999"), {"a": float("inf")}),
    ],
)
def test_a_body_is_parsed_or_passed_on(body: Any, expected: Any) -> None:
    """Raw bodies are parsed, parsed bodies pass through."""
    assert expected == as_json(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "json"),
        (b"{", "json"),
        ("not json", "json"),
        (b"\xff\xfe{}", "encoding"),
        ("9" * 5000, "json"),
        ("[" * 200_000, "depth"),
    ],
    ids=["empty", "cut", "prose", "encoding", "giant", "deep"],
)
def test_an_unreadable_body_says_why_in_a_word_of_ours(body: Any, reason: str) -> None:
    """The reason is `json`, `encoding` or `depth`, and the error holds nothing of the body."""
    with pytest.raises(Unread) as caught:
        as_json(body)
    assert caught.value.reason == reason
    assert str(caught.value) == reason
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ is True


PAYLOADS: list[Any] = [{"type": "one", "n": 1}, {"type": "two", "text": "a\nb"}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", [bytes, str, bytearray, memoryview])
def test_server_sent_events_are_read_in_every_spelling(end: str, kind: Any) -> None:
    """Any line end, any buffer, comments and names in between."""
    lines = [": ping", ""]
    for payload in PAYLOADS:
        lines += [f"event: {payload['type']}", f"data: {json.dumps(payload)}", ""]
    lines += ["data: [DONE]", ""]
    text = end.join(lines)
    stream = text if kind is str else kind(text.encode())
    assert as_payloads(stream) == (PAYLOADS, 0)


def test_an_event_may_stand_on_several_data_lines() -> None:
    """Data lines of one event are joined by line ends."""
    assert as_payloads(b'data: {"a":\ndata: 1}\n\n') == ([{"a": 1}], 0)
    assert as_payloads(b'data:{"a":1}\n\n') == ([{"a": 1}], 0)


def test_a_stream_cut_inside_an_event_loses_that_event_only() -> None:
    """What came before the cut counts."""
    assert as_payloads(b'data: {"a": 1}\n\ndata: {"b": ') == ([{"a": 1}], 1)
    assert as_payloads(b'data: {"a": 1}') == ([{"a": 1}], 0)


def test_parsed_events_are_taken_one_by_one() -> None:
    """Dicts pass, texts of JSON are parsed, the rest is counted as lost."""
    assert as_payloads([{"a": 1}, '{"b": 2}', b"{", "x"]) == ([{"a": 1}, {"b": 2}], 2)
    assert as_payloads(['{"a": 1}', '{"b": 2}', "[DONE]"]) == ([{"a": 1}, {"b": 2}], 0)
    assert as_payloads(['{"a": 1},{"b": 2}']) == ([], 1)
    assert as_payloads(['{"a": 1}', "[2]"]) == ([{"a": 1}, [2]], 0)
    assert as_payloads([]) == ([], 0)
    assert as_payloads(iter([{"a": 1}])) == ([{"a": 1}], 0)


@pytest.mark.parametrize("events", [5, 1.5, True, object()], ids=lambda v: type(v).__name__)
def test_what_is_no_stream_is_one_lost_event(events: Any) -> None:
    """A value that cannot be walked through is counted, not raised."""
    assert as_payloads(events) == ([], 1)


def test_a_body_beyond_all_bounds_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of megabytes are named, not parsed."""
    monkeypatch.setattr(parse, "MAX_BODY", 10)
    for body in ("[1, 2, 3, 4]", b"[1, 2, 3, 4]"):
        with pytest.raises(Unread) as caught:
            as_json(body)
        assert caught.value.reason == "size"
    assert as_json("[1, 2, 3]") == [1, 2, 3]


_PIECES = (
    "data: ",
    "data:",
    "event: x",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    '{"a":1}',
    '{"b":"data: {"}',
    '{"c":',
    "[DONE]",
    "2}",
    " ",
    ": note",
    "[1]",
)


@pytest.mark.parametrize("seed", range(40))
def test_the_short_way_through_a_stream_reads_what_the_long_way_reads(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        text = "".join(chance.choice(_PIECES) for _ in range(chance.randrange(30)))
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        assert parse._of_lines(plain) == parse._server_sent(text), text
