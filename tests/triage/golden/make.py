"""The golden files: two calls and their event as every backend hands them out.

`python tests/triage/golden/make.py` writes them anew. Shapes: the OTLP file exporter of the Python
SDK and of the Collector (a batch a line); Tempo's `/api/traces` and `/api/v2/traces` (protobuf
JSON: ids in base64); Grafana's "download trace" (its own OTLP, numbers as numbers) and "download
logs"; Jaeger's `/api/traces` (arrays as JSON text, microseconds); Loki's `query_range`, labels
merged and told apart; the Collector's ClickHouse exporter as `FORMAT JSONEachRow`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
CONVERSATION: Final = "72430eb406c36b19016e355c23d5ac13"
MINTED: Final = "095593193036402efe24d628721d737f"
KEPT: Final = "1173ca0ed9d72ca71b1f81b0a93e14c6"
TRACES: Final = ("565d257620800bf1e337112763fa0f22", "94680a073b30e52632dcd012d19dd8f9")
SPANS: Final = ("04bc1047163ac2a1", "f8872d17a8b149b5")
TIMES: Final = (
    (1796002449447758000, 1796002449449778000),
    (1796002452172989000, 1796002452675877000),
)
EVENT_AT: Final = 1796002452680495000
RESOURCE: Final = {
    "service.name": "checkout",
    "service.version": "1.2.3",
    "telemetry.sdk.language": "python",
    "telemetry.sdk.name": "opentelemetry",
    "telemetry.sdk.version": "1.45.2",
}
_COMMON: Final[dict[str, Any]] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude-opus-5",
    "server.address": "api.anthropic.com",
    "otel_sealed.conversation.key": CONVERSATION,
    "otel_sealed.hash.key_id": "61de60d2",
    "otel_sealed.truncated": False,
    "app.note": "an attribute of somebody else",
}
ATTRIBUTES: Final[tuple[dict[str, Any], ...]] = (
    {
        **_COMMON,
        "otel_sealed.verdict": "ok",
        "otel_sealed.provider_verdict": "accepted",
        "otel_sealed.carry": "none",
        "otel_sealed.received.count": 2,
        "otel_sealed.returned.count": 0,
        "otel_sealed.expected.count": 0,
        "otel_sealed.received.artifacts": [
            "anthropic.thinking.signature",
            "anthropic.redacted_thinking.data",
        ],
        "otel_sealed.received.digests": [KEPT, MINTED],
        "otel_sealed.received.sizes": [1796, 2876],
        "otel_sealed.received.positions": ["content.0", "content.1"],
        "otel_sealed.received.block_types": ["thinking", "redacted_thinking", "tool_use"],
        "otel_sealed.facts": ["thinking=true", "stop=tool_use"],
    },
    {
        **_COMMON,
        "otel_sealed.verdict": "breaks",
        "otel_sealed.provider_verdict": "rejected",
        "otel_sealed.rejection.class": "thinking_modified",
        "otel_sealed.carry": "replayed",
        "otel_sealed.violations.count": 1,
        "otel_sealed.received.count": 0,
        "otel_sealed.returned.count": 1,
        "otel_sealed.expected.count": 2,
        "otel_sealed.returned.artifacts": [
            "anthropic.thinking.signature",
            "anthropic.redacted_thinking.data",
        ],
        "otel_sealed.returned.digests": [KEPT, MINTED],
        "otel_sealed.returned.sizes": [1796, -1],
        "otel_sealed.returned.positions": ["messages.1.content.0", ""],
        "otel_sealed.returned.fates": ["intact", "dropped"],
        "otel_sealed.returned.verdicts": ["ok", "breaks"],
        "otel_sealed.returned.rules": ["", "A2"],
        "otel_sealed.returned.block_types": ["thinking", "tool_use"],
        "error.type": "anthropic.BadRequestError",
    },
)
EVENT: Final[dict[str, Any]] = {
    "otel_sealed.artifact": "anthropic.redacted_thinking.data",
    "otel_sealed.fate": "dropped",
    "otel_sealed.verdict": "breaks",
    "otel_sealed.rule": "A2",
    "otel_sealed.locus": "process",
    "otel_sealed.confidence": "proven",
    "otel_sealed.provider_verdict": "rejected",
    "otel_sealed.rejection.class": "thinking_modified",
    "otel_sealed.received.position": "content.1",
    "otel_sealed.received.size": 2876,
    "otel_sealed.origin.trace_id": TRACES[0],
    "otel_sealed.origin.span_id": SPANS[0],
    "otel_sealed.conversation.key": CONVERSATION,
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": "claude-opus-5",
    "server.address": "api.anthropic.com",
    "otel_sealed.sdk.versions": ["anthropic=2.14.0"],
    "otel_sealed.occurrences": 1,
    "event.name": "otel_sealed.violation",
}
SCOPE: Final = {"name": "otel_sealed", "version": "0.1.0"}

# ------------------------------------------------------------------------------------------- OTLP


def value(given: Any, *, numbers: bool = False) -> dict[str, Any]:
    """An AnyValue; 64-bit numbers are text in protobuf JSON, and numbers where Grafana writes."""
    if isinstance(given, bool):
        return {"boolValue": given}
    if isinstance(given, int):
        return {"intValue": given if numbers else str(given)}
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(item, numbers=numbers) for item in given]}}
    return {"stringValue": given}


def pairs(given: dict[str, Any], *, numbers: bool = False) -> list[dict[str, Any]]:
    return [{"key": k, "value": value(v, numbers=numbers)} for k, v in given.items()]


def span(at: int, ident: Callable[[str], str], kind: Any) -> dict[str, Any]:
    return {
        "traceId": ident(TRACES[at]),
        "spanId": ident(SPANS[at]),
        "name": "chat claude-opus-5",
        "kind": kind,
        "startTimeUnixNano": str(TIMES[at][0]),
        "endTimeUnixNano": str(TIMES[at][1]),
        "attributes": pairs(ATTRIBUTES[at]),
        "status": {},
    }


def log() -> dict[str, Any]:
    return {
        "observedTimeUnixNano": str(EVENT_AT),
        "severityNumber": 17,
        "severityText": "ERROR",
        "body": {},
        "attributes": pairs(EVENT),
        "traceId": TRACES[1],
        "spanId": SPANS[1],
        "eventName": "otel_sealed.violation",
    }


def scoped(spans: list[dict[str, Any]]) -> dict[str, Any]:
    resource = {"attributes": pairs(RESOURCE)}
    return {"resource": resource, "scopeSpans": [{"scope": SCOPE, "spans": spans}]}


def of_logs() -> dict[str, Any]:
    scope = {"scope": SCOPE, "logRecords": [log()]}
    return {"resourceLogs": [{"resource": {"attributes": pairs(RESOURCE)}, "scopeLogs": [scope]}]}


def hexed(ident: str) -> str:
    return ident


def based(ident: str) -> str:
    return base64.b64encode(bytes.fromhex(ident)).decode()


def otlp() -> list[Any]:
    """One span a line, as a simple span processor writes."""
    return [*({"resourceSpans": [scoped([span(at, hexed, 3)])]} for at in (0, 1)), of_logs()]


def collector() -> list[Any]:
    """A batch a line."""
    return [{"resourceSpans": [scoped([span(0, hexed, 3), span(1, hexed, 3)])]}, of_logs()]


def tempo() -> Any:
    batches = [scoped([span(at, based, "SPAN_KIND_CLIENT")]) for at in (0, 1)]
    return {"batches": batches}


def tempo_2() -> Any:
    spans = [scoped([span(at, based, "SPAN_KIND_CLIENT")]) for at in (0, 1)]
    return {"trace": {"resourceSpans": spans}, "metrics": {"inspectedBytes": "4096"}}


def grafana_trace() -> Any:
    spans = []
    for at in (0, 1):
        start, end = TIMES[at]
        spans.append(
            {
                "traceId": TRACES[at],
                "spanId": SPANS[at],
                "parentSpanId": "",
                "traceState": "",
                "name": "chat claude-opus-5",
                "kind": "SPAN_KIND_CLIENT",
                "startTimeUnixNano": start,
                "endTimeUnixNano": end,
                "attributes": pairs(ATTRIBUTES[at], numbers=True),
                "droppedAttributesCount": 0,
                "droppedEventsCount": 0,
                "droppedLinksCount": 0,
                "status": {"code": 0, "message": ""},
            }
        )
    library = {"instrumentationLibrary": SCOPE, "spans": spans}
    resource = {"attributes": pairs(RESOURCE, numbers=True), "droppedAttributesCount": 0}
    return {"batches": [{"resource": resource, "instrumentationLibrarySpans": [library]}]}


# ------------------------------------------------------------------------------------ other stores


def as_text(given: Any) -> str:
    """What a store keeps that knows text only."""
    if isinstance(given, str):
        return given
    return json.dumps(given, separators=(",", ":"))


def tag(key: str, given: Any) -> dict[str, Any]:
    if isinstance(given, bool):
        return {"key": key, "type": "bool", "value": given}
    if isinstance(given, int):
        return {"key": key, "type": "int64", "value": given}
    return {"key": key, "type": "string", "value": as_text(given)}


def jaeger() -> Any:
    traces = []
    for at in (0, 1):
        tags = [tag(k, v) for k, v in ATTRIBUTES[at].items()]
        tags += [tag("otel.scope.name", SCOPE["name"]), tag("span.kind", "client")]
        start, end = TIMES[at]
        spans = [
            {
                "traceID": TRACES[at],
                "spanID": SPANS[at],
                "operationName": "chat claude-opus-5",
                "references": [],
                "startTime": start // 1000,
                "duration": (end - start) // 1000,
                "tags": tags,
                "logs": [],
                "processID": "p1",
                "warnings": None,
            }
        ]
        about = [tag(k, v) for k, v in RESOURCE.items() if k != "service.name"]
        process = {"serviceName": RESOURCE["service.name"], "tags": about}
        traces.append(
            {"traceID": TRACES[at], "spans": spans, "processes": {"p1": process}, "warnings": None}
        )
    return {"data": traces, "total": 0, "limit": 0, "offset": 0, "errors": None}


def labels() -> dict[str, str]:
    named = {k.replace(".", "_"): as_text(v) for k, v in EVENT.items()}
    return {
        **named,
        "service_version": RESOURCE["service.version"],
        "telemetry_sdk_version": RESOURCE["telemetry.sdk.version"],
        "trace_id": TRACES[1],
        "span_id": SPANS[1],
        "severity_text": "ERROR",
        "scope_name": "otel_sealed",
        "detected_level": "error",
    }


def loki() -> Any:
    stream = {"service_name": RESOURCE["service.name"], **labels()}
    result = [{"stream": stream, "values": [[str(EVENT_AT), ""]]}]
    data = {
        "resultType": "streams",
        "result": result,
        "stats": {"summary": {"totalLinesProcessed": 1}},
    }
    return {"status": "success", "data": data}


def loki_categorized() -> Any:
    stream = {"service_name": RESOURCE["service.name"]}
    values = [[str(EVENT_AT), "", {"structuredMetadata": labels()}]]
    data = {
        "resultType": "streams",
        "encodingFlags": ["categorize-labels"],
        "result": [{"stream": stream, "values": values}],
        "stats": {},
    }
    return {"status": "success", "data": data}


def grafana_logs() -> Any:
    when = datetime.fromtimestamp(EVENT_AT / 1e9, UTC).isoformat(timespec="milliseconds")
    fields = {"service_name": RESOURCE["service.name"], **labels()}
    return [{"line": "", "timestamp": str(EVENT_AT), "date": when, "fields": fields}]


def timestamp(at: int) -> str:
    whole = datetime.fromtimestamp(at // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{whole}.{at % 1_000_000_000:09}"


def clickhouse_traces() -> list[Any]:
    return [
        {
            "Timestamp": timestamp(TIMES[at][0]),
            "TraceId": TRACES[at],
            "SpanId": SPANS[at],
            "ParentSpanId": "",
            "TraceState": "",
            "SpanName": "chat claude-opus-5",
            "SpanKind": "Client",
            "ServiceName": RESOURCE["service.name"],
            "ResourceAttributes": RESOURCE,
            "ScopeName": "otel_sealed",
            "ScopeVersion": "0.1.0",
            "SpanAttributes": {k: as_text(v) for k, v in ATTRIBUTES[at].items()},
            "Duration": str(TIMES[at][1] - TIMES[at][0]),
            "StatusCode": "Unset",
            "StatusMessage": "",
            "Events.Timestamp": [],
            "Events.Name": [],
            "Events.Attributes": [],
        }
        for at in (0, 1)
    ]


def clickhouse_logs() -> list[Any]:
    return [
        {
            "Timestamp": timestamp(EVENT_AT),
            "TimestampTime": timestamp(EVENT_AT)[:19],
            "TraceId": TRACES[1],
            "SpanId": SPANS[1],
            "TraceFlags": 1,
            "SeverityText": "ERROR",
            "SeverityNumber": 17,
            "ServiceName": RESOURCE["service.name"],
            "Body": "",
            "ResourceSchemaUrl": "",
            "ResourceAttributes": RESOURCE,
            "ScopeSchemaUrl": "",
            "ScopeName": "otel_sealed",
            "ScopeVersion": "0.1.0",
            "ScopeAttributes": {},
            "LogAttributes": {k: as_text(v) for k, v in EVENT.items()},
            "EventName": "otel_sealed.violation",
        }
    ]


LINES: Final = (otlp, collector, clickhouse_traces, clickhouse_logs)
DOCUMENTS: Final = (tempo, tempo_2, grafana_trace, jaeger, loki, loki_categorized, grafana_logs)


def rendered() -> Iterable[tuple[str, str]]:
    """Every golden file by name."""
    for lines in LINES:
        yield f"{lines.__name__}.jsonl", "".join(json.dumps(line) + "\n" for line in lines())
    for document in DOCUMENTS:
        yield f"{document.__name__}.json", json.dumps(document(), indent=1) + "\n"


if __name__ == "__main__":
    for name, text in rendered():
        (HERE / name).write_text(text, "utf-8")
