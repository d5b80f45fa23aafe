"""Small services that report real metrics: the real core and emission, scraped on a port each.

What is made up is what goes over the wire; all that is counted is counted by `otel_sealed`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry, start_http_server

from otel_sealed.digest import Digest, layers
from otel_sealed.instrument.state import State
from otel_sealed.telemetry.emit import Emitter, Providers
from otel_sealed.telemetry.leaks import Alarm
from otel_sealed.telemetry.scrub import Wire
from otel_sealed.telemetry.settings import Settings
from otel_sealed.tracker import Tracker
from tests.core.builders import edit, without
from tests.core.conversations import KEY, Change, conversation, responses, same

Turn = Callable[["Service", int], None]
REFUSALS: dict[str, dict[str, Any]] = {
    "anthropic": {"error": {"message": "Invalid `signature` in `thinking` block"}},
    "openai": {"error": {"code": "invalid_encrypted_content", "message": "could not be verified"}},
}
REMOVED = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "x_mismatch"}]


class Service:
    """One process of a service, as far as its telemetry is concerned."""

    def __init__(self, name: str, turn: Turn) -> None:
        self.name = name
        self._turn = turn
        registry = CollectorRegistry()
        resource = Resource.create({"service.name": name})
        self._meters = MeterProvider([PrometheusMetricReader(registry=registry)], resource)
        self.tracker = Tracker(KEY)
        self.emitter = Emitter(
            Settings(), key=KEY, providers=Providers(meter=self._meters), strict=True
        )
        self._server, self._thread = start_http_server(0, "127.0.0.1", registry)
        self.address = f"127.0.0.1:{self._server.server_port}"

    def turn(self, number: int) -> None:
        """Do what the service does, for the so-manieth time."""
        self._turn(self, number)

    def close(self) -> None:
        """Stop being scraped."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._meters.shutdown()

    def talk(
        self,
        dialect: str,
        seed: int,
        *,
        change: Change = same,
        last: dict[str, Any] | None = None,
        host: str = "",
    ) -> None:
        """Two calls of a conversation; `last` overrides how the second ends."""
        first, second = conversation(dialect, f"{self.name} {seed}", host=change, turns=2)
        around: dict[str, Any] = {"host": host} if host else {}
        for asked in (first, second):
            ends = last if asked is second and last else {"response": asked.response}
            seen = replace(asked, **around, **ends)
            self.emitter.emit(self.tracker.observe(seen), None, owned=False)


def without_manual_thinking(body: dict[str, Any]) -> dict[str, Any]:
    """A host that leaves out thinking where the API refuses that (contract-corrections, A1)."""
    manual = {"type": "enabled", "budget_tokens": 1024}
    return without("thinking")(body) | {"thinking": manual}


# -------------------------------------------------------------------------------- what they do


def faithful(service: Service, number: int) -> None:
    """Sends everything back."""
    service.talk("anthropic", number)


def dropping(service: Service, number: int) -> None:
    """Leaves out its thinking, and is refused."""
    refused = {"response": REFUSALS["anthropic"], "status": 400}
    service.talk("anthropic", number, change=without_manual_thinking, last=refused)


@edit
def _sanitised(body: dict[str, Any]) -> None:
    for turn in body["messages"]:
        for block in turn["content"]:
            if block.get("type") == "thinking":
                block["thinking"] = block["thinking"].replace("e", "")


def sanitising(service: Service, number: int) -> None:
    """Changes signed text, and is answered all the same."""
    service.talk("anthropic", number, change=_sanitised)


def leaking(service: Service, number: int) -> None:
    """Has another tracer that writes signatures into its spans."""
    service.talk("anthropic", number)
    digest, ledger = Digest(KEY), service.tracker.ledger
    wire = Wire(
        lambda text: any(ledger.lookup(digest.blob(layer)) for layer in layers(text)),
        lambda text: digest.canon(text).hex(),
    )
    signature = responses("anthropic", f"{service.name} {number}")[0]["content"][0]["signature"]
    span = TracerProvider().get_tracer("peer").start_span("chat")
    span.set_attribute("gen_ai.output.messages", f'[{{"signature": "{signature}"}}]')
    span.end()
    if number == 0:
        Alarm(wire, service.emitter.leaked).look(span)  # type: ignore[arg-type]


def refused_whole(service: Service, number: int) -> None:
    """Sends everything back, and is refused."""
    service.talk("openai", number, last={"response": REFUSALS["openai"], "status": 400})


def routing(service: Service, number: int) -> None:
    """Goes through two hosts; one of them refuses now and then."""
    service.talk("anthropic", number, host="eu.gateway.example")
    if number % 8 == 0:
        refused = {"response": REFUSALS["anthropic"], "status": 400}
        bad = refused if number % 48 == 0 else None
        service.talk("anthropic", -number - 1, host="us.gateway.example", last=bad)


def removed(service: Service, number: int) -> None:
    """Sends everything back, and the provider says it removed some of it."""
    answer = responses("anthropic", f"{service.name} {number}")[1]
    told = {**answer, "input_transformations": REMOVED}
    service.talk("anthropic", number, last={"response": told})


def killed(folder: Path) -> Turn:
    """Is watched until somebody puts the kill file in place."""

    def turn(service: Service, number: int) -> None:
        if number == 0:
            file = folder / "kill"
            file.touch()
            state = State(kill_file=str(file))
            state.look()
            service.emitter.watch = state

    return turn


@contextmanager
def running(services: Sequence[Service], every_s: float = 0.25) -> Iterator[None]:
    """Have all of them work, in one thread, until the block is left."""
    stop = threading.Event()
    faults: list[BaseException] = []

    def work() -> None:
        try:
            for number in count():
                for service in services:
                    service.turn(number)
                if stop.wait(every_s):
                    return
        except BaseException as fault:  # noqa: BLE001 - told in the thread of the test
            faults.append(fault)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for service in services:
            service.close()
    assert [] == faults
