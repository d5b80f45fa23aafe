"""What `opentelemetry-instrument` finds by entry point: an instrumentor, and a span processor.

Its loader guards little: what comes out of a `pre_instrument` callable, or out of an instrumentor
(an import that fails apart), keeps every later instrumentation from loading. So nothing is imported
here but the standard library, and nothing comes out. The instrumentor is one by its methods alone,
since we do not depend on the package that defines the class.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _kept_in(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the loader does not catch it
        logging.getLogger("otel_sealed").warning(
            "zero code: %s failed (%s), calls go through unobserved", what, type(error).__name__
        )


def add_processor() -> None:
    """Put the alerting span processor on the configured tracer provider, now or when there is one.

    The group `opentelemetry_pre_instrument`.
    """
    with _kept_in("the span processor"):
        from otel_sealed.telemetry.settings import read

        if read()[0].enabled:
            from otel_sealed.telemetry import attach

            attach.want()


class SealedInstrumentor:
    """The group `opentelemetry_instrumentor`. Every instance stands for the one of the process."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: each SDK is looked for by itself, and may be imported later."""
        return ()

    @property
    def is_instrumented_by_opentelemetry(self) -> bool:
        """Whether it was put on."""
        return bool(_handles)

    def instrument(self, **options: Any) -> None:
        """Observe the calls of every SDK and HTTP client.

        Of `options` the three providers are looked at.
        """
        with _kept_in("instrumenting"):
            from otel_sealed.instrument import EVERY, instrument

            names = ("tracer_provider", "meter_provider", "logger_provider")
            _handles[:] = [instrument(*EVERY, **{name: options.get(name) for name in names})]
        add_processor()

    def uninstrument(self, **_options: Any) -> None:
        """Leave the SDKs as they were found."""
        with _kept_in("uninstrumenting"):
            while _handles:
                _handles.pop().uninstrument()


_handles: list[Any] = []
