"""The provider's own answer, laid beside our verdicts; it never changes a fate or a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from otel_sealed import vocab
from otel_sealed.align import Outcome
from otel_sealed.contract import Exchange, RawAnswer
from otel_sealed.digest import Digest
from otel_sealed.model import Finding, Locus, ProviderVerdict, Rejection, Removal
from otel_sealed.model.quick import evolve, quick
from otel_sealed.providers.refusals import about_other_things, classify

_PATH = re.compile(r"messages\.\d{1,6}(\.content\.\d{1,6})?")
_BAD_STATUS = 400
_ABOUT_THE_REQUEST = frozenset({400, 422})
"""Refusals of what was sent, not of who sent it, how often or where. One of these without a known
class may be about sealed state: the record keeps it as `other`, and nothing alarms."""
_MAX_REMOVALS = 64


@quick
@dataclass(frozen=True, slots=True)
class Said:
    """What the provider said of one exchange, without its words."""

    verdict: ProviderVerdict
    rejection: Rejection | None = None
    removals: tuple[Removal, ...] = ()


def refused(exchange: Exchange) -> bool:
    """Whether the transport says the call failed. What it means is told by the words, not by it."""
    return (exchange.status or 0) >= _BAD_STATUS


def provider_says(exchange: Exchange, answer: RawAnswer, digest: Digest) -> Said:
    """Refused (with a class), removed, accepted, or nothing said of sealed state."""
    error: Any = answer.error
    if error is None and refused(exchange):
        error = exchange.response
    if error is not None:
        if isinstance(error, (bytes, bytearray)):
            error = bytes(error).decode("utf-8", "replace")
        rejection = classify(error)
        if rejection is None:
            unknown = exchange.status in _ABOUT_THE_REQUEST and not about_other_things(error)
            return Said(ProviderVerdict.UNREPORTED, Rejection.OTHER if unknown else None)
        return Said(ProviderVerdict.REJECTED, rejection)
    removals = tuple(_removals(answer, digest))
    if any(not removal.allowed for removal in removals):
        return Said(ProviderVerdict.REMOVED, removals=removals)
    came = exchange.response is not None or exchange.events is not None
    verdict = ProviderVerdict.ACCEPTED if came else ProviderVerdict.UNREPORTED
    return Said(verdict, removals=removals)


def overlay(findings: list[Finding], outcomes: Sequence[Outcome], said: Said) -> list[Finding]:
    """`findings` with what the provider said of each; a clean one it refused broke beyond us."""
    laid = []
    for finding in findings:
        removed = any(
            _means(removal, finding, outcomes) for removal in said.removals if not removal.allowed
        )
        verdict = said.verdict
        if verdict is ProviderVerdict.REMOVED and not removed:
            verdict = ProviderVerdict.ACCEPTED
        against = verdict in (ProviderVerdict.REJECTED, ProviderVerdict.REMOVED)
        locus = Locus.BEYOND if against and finding.locus is None else finding.locus
        laid.append(
            evolve(finding, provider_verdict=verdict, rejection=said.rejection, locus=locus)
        )
    return laid


def _means(removal: Removal, finding: Finding, outcomes: Sequence[Outcome]) -> bool:
    """Whether a removal names the block of a finding, by its path or by the id of its item."""
    if removal.path:
        return finding.returned == removal.path
    return any(
        outcome.sent is not None
        and outcome.finding.returned == finding.returned
        and removal.item in outcome.sent.anchors
        for outcome in outcomes
    )


def _removals(answer: RawAnswer, digest: Digest) -> Iterator[Removal]:
    for removal in answer.removals[:_MAX_REMOVALS]:
        path = removal.path
        yield Removal(
            reason=vocab.word(removal.reason),
            allowed=removal.allowed,
            path=path if _PATH.fullmatch(path) else "",
            item=digest.name(path) if path else b"",
        )
