"""What a class of refusals means, whose it usually is, and the ways out: for an error alone.

The classes are those of `providers.refusals`; what a class says is said here once. The ways out are
those of `remedies`, for the artifact and the fate that such a refusal usually comes of. Where
several vendors have a class, the words of a text tell whose it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from otel_sealed.model import Fate, Rejection
from otel_sealed.triage.concerns import CONCERNS
from otel_sealed.triage.model import Meaning
from otel_sealed.triage.remedies import remedies
from otel_sealed.triage.ways import UNPLACED

_F = Fate
_R = Rejection
_APP: Final = "the application or its framework"
_ROUTE: Final = "what routes the calls: keys, accounts, gateways"
_EITHER: Final = f"{_APP}, or {_ROUTE}"
_STATE: Final = "the application: the state it referred to has gone"
_REQUEST: Final = "request"
"""What a refusal is about that speaks of the request as a whole: the ways of no block fit it."""


@dataclass(frozen=True, slots=True)
class _Class:
    """What a class says, whose it usually is, and the fate and the rules it usually comes of."""

    says: str
    whose: str
    fate: Fate
    rule: str = ""
    artifact: str = ""


_CLASSES: Final[Mapping[str, _Class]] = {
    _R.PREFIX_BINDING: _Class(
        "what comes before a thinking block is not what it was when the block was issued:"
        " system, tools or an earlier message",
        _APP,
        _F.PREFIX_CHANGED,
        "A12",
        "request.prefix",
    ),
    _R.COMPACTION_INVALID: _Class(
        "a compaction block came back changed, without its signature, or not in its place",
        _APP,
        _F.MODIFIED,
        "A25",
    ),
    _R.COMPACTION_UNSUPPORTED: _Class(
        "this backend does not read compaction items: another one made it",
        _ROUTE,
        _F.ISSUER_CHANGED,
        "O20",
        "openai.compaction.encrypted_content",
    ),
    _R.ACCOUNT_OR_MODEL_BINDING: _Class(
        "the sealed value was issued to another account, or to another model",
        _ROUTE,
        _F.ISSUER_CHANGED,
        "O12",
        "request.issuer",
    ),
    _R.ID_BINDING: _Class(
        "a sealed value came back under another id than the one it was issued with",
        _APP,
        _F.MODIFIED,
        "O6",
    ),
    _R.UNDECRYPTABLE: _Class(
        "a sealed value cannot be decrypted: it was changed, or another account, platform or vendor"
        " issued it",
        _EITHER,
        _F.MODIFIED,
        "O11",
    ),
    _R.SIGNATURE_INVALID: _Class(
        "a signature was changed or made up, or another platform or vendor issued it",
        _EITHER,
        _F.MODIFIED,
        "A1",
    ),
    _R.SIGNATURE_MISSING: _Class(
        "a block or a call came back without the signature it was issued with",
        _APP,
        _F.DROPPED,
    ),
    _R.THINKING_MODIFIED: _Class(
        "thinking of the turn under way came back changed, in part, or in another order",
        _APP,
        _F.DROPPED,
        "A1",
    ),
    _R.THINKING_MISSING: _Class(
        "thinking has a budget, and a turn of the tool loop does not begin with its thinking",
        _APP,
        _F.DROPPED,
        "A1",
    ),
    _R.THINKING_NOT_ALLOWED: _Class(
        "thinking is off, and the last message of the model holds thinking",
        _APP,
        _F.INTACT,
        "A9",
    ),
    _R.PREFILL_REFUSED: _Class(
        "the request ends in a message of the model, which this model does not continue (A11)",
        _APP,
        _F.INTACT,
        "A11",
        _REQUEST,
    ),
    _R.ORPHAN_REASONING: _Class(
        "a reasoning item came back without the item that followed it, or that one without its id",
        _APP,
        _F.ORPHANED,
        "O3",
        "openai.reasoning",
    ),
    _R.ORPHAN_FOLLOWER: _Class(
        "a message or a call came back under its id without its reasoning item",
        _APP,
        _F.ORPHANED,
        "O4",
        "openai.function_call",
    ),
    _R.ITEM_NOT_PERSISTED: _Class(
        "an item was sent by its id alone, and the provider has not stored it",
        _APP,
        _F.INTACT,
        "O8",
        "openai.reasoning.encrypted_content",
    ),
    _R.STATE_LOST: _Class(
        "the response, conversation or thread that was referred to is not, or no longer, stored",
        _STATE,
        _F.SERVER_HELD,
        "O2",
        _REQUEST,
    ),
    _R.DUPLICATE_ITEM: _Class(
        "an item was sent twice, or one that the server holds was sent as well",
        _APP,
        _F.DUPLICATED,
        "X4",
    ),
    _R.ENVELOPE_POLLUTED: _Class(
        "a sealed block or item has a key that is not taken, or an id that is none",
        _APP,
        _F.ENVELOPE_MODIFIED,
        "O23",
        "openai.reasoning.envelope",
    ),
    _R.MODE_CONFLICT: _Class(
        "the request asks for sealed reasoning in a mode, or of a model, that has none to give",
        _APP,
        _F.ABSENT_AT_SOURCE,
        artifact=_REQUEST,
    ),
    _R.PLAINTEXT_REASONING_REQUIRED: _Class(
        "this vendor wants the plain reasoning of its last turns back",
        _APP,
        _F.DROPPED,
        artifact=_REQUEST,
    ),
}


_VENDORS: Final = (
    ("openrouter", re.compile(r"openrouter|reasoning.details", re.IGNORECASE)),
    ("gemini", re.compile(r"thought.?signature|gemini|function.?call is missing", re.IGNORECASE)),
    ("anthropic", re.compile(r"messages\W{1,3}\d|thinking|claude|anthropic", re.IGNORECASE)),
    ("openai", re.compile(r"\binput\[|encrypted.content|\bitem\b|openai|azure", re.IGNORECASE)),
)
"""Whose words a text has; the first that fits. A relay names itself, and quotes the vendor."""
_OF: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    (_R.SIGNATURE_INVALID, "gemini"): ("G11", "gemini.part.thought_signature"),
    (_R.SIGNATURE_INVALID, "openrouter"): ("R3", "openrouter.reasoning_details.signature"),
    (_R.SIGNATURE_MISSING, "anthropic"): ("A3", "anthropic.thinking.signature"),
    (_R.SIGNATURE_MISSING, "gemini"): ("G1", "gemini.part.thought_signature"),
    (_R.SIGNATURE_MISSING, "openrouter"): ("R7", "openrouter.reasoning_details.data"),
    (_R.SIGNATURE_MISSING, "openai"): ("O8", "openai.reasoning.encrypted_content"),
    (_R.STATE_LOST, "anthropic"): ("A31", _REQUEST),
    (_R.ENVELOPE_POLLUTED, "anthropic"): ("A30", "anthropic.thinking.envelope"),
}
"""Rule and artifact of a class that several vendors have, by vendor."""


def whose(text: str) -> str:
    """The vendor, or the relay, whose words a text has; empty if none is known by them."""
    return next((name for name, words in _VENDORS if words.search(text)), "")


def meaning(rejection: str, vendor: str = "") -> Meaning | None:
    """What a class means; None for none, or for one that this version does not know.

    `vendor`: see `whose`.
    """
    known = _CLASSES.get(rejection)
    if known is None:
        return None
    rule, artifact = _OF.get(
        (rejection, vendor), (known.rule, known.artifact or CONCERNS[rejection][0])
    )
    locus = UNPLACED if known.whose == _EITHER else ""
    ways = remedies(artifact, known.fate, locus, rejection, rule)
    return Meaning(known.says, known.whose, ways, rule)
