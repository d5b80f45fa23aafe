"""The turn a response becomes in the ledger."""

from __future__ import annotations

import re

from otel_sealed import vocab
from otel_sealed.align.prefix import told
from otel_sealed.contract import Exchange, RawAnswer
from otel_sealed.model import Block, Facts, Head, Role, Speaker, Turn
from otel_sealed.model.prefixes import Prefixes
from otel_sealed.model.record import record
from otel_sealed.steps import spend
from otel_sealed.tracker.core import Core, Tools
from otel_sealed.tracker.judging import Judged
from otel_sealed.wire import Handed, Sent

MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}")


def clean(pattern: re.Pattern[str], text: str) -> str:
    """`text` if it looks like what it should be, else `other`: wire strings are content too."""
    return text if not text or pattern.fullmatch(text) else "other"


@record(frozen=True, slots=True)
class Came:
    """An answer with what is known of its call. `sent` and `judged` are None without a request."""

    exchange: Exchange
    number: int
    answer: RawAnswer
    facts: Facts
    hint: bytes
    sent: Sent | None
    judged: Judged | None


def remember(core: Core, tools: Tools, came: Came) -> Turn | None:
    """Remember what came in; None when nothing did."""
    answer, facts, hint, sent, judged = came.answer, came.facts, came.hint, came.sent, came.judged
    if not answer.parts:
        return None
    handed = Handed(came.exchange.sdk, came.exchange.sdk_lacks)
    blocks, joined, chars = tools.reader.answer(answer, handed)
    again = _again(core, blocks) if came.exchange.request is None else None
    if again is not None:
        return again
    parent = _parent(core, hint, judged)
    before = core.ledger.get(parent) if parent >= 0 else None
    prefix, common = _prefix(sent, judged, parent)
    identifier = tools.reader.name(answer.id)
    # what the server held before these messages is not known: no prefix of theirs is the whole one
    chain = judged.chain if judged is not None and not facts.reference else b""
    turn = Turn(
        exchange=came.number,
        blocks=blocks,
        path=answer.path,
        dialect=tools.dialect.name,
        vendor=facts.vendor,
        platform=facts.platform,
        host=facts.host,
        account=facts.account,
        model=clean(MODEL, answer.model) or facts.model,
        thinking=facts.thinking,
        stop=vocab.word(answer.stop.lower()) if answer.stop else "",
        complete=answer.complete,
        store=answer.store if answer.store is not None else facts.store,
        response_key=identifier,
        conversation=_conversation(core, hint, before, blocks, identifier + chain),
        chain=chain,
        prefix=prefix,
        prefix_shared=common,
        told=judged.told[-1].digest if judged is not None else b"",
        head=sent.head if sent is not None else Head(),
        origin=came.exchange.origin,
        joined=joined,
        joined_chars=chars,
        thread=tools.reader.name(answer.thread)
        or (facts.reference_key if facts.reference == "conversation" else b""),
        context=answer.context,
        parent=parent,
    )
    return core.ledger.record(turn)


def _again(core: Core, blocks: tuple[Block, ...]) -> Turn | None:
    """The turn that an answer without its request was recorded as before: it is fetched again.

    One with the same seals under other ids is another answer, of a mock.
    """
    seals = [v.canon for b in blocks for v in b.values if v.role is Role.SEAL and v.canon]
    holders = [set(core.ledger.lookup(canon)) for canon in seals]
    ids = _ids(blocks)
    for number in sorted(set.intersection(*holders), reverse=True) if holders else ():
        spend()
        turn = core.ledger.get(number)
        before = _ids(turn.blocks) if turn is not None else ids
        if turn is not None and not (ids and before and ids.isdisjoint(before)):
            return turn
    return None


def _ids(blocks: tuple[Block, ...]) -> frozenset[bytes]:
    return frozenset(anchor for block in blocks for anchor in block.anchors)


def _parent(core: Core, hint: bytes, judged: Judged | None) -> int:
    if judged is None:
        return core.ledger.last(hint) if hint else -1
    return -1 if judged.is_summary else judged.lineage.tip


def _prefix(sent: Sent | None, judged: Judged | None, parent: int) -> tuple[tuple[bytes, ...], int]:
    """What the model was told beyond its parent's prefix, and how much it shares with that."""
    if sent is None or judged is None:
        return (), 0
    if judged.prefix.messages:
        at = min((at for (at, _), n in judged.lineage.owner.items() if n == parent), default=0)
        since = [m.digest for m in sent.messages[at:] if m.speaker is not Speaker.MODEL]
        return tuple(since), judged.told[at].count
    now = tuple(digest for _, digest in told(sent.messages))
    common = Prefixes(judged.lineage.turns, (parent,), now).agreed.get(parent, 0)
    if common * 2 < len(now):
        common = 0  # so that a window that slides needs no turn from before it
    return now[common:], common


def _conversation(
    core: Core, hint: bytes, parent: Turn | None, blocks: tuple[Block, ...], seed: bytes
) -> bytes:
    """Our own key of a conversation: the caller's, the parent's, or one from its first turn."""
    if hint:
        return hint
    if parent is not None and parent.conversation:
        return parent.conversation
    canon = next((v.canon for b in blocks for v in b.values if v.canon), b"")
    return core.digest.raw(b"k", canon + seed)
