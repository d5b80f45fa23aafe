"""Which artifacts a way out or a refusal is about, asked of the dialects: no name is listed here.

A new sealed field is in the groups of its dialect and of the kind of its block by its declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from otel_sealed.contract import Carrier
from otel_sealed.model import Kind, Rejection, Role
from otel_sealed.providers import dialects

ANY: Final = frozenset(Kind)
_R = Rejection


def artifacts(
    dialect: str = "", kinds: Collection[Kind] = ANY, *, followers: bool = False
) -> tuple[str, ...]:
    """Everything that can befall blocks of some kinds: fields, envelopes, being alone.

    `followers`: and what needs a block it came with, of whatever kind.
    """
    return _of(dialect, lambda c: c.kind in kinds or (followers and bool(c.orphan)), _all)


def values(role: Role, dialect: str = "", kinds: Collection[Kind] = ANY) -> tuple[str, ...]:
    """The fields of a role in blocks of some kinds."""
    return _of(
        dialect,
        lambda carrier: carrier.kind in kinds,
        lambda carrier: (one.artifact for one in carrier.fields if one.role is role),
    )


def envelopes(kinds: Collection[Kind]) -> tuple[str, ...]:
    """The further keys of blocks of some kinds."""
    return _of("", lambda carrier: carrier.kind in kinds, lambda carrier: iter((carrier.envelope,)))


def _all(carrier: Carrier) -> Iterator[str]:
    yield from (one.artifact for one in carrier.fields)
    yield carrier.envelope
    yield carrier.orphan


def _of(
    dialect: str, fits: Callable[[Carrier], bool], names: Callable[[Carrier], Iterator[str]]
) -> tuple[str, ...]:
    found = (
        name
        for one in dialects().values()
        if dialect in ("", one.name)
        for carrier in one.carriers.values()
        if fits(carrier)
        for name in names(carrier)
    )
    return tuple(dict.fromkeys(name for name in found if name))


# ------------------------------------------------------------------------ what a refusal speaks of

_THOUGHT: Final = frozenset({Kind.REASONING})
_SIGNATURES: Final = (
    *values(Role.SEAL, "anthropic", _THOUGHT),
    *(
        name
        for wire in dialects().values()
        if wire.name not in ("anthropic", "openai")
        for name in values(Role.SEAL, wire.name)
    ),
)
_REASONED: Final = values(Role.SEAL, "openai", _THOUGHT)
_SEALED: Final = values(Role.SEAL, "openai", {Kind.REASONING, Kind.COMPACTION})
_COMPACTED: Final = values(Role.SEAL, "", {Kind.COMPACTION})
_IDS: Final = values(Role.ID, "openai", _THOUGHT)
CONCERNS: Final[dict[str, tuple[str, ...]]] = {
    _R.PREFIX_BINDING: _SIGNATURES,
    _R.COMPACTION_INVALID: _COMPACTED,
    _R.COMPACTION_UNSUPPORTED: _COMPACTED,
    _R.ACCOUNT_OR_MODEL_BINDING: (*_SEALED, *_SIGNATURES),
    _R.ID_BINDING: (*_IDS, *_SEALED),
    _R.UNDECRYPTABLE: (*_SEALED, *_SIGNATURES),
    _R.SIGNATURE_INVALID: _SIGNATURES,
    _R.SIGNATURE_MISSING: _SIGNATURES,
    _R.THINKING_MODIFIED: _SIGNATURES,
    _R.THINKING_MISSING: _SIGNATURES,
    _R.THINKING_NOT_ALLOWED: _SIGNATURES,
    _R.PREFILL_REFUSED: _SIGNATURES,
    _R.ORPHAN_REASONING: _REASONED,
    _R.ORPHAN_FOLLOWER: _REASONED,
    _R.ITEM_NOT_PERSISTED: (*_REASONED, *_IDS),
    _R.STATE_LOST: (*_SEALED, *_SIGNATURES),
    _R.DUPLICATE_ITEM: (*_REASONED, *_IDS),
    _R.ENVELOPE_POLLUTED: (*envelopes(_THOUGHT), *_SIGNATURES, *_SEALED),
    _R.MODE_CONFLICT: _SEALED,
    _R.PLAINTEXT_REASONING_REQUIRED: (*_SEALED, *_SIGNATURES),
}
"""What a class of refusals (docs/contract/common.md#refusals) is about, the likeliest first."""
