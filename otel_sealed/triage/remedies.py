"""What the providers' rules allow as a way out, safest first: data, with the rules they stand on.

A way fits an incident when its artifact, fate, locus, refusal and rule do (empty: any). They are
given in this order: first what loses nothing, last what loses the conversation. Where a rule of the
provider's allows a way, its own words go with it, so that nobody has to take ours for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from otel_sealed.contract import Rule
from otel_sealed.model import Fate, Kind, Locus, Rejection
from otel_sealed.rulebook import chapters
from otel_sealed.triage.concerns import artifacts
from otel_sealed.triage.model import Remedy

_F = Fate
_R = Rejection
NOTHING: Final = "nothing"
_THINKING: Final = artifacts("anthropic", {Kind.REASONING})
_REASONING: Final = artifacts("openai", {Kind.REASONING}, followers=True)
_COMPACTION: Final = artifacts("", {Kind.COMPACTION})
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
_HOME: Final = frozenset(Fate) - {_F.FOREIGN}
"""Fates of a seal at the vendor that issued it, whose rules are then the ones that hold."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way out. `rule` names the rule that allows it, by its chapter and its id.

    `of`: the letter of the rules that judged it, where the artifact does not show whose they are;
    `refusals`: the classes after which it can work.
    """

    does: str
    loses: str
    fates: frozenset[str] = frozenset()
    artifacts: tuple[str, ...] = ()
    locus: str = ""
    rule: tuple[str, str] = ("", "")
    of: str = ""
    refusals: frozenset[str] = frozenset()


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
        locus=Locus.BEYOND,
        refusals=_PASSING,
    ),
    Way(
        "go back to the account, model and endpoint that issued it; look at what routes the calls",
        NOTHING,
        locus=Locus.BEYOND,
        refusals=_PASSING | _ROUTED,
    ),
    Way(
        "send the turn as it was received, byte for byte, in its place",
        "nothing, where the application still holds it",
        _CHANGED,
    ),
    Way("take the keys that were added off the block", NOTHING, _only(_F.ENVELOPE_MODIFIED)),
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
    Way("send the item it came with in front of it", NOTHING, _only(_F.ORPHANED)),
    Way(
        "go on from the last good response by previous_response_id, where it is stored",
        NOTHING,
        artifacts=_REASONING,
        rule=("openai", "O2"),
    ),
    Way(
        "ask for it from now on: include reasoning.encrypted_content, or store the responses",
        "the reasoning of the turns so far",
        _only(_F.NOT_REQUESTED, _F.ABSENT_AT_SOURCE),
        artifacts("openai"),
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
        "take the server's id off the item, and send it without its reasoning",
        "the reasoning of that turn",
        _only(_F.ORPHANED, _F.DROPPED, _F.NOT_REQUESTED),
        _REASONING,
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
    Way(
        "leave out all thinking of finished turns, from the front on",
        "the reasoning of those turns",
        _HOME,
        _THINKING,
        rule=("anthropic", "A8"),
    ),
    Way(
        "answer the open tool calls, add a user message, and leave the thinking of that turn out",
        "the reasoning of the turn that was under way",
        _HOME,
        _THINKING,
        rule=("anthropic", "A8"),
    ),
    Way(
        "switch thinking off for the next request and leave all thinking out",
        "all reasoning so far, and that of the next answer",
        _HOME,
        _THINKING,
        rule=("anthropic", "A9"),
    ),
    *(
        Way(
            "leave the whole turns out, from the front on",
            "what was said in them",
            artifacts=found,
            rule=(chapter, _WHOLE_TURNS),
        )
        for chapter, found in _left_out()
    ),
    *(
        Way(
            "leave the whole turns out, from the front on",
            "what was said in them",
            _only(_F.ISSUER_CHANGED),
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


@lru_cache(4096)
def remedies(
    artifact: str, fate: str, locus: str, rejection: str = "", rule: str = ""
) -> tuple[Remedy, ...]:
    """The ways out of an incident, safest first."""
    return tuple(
        dict.fromkeys(
            Remedy(_told(way), way.loses)
            for way in WAYS
            if _fits(way, artifact, fate, locus)
            and (not way.refusals or rejection in way.refusals)
            and rule.startswith(way.of)
        )
    )


def _fits(way: Way, artifact: str, fate: str, locus: str) -> bool:
    return (
        (not way.fates or fate in way.fates)
        and (not way.artifacts or artifact in way.artifacts)
        and (not way.locus or locus == way.locus)
    )


def _told(way: Way) -> str:
    rule = allowed(*way.rule)
    return f"{way.does} ({rule.id}: {rule.says})" if rule else way.does


def allowed(chapter: str, ident: str) -> Rule | None:
    """The row of a rule that allows something, None where the book has none."""
    return next((rule for rule in _rules(chapter, ident) if rule.verdict == "allowed"), None)


def rule_of(
    ident: str, fate: str, artifact: str, verdict: str = "", *, disputed: bool = False
) -> Rule | None:
    """The row that judged.

    Of those that speak of this fate of this artifact the one that gives this verdict, disputed or
    not; else another of them, else any row of that id.
    """
    rows = list(_rules("", ident))
    fitting = [
        rule
        for rule in rows
        if fate in rule.fates and (not rule.artifacts or artifact.startswith(rule.artifacts))
    ]
    judged = (rule for rule in fitting if (rule.verdict, rule.disputed) == (verdict, disputed))
    like = (rule for rule in fitting if rule.verdict == verdict)
    return next((row for found in (judged, like, fitting, rows) for row in found), None)


def _rules(chapter: str, ident: str) -> Iterator[Rule]:
    for name, rules in chapters():
        if chapter in ("", name):
            yield from (rule for rule in rules if rule.id == ident)
