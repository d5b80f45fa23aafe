"""A real OTLP receiver on loopback: HTTP, protobuf, as a collector takes it."""

from __future__ import annotations

import gzip
import importlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

_REQUESTS: Final = {
    "/v1/traces": ("trace", "ExportTraceServiceRequest"),
    "/v1/metrics": ("metrics", "ExportMetricsServiceRequest"),
    "/v1/logs": ("logs", "ExportLogsServiceRequest"),
}


class Receiver:
    """Keeps every request. A context manager."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.bodies: list[bytes] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.bodies.append(body)
                receiver.requests.append(parsed(self.path, body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Attributes of every span, with its name under `name` and its scope under `scope`."""
        return [
            {"name": span.name, "scope": scope.scope.name, **plain(span.attributes)}
            for request in self._of("resource_spans")
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Attributes of every log record, its event name under `name` and its `body`."""
        return [
            {
                "name": record.event_name,
                "body": record.body.string_value,
                **plain(record.attributes),
            }
            for request in self._of("resource_logs")
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def sums(self, metric: str, attribute: str) -> dict[str, int]:
        """The newest value of every series of a sum, by one attribute; others are added up."""
        points = [
            [(plain(point.attributes), point.as_int) for point in found.sum.data_points]
            for request in self._of("resource_metrics")
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
        ]
        values: dict[str, int] = {}
        for attributes, value in points[-1] if points else ():
            values[attributes[attribute]] = values.get(attributes[attribute], 0) + value
        return values

    def _of(self, field: str) -> list[Any]:
        return [request for request in self.requests if hasattr(request, field)]


def parsed(path: str, body: bytes) -> Any:
    """A request as its protobuf message."""
    signal, name = _REQUESTS[path]
    module = importlib.import_module(
        f"opentelemetry.proto.collector.{signal}.v1.{signal}_service_pb2"
    )
    return getattr(module, name).FromString(body)


def plain(attributes: Any) -> dict[str, Any]:
    """Protobuf attributes as a dict."""
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None
