"""The contract of Chat Completions as data, in the order its rules are tried.

G… are Google's (docs/contract/gemini.md), on its own compatible endpoint or through a gateway; R…
those of the relays that put sealed values on this wire (docs/contract/chat.md).

A case in which each rule fires, and one in which it does not: tests/core/chat_cases.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_sealed.contract import Rule, rule
from otel_sealed.model import Fate, Trait, Verdict

F, T, V = Fate, Trait, Verdict

_GOOGLE = ("gemini.tool_call.", "gemini.message.", "litellm.message.")
_IN_ID = ("litellm.tool_call.",)
_SIGNATURES = (*_GOOGLE, *_IN_ID)
_OF_LITELLM = ("litellm.",)
_DETAILS = ("openrouter.reasoning_details.",)
_RELAYED = (*_DETAILS, "litellm.thinking_blocks.")
_READABLE = ("openrouter.reasoning_details.text", "litellm.thinking_blocks.text")
_ID = ("openrouter.reasoning_details.id",)
_GONE = frozenset({F.DROPPED, F.SUBSTITUTED})
_MOVED = frozenset({F.MISPLACED, F.MERGED, F.SPLIT, F.REORDERED, F.RETYPED})

_COMMON: tuple[Rule, ...] = (
    rule(
        "G9",
        "a dummy that is documented for the Developer API alone is refused on Vertex",
        {F.FABRICATED},
        V.BREAKS,
        when={T.PLACEHOLDER, T.REFUSED_DUMMY},
        source="D thought-signatures: only the other one is known to both",
        checked="2026-12-01",
    ),
    rule(
        "G9",
        "a documented dummy, or a client's constant, on a call that needs none, next to a signed"
        " one: an empty answer was seen",
        {F.FABRICATED},
        V.DEGRADES,
        when={T.PLACEHOLDER, T.SIBLING_CALL, T.IN_LOOP},
        source="I litellm#37541; C @langchain/google-genai puts one constant there",
        checked="2026-12-01",
        disputed=True,
    ),
    rule(
        "G9",
        "a documented dummy where no signature was ever held",
        {F.FABRICATED},
        V.ALLOWED,
        when={T.PLACEHOLDER, T.NEVER_HELD},
        source="I pydantic-ai#3881; D thought-signatures",
    ),
    rule(
        "G9",
        "a documented dummy in the place of a held signature hurts quality",
        {F.FABRICATED},
        V.DEGRADES,
        when={T.PLACEHOLDER},
        source="I pydantic-ai#3881; C litellm factory.py",
    ),
    rule(
        "X7",
        "whole turns left out of the history take their seals with them",
        {F.DROPPED},
        V.ALLOWED,
        when={T.WHOLE_TURN, T.FRONT},
        source="ours: docs/glossary.md#fates: absent with the turn that held it",
    ),
)

_GOOGLES: tuple[Rule, ...] = (
    rule(
        "G20",
        "a relay that keeps a signature in fields of its own takes it off for another vendor",
        {F.FOREIGN},
        V.ALLOWED,
        artifacts=_OF_LITELLM,
        source="C litellm utils.py: measured on 1.108, nothing sealed reaches another vendor",
        disputed=True,
    ),
    rule(
        "G11",
        "a made-up, altered or foreign signature is refused",
        {F.FABRICATED, F.FOREIGN, F.MODIFIED},
        V.BREAKS,
        artifacts=_SIGNATURES,
        source="I Antigravity#970, Antigravity-Manager PR 3337",
    ),
    rule(
        "G2",
        "copies of the first signature on parallel calls: sources disagree",
        {F.DUPLICATED},
        V.ALLOWED,
        artifacts=_SIGNATURES,
        source="I vercel/ai PR 13908, adk-js PR 268, zed PR 63932 against litellm PR 37541",
        disputed=True,
    ),
    rule(
        "G11",
        "signatures of another vendor are rightly left behind",
        _GONE,
        V.ALLOWED,
        artifacts=_SIGNATURES,
        when={T.FOREIGN_TURN},
        source="ours: docs/glossary.md#fates: there they would be foreign",
    ),
    *(
        rule(
            "G14",
            "two contents in a row for one answer, the later begun by a call without a signature:"
            " whether they are read as one step is not known",
            {F.SPLIT},
            verdict,
            artifacts=_SIGNATURES,
            when={T.SAME_STEP, *live},
            source="M google-genai chats, streamed; the live API was not asked",
            checked="2026-12-01",
            disputed=True,
        )
        for live, verdict in (((T.ON_CALL, T.IN_LOOP), V.DEGRADES), ((), V.ALLOWED))
    ),
    rule(
        "G8",
        "on Gemini 2.5 signatures are optional",
        {*_GONE, *_MOVED},
        V.DEGRADES,
        artifacts=_SIGNATURES,
        when={T.GEMINI_2},
        source="D thought-signatures; I goose PR 6890, rowboat#694",
    ),
    rule(
        "G14",
        "the calls of one step are followed by their responses: a later step without a value on its"
        " first call is refused",
        {F.SPLIT},
        V.BREAKS,
        artifacts=_SIGNATURES,
        when={T.ON_CALL, T.IN_LOOP, T.UNSIGNED_STEP},
        source="I community.retellai 785; as G1",
        checked="2026-12-01",
    ),
    rule(
        "G14",
        "a step that begins with a documented dummy, or with another value of ours, is accepted",
        {F.SPLIT},
        V.DEGRADES,
        artifacts=_SIGNATURES,
        when={T.ON_CALL, T.IN_LOOP},
        source="M openai-agents over Gemini: answered 200; D thought-signatures (the dummies)",
        checked="2026-12-01",
    ),
    rule(
        "G6",
        "a signature stays where it came: elsewhere it is a loss, a dummy in its place or not",
        {F.MISPLACED, F.RETYPED},
        V.DEGRADES,
        artifacts=_SIGNATURES,
        when={T.DUMMY_IN_PLACE},
        source="I rust-genai#299, PR 302",
        checked="2026-12-01",
    ),
    rule(
        "G6",
        "a signature stays on its call: one of the current turn without it is refused",
        _MOVED,
        V.BREAKS,
        artifacts=_SIGNATURES,
        when={T.ON_CALL, T.IN_LOOP},
        source="C pydantic models/google.py; I claude-relay-service PR 967, fantasy PR 298",
    ),
    rule(
        "G6",
        "a signature stays where it came: elsewhere it is a loss, a dummy in its place or not",
        _MOVED,
        V.DEGRADES,
        artifacts=_SIGNATURES,
        source="C pydantic models/google.py",
    ),
    rule(
        "G20",
        "a relay that hides the signature in the id of the call needs that id back as it came",
        _GONE,
        V.BREAKS,
        artifacts=_IN_ID,
        when={T.FIRST_CALL, T.IN_LOOP},
        source="C litellm factory.py",
    ),
    rule(
        "G20",
        "an id of an earlier turn that lost its signature: not validated, and a loss",
        _GONE,
        V.DEGRADES,
        artifacts=_IN_ID,
        source="C litellm factory.py",
    ),
    rule(
        "G19",
        "tool_calls[].extra_content.google.thought_signature of the current turn comes back",
        _GONE,
        V.BREAKS,
        artifacts=_GOOGLE,
        when={T.FIRST_CALL, T.IN_LOOP},
        source="I dayu-agent#45; C google-adk apigee_llm.py",
    ),
    rule(
        "G19",
        "the signature of a text, or of an earlier turn: not validated, and its loss is a loss",
        _GONE,
        V.DEGRADES,
        artifacts=_GOOGLE,
        source="D thought-signatures; C google-adk apigee_llm.py",
    ),
)

_RELAYS: tuple[Rule, ...] = (
    rule(
        "R1",
        "signed text behind a relay comes back as it was",
        {F.MODIFIED, F.MERGED, F.SPLIT, F.DROPPED},
        V.BREAKS,
        artifacts=_READABLE,
        when={T.IN_LOOP},
        source="I ai-sdk-provider#339: blocks cannot be modified",
    ),
    rule(
        "R1",
        "signed text of an earlier turn behind a relay",
        {F.MODIFIED, F.MERGED, F.SPLIT, F.DROPPED},
        V.DEGRADES,
        artifacts=_READABLE,
        source="I ai-sdk-provider#339; not confirmed for earlier turns",
        disputed=True,
    ),
    rule(
        "R2",
        "the id of a detail that the relay gave it: needless, and of no known effect",
        {F.DROPPED, F.MODIFIED},
        V.ALLOWED,
        artifacts=_ID,
        source="S openrouter components: id is optional and may be null",
        disputed=True,
    ),
    rule(
        "R3",
        "an altered or made-up seal is refused by whoever minted it, through any relay",
        {F.MODIFIED, F.FABRICATED},
        V.BREAKS,
        artifacts=_RELAYED,
        source="I inspect_ai#3986, mastra#23433: Corrupted thought signature",
    ),
    rule(
        "R4",
        "seals of another vendor are rightly left behind",
        _GONE,
        V.ALLOWED,
        artifacts=_RELAYED,
        when={T.FOREIGN_TURN},
        source="ours: docs/glossary.md#fates: there they would be foreign",
    ),
    rule(
        "R4",
        "only the upstream that made a seal can read it",
        {F.FOREIGN},
        V.DEGRADES,
        artifacts=_RELAYED,
        source="D openrouter compaction; what the relay does with it is not confirmed",
        disputed=True,
    ),
    rule(
        "R5",
        "the details of a turn under way keep their order, their number and their message",
        _MOVED - {F.MISPLACED},  # where nobody looks for it a seal is lost, not refused
        V.BREAKS,
        artifacts=_RELAYED,
        when={T.IN_LOOP},
        unless={T.GEMINI_2},
        source="I ai-sdk-provider#339: details of parallel calls collected wrongly, refused",
    ),
    rule(
        "R5",
        "the details of any turn keep their order, their number and their place",
        _MOVED,
        V.DEGRADES,
        artifacts=_RELAYED,
        source="I ai-sdk-provider#339",
    ),
    rule(
        "R6",
        "a detail sent more often than it came",
        {F.DUPLICATED},
        V.DEGRADES,
        artifacts=_RELAYED,
        source="I litellm#23047: thinking prepended although already there; relays not confirmed",
        disputed=True,
    ),
    rule(
        "R7",
        "Gemini behind a relay needs the seal of its first call back, as at home",
        _GONE,
        V.BREAKS,
        artifacts=("openrouter.reasoning_details.data",),
        when={T.FIRST_CALL, T.IN_LOOP, T.GEMINI_3},
        source="D thought-signatures; I openrouter-examples#67: refused or a malformed call",
    ),
    rule(
        "R7",
        "the text of Claude's thinking without its signature is refused in a tool loop",
        {F.DROPPED},
        V.BREAKS,
        artifacts=("openrouter.reasoning_details.signature",),
        when={T.FIELD_LOST, T.IN_LOOP},
        source="I ai-sdk-provider#423, forgecode PR 2363 (an explicit null)",
        checked="2026-12-01",
    ),
    rule(
        "R7",
        "reasoning that does not come back is lost in silence",
        _GONE,
        V.DEGRADES,
        artifacts=_RELAYED,
        source="I pi#9534: a chunk with nothing but a signature lost",
    ),
    rule(
        "R8",
        "reasoning whose signature the stream broke off before, or came empty, is left out",
        {F.UNSEALED},
        V.DEGRADES,
        artifacts=_RELAYED,
        source="I litellm PR 38153, forgecode PR 2363: a missing signature breaks Claude",
        disputed=True,
    ),
    rule(
        "R8",
        "a relay may pass on reasoning that nobody sealed",
        {F.NOT_REQUESTED},
        V.ALLOWED,
        artifacts=_RELAYED,
        source="S openrouter components: signature may be null",
        disputed=True,
    ),
)

_ISSUERS: tuple[Rule, ...] = (
    rule(
        "R9",
        "a seal is read where it was made: another platform of the vendor may refuse it",
        {F.ISSUER_CHANGED},
        V.DEGRADES,
        when={T.OTHER_PLATFORM},
        source="D openrouter compaction: the same endpoint; I mastra#23433",
        disputed=True,
    ),
    rule(
        "R9",
        "another credential on the same platform",
        {F.ISSUER_CHANGED},
        V.ALLOWED,
        source="no report of account binding on this wire",
        disputed=True,
    ),
)

RULES: tuple[Rule, ...] = (*_COMMON, *_GOOGLES, *_RELAYS, *_ISSUERS)

IMPOSSIBLE: Final[Mapping[Fate, str]] = {
    F.SERVER_HELD: "nothing refers to state of the server's",
    F.SUPERSEDED: "nobody compacts on this wire",
    F.STALE: "nobody compacts on this wire",
    F.ABSENT_AT_SOURCE: "nothing sealed can be asked for",
    F.ENVELOPE_MODIFIED: "nobody minds further keys of a block",
    F.ORPHANED: "no item needs another by an id of the server's",
}
"""Fates that no rule speaks of because they cannot occur here, and why."""
