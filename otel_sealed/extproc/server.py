"""The gRPC service that Envoy calls: `envoy.service.ext_proc.v3.ExternalProcessor`.

In `observability_mode` Envoy reads no answer. Where a gateway has no such mode every message is
answered at once, with nothing changed, and before anything is looked at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from otel_sealed.extproc.messages import (
    METHOD,
    SERVICE,
    ProcessingRequest,
    ProcessingResponse,
    unchanged,
)
from otel_sealed.extproc.stream import Exchange
from otel_sealed.http.observer import Observer
from otel_sealed.instrument.guard import shield

KINDS: Final = tuple(
    f"{side}_{part}" for part in ("headers", "body", "trailers") for side in ("request", "response")
)
"""The parts of an exchange that Envoy shows."""
_GRACE_S: Final = 5.0
"""Seconds that streams under way have when the server stops: Envoy keeps them that long."""


class Processor:
    """One stream of messages for each HTTP exchange."""

    def __init__(self, observer: Observer) -> None:
        """`observer` is given what is over."""
        self._observer = observer
        self._answers = {name: unchanged(name) for name in KINDS}

    async def process(
        self, request_iterator: AsyncIterator[Any], context: Any
    ) -> AsyncIterator[Any]:
        """Look on at one exchange."""
        del context
        exchange = Exchange(self._observer.held, self._observer.hand)
        try:
            async for message in request_iterator:
                kind = message.WhichOneof("request")
                if kind is None:
                    continue
                if not message.observability_mode:
                    yield self._answers[kind]
                with shield("extproc.take"):
                    exchange.take(kind, getattr(message, kind))
        finally:
            with shield("extproc.close"):
                exchange.close()


class Server:
    """The service on one address, with gRPC's health checks beside it."""

    def __init__(self, observer: Observer) -> None:
        """Nothing listens yet."""
        self._server = grpc.aio.server()
        method = grpc.stream_stream_rpc_method_handler(
            Processor(observer).process,
            request_deserializer=ProcessingRequest.FromString,
            response_serializer=ProcessingResponse.SerializeToString,
        )
        service = grpc.method_handlers_generic_handler(SERVICE, {METHOD: method})
        self._server.add_generic_rpc_handlers((service,))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self, address: str) -> int:
        """Listen; the port. Raises RuntimeError where it cannot."""
        port = int(self._server.add_insecure_port(address))
        await self._server.start()
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return port

    async def stop(self) -> None:
        """Stop; streams under way have some seconds to end."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(_GRACE_S)
