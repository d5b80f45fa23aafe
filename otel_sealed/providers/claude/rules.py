"""Anthropic's contract as data: rules A1–A33 in the order they are tried.

The first rule that fits a finding gives its verdict. Why each is there: docs/contract/anthropic.md.

A case in which each rule fires, and one in which it does not: tests/core/test_rules.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from otel_sealed.contract import Rule, rule, undecidable
from otel_sealed.model import Fate, Trait, Verdict

F, T, V = Fate, Trait, Verdict

_SEALS = ("anthropic.thinking.signature", "anthropic.redacted_thinking")
_COMPACTION = ("anthropic.compaction",)
_SEARCH = ("anthropic.web_search_result", "anthropic.citation")
_STDOUT = ("anthropic.encrypted_code_execution_result",)
_ADVISOR = ("anthropic.advisor_redacted_result",)
_BOUND_RESULTS = (*_SEARCH, *_STDOUT, *_ADVISOR)

_GONE = frozenset({F.DROPPED, F.SUBSTITUTED})
_BENT = frozenset({F.REORDERED, F.MERGED, F.SPLIT, F.MISPLACED, F.RETYPED, F.DUPLICATED})
_CHANGED = frozenset({F.MODIFIED, *_BENT})


RULES: tuple[Rule, ...] = (
    rule(
        "A31",
        "a continued thread sends only new messages; the server holds the sealed blocks",
        {F.SERVER_HELD},
        V.ALLOWED,
        source="S types/thread_*_error.py; D message-threads",
    ),
    rule(
        "A31",
        "a continued thread that also replays what the server holds carries it twice",
        {F.DUPLICATED},
        V.DEGRADES,
        when={T.SERVER_STATE},
        source="D message-threads",
        disputed=True,
    ),
    rule(
        "A24",
        "messages before the compaction block may go",
        {F.SUPERSEDED},
        V.ALLOWED,
        source="S beta_compaction_block.py; D skills SKILL.md",
    ),
    rule(
        "A18",
        "a block minted by another vendor may not be shipped as thinking",
        {F.FOREIGN, F.FABRICATED},
        V.BREAKS,
        source="I CLIProxyAPI PR 570; copilot-api#378",
    ),
    rule(
        "A3",
        "a signature must be non-empty; a block cut before its signature is refused when replayed",
        {F.UNSEALED, F.NOT_REQUESTED},
        V.BREAKS,
        source="I pi#2063, oh-my-pi PR 333, bifrost#5638; M",
    ),
    rule(
        "A3",
        "a block of thinking may go, but not its sealed field alone: that is required",
        {F.DROPPED},
        V.BREAKS,
        artifacts=_SEALS,
        when={T.FIELD_LOST},
        source="S thinking_block_param.py; I dirge#821, brainlid/langchain PR 587, openclaw#91501",
    ),
    rule(
        "A24",
        "a failed compaction (null content) is a no-op and may be left out",
        {F.DROPPED},
        V.ALLOWED,
        artifacts=_COMPACTION,
        when={T.FAILED_COMPACTION},
        source="S beta_compaction_block.py",
    ),
    rule(
        "A25",
        "a signed compaction block comes back unchanged, first and alone",
        {F.MODIFIED, F.DROPPED, *_BENT},
        V.BREAKS,
        artifacts=("anthropic.compaction.text",),
        when={T.SIGNED_COMPACTION},
        source="S types/compaction_*_error.py; D compaction-on-demand",
    ),
    rule(
        "A25",
        "a signed compaction block comes back with its signature, or not at all",
        {F.DROPPED},
        V.BREAKS,
        artifacts=_COMPACTION,
        when={T.SIGNED_COMPACTION, T.FIELD_LOST},
        source="S types/compaction_*_error.py; I vercel/ai#21263",
    ),
    rule(
        "A25",
        "a signed compaction block comes back unchanged, first and alone",
        _CHANGED,
        V.BREAKS,
        artifacts=_COMPACTION,
        when={T.SIGNED_COMPACTION},
        source="S types/compaction_*_error.py; D compaction-on-demand",
    ),
    rule(
        "A24",
        "the latest compaction block is round-tripped verbatim; its text alone loses the state",
        {*_GONE, *_CHANGED, F.STALE, F.ABSENT_AT_SOURCE},
        V.DEGRADES,
        artifacts=_COMPACTION,
        source="S beta_compaction_block.py; D skills SKILL.md",
    ),
    *(
        rule(
            id_,
            "the sealed field is required when the block is sent back",
            {F.DROPPED},
            V.BREAKS,
            artifacts=artifacts,
            when={T.FIELD_LOST},
            source=source,
        )
        for id_, artifacts, source in (
            ("A26", _SEARCH, "S web_search_result_block_param.py"),
            ("A27", _STDOUT, "S encrypted_code_execution_result_block_param.py"),
            ("A28", _ADVISOR, "S beta_advisor_redacted_result_block_param.py"),
        )
    ),
    rule(
        "X7",
        "whole turns left out of the history take their seals with them",
        {F.DROPPED},
        V.ALLOWED,
        artifacts=_BOUND_RESULTS,
        when={T.WHOLE_TURN},
        source="ours: docs/glossary.md#fates: absent with the turn that held it",
    ),
    *(
        rule(
            id_,
            "a lost or changed result is accepted and its memory is gone",
            {*_GONE, *_CHANGED},
            V.DEGRADES,
            artifacts=artifacts,
            source=source,
            disputed=True,
        )
        for id_, artifacts, source in (
            ("A26", _SEARCH, "S web_search_result_block_param.py"),
            ("A27", _STDOUT, "S encrypted_code_execution_result_block_param.py"),
            ("A28", _ADVISOR, "S beta_advisor_redacted_result_block_param.py"),
        )
    ),
    rule(
        "A3",
        "a block of thinking in pieces is refused: each of them needs a signature of its own",
        {F.SPLIT},
        V.BREAKS,
        artifacts=("anthropic.thinking", "anthropic.redacted_thinking"),
        when={T.UNSIGNED_PART},
        source="S thinking_block_param.py: the signature is required; I pi#2063",
        checked="2026-12-01",
    ),
    rule(
        "A6",
        "the signed text must come back as it was (documented; live tests saw edits accepted)",
        {F.MODIFIED, F.MERGED, F.SPLIT},
        V.DEGRADES,
        artifacts=("anthropic.thinking.text",),
        source="S thinking_block_param.py; I openclaw#24612 against PR 70437, codex2api PR 613",
        disputed=True,
    ),
    rule(
        "A7",
        "a thinking block keeps its text key, empty or not",
        {F.DROPPED},
        V.BREAKS,
        artifacts=("anthropic.thinking.text",),
        source="S thinking_block_param.py; I langchain#38638, #38977",
    ),
    rule(
        "A30",
        "a thinking block takes no further keys, cache markers included",
        {F.ENVELOPE_MODIFIED},
        V.BREAKS,
        source="S thinking_block_param.py; I inspect_ai PR 3967, gbrain#5326, gproxy#67",
    ),
    rule(
        "A15",
        "a block that this vendor or this model cannot read is rightly left behind",
        _GONE,
        V.ALLOWED,
        when={T.FOREIGN_TURN},
        source="D preserved-thinking",
    ),
    *(
        rule(
            "A9",
            "with thinking disabled, or off by default, the last message of the model may not hold"
            " thinking",
            {F.INTACT},
            V.BREAKS,
            artifacts=_SEALS,
            when={T.THINKING_DISABLED, where},
            source="I forgecode#1853, openclaw#92360, litellm#18926, promptfoo PR 10631",
            checked="2026-12-01",
        )
        for where in (T.IN_LOOP, T.AT_END)
    ),
    rule(
        "A9",
        "with thinking off, thinking blocks are left out",
        _GONE,
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.THINKING_OFF},
        source="I forgecode#1853",
    ),
    *(
        rule(
            "A21",
            "a paused turn is sent back as it is until it was continued and is over",
            {F.DROPPED, F.SUBSTITUTED, *_CHANGED},
            V.BREAKS,
            artifacts=_SEALS,
            when={T.PAUSED, where},
            source="S beta_message.py",
        )
        for where in (T.IN_LOOP, T.LAST_TURN)
    ),
    rule(
        "A21",
        "a refused or truncated turn may be left out",
        _GONE,
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.REFUSED},
        source="S beta_refusal_stop_details.py",
    ),
    rule(
        "A21",
        "a refused or truncated turn may be left out",
        _GONE,
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.TRUNCATED},
        source="S beta_message.py",
    ),
    rule(
        "A20",
        "thinking before the last fallback of its turn may be left out",
        {F.DROPPED},
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.BEFORE_FALLBACK},
        source="S beta_fallback_block_param.py",
    ),
    rule(
        "A20",
        "without the fallback block two runs of thinking merge and are refused",
        {F.MERGED},
        V.BREAKS,
        artifacts=_SEALS,
        when={T.AT_FALLBACK},
        source="S beta_fallback_block_param.py",
    ),
    rule(
        "A15",
        "this model does not read blocks of the model that minted them: dropped with HTTP 200",
        {F.INTACT},
        V.DEGRADES,
        artifacts=_SEALS,
        when={T.UNREADABLE_MODEL},
        source="D preserved-thinking; D AWS claude-messages-thinking-block-binding",
    ),
    rule(
        "A15",
        "a block that this vendor or this model cannot read is rightly left behind",
        _GONE,
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.UNREADABLE_MODEL},
        source="D preserved-thinking",
    ),
    rule(
        "A13",
        "leaving out all thinking from a point on, or from the front, is accepted: the way out of a"
        " changed prefix, also in the tool loop",
        _GONE,
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.IN_LOOP, T.ADAPTIVE, T.BARE_TURN, T.BINDING, T.OTHER_PREFIX},
        unless={T.GAP},
        source="D fix-bound page; I litellm#42551: the retry without thinking is answered 200",
        checked="2026-12-01",
    ),
    *(
        rule(
            "A1",
            "where thinking is adaptive a turn of the tool loop may come without any of its"
            " thinking: accepted, and its reasoning is lost",
            _GONE,
            V.DEGRADES,
            artifacts=_SEALS,
            when={T.IN_LOOP, T.ADAPTIVE, T.BARE_TURN, *binding},
            unless=unless,
            source="D adaptive-thinking, validation changes; M ellmer recordings on sonnet-5;"
            " I codex2api PR 613",
            checked="2026-12-01",
        )
        for binding, unless in (((), {T.BINDING}), ((T.BINDING,), {T.GAP}))
    ),
    rule(
        "A2",
        "redacted thinking is a reasoning block like any other and comes back in the tool loop",
        {F.DROPPED, F.SUBSTITUTED, *_CHANGED},
        V.BREAKS,
        artifacts=("anthropic.redacted_thinking",),
        when={T.IN_LOOP},
        source="S redacted_thinking_block_param.py; I litellm#9058",
    ),
    rule(
        "A5",
        "inside the tool loop the interleaving of blocks is kept",
        {F.REORDERED, F.MERGED, F.SPLIT},
        V.BREAKS,
        artifacts=_SEALS,
        when={T.IN_LOOP},
        source="I strands#1698, PR 1848; classmethod write-up on Bedrock",
    ),
    rule(
        "A1",
        "the thinking of the assistant turn that a tool loop continues comes back as produced",
        {F.DROPPED, F.SUBSTITUTED, *_BENT},
        V.BREAKS,
        artifacts=_SEALS,
        when={T.IN_LOOP},
        source="S thinking_block_param.py; I claude-code#19539, openclaw#25347, opencode#3077",
    ),
    rule(
        "A6",
        "the signature of another block, in a turn that is over: it is a genuine one, and a live"
        " test saw it accepted",
        {F.MODIFIED},
        V.DEGRADES,
        artifacts=("anthropic.thinking.signature",),
        when={T.SWAPPED},
        unless={T.IN_LOOP, T.AT_END, T.BINDING},
        source="I codex2api PR 613: a signature of another conversation passed, on Opus 5",
        disputed=True,
        checked="2026-12-01",
    ),
    rule(
        "A1",
        "an altered or forged signature is refused wherever it is",
        {F.MODIFIED},
        V.BREAKS,
        artifacts=_SEALS,
        source="S thinking_block_param.py; I codex2api PR 613, openclaw#108443, headroom PR 3135",
        checked="2026-12-01",
    ),
    rule(
        "A11",
        "an assistant turn may not end in thinking; trailing thinking is rightly cut off",
        {F.DROPPED},
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.TRAILING},
        source="S lib/middleware/_fallbacks.py",
    ),
    rule(
        "A12",
        "on models that check the prefix a block left out between others voids what follows",
        {F.DROPPED, F.SUBSTITUTED, *_BENT},
        V.BREAKS,
        artifacts=_SEALS,
        when={T.BINDING, T.GAP},
        source="D prefix-checks, fix-bound-to-a-different-conversation",
    ),
    rule(
        "A13",
        "leaving out all thinking from a point on, or from the front, is accepted: the way out of a"
        " changed prefix, also in the tool loop",
        {F.DROPPED},
        V.ALLOWED,
        artifacts=_SEALS,
        when={T.BINDING},
        source="D fix-bound page; D preserved-thinking",
    ),
    rule(
        "A8",
        "thinking of finished turns may be left out",
        {F.DROPPED},
        V.ALLOWED,
        artifacts=_SEALS,
        source="D AWS thinking-encryption; D context-editing",
    ),
    rule(
        "A8",
        "reasoning put back as ordinary text is read, and imitated, as an answer",
        {F.SUBSTITUTED},
        V.DEGRADES,
        artifacts=_SEALS,
        source="I pydantic-ai#5869, open-code-review#811",
    ),
    rule(
        "A5",
        "a signature is not read as the data of a redacted block, nor that as one",
        {F.RETYPED},
        V.BREAKS,
        artifacts=_SEALS,
        source="I microsoft/vscode PR 320196; I entireio/cli PR 1866: checked on every block",
    ),
    rule(
        "A5",
        "blocks of finished turns keep their order, boundaries and type, or go as a whole",
        {*_BENT},
        V.DEGRADES,
        artifacts=_SEALS,
        source="S thinking_block_param.py",
    ),
    rule(
        "A12",
        "what stands before a thinking block may not change on this model (all accounts)",
        {F.PREFIX_CHANGED},
        V.BREAKS,
        when={T.BINDING_ALWAYS},
        unless={T.DROPS_BLOCK},
        source="D prefix-checks; I headroom PR 3135: other models answer 200 after any such edit",
        checked="2026-12-01",
    ),
    rule(
        "A12",
        "a block that the request itself asks to be dropped after a change is no loss",
        {F.PREFIX_CHANGED},
        V.ALLOWED,
        when={T.BINDING, T.DROPS_BLOCK},
        source="D prefix-checks: prefix_mismatch_behavior drop_block",
    ),
    rule(
        "A12",
        "what stands before a thinking block may not change on this model: refused, or dropped"
        " silently, as the account is set",
        {F.PREFIX_CHANGED},
        V.DEGRADES,
        when={T.BINDING},
        source="D prefix-checks; I pydantic-ai PR 7989",
    ),
    rule(
        "A16",
        "blocks of this model are tied to the account: removed elsewhere with HTTP 200",
        {F.ISSUER_CHANGED},
        V.DEGRADES,
        when={T.OTHER_ACCOUNT, T.ACCOUNT_BOUND},
        source="D whats-new-haiku-5-5; D AWS page",
    ),
    rule(
        "A17",
        "Claude signatures verify on every platform alike",
        {F.ISSUER_CHANGED},
        V.ALLOWED,
        source="C pydantic providers/anthropic.py; I Antigravity#498 against it",
        disputed=True,
    ),
    undecidable(
        "A4",
        "a stream brings the signature in one delta before the block stops",
        "a statement about streams: what it means for a replay is A3",
        "S signature_delta.py; I bifrost#5638",
    ),
    undecidable(
        "A10",
        "thinking turned on inside a loop asks for blocks that never existed",
        "no artifact exists to have a row; the refusal is classed thinking_missing",
        "I claude-code; API message",
    ),
    undecidable(
        "A14",
        "block_binding needs its beta on every request",
        "a configuration fault, not a fate of an artifact",
        "C pydantic",
    ),
    undecidable(
        "A19",
        "text between tool calls may come as thinking; connector_text has no type",
        "blocks of unknown type are read by their keys and judged under X1",
        "D whats-new opus-5-5; S beta_message.py",
    ),
    undecidable(
        "A22",
        "a fallback credit token claims the same body again",
        "a one-shot token: whether the body is the same is not kept",
        "S beta_refusal_stop_details.py",
    ),
    undecidable(
        "A23",
        "context editing happens on the server; the client keeps everything",
        "what the server edits is not seen; the client's own deletions fall under A1–A13",
        "D context-editing",
    ),
    undecidable(
        "A29",
        "tool search results are references, not sealed",
        "nothing sealed",
        "S tool_search types",
    ),
    undecidable(
        "A32",
        "a batch entry follows the rules of a single call",
        "no rule of its own",
        "D skills",
    ),
    undecidable(
        "A33",
        "system messages appended at the end do not break the prefix",
        "the prefix is compared up to the block only, so appending never shows",
        "D prefix-checks",
    ),
)

IMPOSSIBLE: Final[Mapping[Fate, str]] = {
    F.ORPHANED: "blocks have no ids of the server's by which one needs another",
}
"""Fates that no rule speaks of because they cannot occur here, and why."""
