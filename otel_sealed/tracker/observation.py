"""One exchange observed: read, judged, recorded, reported."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from otel_sealed import vocab
from otel_sealed.contract import Exchange, RawAnswer, RawMessage
from otel_sealed.judge import judge
from otel_sealed.model import (
    Carry,
    Check,
    Facts,
    Fate,
    Finding,
    Kind,
    Locus,
    Receipt,
    Rejection,
    Report,
    Role,
    State,
    ToolReceipt,
    Turn,
    Verdict,
)
from otel_sealed.model.record import replace
from otel_sealed.overlay import Said, overlay, provider_says, refused
from otel_sealed.providers.vendors import resolve
from otel_sealed.tracker.cache import Given, Shared
from otel_sealed.tracker.checkpoints import checkpoints
from otel_sealed.tracker.core import Core, Tools
from otel_sealed.tracker.gate import Body, bare, continues_none, stateless
from otel_sealed.tracker.judging import Asked, Judged, judge_request
from otel_sealed.tracker.prefix import Prefix, rolled
from otel_sealed.tracker.recording import MODEL, Came, clean, remember
from otel_sealed.wire import Sent, as_json, as_payloads
from otel_sealed.wire.checkpoint import history
from otel_sealed.wire.drift import drift
from otel_sealed.wire.parse import Unread
from otel_sealed.wire.receipts import receipts

_BETA = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?")


class Observation:
    """One exchange being observed. Local to one call of `Tracker.observe`."""

    def __init__(self, core: Core, tools: Tools, exchange: Exchange, number: int) -> None:
        """`number`: the exchange's, for the reports and turns that come of it."""
        self._core = core
        self._tools = tools
        self._dialect = tools.dialect
        self._exchange = exchange
        self._number = number
        self._unread: list[str] = []
        self._hint = core.digest.name(exchange.conversation) if exchange.conversation else b""
        self._answer = RawAnswer(())
        self._sent: Sent | None = None
        self._raw: Sequence[RawMessage] = ()
        self._facts = Facts(self._dialect.name, "", model=exchange.model or "")

    def report(self) -> Report:
        """Judge, overlay, record, and say so. Raises OutOfSteps."""
        self._answer = self._read_answer()
        body = self._unsealed() if self._core.keys is not None else None
        if body is not None:
            return self._passed(body)
        judged = self._judge_request() if self._exchange.request is not None else None
        if judged is None:
            model = self._facts.model or self._answer.model
            self._facts = self._complete(replace(self._facts, model=model), "", "")
        told = (*judged.rows, *judged.findings) if judged else ()
        findings = [*told, *self._never_came()]
        came = Came(
            self._exchange,
            self._number,
            self._answer,
            self._facts,
            self._hint,
            self._sent,
            judged,
        )
        turn = remember(self._core, self._tools, came)
        said = provider_says(self._exchange, self._answer, self._core.digest)
        said = _of_seals(said, findings)
        findings = overlay(findings, judged.outcomes if judged else (), said)
        self._core.disputes.learn(self._dialect.name, findings)
        return self._assemble(turn, findings, said, judged)

    def _unsealed(self) -> Body | None:
        """The parsed request of an exchange that passes the gate; None where it has to be read."""
        exchange, keys, dialect = self._exchange, self._core.keys, self._dialect
        if keys is None or self._unread or exchange.request is None or exchange.operation:
            return None
        came = exchange.response if exchange.events is None else exchange.events
        if keys.inside(came) or keys.inside(exchange.request) or not bare(dialect, self._answer):
            return None
        try:
            parsed = as_json(exchange.request)
        except Unread:
            return None
        if not isinstance(parsed, dict):
            return None
        facts = self._complete(dialect.facts(parsed, exchange), *dialect.reference(parsed))
        if facts.reference or dialect.may_seal(parsed, facts):
            return None
        body = Body(parsed, tuple(dialect.messages(parsed)))
        if not stateless(dialect, body.messages):
            return None
        if self._core.remembers and not continues_none(
            self._core, dialect, exchange, body, self._hint
        ):
            return None
        before, self._facts = self._facts, facts
        if any(self._never_came()):
            self._facts = before
            return None
        return body

    def _passed(self, body: Body) -> Report:
        """The report of an exchange that passes the gate."""
        self._raw = body.messages
        said = provider_says(self._exchange, self._answer, self._core.digest)
        return self._assemble(None, [], _of_seals(said, []), None)

    def unread(self) -> Report:
        """The report of an exchange that needs more steps than it may: nothing of it is judged."""
        facts = self._complete(self._facts, "", "")
        return Report(facts, self._number, conversation=self._hint, unread=("size",))

    # -- reading -------------------------------------------------------------------------------

    def _read_answer(self) -> RawAnswer:
        exchange = self._exchange
        complete = exchange.complete
        cut: tuple[str, ...] = ()
        anew: tuple[tuple[str, Any], ...] = ()
        try:
            if exchange.events is not None:
                payloads, lost = as_payloads(exchange.events)
                if lost:
                    self._unread.append("event.json")
                body: Any = self._dialect.fold(payloads)
                complete = complete and bool(body.pop("complete", True))
                cut = () if complete else tuple(body.pop("cut", ()))
                anew = tuple(body.pop("anew", ())) if self._dialect.seals_anew else ()
            else:
                body = as_json(exchange.response) if exchange.response is not None else None
        except Unread as error:
            self._unread.append(f"response.{error.reason}")
            body = None
        answer = self._dialect.answer(body)
        if answer.complete is complete and not (cut or anew):
            return answer
        return replace(answer, complete=complete, cut=cut, anew=anew)

    def _judge_request(self) -> Judged | None:
        """From the longest judged prefix that the request shares with another, else as a whole."""
        cache, name, exchange = self._core.cache, self._dialect.name, self._exchange
        try:
            found = history(exchange.request, self._dialect.root) if cache is not None else None
            if found is None or cache is None:
                return judge_request(self._asked(self._tools.reader.request(exchange)))
            shared = cache.shared(name, found)
            for count in _tries(shared, removals=bool(self._answer.removals)):
                shared = shared.first(count)
                rest = found.rest(shared.known.length)
                given, messages = shared.given, shared.messages
                sent = self._tools.reader.parsed(
                    exchange,
                    rest.body,
                    offset=messages,
                    head=given.head if given and given.around == rest.around else None,
                    segments=rest.segments,
                    memo=self._tools.memo,
                )
                asked = self._asked(sent)
                same = given is not None and (given.facts, given.hint) == (asked.facts, asked.hint)
                if messages and (asked.facts.reference or not same):
                    continue
                judged = judge_request(asked, shared.prefixes)
                if judged is None:
                    continue
                new = checkpoints(asked, judged) if _lasts(asked, judged) else ()
                if new:
                    about = Given(asked.facts, asked.hint, rest.around, sent.head)
                    cache.keep(name, found, shared, rest.segments, judged.chains, new, about)
                return judged
        except Unread as error:
            self._unread.append(f"request.{error.reason}")
        return None

    def _asked(self, sent: Sent) -> Asked:
        self._sent, self._raw = sent, sent.raw
        self._facts = self._complete(sent.facts, *self._dialect.reference(sent.body))
        return Asked(self._core, self._tools, self._exchange, sent, self._facts, self._hint)

    def _complete(self, facts: Facts, kind: str, identifier: str) -> Facts:
        """`facts` of a body with what the door said, in words that may leave."""
        exchange, digest = self._exchange, self._core.digest
        host = exchange.host or ""
        model = clean(MODEL, facts.model)
        vendor, platform = resolve(
            exchange.provider, host, model or self._answer.model, self._dialect.vendor
        )
        return Facts(
            dialect=facts.dialect,
            vendor=vendor,
            platform=platform,
            host=clean(_HOST, host),
            account=self._tools.account(exchange.account) if exchange.account else b"",
            model=model,
            thinking=facts.thinking,
            store=facts.store,
            reference=kind,
            reference_key=digest.name(identifier) if identifier else b"",
            context=facts.context,
            betas=tuple([clean(_BETA, beta) for beta in exchange.betas[:16]])
            if exchange.betas
            else (),
            operation=vocab.word(exchange.operation) if exchange.operation else "",
            transport=vocab.word(exchange.transport) if exchange.transport else "",
            background=facts.background,
            flags=facts.flags,
        )

    # -- what never came -----------------------------------------------------------------------

    def _never_came(self) -> Iterator[Finding]:
        """Artifacts that were asked for and that a successful answer lacks."""
        if refused(self._exchange):
            return
        missing = list(self._answer.missing)
        asked = "budget_below_minimum" in self._facts.flags or self._facts.operation == "compact"
        came = set(self._kinds()) if asked else set()
        if "budget_below_minimum" in self._facts.flags and came and Kind.REASONING not in came:
            missing.append("request.thinking")
        if self._facts.operation == "compact" and came and Kind.COMPACTION not in came:
            missing.extend(self._dialect.sealed_in(Kind.COMPACTION)[:1])
        for artifact in dict.fromkeys(missing):
            row = Finding(artifact, Fate.ABSENT_AT_SOURCE, locus=Locus.SOURCE)
            yield judge(row, self._dialect)

    def _kinds(self) -> Iterator[Kind]:
        for _, part in self._answer.parts:
            name = self._dialect.type_of(part) if isinstance(part, dict) else ""
            carrier = self._dialect.carriers.get(name)
            if carrier is not None:
                yield carrier.kind

    # -- assembling ----------------------------------------------------------------------------

    def _assemble(
        self, turn: Turn | None, findings: list[Finding], said: Said, judged: Judged | None
    ) -> Report:
        before = judged.prefix if judged else Prefix(b"")
        seals = [f for f in findings if f.artifact in self._tools.seals and f.received]
        settled = before.sealed
        rest = [f for f in findings if not f.first and f.verdict is Verdict.OK]
        return Report(
            facts=self._facts,
            exchange=self._number,
            received=tuple(_receipts(turn)) if turn else (),
            findings=tuple(findings),
            verdict=_worst((*findings, *before.checks)),
            provider_verdict=said.verdict,
            rejection=said.rejection,
            carry=self._carry(seals, settled),
            expected=len(seals) + settled,
            excused=sum(1 for f in seals if not f.digest_out and not f.verdict.violates),
            returned=sum(1 for f in seals if f.digest_out) + settled,
            received_types=tuple(
                [b.type for b in turn.blocks] if turn else self._tools.reader.types(self._answer)
            ),
            returned_types=tuple(self._returned_types(judged)),
            conversation=self._conversation(turn, judged),
            response_model=clean(MODEL, self._answer.model),
            stop=vocab.word(self._answer.stop.lower()) if self._answer.stop else "",
            complete=self._answer.complete,
            usage=self._answer.usage,
            removals=said.removals,
            drift=drift(self._answer.parts, self._dialect),
            receipts=self._tool_receipts(judged),
            settled=before.checks,
            rest_count=len(rest) + sum(c.count for c in before.checks),
            rest_digest=rolled(before.rolling, rest, self._core.digest),
            summary_size=sum(s.chars for b in (turn.blocks if turn else ()) for s in b.shadows),
            unread=tuple(dict.fromkeys(self._unread)),
            prefix=judged.chain if judged else b"",
            lookups_hit=judged.lineage.hits if judged else 0,
            lookups_missed=judged.lineage.misses if judged else 0,
        )

    def _conversation(self, turn: Turn | None, judged: Judged | None) -> bytes:
        tip = self._core.ledger.get(judged.lineage.tip) if judged else None
        return self._hint or next((t.conversation for t in (turn, tip) if t), b"")

    def _tool_receipts(self, judged: Judged | None) -> tuple[ToolReceipt, ...]:
        tip = self._core.ledger.get(judged.lineage.tip) if judged else None
        number = tip.exchange if tip is not None else -1
        found = receipts(self._raw, self._dialect, self._core.digest)
        return tuple(self._core.effects.on(replace(receipt, turn=number)) for receipt in found)

    def _carry(self, seals: list[Finding], settled: int) -> Carry:
        if self._facts.reference:
            return Carry.BY_REFERENCE
        replayed = settled or any(f.digest_out for f in seals)
        return Carry.REPLAYED if replayed else Carry.NONE

    def _returned_types(self, judged: Judged | None) -> Iterator[str]:
        """Block types, in order, of the turns the findings are about."""
        if self._sent is None or judged is None:
            return
        for at, index in sorted(judged.lineage.owner):
            yield self._sent.messages[at].blocks[index].type


