"""Rows of the request itself: did what stands before the seals change, or who they are sent to?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from otel_sealed.align.prefix import Break, first_break
from otel_sealed.align.scene import Outcome
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


def surroundings(
    facts: Facts,
    head: Head | None,
    messages: tuple[Message, ...],
    lineage: Lineage,
    outcomes: Sequence[Outcome],
    seals: Collection[str],
    root: str,
) -> Iterator[Outcome]:
    """At most one row for the prefix and one for the issuer, where a seal of ours is sent at all.

    `head` is None where the prefix was compared already. `seals`: the artifact names that are
    seals. What a compaction carries may have gone, and the compaction itself is bound to no
    prefix: a compact call has instructions of its own.
    """
    homes: dict[int, int] = {}
    bound: dict[int, int] = {}
    gone: set[int] = set()
    for outcome in outcomes:
        if outcome.turn is None:
            continue
        if outcome.finding.fate is Fate.SUPERSEDED:
            gone.add(outcome.turn.number)
        if (
            outcome.at is not None
            and outcome.finding.digest_out
            and outcome.finding.artifact in seals
        ):
            homes.setdefault(outcome.turn.number, outcome.at)
            if outcome.block is None or outcome.block.kind is not Kind.COMPACTION:
                bound.setdefault(outcome.turn.number, outcome.at)
    if not homes:
        return
    exempt = {number for number in bound if gone and number >= min(gone)}
    if head is not None:
        broken = first_break(lineage.turns, bound, head, messages, exempt, root)
        if broken is not None:
            yield _prefix(broken, bound)
    yield from _issuer(facts, lineage, homes)


def _prefix(broken: Break, homes: dict[int, int]) -> Outcome:
    row = Finding(
        "request.prefix",
        Fate.PREFIX_CHANGED,
        received=_origin(broken.turn),
        returned=broken.detail,
        cause=broken.cause,
        detail=broken.detail,
        locus=Locus.PROCESS,
    )
    return Outcome(row, broken.turn, 0, None, None, homes[broken.turn.number])


def _issuer(facts: Facts, lineage: Lineage, homes: dict[int, int]) -> Iterator[Outcome]:
    for turn in lineage.turns:
        if turn.number not in homes or turn.vendor != facts.vendor:
            continue
        platform = turn.platform != facts.platform
        host = bool(turn.host and facts.host and turn.host != facts.host)
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


def _origin(turn: Turn) -> Origin:
    return Origin(turn.exchange, turn.path, turn.origin, turn.model)
