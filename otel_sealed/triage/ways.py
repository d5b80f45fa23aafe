"""The ways out of an incident, safest first: data, with the rules that allow them.

A way fits an incident when its artifact, fate, locus, refusal and rule do (empty: any). They are
given in this order: first what loses nothing, last what loses the conversation. A way that cannot
work after a refusal, because that is about the request as it is, names it under `never`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from otel_sealed.model import Fate, Kind, Locus, Rejection
from otel_sealed.rulebook import chapters
from otel_sealed.triage.concerns import artifacts

_F = Fate
_R = Rejection
NOTHING: Final = "nothing"
UNPLACED: Final = "unplaced"
"""Where something happened of which there is no record: here, or on the way."""
_THINKING: Final = artifacts("anthropic", {Kind.REASONING})
_REASONING: Final = artifacts("openai", {Kind.REASONING}, followers=True)
_COMPACTION: Final = artifacts("", {Kind.COMPACTION})
_GOOGLES: Final = tuple(
    name for wire in ("gemini", "chat") for name in artifacts(wire) if name.startswith("gemini.")
)
_CIRCUMSTANCES: Final = ("request.prefix", "request.issuer")
_WHOLE_TURNS: Final = "X7"
"""The rule of several dialects that allows to leave whole turns out."""
_CHANGED: Final = frozenset(
    {
        _F.MODIFIED,
        _F.DROPPED,
        _F.REORDERED,
        _F.MISPLACED,
        _F.RETYPED,
        _F.MERGED,
        _F.SPLIT,
        _F.SUBSTITUTED,
        _F.FABRICATED,
        _F.SDK_LOSSY,
    }
)


_PASSING: Final = frozenset({_R.UNDECRYPTABLE, _R.SIGNATURE_INVALID})
"""Refusals of what was in order here: the same bytes were accepted later. Others are about the
request itself, and the same one is refused again."""
_ROUTED: Final = frozenset({_R.ACCOUNT_OR_MODEL_BINDING, _R.COMPACTION_UNSUPPORTED})
_GONE: Final = frozenset({_R.STATE_LOST, _R.ITEM_NOT_PERSISTED})
"""Refusals because the server holds nothing: another reference to it is refused as well."""
_AT_THE_END: Final = frozenset({_R.PREFILL_REFUSED, _R.THINKING_NOT_ALLOWED})
"""Refusals of how the request ends: what came before that does not matter."""
_UNDER_WAY: Final = frozenset({_R.THINKING_MODIFIED, _R.THINKING_MISSING}) | _AT_THE_END
"""Refusals of the turn under way: finished ones do not matter."""
_OF_THE_LOOP: Final = frozenset({"A1", "A2"})
"""Rules on the turn under way, but for what is altered in any turn."""
_HOME: Final = frozenset(Fate) - {_F.FOREIGN}
"""Fates of a seal at the vendor that issued it, whose rules are then the ones that hold."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way out. `rule` names the rule that allows it, by its chapter and its id.

    `of`: the letter of the rules that judged it, where the artifact does not show whose they are;
    `but`: the rules of which it is no way out; `refusals`: the classes after which it can work, of
    those that have ways of their own; `never`: those after which it cannot.
    """

    does: str
    loses: str
    fates: frozenset[str] = frozenset()
    artifacts: tuple[str, ...] = ()
    loci: frozenset[str] = frozenset()
    rule: tuple[str, str] = ("", "")
    of: str = ""
    but: frozenset[str] = frozenset()
    refusals: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()


def _only(*fates: Fate) -> frozenset[str]:
    return frozenset(fates)


def _left_out() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Per dialect what its rules allow to leave out with its turn; a compaction is no turn."""
    kinds = frozenset(Kind) - {Kind.COMPACTION}
    for chapter, rules in chapters():
        rows = [rule for rule in rules if rule.id == _WHOLE_TURNS and rule.verdict == "allowed"]
        found = tuple(
            name
            for name in (artifacts(chapter, kinds) if rows else ())
            if any(not rule.artifacts or name.startswith(rule.artifacts) for rule in rows)
        )
        if found:
            yield chapter, found


