"""`otel-sealed proxy`, and the proxy of `otel-sealed run --proxy`: beside an agent in any language.

The proxy runs in a thread with a loop of its own, so that what waits for the program or for a
signal waits as it always does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from otel_sealed.cli import complain, note
from otel_sealed.cli import run as program
from otel_sealed.cli.serving import observing
from otel_sealed.errors import SealedError
from otel_sealed.http.observer import Observer
from otel_sealed.proxy.upstreams import Upstreams
from otel_sealed.telemetry.settings import read

LOOPBACK: Final = "127.0.0.1"
_INSTALL: Final = "pip install 'otel-sealed[proxy]'"


def serve(host: str, port: int, upstreams: Sequence[str], service: str) -> int:
    """Serve until a signal ends it; 2 where it cannot begin."""
    settings = read()[0]
    started = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    try:
        known = Upstreams(os.environ, upstreams)
        with (
            observing("proxy", settings, started, service) as observer,
            serving(known, observer, host, port) as url,
        ):
            note(*(f"{url}/{name} goes to {base}" for name, base in known.bases.items()))
            over.wait()
    except SealedError as error:
        complain(str(error))
        return 2
    note(counted("the proxy", observer))
    program.say(settings, Path(settings.folder).absolute(), started)
    return 0


def beside(command: Sequence[str], upstreams: Sequence[str]) -> int:
    """Run a program with its clients pointed at a proxy; its exit status."""
    settings = read()[0]
    folder = Path(settings.folder).absolute()
    started = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    try:
        known = Upstreams(os.environ, upstreams)
        with (
            observing("proxy", settings, started) as observer,
            serving(known, observer, LOOPBACK, 0) as url,
        ):
            environ = {**os.environ, **known.environment(url), **_direct()}
            status = program.status_of(known.filled(command, url), environ)
    except SealedError as error:
        complain(str(error))
        return 2
    note(counted("the proxy", observer))
    program.say(settings, folder, started)
    return status


@contextmanager
def serving(upstreams: Upstreams, observer: Observer, host: str, port: int) -> Iterator[str]:
    """A proxy until the block ends; gives the URL where it listens.

    Raises:
        SealedError: aiohttp is not installed, or the port is taken.
    """
    try:
        from otel_sealed.proxy.server import Proxy
    except ModuleNotFoundError as error:
        raise SealedError(f"needs {error.name}", where="the proxy", remedy=_INSTALL) from None
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="otel_sealed_proxy_loop", daemon=True)
    thread.start()
    proxy = Proxy(upstreams, observer)
    try:
        _done(proxy.start(host, port), loop)
    except OSError as error:
        says = error.strerror or "cannot listen"
        raise SealedError(says, where=f"{host}:{port}", remedy="give another --port") from None
    else:
        yield proxy.url
    finally:
        _done(proxy.stop(), loop)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _done(work: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    asyncio.run_coroutine_threadsafe(work, loop).result()


def _direct() -> dict[str, str]:
    """Whatever proxy the environment names is not for loopback."""
    found = {}
    for name in ("NO_PROXY", "no_proxy"):
        kept = os.environ.get(name, "")
        found[name] = ",".join(filter(None, (kept, LOOPBACK, "localhost")))
    return found


def counted(what: str, observer: Observer) -> str:
    """What passed a server of ours, in one line."""
    others = sum(observer.passed.hosts.values())
    return (
        f"through {what}: {observer.judged} judged, {observer.missed} with turns of a model"
        f" unobserved, {others} of other kinds"
    )
