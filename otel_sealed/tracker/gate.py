"""The gate: an exchange with nothing sealed in it, of which nothing is expected, is not read.

Model. An exchange passes without being read for sealed state where all of this is so:

1. Neither body has a key of sealed state (`wire.keys`), and no block in them is the model's state
   without its seal (reasoning, a compaction).
2. The answer could not have brought any: nothing asked for it, the model has none by default, and
   the request names no state that the server keeps (`Dialect.may_seal`, `Facts.reference`).
3. The request loses nothing: no turn with state is remembered, or the request continues none. It
   continues none where nobody but user and system speaks in it, nothing there has an id, and none
   of its texts is made of an answer that is remembered (a summary the client had made).

Invariants (tests/core/test_gate.py):
- Of an exchange that passed, the report of a tracker that reads everything has no finding; the two
  agree in all but what `UNREAD` names. So nothing that has a verdict is ever passed over.
- Its turn is not recorded: it has nothing that a later request could lose. By 2, whatever a later
  request of its conversation lacks may be lacking there (thinking is off).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from otel_sealed.contract import Dialect, Exchange, RawAnswer, RawMessage
from otel_sealed.matching.locate import summarised
from otel_sealed.model import STATE, Speaker
from otel_sealed.tracker.core import Core
from otel_sealed.wire import Search
from otel_sealed.wire.parse import lookup

UNREAD: Final = frozenset(
    {"conversation", "prefix", "returned_types", "lookups_hit", "lookups_missed", "receipts"}
)
"""Fields of a report that are left as they are where nothing was read; of receipts the turn."""
OPENING: Final = frozenset({Speaker.USER, Speaker.SYSTEM})
"""Who speaks in a request that opens a conversation."""


@dataclass(slots=True)
class Body:
    """A request that was parsed, not read. `messages` are its history."""

    json: dict[str, Any]
    messages: tuple[RawMessage, ...]


def bare(dialect: Dialect, answer: RawAnswer) -> bool:
    """Whether an answer is nothing but blocks that are known and no state of the model's."""
    for _, part in answer.parts:
        if isinstance(part, str):
            continue
        carrier = dialect.carriers.get(dialect.type_of(part)) if isinstance(part, dict) else None
        if carrier is None or carrier.kind in STATE:
            return False
    return True


def stateless(dialect: Dialect, messages: Iterable[RawMessage]) -> bool:
    """Whether no block of a history is state of the model's, with a seal or without."""
    carriers, type_of = dialect.carriers, dialect.type_of
    for message in messages:
        for _, part in message.parts:
            if isinstance(part, dict):
                carrier = carriers.get(type_of(part))
                if carrier is not None and carrier.kind in STATE:
                    return False
    return True


def continues_none(
    core: Core, dialect: Dialect, exchange: Exchange, body: Body, hint: bytes
) -> bool:
    """Whether a request continues no turn that is remembered, for certain."""
    if exchange.continues or not {m.speaker for m in body.messages} <= OPENING:
        return False
    for message in body.messages:
        for _, part in message.parts:
            if isinstance(part, dict):
                carrier = dialect.carriers.get(dialect.type_of(part))
                if carrier is None or any(lookup(part, key) for key in carrier.ids):
                    return False
    told = Search(body.json, dialect, core.digest).told()
    return summarised(core.ledger, told, hint, core.absent) is None
