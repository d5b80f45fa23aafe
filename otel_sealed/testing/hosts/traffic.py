"""Hosts without end, as a service has them: most lose nothing, and every loss comes round."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from otel_sealed.testing.hosts import hosts
from otel_sealed.testing.hosts.base import Host

FAITHFUL_EACH: Final = 3
"""Faithful conversations before each unfaithful one."""


def population() -> tuple[Host, ...]:
    """Every host there is: those of the demo, of the catalogue, and with state elsewhere.

    Raises:
        ModuleNotFoundError: An SDK is not installed.
    """
    from otel_sealed.testing.hosts import on_catalogue, on_chat, on_state

    return (*hosts(), *on_chat.HOSTS, *on_state.HOSTS, *on_catalogue.HOSTS)


def traffic(chance: random.Random, *, faithful: bool = False) -> Iterator[Host]:
    """Hosts in an order of chance, without end.

    Args:
        chance: Where the order comes from; the same seed plays the same traffic.
        faithful: Only those that lose nothing.
    """
    whole = [host for host in hosts() if host.faithful]
    others = [host for host in population() if host not in whole]
    while True:
        if faithful:
            yield chance.choice(whole)
            continue
        for host in chance.sample(others, len(others)):
            yield from (chance.choice(whole) for _ in range(FAITHFUL_EACH))
            yield host
