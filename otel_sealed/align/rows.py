"""The rows of a comparison: each finding is built once, with the records it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from otel_sealed.diagnose import Change
from otel_sealed.model import (
    Block,
    Confidence,
    Fate,
    Finding,
    Locus,
    Origin,
    State,
    Trait,
    Turn,
    Value,
)
from otel_sealed.model.record import record

_LOCI: Final[Mapping[Fate, Locus | None]] = {
    Fate.INTACT: None,
    Fate.SERVER_HELD: None,
    Fate.SUPERSEDED: None,
    Fate.UNKNOWN: None,
    Fate.UNSEALED: Locus.SOURCE,
    Fate.NOT_REQUESTED: Locus.SOURCE,
    Fate.SDK_LOSSY: Locus.SDK,
}
"""Where it happened; all others did in the process that built the request."""
_UNCHANGED: Final = Change(None)
NO_TRAITS: Final[frozenset[Trait]] = frozenset()


@record(frozen=True, slots=True)
class Outcome:
    """A finding and the records it is about, for the traits that judgement asks for.

    `at` is the index in the request's messages where the artifact is or should be, `end` that of
    the last one with something of its turn where that was split.
    """

    finding: Finding
    turn: Turn | None
    index: int
    block: Block | None
    sent: Block | None
    at: int | None
    end: int | None = None

    @property
    def sent_back(self) -> bool:
        """Whether the model's own state goes back: a seal, not that of a result or a compaction."""
        return bool(self.finding.digest_out) and (self.block is None or self.block.reasons)


class Source(NamedTuple):
    """Where an artifact came in; `inferred`: its turn is in the request by inference only."""

    origin: Origin
    inferred: bool


def source(turn: Turn, block: Block, inferred: frozenset[int]) -> Source:
    """That of the artifacts of a block. `inferred`: the turns that are."""
    path = f"{turn.path}.{block.sub}" if turn.path and block.sub else turn.path or block.sub
    origin = Origin(turn.exchange, path, turn.origin, turn.model)
    return Source(origin, turn.number in inferred)


def row(
    artifact: str,
    fate: Fate,
    came: Value | None = None,
    sent: Value | None = None,
    *,
    of: Source | None = None,
    returned: str | None = None,
    change: Change | None = None,
    traits: frozenset[Trait] = NO_TRAITS,
) -> Finding:
    """The finding of an artifact that came in as one value and goes out as another."""
    there = sent is not None and sent.state is not State.ABSENT
    digest_in = came.digest if came is not None else b""
    digest_out = sent.digest if sent is not None else b""
    how = change or _UNCHANGED
    unsure = of is not None and of.inferred and digest_in != digest_out
    return Finding(
        artifact,
        fate,
        of.origin if of is not None else None,
        returned,
        digest_in,
        digest_out,
        came.size if came is not None else None,
        sent.size if sent is not None and there else None,
        how.cause,
        how.detail,
        _LOCI.get(fate, Locus.PROCESS),
        Confidence.INFERRED if unsure else Confidence.PROVEN,
        traits,
    )