WAYS: Final = (
    # what loses nothing
    Way(
        "send the same request again: it holds what was issued",
        NOTHING,
        loci=frozenset({Locus.BEYOND}),
        refusals=_PASSING,
    ),
    Way(
        "go back to the account, model and endpoint that issued it; look at what routes the calls",
        NOTHING,
        loci=frozenset({Locus.BEYOND, UNPLACED}),
        refusals=_PASSING | _ROUTED,
    ),
    Way(
        "send the turn as it was received, byte for byte, in its place",
        "nothing, where the application still holds it",
        _CHANGED,
    ),
    Way("take the keys that were added off the block", NOTHING, _only(_F.ENVELOPE_MODIFIED)),
    Way(
        "give the item the id it came with, or none where none is asked for",
        NOTHING,
        artifacts=artifacts("openai"),
        rule=("openai", "O7"),
        refusals=frozenset({_R.ENVELOPE_POLLUTED, _R.ID_BINDING}),
    ),
    Way(
        "send the item itself, with its encrypted_content, rather than its id alone",
        "nothing, where the application still holds it",
        artifacts=artifacts("openai"),
        refusals=frozenset({_R.ITEM_NOT_PERSISTED}),
    ),
    Way(
        "leave the ids off all items: this backend looks them up, and has stored none",
        NOTHING,
        artifacts=artifacts("openai"),
        rule=("openai", "O7"),
        refusals=frozenset({_R.ITEM_NOT_PERSISTED}),
    ),
    Way(
        "do not ask for encrypted reasoning where there is none to give: of a model that does not"
        " reason, or of responses that the server keeps",
        NOTHING,
        refusals=frozenset({_R.MODE_CONFLICT}),
    ),
    Way(
        "ask for thinking in this request, as when the turn was issued",
        NOTHING,
        artifacts=_THINKING,
        refusals=frozenset({_R.THINKING_NOT_ALLOWED}),
    ),
    Way(
        "put back what stood before it when it was issued: system, tools, earlier messages",
        NOTHING,
        _only(_F.PREFIX_CHANGED),
    ),
    Way(
        "go back to the platform, account or resource that issued it",
        NOTHING,
        _only(_F.ISSUER_CHANGED),
    ),
    Way(
        "pin the relay to the upstream that issued it",
        NOTHING,
        _only(_F.ISSUER_CHANGED, _F.FOREIGN),
        of="R",
    ),
    Way(
        "let the provider compact: what it compacts itself voids nothing that follows",
        NOTHING,
        _only(_F.PREFIX_CHANGED),
        of="O",
        rule=("openai", "O14"),
    ),
    Way(
        "send everything again from the first message on, with all sealed values",
        NOTHING,
        _only(_F.SERVER_HELD),
        refusals=frozenset({_R.STATE_LOST}),
    ),
    Way(
        "end the request in a message of the user",
        NOTHING,
        refusals=frozenset({_R.PREFILL_REFUSED}),
    ),
    Way("send it once, where it came", NOTHING, _only(_F.DUPLICATED)),
    Way("send the newest compaction item in place of the older one", NOTHING, _only(_F.STALE)),
    Way(
        "send both again: the reasoning item and, right after it, the item that followed it, each"
        " with its id",
        NOTHING,
        _only(_F.ORPHANED),
    ),
    Way(
        "go on from the last good response by previous_response_id, where it is stored",
        NOTHING,
        artifacts=_REASONING,
        rule=("openai", "O2"),
        never=_GONE,
    ),
    Way(
        "ask for it from now on: include reasoning.encrypted_content, or store the responses",
        "the reasoning of the turns so far",
        _only(_F.NOT_REQUESTED, _F.ABSENT_AT_SOURCE),
        artifacts("openai"),
        never=frozenset({_R.MODE_CONFLICT}),
    ),
    # what loses a block
    Way(
        "leave the block that was never complete out of the history",
        "reasoning that never got its seal",
        _only(_F.UNSEALED),
    ),
    Way(
        "leave the seal of the other vendor behind",
        "reasoning that this vendor cannot read anyway",
        _only(_F.FOREIGN),
    ),
    Way(
        "leave the reasoning items out, and the ids of what followed them",
        "the reasoning of those turns",
        _CHANGED | _only(_F.ORPHANED, _F.NOT_REQUESTED, _F.INTACT),
        _REASONING,
        rule=("openai", "O7"),
        never=frozenset({_R.MODE_CONFLICT, _R.STATE_LOST}),
    ),
    Way(
        "put the documented dummy there, skip_thought_signature_validator: a last resort",
        "the reasoning before that call, and some quality of the answers",
        _CHANGED,
        _GOOGLES,
    ),
    Way(
        "leave out all reasoning of that message rather than a part of it, unless Gemini's",
        "the reasoning of that turn",
        _CHANGED,
        artifacts("chat", {Kind.REASONING}),
    ),
    Way(
        "ask for voided blocks to be dropped: thinking.block_binding.prefix_mismatch_behavior"
        " drop_block, with its beta",
        "the reasoning of the blocks that were voided",
        _only(_F.PREFIX_CHANGED),
        of="A",
        rule=("anthropic", "A12"),
    ),
    Way(
        "leave out all thinking from the changed place on",
        "the reasoning of those turns",
        _only(_F.PREFIX_CHANGED),
        of="A",
        rule=("anthropic", "A13"),
    ),
    Way(
        "leave the reasoning items out, and the ids of what followed them",
        "the reasoning of those turns",
        _only(_F.ISSUER_CHANGED, _F.PREFIX_CHANGED),
        _CIRCUMSTANCES,
        of="O",
        rule=("openai", "O7"),
    ),
    # what loses turns
    Way(
        "leave out all thinking of finished turns, from the front on",
        "the reasoning of those turns",
        _only(_F.ISSUER_CHANGED),
        of="A",
        rule=("anthropic", "A8"),
    ),
    *(
        Way(
            "leave out all thinking of finished turns, from the front on",
            "the reasoning of those turns",
            fates,
            _THINKING,
            rule=("anthropic", "A8"),
            but=but,
            never=_UNDER_WAY,
        )
        for fates, but in (
            (_only(_F.MODIFIED), frozenset({"A2"})),
            (_HOME - {_F.MODIFIED}, _OF_THE_LOOP),
        )
    ),
    Way(
        "leave all thinking of the turn under way out, while thinking is off",
        "the reasoning of the turn that is under way",
        artifacts=_THINKING,
        rule=("anthropic", "A9"),
        refusals=frozenset({_R.THINKING_NOT_ALLOWED}),
    ),
    Way(
        "ask for adaptive thinking, and leave out all thinking of the turn under way, which is then"
        " accepted (A1)",
        "the reasoning of the turn that is under way",
        _HOME,
        _THINKING,
        never=_AT_THE_END,
    ),
    Way(
        "switch thinking off for the next request and leave all thinking out",
        "all reasoning so far, and that of the next answer",
        _HOME,
        _THINKING,
        rule=("anthropic", "A9"),
        never=_AT_THE_END,
    ),
    *(
        Way(
            "leave the whole turns out, from the front on",
            "what was said in them",
            artifacts=found,
            rule=(chapter, _WHOLE_TURNS),
            never=frozenset({_R.MODE_CONFLICT, _R.STATE_LOST}),
        )
        for chapter, found in _left_out()
    ),
    *(
        Way(
            "leave the whole turns out, from the front on",
            "what was said in them",
            _only(_F.ISSUER_CHANGED),
            _CIRCUMSTANCES,
            of=letter,
            rule=(chapter, _WHOLE_TURNS),
        )
        for letter, chapter in (("O", "openai"), ("G", "gemini"), ("R", "chat"))
    ),
    Way(
        "compact the conversation anew",
        "what only the lost compaction item held",
        artifacts=_COMPACTION,
    ),
    Way(
        "start a new conversation from the last good turn",
        "everything said since",
    ),
)
