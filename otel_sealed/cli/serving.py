"""What a server of ours judges with: telemetry as `otel-sealed run` has it, and an observer."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from otel_sealed.cli.autorun import remembering
from otel_sealed.cli.exporters import SIGNALS, configured
from otel_sealed.cli.folder import lasting
from otel_sealed.cli.key import keyed
from otel_sealed.cli.lines import Bound, Store, prepare
from otel_sealed.http.observer import Observer
from otel_sealed.instrument import build, guard
from otel_sealed.instrument.runtime import Runtime
from otel_sealed.telemetry.settings import Settings


@contextmanager
def observing(name: str, settings: Settings, run: str, service: str = "") -> Iterator[Observer]:
    """An observer until the block ends; then everything is judged and sent.

    Args:
        name: Of the server, in telemetry.
        settings: What an operator decided.
        run: Names the files in the folder, where no exporter is configured.
        service: `service.name` of who calls; empty for what the environment says.
    """
    if service:
        os.environ["OTEL_SERVICE_NAME"] = service
    with ExitStack() as stack:
        runtime = (
            _configured(settings, stack)
            if configured(os.environ)
            else _folder(settings, run, stack)
        )
        guard.on_error(runtime.emitter.internal_error)
        runtime.emitter.noticing(name)
        observer = Observer(runtime, name)
        try:
            yield observer
        finally:
            observer.close()
            guard.on_error(None)


def _configured(settings: Settings, stack: ExitStack) -> Runtime:
    """Telemetry goes where the environment says."""
    from opentelemetry import _logs, metrics, trace

    for signal in SIGNALS:
        os.environ.setdefault(f"OTEL_{signal.upper()}_EXPORTER", "otlp")
    sdk: Any = importlib.import_module("opentelemetry.sdk._configuration")
    sdk._OTelSDKConfigurator().configure()  # noqa: SLF001 - what every distro calls
    tracer, meter = trace.get_tracer_provider(), metrics.get_meter_provider()
    logger = _logs.get_logger_provider()
    for provider in (tracer, meter, logger):
        stack.callback(getattr(provider, "shutdown", _nothing))
    return build.runtime(tracer, meter, logger, settings, None)


def _folder(settings: Settings, run: str, stack: ExitStack) -> Runtime:
    """Telemetry goes into the folder, where key and ledger are."""
    bound = Bound(settings.folder_max_mb * 1_000_000, settings.folder_max_days)
    store = Store(Path(settings.folder).absolute(), bound)
    made = lasting(store, run)
    for provider in (made.tracer, made.meter, made.logger):
        stack.callback(provider.shutdown)
    try:
        prepare(store.folder)
        settings = remembering(keyed(settings, store.folder), store.folder)
    except OSError as error:
        store.complain(error)
    return build.runtime(made.tracer, made.meter, made.logger, settings, None)


def _nothing() -> None:
    return None
