"""`otel-sealed extproc`: an external processor for Envoy, until a signal ends it."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from otel_sealed.cli import complain, note
from otel_sealed.cli import run as program
from otel_sealed.cli.proxy import counted
from otel_sealed.cli.serving import observing
from otel_sealed.http.observer import Observer
from otel_sealed.telemetry.settings import read

_INSTALL: Final = "pip install 'otel-sealed[envoy]'"


def serve(address: str, service: str) -> int:
    """Serve until a signal ends it; 2 where it cannot begin."""
    try:
        from otel_sealed.extproc.server import Server
    except ModuleNotFoundError as error:
        return complain(f"the processor needs {error.name}", _INSTALL)
    settings = read()[0]
    started = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"

    async def serving(observer: Observer) -> None:
        server, over = Server(observer), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        port = await server.start(address)
        note(f"an external processor for Envoy listens on {address.rpartition(':')[0]}:{port}")
        await over.wait()
        await server.stop()

    try:
        with observing("extproc", settings, started, service) as observer:
            asyncio.run(serving(observer))
    except RuntimeError:
        return complain(f"{address}: cannot listen", "give another --listen")
    note(counted("the processor", observer))
    program.say(settings, Path(settings.folder).absolute(), started)
    return 0