def _tries(shared: Shared, *, removals: bool) -> Iterator[int]:
    """How many of the shared prefixes to begin after, until a suffix leaves them as they are.

    After the last; or, where what follows is about its own turn, the one before; or, where the user
    speaks, the last before the turn that was under way; else after none. Not after rows that are
    not well where the provider says what it removed: it may be of these.
    """
    count = len(shared.prefixes)
    over = bisect_left(shared.prefixes, True, key=lambda prefix: prefix.live < sys.maxsize)
    for tried in dict.fromkeys((count, count - 1, over)):
        if tried > 0 and not (removals and shared.prefixes[tried - 1].kept):
            yield tried
    yield 0


def _of_seals(said: Said, findings: Sequence[Finding]) -> Said:
    """What the provider said, as far as it may be about seals: none went out without a finding."""
    other = said.rejection is Rejection.OTHER and not findings
    return Said(said.verdict) if other else said


def _lasts(asked: Asked, judged: Judged) -> bool:
    """Whether what was judged may be of use to another request."""
    if judged.is_summary or judged.lineage.held or asked.facts.reference:
        return False
    return bool(judged.prefix.messages or judged.lineage.owner)


def _worst(rows: Iterable[Finding | Check]) -> Verdict | None:
    return max((row.verdict for row in rows), key=lambda v: v.rank, default=None)


_CAME = (State.PRESENT, State.EMPTY, State.CUT)


def _receipts(turn: Turn) -> Iterator[Receipt]:
    for block in turn.blocks:
        path = f"{turn.path}.{block.sub}" if turn.path and block.sub else turn.path or block.sub
        id_ = next((value.digest for value in block.values if value.role is Role.ID), b"")
        for value in block.values:
            if value.role is Role.SEAL and value.state in _CAME:
                yield Receipt(value.artifact, value.digest, value.size, path, value.state, id_)
