"""Know that the sealed state a model provider handed out came back byte-exact.

Names are loaded when they are asked for: `import otel_sealed` costs nothing, and the core needs
neither OpenTelemetry nor pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from otel_sealed.instrument import effect, instrument, uninstrument
    from otel_sealed.model import Fate, Verdict
    from otel_sealed.telemetry.processor import SealedSpanProcessor
    from otel_sealed.telemetry.redaction import RedactingSpanExporter
    from otel_sealed.telemetry.settings import Settings
    from otel_sealed.tracker import Tracker

    __version__: str

__all__ = [
    "Fate",
    "RedactingSpanExporter",
    "SealedSpanProcessor",
    "Settings",
    "Tracker",
    "Verdict",
    "__version__",
    "effect",
    "inspect",
    "instrument",
    "uninstrument",
]

_HOMES = {
    "Fate": "otel_sealed.model",
    "RedactingSpanExporter": "otel_sealed.telemetry.redaction",
    "SealedSpanProcessor": "otel_sealed.telemetry.processor",
    "Settings": "otel_sealed.telemetry.settings",
    "Tracker": "otel_sealed.tracker",
    "Verdict": "otel_sealed.model",
    "effect": "otel_sealed.instrument",
    "inspect": "otel_sealed.inspection",
    "uninstrument": "otel_sealed.instrument",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        found: Any = import_module("importlib.metadata").version("otel-sealed")
    elif name == "instrument":  # the package, which can be called and says why
        found = import_module("otel_sealed.instrument")
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
