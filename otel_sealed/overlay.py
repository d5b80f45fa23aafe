"""The provider's own answer, laid beside our verdicts; it never changes a fate or a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from otel_sealed import vocab
from otel_sealed.align import Outcome
from otel_sealed.contract import REFUSED, Exchange, RawAnswer
from otel_sealed.digest import Digest
from otel_sealed.model import Finding, Locus, ProviderVerdict, Rejection, Removal
from otel_sealed.model.record import record, replace
from otel_sealed.providers.refusals import about_other_things, classify
from otel_sealed.steps import spend

_PATH = re.compile(r"messages\.\d{1,6}(\.content\.\d{1,6})?")
_ABOUT_THE_REQUEST = frozenset({400, 422})
"""Refusals of what was sent, not of who sent it, how often or where. One of these without a known
class may be about sealed state: the record keeps it as `other`, and nothing alarms."""
_MAX_REMOVALS = 64


@record(frozen=True, slots=True)
class Said:
    """What the provider said of one exchange, without its words."""

    verdict: ProviderVerdict
    rejection: Rejection | None = None
    removals: tuple[Removal, ...] = ()


def refused(exchange: Exchange) -> bool:
    """Whether the transport says the call failed. What it means is told by the words, not by it."""
    return (exchange.status or 0) >= REFUSED


def provider_says(exchange: Exchange, answer: RawAnswer, digest: Digest) -> Said:
    """Refused (with a class), removed, accepted, or nothing said of sealed state."""
    error: Any = answer.error
    failed = refused(exchange)
    if error is None and failed:
        error = exchange.response
    if error is not None or failed:
        if isinstance(error, (bytes, bytearray)):
            error = bytes(error).decode("utf-8", "replace")
        rejection = classify(error)
        if rejection is None:
            status = exchange.status if failed else _code(error)
            unknown = status in _ABOUT_THE_REQUEST and not about_other_things(error)
            return Said(ProviderVerdict.UNREPORTED, Rejection.OTHER if unknown else None)
        return Said(ProviderVerdict.REJECTED, rejection)
    removals = tuple(_removals(answer, digest)) if answer.removals else ()
    if removals and any(not removal.allowed for removal in removals):
        return Said(ProviderVerdict.REMOVED, removals=removals)
    came = exchange.response is not None or exchange.events is not None
    verdict = ProviderVerdict.ACCEPTED if came else ProviderVerdict.UNREPORTED
    return Said(verdict, removals=removals)


def _code(error: Any) -> int | None:
    """The status that an error in an accepted reply names: relays answer 200 and put it inside."""
    inner = error.get("error", error) if isinstance(error, dict) else None
    code = inner.get("code") if isinstance(inner, dict) else None
    return code if isinstance(code, int) else None


def overlay(findings: list[Finding], outcomes: Sequence[Outcome], said: Said) -> list[Finding]:
    """`findings` with what the provider said of each; a clean one it refused broke beyond us."""
    laid = []
    removed = _removed(outcomes, said)
    spend(len(findings))
    for finding in findings:
        verdict = said.verdict
        if verdict is ProviderVerdict.REMOVED and finding.returned not in removed:
            verdict = ProviderVerdict.ACCEPTED
        against = verdict in (ProviderVerdict.REJECTED, ProviderVerdict.REMOVED)
        locus = Locus.BEYOND if against and finding.locus is None else finding.locus
        laid.append(
            replace(finding, provider_verdict=verdict, rejection=said.rejection, locus=locus)
        )
    return laid


def _removed(outcomes: Sequence[Outcome], said: Said) -> set[str | None]:
    """The places of the blocks the provider removed: named by path, or by the id of the item."""
    removals = [removal for removal in said.removals if not removal.allowed]
    items = {removal.item for removal in removals if not removal.path}
    found: set[str | None] = {removal.path for removal in removals if removal.path}
    for outcome in outcomes if items else ():
        spend()
        if outcome.sent is not None and not items.isdisjoint(outcome.sent.anchors):
            found.add(outcome.finding.returned)
    return found


def _removals(answer: RawAnswer, digest: Digest) -> Iterator[Removal]:
    for removal in answer.removals[:_MAX_REMOVALS]:
        path = removal.path
        yield Removal(
            reason=vocab.word(removal.reason),
            allowed=removal.allowed,
            path=path if _PATH.fullmatch(path) else "",
            item=digest.name(path) if path else b"",
        )
