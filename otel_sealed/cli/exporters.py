"""What the environment says about where telemetry goes: read, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

SIGNALS: Final = ("traces", "metrics", "logs")
_PORTS: Final = {"grpc": 4317, "http": 4318}


@dataclass(frozen=True, slots=True)
class Target:
    """Where one OTLP exporter sends a signal. Never the whole URL, which may hold credentials."""

    signal: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port} ({self.protocol})"


def configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment configures any exporter."""
    return bool(
        environ.get("OTEL_CONFIG_FILE")
        or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        or any(environ.get(f"OTEL_EXPORTER_OTLP_{s.upper()}_ENDPOINT") for s in SIGNALS)
        or any(_names(environ, signal) for signal in SIGNALS)
    )


def others(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Exporters by name that are not OTLP, such as `console`."""
    names = {name for signal in SIGNALS for name in _names(environ, signal)}
    return tuple(sorted(name for name in names if not name.startswith("otlp")))


def targets(environ: Mapping[str, str]) -> tuple[Target, ...]:
    """Where OTLP exporters send to, as far as the environment says.

    Raises:
        ValueError: An endpoint is no URL.
    """
    found = []
    for signal in SIGNALS:
        names = _names(environ, signal)
        own = environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "")
        endpoint = own or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        if not configured(environ) or _set_to_none(environ, signal):
            continue
        if names and not any(name.startswith("otlp") for name in names):
            continue
        found.append(_target(environ, signal, endpoint))
    return tuple(found)


def _target(environ: Mapping[str, str], signal: str, endpoint: str) -> Target:
    own = environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL")
    protocol = (own or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "grpc").strip()
    if any(name.endswith("http") for name in _names(environ, signal)):
        protocol = "http/protobuf"
    default = _PORTS["grpc" if protocol == "grpc" else "http"]
    url = urlsplit(
        endpoint if "://" in endpoint else f"//{endpoint}" if endpoint else "//localhost"
    )
    port = url.port or (default if not endpoint or protocol == "grpc" else _scheme_port(url.scheme))
    return Target(signal, protocol, url.hostname or "localhost", port)


def _scheme_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


def _names(environ: Mapping[str, str], signal: str) -> tuple[str, ...]:
    given = environ.get(f"OTEL_{signal.upper()}_EXPORTER", "")
    names = (name.strip().lower() for name in given.split(","))
    return tuple(name for name in names if name not in ("", "none"))


def _set_to_none(environ: Mapping[str, str], signal: str) -> bool:
    return environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip().lower() == "none"
