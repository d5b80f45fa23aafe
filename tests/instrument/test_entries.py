"""Calls that are several turns of a model, or half of one, and what of them is left alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import entries, parts
from otel_sealed.testing import StrictProvider
from otel_sealed.wire import Api, Exchange
from tests.instrument.conftest import Reply
from tests.instrument.doors_anthropic import ASK as MESSAGES_ASK
from tests.instrument.doors_openai import ASK, HELLO, follow, opened, sent_on

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder, Spans, Wire

ODD: list[Any] = [
    None,
    b"",
    b"null",
    b"[]",
    b'{"requests": 3}',
    b'{"requests": [3, {}, {"params": 4}], "items": {}, "data": [null, 3, {"type": 7}]}',
    b'{"result": 3}\n{"result": {"type": "errored", "error": 3}}\n{"custom_id": 1, "response": 2}',
    b'{"custom_id": 1, "response": {"status_code": "x", "body": [1]}}\n{"cut": "enc',
    b'{"encrypted_content": "x", "data": [3]}',
]
ALL = (
    entries.messages_asked,
    entries.messages_answered,
    entries.responses_asked,
    entries.responses_answered,
    entries.response_retrieved,
    entries.items_added,
    entries.items_listed,
)


@pytest.mark.parametrize("body", ODD)
@pytest.mark.parametrize("take", ALL, ids=lambda take: take.__name__)
def test_what_does_not_look_like_entries_gives_few_and_raises_nothing(take: Any, body: Any) -> None:
    whole = Exchange(Api.MESSAGES, request=body, response=body)
    found = list(take(whole, "/v1/x"))
    assert all(isinstance(exchange, Exchange) for exchange in found)
    assert len(found) <= 1


def test_a_span_of_another_around_a_batch_stands_for_none_of_it(
    wire: Wire, tracker: Recorder, spans: Spans, handle: Any
) -> None:
    """The entries have spans below it, and are not of the conversation it names."""
    wire.answers(b'{"id": "msgbatch_1", "type": "message_batch"}')
    tracer = spans.provider.get_tracer("another")
    named: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "theirs"}
    requests: Any = [
        {"custom_id": f"entry {n}", "params": {**MESSAGES_ASK, "messages": []}} for n in range(3)
    ]
    with (
        anthropic.Anthropic(api_key="k", base_url=wire.url, max_retries=0) as client,
        tracer.start_as_current_span("theirs", kind=SpanKind.CLIENT, attributes=named) as around,
    ):
        client.messages.batches.create(requests=requests)
    assert spans.names == ["batch_request claude-opus-5"] * 3 + ["theirs"]
    at = around.get_span_context().span_id
    assert {span.parent.span_id for span in spans.ended[:3] if span.parent} == {at}
    assert "otel_sealed.carry" not in (spans.ended[3].attributes or {})
    assert {seen.conversation for seen in tracker.exchanges} == {None}
    assert handle.missing == ()


@pytest.mark.usefixtures("handle")
def test_a_batch_without_end_has_bounded_parts_and_fewer_spans(
    wire: Wire, tracker: Recorder, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(parts, "MOST_PARTS", 5)
    monkeypatch.setattr(parts, "MOST_SPANS", 2)
    monkeypatch.setattr(parts, "internal_error", lambda _, kind: told.append(kind))
    line = {"custom_id": "x", "result": {"type": "succeeded", "message": {"content": []}}}
    wire.answers(b'{"id": "b", "results_url": "/v1/messages/batches/b/results"}')
    wire.replies.append(Reply([json.dumps(line).encode() + b"\n" for _ in range(9)]))
    with anthropic.Anthropic(api_key="k", base_url=wire.url) as client:
        assert len(list(client.messages.batches.results("b"))) == 9
    assert (len(tracker.exchanges), len(spans.ended), told) == (5, 2, ["TooManyParts"])


@pytest.mark.usefixtures("handle")
def test_a_download_of_any_other_file_is_not_kept(wire: Wire, tracker: Recorder) -> None:
    """Neither its bytes nor an exchange of it, read at once or as it comes."""
    wire.answers(b"%PDF-1.7 ", b"\0" * 9000, headers={"content-type": "application/pdf"})
    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        assert len(client.files.content("file-1").read()) == 9009
        with client.files.with_streaming_response.content("file-1") as made:
            assert len(b"".join(made.iter_bytes())) == 9009
    assert tracker.exchanges == []
    kept = parts.Lines()
    kept.keep(b"%PDF")
    kept.keep(b'{"x"')
    assert (kept.chunks, kept.full) == ([], True)


@pytest.mark.usefixtures("handle")
def test_a_file_for_another_purpose_is_not_looked_at(wire: Wire, tracker: Recorder) -> None:
    wire.answers(b'{"id": "file-1", "object": "file"}')
    line = json.dumps({"custom_id": "x", "url": "/v1/responses", "body": {"input": []}})
    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        client.files.create(file=("f.jsonl", line.encode()), purpose="user_data")
        client.files.create(file=("f.jsonl", line.encode()), purpose="batch")
    assert [seen.request for seen in tracker.exchanges] == [{"input": []}]
    assert line.encode() in wire.seen[1].body


@pytest.mark.usefixtures("handle")
def test_polling_a_response_without_seals_makes_no_spans(
    wire: Wire, tracker: Recorder, spans: Spans
) -> None:
    wire.answers(b'{"id": "resp_1", "object": "response", "status": "queued", "output": []}')
    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        for _ in range(3):
            client.responses.retrieve("resp_1")
    assert (tracker.exchanges, spans.names) == ([], [])


@pytest.mark.usefixtures("handle")
@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_response_with_a_seal_comes_in_when_it_is_fetched(
    wire: Wire, tracker: Recorder, spans: Spans, *, stream: bool
) -> None:
    """It may have been made in the background, or by another process."""
    seal = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "Ab+/cQ=="}
    response = {"id": "resp_1", "object": "response", "model": "gpt-5", "output": [seal]}
    body = json.dumps(response).encode()
    event = b'data: {"type":"response.completed","sequence_number":0,"response":' + body + b"}\n\n"
    if stream:
        wire.streams(event)
    else:
        wire.answers(body)
    with openai.OpenAI(api_key="k", base_url=wire.url) as client:
        got = client.get(
            f"/responses/resp_1?stream={stream}",
            cast_to=openai.types.responses.Response,
            stream=stream,
            stream_cls=openai.Stream[Any],
        )
        if stream:
            assert len(list(got)) == 1
    seen = tracker.one
    assert (seen.request, seen.operation, seen.status) == (None, "retrieve", 200)
    assert (seen.events, seen.response) == ((event, None) if stream else (None, body))
    assert spans.names == ["retrieve"]


@pytest.mark.skipif(not hasattr(openai.OpenAI, "conversations"), reason="no conversations")
def test_items_of_a_conversation_carry_their_seals_out_and_in(spans: Spans) -> None:
    """Listed, they are known again; put into another conversation, they are judged."""
    from otel_sealed.instrument import instrument
    from tests.instrument.doors import Watching

    watching = Watching()
    with StrictProvider() as provider, opened(provider.base_url) as client:
        first = client.responses.create(**{**ASK, "store": True}, input=[HELLO])
        made = client.conversations.create(items=sent_on([HELLO, *first.output]))
        instrument("openai", tracer_provider=spans.provider, tracker=watching)
        include: Any = ["reasoning.encrypted_content"]
        listed = client.conversations.items.list(made.id, include=include, order="asc").data
        again = client.conversations.items.list(made.id, include=include).data
        items = sent_on(listed)
        client.conversations.create(items=items)
        del items[1]["encrypted_content"]
        client.conversations.create(items=items)
        client.conversations.items.create(made.id, items=items[2:])
    assert len(again) == len(listed) == 3
    received = [[r.artifact for r in report.received] for report in watching.reports]
    assert received == [["openai.reasoning.encrypted_content"]] * 2 + [[]] * 3
    assert len(watching.core.ledger) == 1
    whole, lost, later = watching.reports[2:]
    assert whole.verdict is not None
    assert whole.verdict.value == "ok"
    by_id = ("dropped", "openai.reasoning.encrypted_content", "O2", "allowed")
    assert [(f.fate, f.artifact, f.rule, f.verdict) for f in lost.findings] == [by_id]
    assert {(f.fate.value, f.rule, f.verdict.value) for f in later.findings} == {
        ("dropped", "O2", "allowed"),
        ("orphaned", "O2", "allowed"),
    }


@pytest.mark.usefixtures("handle")
def test_a_retried_upload_is_read_as_it_was_sent_last(wire: Wire, tracker: Recorder) -> None:
    wire.answers(b"{}", status=503, headers={"retry-after-ms": "1"})
    wire.answers(b'{"id": "file-1", "object": "file"}')
    body = {**ASK, "input": sent_on(follow([{"type": "function_call", "call_id": "c"}]))}
    line = json.dumps({"custom_id": "x", "url": "/v1/responses", "body": body}).encode()
    with openai.OpenAI(api_key="k", base_url=wire.url, max_retries=1) as client:
        client.files.create(file=("f.jsonl", line + b"\n" + line), purpose="batch")
    assert len(wire.seen) == 2
    assert [seen.request for seen in tracker.exchanges] == [body, body]
