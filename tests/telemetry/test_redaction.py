"""Sealed values, and prompts if asked, leave the spans that others made; nothing else changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from otel_sealed.digest import Digest, layers
from otel_sealed.telemetry import redaction
from otel_sealed.telemetry.redaction import RedactingSpanExporter
from otel_sealed.telemetry.scrub import Wire, scrubbed

KEY = b"k" * 32
DIGEST = Digest(KEY)
BLOB = bytes(range(256)) * 2
SEAL = base64.b64encode(BLOB).decode()
URLSAFE = base64.urlsafe_b64encode(BLOB).decode()
STRANGER = base64.b64encode(bytes(reversed(BLOB))).decode()
KNOWN = {DIGEST.canon(SEAL)}
WIRE = Wire(
    lambda text: any(DIGEST.blob(layer) in KNOWN for layer in layers(text)),
    lambda text: DIGEST.canon(text).hex(),
)
MARK = f"[sealed {DIGEST.canon(SEAL).hex()[:12]} {len(SEAL)}]"

UNTOUCHED = (
    "context",
    "parent",
    "kind",
    "start_time",
    "end_time",
    "resource",
    "instrumentation_scope",
    "dropped_attributes",
    "dropped_events",
    "dropped_links",
)


def exported(
    attributes: Mapping[str, Any], *, prompts: bool = False, **more: Any
) -> tuple[ReadableSpan, ReadableSpan]:
    """(the span as it ended, the span as it was exported)."""
    plain, clean = InMemorySpanExporter(), InMemorySpanExporter()
    provider = TracerProvider(span_limits=more.pop("limits", None))
    provider.add_span_processor(SimpleSpanProcessor(plain))
    wrapped = RedactingSpanExporter(clean, prompts=prompts, wire=WIRE)
    provider.add_span_processor(SimpleSpanProcessor(wrapped))
    span = provider.get_tracer("another").start_span(
        more.pop("name", "chat"), attributes=dict(attributes), **more.pop("start", {})
    )
    for name, content in more.pop("events", ()):
        span.add_event(name, content)
    if "status" in more:
        span.set_status(more.pop("status"))
    span.end()
    (before,), (after,) = plain.get_finished_spans(), clean.get_finished_spans()
    return before, after


def text(value: str, key: str = "output.value") -> Any:
    return (exported({key: value})[1].attributes or {})[key]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SEAL, MARK),
        (f"before {SEAL} after", f"before {MARK} after"),
        (f'{{"x":"{SEAL}"}}', f'{{"x":"{MARK}"}}'),
        (json.dumps(json.dumps({"x": SEAL})), json.dumps(json.dumps({"x": MARK}))),
        (f"Block(x='{SEAL}', y=1)", f"Block(x='{MARK}', y=1)"),
        (f"{SEAL}|{SEAL}", f"{MARK}|{MARK}"),
        (f"line\\n{SEAL}", f"line\\n{MARK}"),
        (f"call_1__thought__{SEAL}", f"call_1__thought__{MARK}"),
    ],
)
def test_a_seen_value_is_taken_out_wherever_it_stands(before: str, after: str) -> None:
    assert text(before) == after


def test_a_seen_value_is_taken_out_in_another_spelling() -> None:
    twice = base64.b64encode(SEAL.encode()).decode()
    assert text(URLSAFE) == MARK
    assert text(SEAL.rstrip("=")).startswith("[sealed ")
    assert text(twice).startswith("[sealed ")
    assert SEAL[:40] not in text(SEAL.replace("/", "\\/").replace("+", "\\u002b"))


@pytest.mark.parametrize("literal", [repr(BLOB), json.dumps(repr(BLOB)), repr(repr(BLOB))])
def test_a_seen_value_is_taken_out_as_the_repr_of_bytes(literal: str) -> None:
    before = f"Part(thought_signature={literal}, text=None)"
    after = text(before)
    assert repr(BLOB)[2:40] not in after
    assert f"[sealed {DIGEST.canon(SEAL).hex()[:12]}" in after
    assert after.endswith(", text=None)")


@pytest.mark.parametrize(
    "name",
    [
        "signature",
        "thought_signature",
        "thoughtSignature",
        "encrypted_content",
        "encryptedContent",
        "reasoning_signature",
        "redacted_content",
        "redactedContent",
        "encrypted_index",
        "reasoning_opaque",
    ],
)
@pytest.mark.parametrize(
    "form", ['{"%s": "%s"}', "{'%s': '%s'}", "X(%s='%s')", '{\\"%s\\":\\"%s\\"}']
)
def test_a_value_behind_a_known_key_is_taken_out_though_it_was_not_seen(
    name: str, form: str
) -> None:
    after = text(form % (name, STRANGER))
    mark = f"[sealed {DIGEST.canon(STRANGER).hex()[:12]} {len(STRANGER)}]"
    assert after == form % (name, mark)


def test_a_value_that_was_cut_is_taken_out_behind_its_key() -> None:
    assert STRANGER[:30] not in text('{"signature": "' + STRANGER[:200])


@pytest.mark.parametrize(
    "key",
    [
        "llm.output_messages.0.message.contents.0.message_content.signature",
        "llm.input_messages.2.message.contents.0.message_content.encrypted_content",
        "llm.output_messages.0.message.contents.0.message_content.data",
        "llm.output_messages.0.message.tool_calls.0.tool_call.reasoning_signature",
        "gen_ai.prompt.0.redacted.data",
        "gen_ai.completion.0.reasoning_details.1.data",
        "gen_ai.completion.0.tool_calls.0.extra_content.google.thought_signature",
        "gen_ai.completion.0.provider_specific_fields.thought_signatures",
        "gen_ai.completion.0.provider_specific_fields.thought_signatures.1",
    ],
)
def test_an_attribute_of_a_known_key_is_taken_out(key: str) -> None:
    mark = f"[sealed {DIGEST.canon(STRANGER).hex()[:12]} {len(STRANGER)}]"
    assert text(STRANGER, key) == mark


def test_a_signature_in_the_id_of_a_tool_call_is_taken_out() -> None:
    ident = f"call_1__thought__{STRANGER}"
    for said in (ident, json.dumps({"id": ident}), json.dumps(json.dumps({"id": ident}))):
        found = text(said, "gen_ai.tool.call.id")
        assert STRANGER[:30] not in found
        assert "call_1__thought__[sealed " in found


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_signatures_in_a_list_are_taken_out(layers: int) -> None:
    said: Any = {"thought_signatures": [STRANGER, STRANGER[::-1]], "ids": ["x y" * 20]}
    marks = [f"[sealed {DIGEST.canon(s).hex()[:12]} {len(s)}]" for s in said["thought_signatures"]]
    clean: Any = said | {"thought_signatures": marks}
    for _ in range(layers):
        said, clean = json.dumps(said), json.dumps(clean)
    assert text(said) == clean


def test_redacted_data_is_taken_out_in_either_order() -> None:
    for before in (
        {"type": "redacted_thinking", "data": STRANGER},
        {"data": STRANGER, "type": "redacted_thinking"},
        {"type": "reasoning.encrypted", "data": STRANGER, "format": "google-gemini-v1"},
        {"data": STRANGER, "type": "reasoning.encrypted"},
    ):
        assert STRANGER[:30] not in text(json.dumps(before))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("output.value", "An ordinary answer, nothing sealed about it."),
        ("output.value", STRANGER),
        ("output.value", '{"type": "image", "data": "' + STRANGER + '"}'),
        ("code.signature", "def f(x: int) -> int"),
        ("output.value", '{"signature": "def f(x)"}'),
        ("output.value", '{"signature": ""}'),
        ("output.value", "the signature: it is missing"),
        ("output.value", "b'short'"),
        ("output.value", "b'" + "a plain sentence in a literal" + "'"),
        ("output.value", "\ud83d" * 40),
        ("encrypted_content", ""),
        ("gen_ai.response.id", "msg_01qDgfWX9pt56n9P61duy1v9S0"),
    ],
)
def test_what_is_not_sealed_stays(key: str, value: str) -> None:
    assert text(value, key) == value


def test_a_clean_span_goes_through_as_the_same_object() -> None:
    seen: list[ReadableSpan] = []

    class Exporter(InMemorySpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            seen.extend(spans)
            return SpanExportResult.SUCCESS

    (clean,) = [exported({"a": "b" * 100})[0]]
    assert RedactingSpanExporter(Exporter(), wire=WIRE).export([clean]) is SpanExportResult.SUCCESS
    assert [span is clean for span in seen] == [True]


def test_the_rest_of_a_span_stays_and_the_original_is_not_touched() -> None:
    link = Link(
        exported({})[0].get_span_context(),  # type: ignore[arg-type]
        {"why": SEAL, "n": 1},
    )
    attributes = {"a": 1, "b": True, "c": ("x", SEAL), "d": SEAL, "e": [1.5, 2.5], "f": "plain"}
    before, after = exported(
        attributes,
        start={"kind": SpanKind.CLIENT, "links": [link]},
        events=[("gen_ai.choice", {"message": SEAL, "index": 0}), ("other", {"x": "y"})],
        status=Status(StatusCode.ERROR, f"refused {SEAL}"),
        name=f"chat {SEAL}",
    )
    assert after.attributes == {**attributes, "c": ("x", MARK), "d": MARK, "e": (1.5, 2.5)}
    assert [dict(event.attributes or {}) for event in after.events] == [
        {"message": MARK, "index": 0},
        {"x": "y"},
    ]
    assert [dict(each.attributes or {}) for each in after.links] == [{"why": MARK, "n": 1}]
    assert (after.status.description, after.name) == (f"refused {MARK}", f"chat {MARK}")
    for name in UNTOUCHED:
        assert getattr(after, name) == getattr(before, name), name
    assert after.status.status_code is StatusCode.ERROR
    assert (before.attributes or {})["d"] == SEAL
    assert SEAL in json.dumps(json.loads(before.to_json()))
    assert SEAL not in after.to_json()


def test_dropped_attributes_stay_counted() -> None:
    before, after = exported(
        {f"k{n}": SEAL for n in range(20)}, limits=SpanLimits(max_span_attributes=5)
    )
    assert (before.dropped_attributes, after.dropped_attributes) == (15, 15)


@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.content",
        "gen_ai.system_instructions",
        "llm.input_messages.0.message.content",
        "llm.output_messages.0.message.contents.0.message_content.text",
        "input.value",
        "output.value",
        "request_data",
        "response_data",
        "traceloop.entity.input",
        "langfuse.observation.output",
    ],
)
def test_prompts_leave_only_if_asked(key: str) -> None:
    secret = "the customer's words"
    assert (exported({key: secret})[1].attributes or {})[key] == secret
    assert (exported({key: secret}, prompts=True)[1].attributes or {})[key] == "[content 20]"


def test_what_is_no_prompt_stays_if_prompts_leave() -> None:
    attributes = {
        "gen_ai.request.model": "m",
        "llm.input_messages.0.message.role": "user",
        "input.mime_type": "application/json",
        "gen_ai.usage.input_tokens": 3,
    }
    _, after = exported(
        attributes, prompts=True, events=[("gen_ai.user.message", {"content": "words", "n": 1})]
    )
    assert after.attributes == attributes
    assert dict(after.events[0].attributes or {}) == {"content": "[content]", "n": 1}


def test_a_fault_of_ours_lets_nothing_long_through(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []

    def fail(*_: Any) -> Any:
        raise RuntimeError(SEAL)

    monkeypatch.setattr(redaction, "_mapped", fail)
    out = InMemorySpanExporter()
    exporter = RedactingSpanExporter(
        out, wire=WIRE, on_error=lambda where, kind: told.append((where, kind))
    )
    before, _ = exported(
        {"a": SEAL, "b": "short", "c": 7, "d": ("x",)}, events=[("e", {"x": SEAL})]
    )
    exporter.export([before])
    (after,) = out.get_finished_spans()
    assert after.attributes == {"b": "short", "c": 7}
    assert SEAL not in after.to_json()
    assert told == [("redaction", "RuntimeError")]


def test_a_text_beyond_the_bound_is_not_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "LONGEST", 100)
    assert text("x " * 60) == "[not let through 120]"


def test_shutdown_and_flush_are_those_of_the_exporter() -> None:
    done: list[str] = []

    class Exporter(InMemorySpanExporter):
        def shutdown(self) -> None:
            done.append("shutdown")

        def force_flush(self, timeout_millis: int = 0) -> bool:
            done.append(f"flush {timeout_millis}")
            return True

    exporter = RedactingSpanExporter(Exporter(), wire=WIRE)
    assert exporter.force_flush(7) is True
    exporter.shutdown()
    assert done == ["flush 7", "shutdown"]


def test_without_anything_instrumented_known_keys_leave_without_a_digest() -> None:
    out = InMemorySpanExporter()
    before, _ = exported({"x.thought_signature": SEAL, "y": SEAL})
    RedactingSpanExporter(out).export([before])
    (after,) = out.get_finished_spans()
    assert after.attributes == {"x.thought_signature": f"[sealed {len(SEAL)}]", "y": SEAL}


def test_scrubbing_twice_is_scrubbing_once() -> None:
    once = scrubbed(json.dumps({"signature": SEAL, "x": [SEAL, STRANGER]}), WIRE)
    assert scrubbed(once, WIRE) is once
