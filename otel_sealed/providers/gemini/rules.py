"""Gemini's contract as data, in the order its rules are tried (docs/contract/gemini.md).

A case in which each rule fires, and one in which it does not: tests/core/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_sealed.contract import Rule, rule, undecidable
from otel_sealed.model import Fate, Trait, Verdict

F, T, V = Fate, Trait, Verdict

_SEAL = ("gemini.part.thought_signature",)
_TEXT = ("gemini.part.text",)
_MOVED = frozenset({F.MISPLACED, F.MERGED, F.SPLIT, F.REORDERED, F.RETYPED})
_GONE = frozenset({F.DROPPED, F.SUBSTITUTED})

RULES: tuple[Rule, ...] = (
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
        "G11",
        "a made-up, altered or foreign signature is refused",
        {F.FABRICATED, F.FOREIGN},
        V.BREAKS,
        source="I Antigravity#970",
    ),
    rule(
        "G6",
        "the text of a signed part is not changed, joined or cut",
        {F.MODIFIED, F.MERGED, F.SPLIT, F.DROPPED},
        V.DEGRADES,
        artifacts=_TEXT,
        source="C pydantic models/google.py; I Antigravity-Manager PR 3337",
    ),
    rule(
        "G11",
        "an altered signature is refused",
        {F.MODIFIED},
        V.BREAKS,
        source="I Antigravity#970, Antigravity-Manager PR 3337",
    ),
    rule(
        "G2",
        "copies of the first signature on parallel calls: sources disagree",
        {F.DUPLICATED},
        V.ALLOWED,
        source="I vercel/ai PR 13908, adk-js PR 268, zed PR 63932 against litellm PR 37541",
        disputed=True,
    ),
    rule(
        "G12",
        "a part that is nothing but a signature may be left out on Vertex",
        {F.DROPPED},
        V.ALLOWED,
        when={T.VERTEX, T.SIGNATURE_ONLY},
        source="C pydantic google.py against google-adk _contents.py",
        disputed=True,
    ),
    rule(
        "G11",
        "signatures of another vendor are rightly left behind",
        _GONE,
        V.ALLOWED,
        when={T.FOREIGN_TURN},
        source="ours: docs/glossary.md#fates: there they would be foreign",
    ),
    rule(
        "X7",
        "whole turns left out of the history take their seals with them",
        {F.DROPPED},
        V.ALLOWED,
        when={T.WHOLE_TURN, T.FRONT},
        source="ours: docs/glossary.md#fates: absent with the turn that held it",
    ),
    *(
        rule(
            "G14",
            "two contents in a row for one answer, the later begun by a call without a signature:"
            " whether they are read as one step is not known",
            {F.SPLIT},
            verdict,
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
        when={T.GEMINI_2},
        source="D thought-signatures; I goose PR 6890, rowboat#694",
    ),
    rule(
        "G14",
        "the calls of one step are followed by their responses: a later step without a value on its"
        " first call is refused",
        {F.SPLIT},
        V.BREAKS,
        when={T.ON_CALL, T.IN_LOOP, T.UNSIGNED_STEP},
        source="I community.retellai 785; as G1",
        checked="2026-12-01",
    ),
    rule(
        "G14",
        "a step that begins with a documented dummy, or with another value of ours, is accepted",
        {F.SPLIT},
        V.DEGRADES,
        when={T.ON_CALL, T.IN_LOOP},
        source="M openai-agents over Gemini: answered 200; D thought-signatures (the dummies)",
        checked="2026-12-01",
    ),
    rule(
        "G6",
        "a signature stays on its part, an answer or a thought as it was: elsewhere it is a loss, a"
        " dummy in its place or not",
        {F.MISPLACED, F.RETYPED},
        V.DEGRADES,
        when={T.DUMMY_IN_PLACE},
        source="I rust-genai#299, PR 302",
        checked="2026-12-01",
    ),
    rule(
        "G6",
        "a part of nothing but its signature that gained or lost an empty text: what the API makes"
        " of it is not known",
        {F.RETYPED},
        V.DEGRADES,
        when={T.SIGNATURE_ONLY},
        source="I bifrost#6730: Go leaves out an empty text; C pydantic models/google.py:"
        " Vertex refuses a bare signature; C google-adk keeps it",
        disputed=True,
        checked="2026-12-01",
    ),
    rule(
        "G6",
        "a signature stays on its part: a call of the current turn without it is refused",
        _MOVED,
        V.BREAKS,
        when={T.ON_CALL, T.IN_LOOP},
        source="C pydantic models/google.py; I claude-relay-service PR 967, fantasy PR 298",
    ),
    rule(
        "G6",
        "a signature stays on its part, an answer or a thought as it was: elsewhere it is a loss, a"
        " dummy in its place or not",
        _MOVED,
        V.DEGRADES,
        source="C pydantic models/google.py; C strands-agents 1.62 sends `thought: true`",
        checked="2026-12-01",
    ),
    rule(
        "G1",
        "in every step of the current turn the first call carries its signature",
        _GONE,
        V.BREAKS,
        when={T.FIRST_CALL, T.IN_LOOP},
        source="D thought-signatures; I llm-gemini#119, dify-official-plugins#2088, cline#7974",
    ),
    rule(
        "G7",
        "Vertex does not enforce the signature of an image part",
        _GONE,
        V.DEGRADES,
        when={T.ON_MEDIA, T.VERTEX},
        source="D Vertex thought-signatures",
    ),
    rule(
        "G7",
        "an image part carries its signature",
        _GONE,
        V.BREAKS,
        when={T.ON_MEDIA},
        source="I open_webui_functions#225, dify-official-plugins#2262",
    ),
    rule(
        "G5",
        "a stream may bring the signature in a last part with empty text",
        _GONE,
        V.DEGRADES,
        when={T.EMPTY_TEXT},
        source="I vercel/ai PR 12402; gemini-cli#25808; strands PR 3306",
    ),
    rule(
        "G4",
        "the signature of a text answer is not validated, and its loss is a loss",
        _GONE,
        V.DEGRADES,
        when={T.LAST_TURN},
        source="D thought-signatures",
    ),
    rule(
        "G3",
        "earlier turns are not validated, and their loss is a loss",
        _GONE,
        V.DEGRADES,
        source="D thought-signatures",
    ),
    rule(
        "G10",
        "Developer API and Vertex refuse each other's signatures",
        {F.ISSUER_CHANGED},
        V.BREAKS,
        when={T.OTHER_PLATFORM},
        source="C litellm rejected_thought_signature_retry.py; I gemini-cli#13467",
    ),
    rule(
        "G10",
        "another credential on the same platform",
        {F.ISSUER_CHANGED},
        V.ALLOWED,
        source="no report of account binding",
        disputed=True,
    ),
    undecidable(
        "G13",
        "a function response names the id of its call; server-side tool parts are echoed",
        "ids are anchors here; parts without a seal have no row",
        "S types.py Part.tool_call",
    ),
    undecidable(
        "G15",
        "a 200 can say MISSING_THOUGHT_SIGNATURE",
        "it is the provider's verdict, not a fate: recorded as rejected with its class",
        "S types.py",
    ),
    undecidable(
        "G16",
        "Vertex validates signatures when a cache is created",
        "cachedContent calls are not exchanges of a conversation",
        "C litellm",
    ),
    undecidable(
        "G18",
        "a continuation token lives for one call chain; the SDK resumes by itself",
        "never in the hands of the host",
        "S types.py, chats.py",
    ),
)

IMPOSSIBLE: Final[Mapping[Fate, str]] = {
    F.SERVER_HELD: "nothing refers to state of the server's",
    F.SUPERSEDED: "nobody compacts on this wire",
    F.STALE: "nobody compacts on this wire",
    F.UNSEALED: "a signature comes whole, on a part that is no thought",
    F.NOT_REQUESTED: "nobody asks for signatures: they come by themselves",
    F.ABSENT_AT_SOURCE: "nothing sealed can be asked for",
    F.ENVELOPE_MODIFIED: "nobody minds further keys of a part",
    F.ORPHANED: "no part needs another by an id of the server's",
}
"""Fates that no rule speaks of because they cannot occur here, and why."""
