"""The sans-IO core: it is told exchanges, it returns reports. No clock, thread, file or span.

Theory of operation. `observe` is told one whole exchange after its reply is in. It reads the
request (wire), finds the turns it replays (locate), compares them with what is sent (align), judges
each fate (judge), then reads the response, lays the provider's own answer beside the verdicts, and
records the new turn in the ledger with the turn it continued as parent. A live wrap, an offline
transcript, a test and a proxy all run this same code. The only state is the ledger.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from otel_sealed import vocab
from otel_sealed.align import Names, Outcome, align
from otel_sealed.align.prefix import full_prefixes, shared, told
from otel_sealed.align.surroundings import surroundings
from otel_sealed.contract import Dialect, Exchange, Place, RawAnswer
from otel_sealed.digest import Digest, canonical
from otel_sealed.disputes import Disputes
from otel_sealed.effects import Effects
from otel_sealed.judge import circumstances, judge
from otel_sealed.ledger.locate import Ledger, locate, summarised
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.model import (
    Block,
    Carry,
    Facts,
    Fate,
    Finding,
    Head,
    Kind,
    Lineage,
    Locus,
    Receipt,
    Report,
    Role,
    State,
    ToolReceipt,
    Trait,
    Turn,
)
from otel_sealed.overlay import Said, overlay, provider_says, refused
from otel_sealed.providers import dialects
from otel_sealed.providers.vendors import KNOWN_VENDORS, resolve
from otel_sealed.wire import Reader, Search, Sent, as_json, as_payloads
from otel_sealed.wire.drift import drift
from otel_sealed.wire.parse import Unread
from otel_sealed.wire.receipts import receipts

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}")
_BETA = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?")


class Tracker:
    """Remembers what came in and judges what goes out.

    Thread-safe: the ledger has the only lock. Bounded by the ledger's `max_turns`.
    """

    def __init__(
        self, key: bytes, *, max_turns: int = 20_000, ledger: Ledger | None = None
    ) -> None:
        """`key`: at least 16 secret bytes that key every digest. `ledger` replaces the memory."""
        self.key = key
        self.digest = Digest(key)
        self.ledger: Ledger = MemoryLedger(max_turns) if ledger is None else ledger
        self.disputes = Disputes()
        self.effects = Effects(self.digest)
        self._counter = count()
        known = dialects()
        dummies = tuple(text for d in known.values() for text in d.placeholders)
        self._tools = {api: _Tools(d, self.digest, dummies) for api, d in known.items()}

    def count(self) -> int:
        """The next exchange number, for doors that do not count themselves."""
        return next(self._counter)

    def observe(self, exchange: Exchange) -> Report:
        """Judge the request of `exchange`, then record its response.

        Call it once per logical call, after the reply is in (whole, or as far as it came).
        Never raises on any wire content; what could not be read is named in `Report.unread`.
        """
        tools = self._tools.get(exchange.api)
        if tools is None:
            return Report(Facts("", ""), unread=("api",))
        return _Observation(self, tools, exchange).report()


class _Tools:
    """What the tracker needs of one dialect, prepared once."""

    def __init__(self, dialect: Dialect, digest: Digest, dummies: tuple[str, ...]) -> None:
        """`dummies`: the documented dummies of every dialect; hosts put them on any wire (A18)."""
        self.dialect = dialect
        self.reader = Reader(dialect, digest)
        carriers = dialect.carriers.values()
        self.envelopes = {c.type: c.envelope for c in carriers if c.envelope}
        self.orphans = {c.type: c.orphan for c in carriers if c.orphan}
        self.paired = frozenset(c.type for c in carriers if c.paired)
        self.binary = frozenset(f.artifact for c in carriers for f in c.fields if f.binary)
        self.seals = frozenset(
            f.artifact for c in carriers for f in c.fields if f.role is Role.SEAL
        )
        self.placeholders = frozenset(
            digest.blob(form) for text in dummies for form in {canonical(text), text.encode()}
        )

    def names(self, vendor: str) -> Names:
        return Names(
            root=self.dialect.root,
            vendor=vendor,
            envelopes=self.envelopes,
            orphans=self.orphans,
            paired=self.paired,
            placeholders=self.placeholders,
            binary=self.binary,
            tools_separate=self.dialect.tools_separate,
        )


class _Observation:
    """One exchange being observed. Local to one call of `Tracker.observe`."""

    def __init__(self, tracker: Tracker, tools: _Tools, exchange: Exchange) -> None:
        self.digest = tracker.digest
        self.ledger = tracker.ledger
        self.disputes = tracker.disputes
        self.effects = tracker.effects
        self.tools = tools
        self.dialect = tools.dialect
        self.exchange = exchange
        self.unread: list[str] = []
        self.summarised = False
        self.lineage = Lineage()
        self.outcomes: list[Outcome] = []
        self.number = tracker.count() if exchange.number is None else exchange.number
        self.hint = self.digest.name(exchange.conversation) if exchange.conversation else b""
        self.answer = self._answer()
        self.sent = self._request()
        self.facts = self._facts()

    # -- reading -------------------------------------------------------------------------------

    def _request(self) -> Sent | None:
        if self.exchange.request is None:
            return None
        try:
            return self.tools.reader.request(self.exchange)
        except Unread as error:
            self.unread.append(f"request.{error.reason}")
            return None

    def _answer(self) -> RawAnswer:
        exchange = self.exchange
        complete = exchange.complete
        try:
            if exchange.events is not None:
                payloads, lost = as_payloads(exchange.events)
                if lost:
                    self.unread.append("event.json")
                body: Any = self.dialect.fold(payloads)
                complete = complete and bool(body.pop("complete", True))
            else:
                body = as_json(exchange.response) if exchange.response is not None else None
        except Unread as error:
            self.unread.append(f"response.{error.reason}")
            body = None
        return replace(self.dialect.answer(body), complete=complete)

    def _facts(self) -> Facts:
        exchange, answer = self.exchange, self.answer
        if self.sent is not None:
            facts = self.sent.facts
            kind, identifier = self.dialect.reference(self.sent.body)
        else:
            facts = Facts(self.dialect.name, "", model=exchange.model or answer.model)
            kind, identifier = "", ""
        host = exchange.host or ""
        model = _clean(_MODEL, facts.model)
        vendor, platform = resolve(
            exchange.provider, host, model or answer.model, self.dialect.vendor
        )
        return replace(
            facts,
            vendor=vendor,
            platform=platform,
            host=_clean(_HOST, host),
            account=self.digest.name(exchange.account) if exchange.account else b"",
            model=model,
            betas=tuple(_clean(_BETA, beta) for beta in exchange.betas[:16]),
            operation=vocab.word(exchange.operation) if exchange.operation else "",
            transport=vocab.word(exchange.transport) if exchange.transport else "",
            reference=kind,
            reference_key=self.digest.name(identifier) if identifier else b"",
        )

    # -- judging -------------------------------------------------------------------------------

    def report(self) -> Report:
        """Judge, overlay, record, and say so."""
        findings: list[Finding] = []
        if self.sent is not None:
            findings = self._judged(self.sent)
        findings.extend(self._never_came())
        turn = self._record()
        said = provider_says(self.exchange, self.answer, self.digest)
        findings = overlay(findings, self.outcomes, said)
        self.disputes.learn(self.dialect.name, findings)
        return self._assemble(turn, findings, said)

    def _judged(self, sent: Sent) -> list[Finding]:
        chains = self._chains(sent)
        self.lineage = locate(
            self.ledger,
            sent.messages,
            chains,
            conversation=self.hint,
            continues=self.exchange.continues,
            reference=self.facts.reference_key,
        )
        search = Search(sent.body, self.dialect, self.digest)
        if self.lineage.tip < 0:
            told = summarised(self.ledger, search.told(), self.hint)
            self.summarised = told is not None
            self.lineage = told or self.lineage
        names = self.tools.names(self.facts.vendor)
        self.outcomes = align(self.lineage, sent.messages, names, search, self._vendor_of)
        self.outcomes += surroundings(
            self.facts, sent.head, sent.messages, self.lineage, self.outcomes, self.tools.seals
        )
        here = [o.turn.number for o in self.outcomes if o.turn and o.finding.digest_out]
        self.first_sent = min(here, default=sys.maxsize)
        self.last_sent = max(here, default=-1)
        self.compacted = any(o.finding.fate is Fate.SUPERSEDED for o in self.outcomes)
        return [self._judge(sent, outcome) for outcome in self.outcomes]

    def _chains(self, sent: Sent) -> tuple[bytes, ...]:
        chain = self.digest.chain(b"", self.dialect.name.encode())
        chains = []
        for message in sent.messages:
            chains.append(chain)
            chain = self.digest.chain(chain, message.digest)
        self.chain = chain
        return tuple(chains)

    def _judge(self, sent: Sent, outcome: Outcome) -> Finding:
        finding = outcome.finding
        turn = outcome.turn
        facts = self.facts
        if turn is not None and turn.model and not self._known_model(facts.model):
            facts = replace(facts, model=turn.model)
        place = Place(
            facts=facts,
            fate=finding.fate,
            artifact=finding.artifact,
            turn=turn,
            index=outcome.index,
            block=outcome.block,
            sent=outcome.sent,
            at=outcome.at,
            live_from=sent.live_from,
            messages=sent.messages,
        )
        traits = set(circumstances(place, finding, self.dialect)) | finding.traits
        if not self._known_model(facts.model):
            traits.add(Trait.UNKNOWN_MODEL)
        if self.facts.vendor not in KNOWN_VENDORS:
            traits.add(Trait.UNKNOWN_VENDOR)
        if self.summarised:
            traits.add(Trait.CLIENT_COMPACTION)
            if self.hint:
                traits.add(Trait.SAME_CONVERSATION)
        traits |= self._position(outcome)
        first = turn is None or turn.number == self.lineage.tip
        judged = judge(replace(finding, traits=frozenset(traits), first=first), self.dialect)
        return self.disputes.settle(self.dialect.name, judged)

    def _known_model(self, model: str) -> bool:
        return not model or self.dialect.models(model)

    def _position(self, outcome: Outcome) -> set[Trait]:
        """Where the turn stands among those whose seals are in the request."""
        turn = outcome.turn
        if turn is None:
            return set()
        found = set()
        earlier, later = self.first_sent < turn.number, turn.number < self.last_sent
        if not earlier:
            found.add(Trait.FRONT)
        if earlier and later:
            found.add(Trait.GAP)
        if turn.number == self.lineage.tip:
            found.add(Trait.LAST_TURN)
        if self.compacted:
            found.add(Trait.AFTER_COMPACTION)
        return found

    def _vendor_of(self, canon: bytes) -> str:
        for number in reversed(self.ledger.lookup(canon)):
            turn = self.ledger.get(number)
            if turn is not None:
                return turn.vendor
        return ""

    # -- the answer ----------------------------------------------------------------------------

    def _never_came(self) -> Iterator[Finding]:
        """Artifacts that were asked for and that a successful answer lacks."""
        if refused(self.exchange):
            return
        missing = list(self.answer.missing)
        reasoned = any(kind is Kind.REASONING for kind in self._kinds())
        if "budget_below_minimum" in self.facts.flags and self.answer.parts and not reasoned:
            missing.append("request.thinking")
        for artifact in missing:
            row = Finding(artifact, Fate.ABSENT_AT_SOURCE, locus=Locus.SOURCE)
            yield judge(row, self.dialect)

    def _kinds(self) -> Iterator[Kind]:
        for _, part in self.answer.parts:
            carrier = (
                self.dialect.carriers.get(self.dialect.type_of(part))
                if isinstance(part, dict)
                else None
            )
            if carrier is not None:
                yield carrier.kind

    # -- recording -----------------------------------------------------------------------------

    def _record(self) -> Turn | None:
        answer, facts = self.answer, self.facts
        if not answer.parts:
            return None
        blocks, joined, chars = self.tools.reader.answer(answer)
        parent = -1 if self.summarised else self.lineage.tip
        if self.sent is None and self.hint:
            parent = self.ledger.last(self.hint)
        before = self.ledger.get(parent) if parent >= 0 else None
        now = tuple(d for _, d in told(self.sent.messages)) if self.sent else ()
        full = full_prefixes(self.lineage.turns).get(parent) if self.sent else None
        common = shared(full, now)
        identifier = self.tools.reader.name(answer.id)
        chain = self.chain if self.sent is not None else b""
        turn = Turn(
            exchange=self.number,
            blocks=blocks,
            path=answer.path,
            dialect=self.dialect.name,
            vendor=facts.vendor,
            platform=facts.platform,
            host=facts.host,
            account=facts.account,
            model=_clean(_MODEL, answer.model) or facts.model,
            thinking=facts.thinking,
            stop=vocab.word(answer.stop.lower()) if answer.stop else "",
            complete=answer.complete,
            store=answer.store if answer.store is not None else facts.store,
            response_key=identifier,
            conversation=self._conversation(before, blocks, identifier, chain),
            chain=chain,
            prefix=now[common:],
            prefix_shared=common,
            head=self.sent.head if self.sent is not None else Head(),
            origin=self.exchange.origin,
            joined=joined,
            joined_chars=chars,
            thread=facts.reference_key if facts.reference == "conversation" else b"",
            context=answer.context,
            parent=parent,
        )
        return self.ledger.record(turn)

    def _conversation(
        self, parent: Turn | None, blocks: tuple[Block, ...], identifier: bytes, chain: bytes
    ) -> bytes:
        """Our own key of a conversation: the caller's, the parent's, or one from its first turn."""
        if self.hint:
            return self.hint
        if parent is not None and parent.conversation:
            return parent.conversation
        canon = next((v.canon for b in blocks for v in b.values if v.canon), b"")
        return self.digest.raw(b"k", canon + identifier + chain)

    # -- assembling ----------------------------------------------------------------------------

    def _assemble(
        self,
        turn: Turn | None,
        findings: list[Finding],
        said: Said,
    ) -> Report:
        seals = [f for f in findings if f.artifact in self.tools.seals and f.received]
        tip = self.ledger.get(self.lineage.tip) if self.lineage.tip >= 0 else None
        return Report(
            facts=self.facts,
            exchange=self.number,
            received=tuple(_receipts(turn)) if turn else (),
            findings=tuple(findings),
            verdict=max((f.verdict for f in findings), key=lambda v: v.rank, default=None),
            provider_verdict=said.verdict,
            rejection=said.rejection,
            rejection_path=said.pointer,
            carry=self._carry(seals),
            expected=len(seals),
            returned=sum(1 for f in seals if f.digest_out),
            received_types=tuple(b.type for b in turn.blocks) if turn else (),
            returned_types=tuple(self._returned_types()),
            conversation=next((t.conversation for t in (turn, tip) if t is not None), self.hint),
            response_model=_clean(_MODEL, self.answer.model),
            stop=vocab.word(self.answer.stop.lower()) if self.answer.stop else "",
            complete=self.answer.complete,
            usage=self.answer.usage,
            removals=said.removals,
            drift=drift(self.answer.parts, self.dialect),
            receipts=self._receipts(tip),
            summary_size=sum(s.chars for b in (turn.blocks if turn else ()) for s in b.shadows),
            unread=tuple(dict.fromkeys(self.unread)),
            prefix=self.chain if self.sent is not None else b"",
            lookups_hit=self.lineage.hits,
            lookups_missed=self.lineage.misses,
        )

    def _receipts(self, tip: Turn | None) -> tuple[ToolReceipt, ...]:
        if self.sent is None:
            return ()
        turn = tip.exchange if tip is not None else -1
        found = receipts(self.sent.body, self.dialect, self.digest)
        return tuple(self.effects.on(replace(receipt, turn=turn)) for receipt in found)

    def _carry(self, seals: list[Finding]) -> Carry:
        if self.facts.reference:
            return Carry.BY_REFERENCE
        return Carry.REPLAYED if any(f.digest_out for f in seals) else Carry.NONE

    def _returned_types(self) -> Iterator[str]:
        """Block types, in order, of the turns the findings are about."""
        if self.sent is None:
            return
        for at, index in sorted(self.lineage.owner):
            yield self.sent.messages[at].blocks[index].type


def _receipts(turn: Turn) -> Iterator[Receipt]:
    for block in turn.blocks:
        path = f"{turn.path}.{block.sub}" if turn.path and block.sub else turn.path or block.sub
        for value in block.values:
            if value.role is Role.SEAL and value.state in (State.PRESENT, State.EMPTY):
                yield Receipt(value.artifact, value.digest, value.size, path, value.state)


def _clean(pattern: re.Pattern[str], text: str) -> str:
    """`text` if it looks like what it should be, else `other`: wire strings are content too."""
    return text if not text or pattern.fullmatch(text) else "other"
