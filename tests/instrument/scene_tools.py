"""What the scenes share: how a call is tried, and another tracer's span around it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

from otel_sealed.instrument import guard
from otel_sealed.telemetry.processor import SealedSpanProcessor
from otel_sealed.telemetry.redaction import RedactingSpanExporter
from tests.instrument.inprocess import Clients, dump

SIGNATURE: Final = "EqQBCkYIBxgCKkD" + "aB3" * 40 + "=="
SEALED: Final = "gAAAAABo" + "xY9" * 40 + "=="
THOUGHT: Final = "CiQBcsjafLQz" + "Qz7A" * 30
Outcome = list[Any]
Scene = Callable[[Clients], Outcome]


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


def named(*events: dict[str, Any]) -> list[bytes]:
    return [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]


def attempt(told: Outcome, call: Callable[[], Any]) -> Any:
    """What a call brings, as the application sees it; None where it raises."""
    try:
        result = call()
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises is an outcome
        told.append(["raised", dump(error)])
        return None
    told.append(dump(result))
    return result


def drain(told: Outcome, call: Callable[[], Any]) -> None:
    """The same for a stream, read to its end."""

    def read() -> list[Any]:
        got = []
        try:
            for item in call():
                got.append(item)  # noqa: PERF402 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - the same
            got.append(error)
        return got

    attempt(told, read)


class _Nowhere(SpanExporter):
    def export(self, _spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


ANOTHER: Final = TracerProvider()
ANOTHER.add_span_processor(SealedSpanProcessor(on_error=guard.internal_error))
ANOTHER.add_span_processor(
    SimpleSpanProcessor(
        RedactingSpanExporter(_Nowhere(), prompts=True, on_error=guard.internal_error)
    )
)


@contextlib.contextmanager
def inside_another_tracers_span(told: Outcome) -> Iterator[None]:
    """As under an instrumentation that has a GenAI span open around the call, and leaks into it."""
    span = ANOTHER.get_tracer("another").start_span(
        "chat",
        kind=SpanKind.CLIENT,
        attributes={"gen_ai.operation.name": "chat", "x": f"Block(signature='{SIGNATURE}', n=1)"},
    )
    with trace.use_span(span, end_on_exit=True):
        span.add_event("e", {"message": SIGNATURE, "repr": repr(SIGNATURE.encode())})
        yield
    told.append(["their span ended", not span.is_recording(), "x" in (vars(span)["_attributes"])])
