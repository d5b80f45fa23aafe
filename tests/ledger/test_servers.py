"""A real Redis or Valkey in trouble: nobody is accused, nothing is raised, and no call waits long.

`.ci/run stores` starts one. How long a call may wait is counted in timeouts, not by a clock.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.ledger import redis
from otel_sealed.ledger.shared import SharedLedger
from tests.ledger.calls import KNOWN, MAY, begin, go_on, tracker
from tests.ledger.redis_server import RealServer, needs_real, real_server

pytestmark = needs_real
BOUNDS = (1_000, 2**26, 86_400.0)


@pytest.fixture
def start() -> Iterator[Callable[..., RealServer]]:
    """Starts servers, which the test need not end."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(real_server(*options))


@pytest.fixture
def opened() -> Iterator[Callable[[str], SharedLedger]]:
    made: list[SharedLedger] = []

    def one(url: str) -> SharedLedger:
        made.append(redis.opened(url, *BOUNDS))
        return made[-1]

    yield one
    for ledger in made:
        ledger.close()


def flush_all(server: RealServer) -> None:
    server.client().flushall()


def wrong_types(server: RealServer) -> None:
    client = server.client()
    for name in list(client.scan_iter("otel_sealed:*")):
        client.delete(name)
        client.lpush(name, "x")


def garbage(server: RealServer) -> None:
    client = server.client()
    for name in client.scan_iter("otel_sealed:1:t:*"):
        client.set(name, os.urandom(200))


TROUBLE: dict[str, tuple[tuple[str, ...], Callable[[RealServer], object]]] = {
    "none": ((), lambda _: None),
    "killed": ((), lambda server: server.kill()),
    "stopped": ((), lambda server: server.process.send_signal(signal.SIGSTOP)),
    "emptied": ((), flush_all),
    "full, refusing": (
        ("--maxmemory-policy", "noeviction"),
        lambda server: server.client().config_set("maxmemory", "1mb"),
    ),
    "full, evicting": (
        ("--maxmemory-policy", "allkeys-random"),
        lambda server: server.client().config_set("maxmemory", "1mb"),
    ),
    "read-only": ((), lambda server: server.client().replicaof("127.0.0.1", 1)),
    "with a password": (
        (),
        lambda server: server.client().config_set("requirepass", "CANARY"),
    ),
    "no longer with our clients": (
        (),
        lambda server: server.client().client_kill_filter(_type="normal", skipme=True),
    ),
    "of wrong types": ((), wrong_types),
    "of garbage": ((), garbage),
    "of a cluster": (("--cluster-enabled", "yes"), lambda _: None),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_a_server_in_trouble_accuses_nobody(
    trouble: str,
    start: Callable[..., RealServer],
    opened: Callable[[str], SharedLedger],
    caplog: pytest.LogCaptureFixture,
) -> None:
    options, strike = TROUBLE[trouble]
    server = start(*options)
    ledgers = opened(server.url), opened(server.url)
    try:
        for at, kind in itertools.product(range(12), KNOWN):
            if (at, kind) == (4, "faithful"):
                strike(server)
            here, there = map(tracker, ledgers)  # anew: a tracker learns what a provider accepts
            begin(here, f"{kind}{at}")
            ledgers[0].flush(0.0 if at > 4 else 0.5)
            assert go_on(there, f"{kind}{at}", kind) in MAY[kind]
            begin(there, f"own {kind}{at}")
            assert go_on(there, f"own {kind}{at}", kind) == KNOWN[kind]
    finally:
        server.process.send_signal(signal.SIGCONT)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == len(set(messages)) or len(messages) <= 4
    assert not any("CANARY" in message for message in messages)


def test_a_server_that_does_not_answer_costs_a_process_one_wait(
    start: Callable[..., RealServer], opened: Callable[[str], SharedLedger]
) -> None:
    """Of every call and thread, until it is asked again."""
    server = start()
    ledger = opened(server.url)
    process = tracker(ledger)
    begin(process, "a")
    assert ledger.flush(2.0)
    server.process.send_signal(signal.SIGSTOP)
    try:
        ledger._health._clock = lambda: 0.0  # no time passes: it goes on resting
        ledger._now = ledger._health._clock
        waits = counted(ledger)
        for at in range(20):
            begin(process, f"b{at}")
            assert go_on(process, f"b{at}", "faithful") == "ok"
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert waits[0] == 1


def counted(ledger: SharedLedger) -> list[int]:
    """How often a question to the store is under way; not its writing, which no call waits for."""
    store: Any = ledger._store
    times = [0]

    def through(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*what: Any, **more: Any) -> Any:
            times[0] += 1
            return ask(*what, **more)

        return asked

    for name in ("numbers", "newest", "records", "count"):
        setattr(store, name, through(getattr(store, name)))
    return times


def test_a_server_that_comes_back_is_used_again(
    start: Callable[..., RealServer], opened: Callable[[str], SharedLedger], tmp_path: Path
) -> None:
    server = start()
    ledgers = opened(server.url), opened(server.url)
    begin(tracker(ledgers[0]), "a")
    assert ledgers[0].flush(2.0)
    server.kill()
    begin(tracker(ledgers[0]), "b")
    assert go_on(tracker(ledgers[1]), "b", "faithful") == "unverifiable"
    again = RealServer(tmp_path, port=server.port)
    try:
        assert ledgers[0].flush(20.0)
        ledgers[1]._health._rests_until = 0.0
        assert go_on(tracker(ledgers[1]), "b", "lossy") == "degrades"
    finally:
        again.kill()
