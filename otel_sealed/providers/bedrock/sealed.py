"""What is sealed in the Converse API of Bedrock, and in which blocks.

A block of this wire has no type: its one key says what it is. Sources: docs/contract/bedrock.md.
Checked 2026-12-01.
"""

from __future__ import annotations

from otel_sealed.contract import Carrier, Field, Gap, Guard, Named, Path, Proof
from otel_sealed.model import Kind, Role

_NOT_PLAYED = (
    Gap(Guard.MUTATION, "what hosts do to Claude's blocks is played on the wire of Messages"),
    Gap(Guard.STRICT, "the strict provider does not speak this wire"),
)
_KEYS = frozenset({"reasoningContent"})

REASONING = "reasoning_text"
REDACTED = "redacted_content"
CARRIERS = (
    Carrier(
        REASONING,
        Kind.REASONING,
        fields=(
            Field(
                "reasoningContent.reasoningText.signature",
                "bedrock.reasoning_text.signature",
                gaps=_NOT_PLAYED,
                named=Named.OPAQUE,
            ),
            Field(
                "reasoningContent.reasoningText.text", "bedrock.reasoning_text.text", Role.SIGNED
            ),
        ),
        payload=("reasoningContent.reasoningText.text",),
        shadows=("reasoningContent.reasoningText.text",),
        keys=_KEYS,
    ),
    Carrier(
        REDACTED,
        Kind.REASONING,
        fields=(
            Field(
                "reasoningContent.redactedContent",
                "bedrock.redacted_content",
                binary=True,
                gaps=_NOT_PLAYED,
            ),
        ),
        keys=_KEYS,
    ),
    Carrier("text", Kind.TEXT, payload=("text",)),
    Carrier(
        "citations", Kind.TEXT, payload=("citationsContent.content",), keys=frozenset({"text"})
    ),
    Carrier(
        "tool_use",
        Kind.CALL,
        ids=("toolUse.toolUseId",),
        payload=("toolUse.name", "toolUse.input"),
        label="toolUse.name",
        arguments="toolUse.input",
    ),
    Carrier(
        "tool_result",
        Kind.RESULT,
        ids=("toolResult.toolUseId",),
        result="toolResult.content",
        failed="toolResult.status",
    ),
    Carrier("cache_point", Kind.OTHER),
    Carrier("image", Kind.MEDIA),
    Carrier("document", Kind.MEDIA),
    Carrier("video", Kind.MEDIA),
)
BY_TYPE = {carrier.type: carrier for carrier in CARRIERS}
BY_KEY = {
    "text": "text",
    "citationsContent": "citations",
    "toolUse": "tool_use",
    "toolResult": "tool_result",
    "cachePoint": "cache_point",
    "image": "image",
    "document": "document",
    "video": "video",
}
"""The type of a block, by its key; reasoning is looked into."""

PATHS = (Path(("/converse", "/converse-stream"), under="/model/", proof=Proof.PATH),)
