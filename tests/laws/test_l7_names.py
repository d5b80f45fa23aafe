"""L7. Renaming ids, or reordering keys, consistently changes nothing.

Given a conversation, and the same in which each id is another one of its kind and length wherever
it occurs, in requests and responses alike; or in which the keys of any object stand in another
order, in each request its own: both have the same reports but for digests. Not where an id holds
something sealed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from otel_sealed.contract import Exchange
from otel_sealed.tracker import Tracker
from tests.core.conversations import KEY
from tests.core.test_settled import told as all_of
from tests.laws.generate import Talk, talks
from tests.laws.hosts import Change, changed, changes, other_keys
from tests.laws.judging import after, profile, rows

MINTED = re.compile(r"(?<=_)[0-9a-f]{20}\b")


def played(talk: Talk, hosts: list[tuple[Change, ...]]) -> list[Exchange]:
    """The conversation by hosts that do something else at each call."""
    return [
        talk.exchange(number, changed(talk, talk.told(number), hosts[number % len(hosts)]))
        for number in range(len(talk.answers))
    ]


def renamed(body: Any) -> Any:
    """The same body with another id for each."""

    def other(found: re.Match[str]) -> str:
        return hashlib.sha256(found[0].encode()).hexdigest()[:20]

    return json.loads(MINTED.sub(other, json.dumps(body)))


@profile()
@given(talks(compacts=True), st.lists(changes(), min_size=1, max_size=4))
def test_other_ids_change_nothing(talk: Talk, hosts: list[tuple[Change, ...]]) -> None:
    one, two = after([]), after([])
    for exchange in played(talk, hosts):
        first = rows(one.observe(exchange))
        exchange.request, exchange.response = (
            renamed(exchange.request),
            renamed(exchange.response),
        )
        assert first == rows(two.observe(exchange))


@profile()
@given(talks(compacts=True), st.lists(changes(), min_size=1, max_size=4), st.integers(0, 99))
def test_another_order_of_keys_changes_nothing(
    talk: Talk, hosts: list[tuple[Change, ...]], seed: int
) -> None:
    one, two, three = after([]), after([]), Tracker(KEY)
    for number, exchange in enumerate(played(talk, hosts)):
        first = one.observe(exchange)
        exchange.request = other_keys(exchange.request, seed + number)
        exchange.response = other_keys(exchange.response, seed - number)
        second = two.observe(exchange)
        assert rows(first) == rows(second)
        exchange.request = json.dumps(exchange.request).encode()
        assert all_of(second) == all_of(three.observe(exchange))
