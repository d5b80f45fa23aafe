"""The messages of Envoy's external processing, as far as they are read and written here.

Source: `envoy/service/ext_proc/v3/external_processor.proto` and `envoy/config/core/v3/base.proto`;
what is not listed is skipped as an unknown field. They are declared here, in a pool of their own,
since the package that has all of Envoy's (`xds-protos`) brings older files of OpenTelemetry, put
over those that the exporter needs: the two cannot be in one environment.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE: Final = "envoy.service.ext_proc.v3.ExternalProcessor"
METHOD: Final = "Process"
_PACKAGE: Final = "envoy.service.ext_proc.v3"
_MESSAGE, _STRING, _BYTES, _BOOL = 11, 9, 12, 8
_ONE_OF: Final = {
    "ProcessingRequest": "request",
    "ProcessingResponse": "response",
}
_FIELDS: Final[dict[str, tuple[tuple[str, int, int | str], ...]]] = {
    "HeaderValue": (("key", 1, _STRING), ("value", 2, _STRING), ("raw_value", 3, _BYTES)),
    "HeaderMap": (("headers", 1, "*HeaderValue"),),
    "HttpHeaders": (("headers", 1, "HeaderMap"), ("end_of_stream", 3, _BOOL)),
    "HttpBody": (("body", 1, _BYTES), ("end_of_stream", 2, _BOOL)),
    "HttpTrailers": (("trailers", 1, "HeaderMap"),),
    "ProcessingRequest": (
        ("request_headers", 2, "HttpHeaders"),
        ("response_headers", 3, "HttpHeaders"),
        ("request_body", 4, "HttpBody"),
        ("response_body", 5, "HttpBody"),
        ("request_trailers", 6, "HttpTrailers"),
        ("response_trailers", 7, "HttpTrailers"),
        ("observability_mode", 10, _BOOL),
    ),
    # an empty answer to a part says: go on, nothing is changed
    "Unchanged": (),
    "Part": (("response", 1, "Unchanged"),),
    "ProcessingResponse": (
        ("request_headers", 1, "Part"),
        ("response_headers", 2, "Part"),
        ("request_body", 3, "Part"),
        ("response_body", 4, "Part"),
        ("request_trailers", 5, "Unchanged"),
        ("response_trailers", 6, "Unchanged"),
    ),
}
"""Message to its fields: name, number, and type; `*` is a list."""


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="otel_sealed/ext_proc.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        group = _ONE_OF.get(name)
        if group is not None:
            message.oneof_decl.add(name=group)
        for field, number, kind in fields:
            made = message.field.add(name=field, number=number, label=1)
            if isinstance(kind, int):
                made.type = kind
                continue
            made.type, made.type_name = _MESSAGE, f".{_PACKAGE}.{kind.lstrip('*')}"
            if kind.startswith("*"):
                made.label = 3
            elif group is not None:
                made.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _FIELDS
    }


_MADE: Final = _classes()
HeaderValue: Final[Any] = _MADE["HeaderValue"]
HeaderMap: Final[Any] = _MADE["HeaderMap"]
HttpHeaders: Final[Any] = _MADE["HttpHeaders"]
HttpBody: Final[Any] = _MADE["HttpBody"]
ProcessingRequest: Final[Any] = _MADE["ProcessingRequest"]
ProcessingResponse: Final[Any] = _MADE["ProcessingResponse"]


def unchanged(kind: str) -> Any:
    """The answer to a message of a kind: go on, nothing is changed."""
    answer = ProcessingResponse()
    getattr(answer, kind).SetInParent()
    return answer
