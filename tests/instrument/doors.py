"""What a row of the door matrix is, and what is seen at a door (see `test_doors`).

A door is one way an application has into an SDK. Its app is told where the provider listens, holds
a conversation of three turns over it and returns what it was given, object for object: the second
request sends the first answer back as it came, the third one loses its seal. Tables of doors are
in `doors_*.py`, one for each SDK; `DOORS` is read from each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from otel_sealed.model import Report
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.strict.records import Exchange as Sent
from otel_sealed.tracker import Tracker
from otel_sealed.wire import Exchange

App = Callable[[Any], list[Any]]
"""Told the base URL of the provider; returns everything the SDK gave it, errors too."""

PROMPT: Final = "Which ledger is right? \U0001f600é\u2028"
"""What the applications ask."""
CUSTOM_ID: Final = "the-entry-of-customer-7"
"""What they call an entry of a batch."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is expected of the verdicts: the worst of each request, and what the last one lost."""

    verdicts: tuple[str | None, ...]
    lost: frozenset[str] = frozenset()


class Watching:
    """The real core, and what it was told and said."""

    key: Final = b"k" * 32

    def __init__(self) -> None:
        self.core = Tracker(self.key)
        self.exchanges: list[Exchange] = []
        self.reports: list[Report] = []

    def observe(self, exchange: Exchange) -> Report:
        self.exchanges.append(replace(exchange))
        report = self.core.observe(exchange)
        self.reports.append(report)
        return report

    def told(self) -> Told:
        """The verdicts of the requests, in order, and the artifacts that the last one lost."""
        asked = [
            report
            for exchange, report in zip(self.exchanges, self.reports, strict=True)
            if exchange.request is not None
        ]
        lost = (f for f in asked[-1].findings if f.verdict.violates) if asked else ()
        return Told(
            tuple(report.verdict.value if report.verdict else None for report in asked),
            frozenset(f"{f.fate.value} {f.artifact} {f.rule}" for f in lost),
        )


def byte_for_byte(seen: Sequence[Exchange], sent: Sequence[Sent]) -> bool:
    """Request and reply of each exchange are the very bytes of one exchange of the provider's."""
    pairs = [(x.request, x.events if x.events is not None else x.response) for x in seen]
    return pairs == [(x.request_body, x.response_body) for x in sent]


def message_for_message(seen: Sequence[Exchange], sent: Sequence[Sent]) -> bool:
    """The same over a WebSocket, whose log has a message a line."""
    return [(x.request, payloads(x.events)) for x in seen] == [
        (x.request_body, [json.loads(line) for line in x.response_body.splitlines()]) for x in sent
    ]


def payloads(events: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in events.splitlines() if line.startswith(b"data: ")]


def entry_for_entry(
    asked: Callable[[Sent], list[Any]], answered: Callable[[Sent], list[Any]]
) -> Any:
    """The parts of each exchange, in order, are what is in its body: `asked` and `answered`."""

    def same(seen: Sequence[Exchange], sent: Sequence[Sent]) -> bool:
        parts = [x.request if x.request is not None else x.response for x in seen]
        return parts == [part for x in sent for part in (*asked(x), *answered(x))]

    return same


@dataclass(frozen=True, slots=True)
class Door:
    """One row: `there` says whether the installed release of the SDK has it at all.

    `at` gives what the app is told of the provider. `turns` picks, of all the requests the provider
    got, those with sealed state in them; `same` compares what was seen with what went over the
    wire, byte for byte unless a row knows better.
    """

    sdk: str
    name: str
    app: App
    told: Told
    there: Callable[[], bool] = lambda: True
    at: Callable[[StrictProvider], Any] = lambda provider: provider.base_url
    turns: Callable[[Sequence[Sent]], list[Sent]] = list
    same: Callable[[Sequence[Exchange], Sequence[Sent]], bool] = byte_for_byte

    def __str__(self) -> str:
        return f"{self.sdk}-{self.name}"


def tried(told: list[Any], call: Callable[[], Any]) -> Any:
    """What a call gives, or what it raises, told either way; None where it raises."""
    try:
        told.append(call())
    except Exception as error:  # noqa: BLE001 - whatever the SDK raises is an outcome
        told.append(error)
        return None
    return told[-1]
