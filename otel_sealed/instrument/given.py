"""What `instrument()` is given beside names of SDKs, and how two of them differ."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from otel_sealed.instrument.runtime import Observes
    from otel_sealed.telemetry.settings import Settings


@dataclass(frozen=True, slots=True)
class Given:
    """What an `instrument()` was given beside names."""

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None
    logger_provider: LoggerProvider | None = None
    settings: Settings | None = None
    tracker: Observes | None = None

    @property
    def where(self) -> tuple[Any, Any, Any]:
        """Where telemetry goes."""
        return self.tracer_provider, self.meter_provider, self.logger_provider

    def unlike(self, later: Given) -> list[str]:
        """What a later one was given that is not what this one was."""
        names = [one.name for one in fields(later)]
        pairs = [(name, getattr(later, name), getattr(self, name)) for name in names]
        return [name for name, new, old in pairs if new is not None and new is not old]
