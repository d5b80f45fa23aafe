"""Rows of the request itself: did what stands before the seals change, or who they are sent to?"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence

from otel_sealed.align.prefix import Break, first_break
from otel_sealed.align.rows import Outcome
from otel_sealed.model import (
    Facts,
    Fate,
    Finding,
    Head,
    Kind,
    Lineage,
    Locus,
    Message,
    Origin,
    Trait,
    Turn,
)


def surroundings(  # noqa: PLR0913 - what is known of a request, each by name
    facts: Facts,
    head: Head,
    messages: tuple[Message, ...],
    lineage: Lineage,
    outcomes: Sequence[Outcome],
    seals: Collection[str],
    root: str,
    before: tuple[Break, int] | None = None,
    *,
    suffix: bool = False,
) -> Iterator[Outcome]:
    """At most one row for the prefix and one for the issuer, where a seal of ours is sent at all.

    `seals`: the artifact names that are seals. What a compaction carries may have gone, and the
    compaction itself is bound to no prefix: a compact call has instructions of its own.
    `suffix`: `messages` are the end of a request, and all of them are what they were; `before`: the
    first change before that end, and where its turn is.
    """
    homes, bound = sealed_homes(outcomes, seals)
    bound = {number: at for number, at in bound.items() if number not in lineage.held}
    if before is None:
        free = bound if suffix else exempt(outcomes, bound)
        broken = first_break(lineage.turns, bound, head, messages, free, root)
        before = (broken, bound[broken.turn.number]) if broken is not None else None
    if before is not None:
        yield _prefix(*before)
    yield from _issuer(facts, lineage, homes)


def exempt(outcomes: Iterable[Outcome], bound: Collection[int]) -> set[int]:
    """The turns of `bound` whose earlier messages may be gone, behind a compaction."""
    behind = [o.turn.number for o in outcomes if o.turn and _compacts(o)]
    first = min(behind, default=sys.maxsize)
    return {number for number in bound if number >= first}


def _compacts(outcome: Outcome) -> bool:
    """Whether a compaction carries the artifact, or is it and is in the request."""
    if outcome.finding.fate is Fate.SUPERSEDED:
        return True
    block = outcome.block
    return block is not None and block.kind is Kind.COMPACTION and bool(outcome.finding.digest_out)


def sealed_homes(
    outcomes: Iterable[Outcome], seals: Collection[str]
) -> tuple[dict[int, int], dict[int, int]]:
    """Turn number to the index of the message a seal of it stands in; and those bound to a prefix.

    Both in the order of the rows.
    """
    homes: dict[int, int] = {}
    bound: dict[int, int] = {}
    for outcome in outcomes:
        finding = outcome.finding
        if outcome.turn is None or outcome.at is None or not finding.digest_out:
            continue
        if finding.artifact in seals:
            homes.setdefault(outcome.turn.number, outcome.at)
            if outcome.sent_back:
                bound.setdefault(outcome.turn.number, outcome.at)
    return homes, bound


def _prefix(broken: Break, home: int) -> Outcome:
    row = Finding(
        "request.prefix",
        Fate.PREFIX_CHANGED,
        received=_origin(broken.turn),
        returned=broken.detail,
        cause=broken.cause,
        detail=broken.detail,
        locus=Locus.PROCESS,
    )
    return Outcome(row, broken.turn, 0, None, None, home)


def _issuer(facts: Facts, lineage: Lineage, homes: dict[int, int]) -> Iterator[Outcome]:
    for turn in lineage.turns:
        if turn.number not in homes or turn.vendor != facts.vendor:
            continue
        platform = turn.platform != facts.platform
        host = bool(turn.host and facts.host and _place(turn.host) != _place(facts.host))
        account = bool(turn.account and facts.account and turn.account != facts.account)
        if not (platform or host or account):
            continue
        traits = set()
        if platform or (host and (account or facts.platform == "azure")):
            traits.add(Trait.OTHER_PLATFORM)
        if account:
            traits.add(Trait.OTHER_ACCOUNT)
        row = Finding(
            "request.issuer",
            Fate.ISSUER_CHANGED,
            received=_origin(turn),
            detail="platform" if platform else "host" if host else "account",
            locus=Locus.PROCESS,
            traits=frozenset(traits),
        )
        yield Outcome(row, turn, 0, None, None, homes[turn.number])
        return


def _place(host: str) -> str:
    """A host as far as it tells resources apart: on Azure each has several names of one label."""
    name = host.lower().partition(":")[0]
    label, dot, domain = name.partition(".")
    return f"{label}{dot}azure" if domain.endswith("azure.com") else name


def _origin(turn: Turn) -> Origin:
    return Origin(turn.exchange, turn.path, turn.origin, turn.model)
