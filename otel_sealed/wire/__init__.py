"""Wire bodies in, turns out: parsing, reading by a dialect's tables, searching for the lost."""

from __future__ import annotations

from otel_sealed.contract import Api, Exchange
from otel_sealed.wire.handed import Handed
from otel_sealed.wire.parse import as_json, as_payloads
from otel_sealed.wire.read import Reader, Sent
from otel_sealed.wire.search import Search, Stray, Wanted

__all__ = [
    "Api",
    "Exchange",
    "Handed",
    "Reader",
    "Search",
    "Sent",
    "Stray",
    "Wanted",
    "as_json",
    "as_payloads",
]
