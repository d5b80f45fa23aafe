"""What is sealed on the wire of Chat Completions, and beside which of its fields.

Sources: docs/contract/chat.md. Checked 2026-11-30.
"""

from __future__ import annotations

from otel_sealed.contract import Carrier, Field, Gap, Guard, Named, Path, Proof
from otel_sealed.model import Kind, Role

_DETAIL_ID = Field("id", "openrouter.reasoning_details.id", Role.ID)
GOOGLE = "extra_content.google"
BESIDE = "provider_specific_fields"
_MARK = "__thought__"
_DETAILS = "reasoning_details"
_BLOCKS = "thinking_blocks"
_NO_LITELLM = (
    Gap(Guard.MUTATION, "the conversations of the catalogue are Google's and OpenRouter's"),
    Gap(Guard.STRICT, "the strict provider answers as Google and as OpenRouter"),
)
CALL_SEALS = (
    Field(
        "extra_content.google.thought_signature",
        "gemini.tool_call.thought_signature",
        binary=True,
        aliases=("function.thought_signature",),
    ),
    Field(
        f"{BESIDE}.thought_signature",
        "litellm.tool_call.thought_signature",
        binary=True,
        aliases=(f"function.{BESIDE}.thought_signature",),
        hidden=("id", _MARK),
        gaps=_NO_LITELLM,
    ),
)
_OTHERS = frozenset({"type", "id", "index", "extra_content", BESIDE})

CARRIERS = (
    Carrier(
        "reasoning.text",
        Kind.REASONING,
        listed=_DETAILS,
        fields=(
            Field("signature", "openrouter.reasoning_details.signature", named=Named.OPAQUE),
            Field("text", "openrouter.reasoning_details.text", Role.SIGNED),
            _DETAIL_ID,
        ),
        payload=("text",),
        shadows=("text",),
        keys=frozenset({"type", "format", "index"}),
    ),
    Carrier(
        "reasoning.encrypted",
        Kind.REASONING,
        listed=_DETAILS,
        fields=(
            Field(
                "data",
                "openrouter.reasoning_details.data",
                named=Named.NEAR,
                near=("reasoning.encrypted", "reasoning_details"),
            ),
            _DETAIL_ID,
        ),
        keys=frozenset({"type", "format", "index"}),
    ),
    Carrier(
        "reasoning.summary",
        Kind.REASONING,
        listed=_DETAILS,
        payload=("summary",),
        shadows=("summary",),
    ),
    Carrier("reasoning", Kind.REASONING, listed=_DETAILS, payload=("text",)),
    Carrier(
        "thinking",
        Kind.REASONING,
        listed=_BLOCKS,
        fields=(
            Field(
                "signature",
                "litellm.thinking_blocks.signature",
                gaps=_NO_LITELLM,
                named=Named.OPAQUE,
            ),
            Field("thinking", "litellm.thinking_blocks.text", Role.SIGNED),
        ),
        payload=("thinking",),
        shadows=("thinking",),
        keys=frozenset({"type", "cache_control"}),
    ),
    Carrier(
        "redacted_thinking",
        Kind.REASONING,
        listed=_BLOCKS,
        fields=(
            Field(
                "data",
                "litellm.thinking_blocks.data",
                gaps=_NO_LITELLM,
                named=Named.NEAR,
                near=("redacted",),
            ),
        ),
        keys=frozenset({"type", "cache_control"}),
    ),
    Carrier(
        "thought_signature",
        Kind.MARKER,
        fields=(
            Field(
                "thought_signature",
                "gemini.message.thought_signature",
                binary=True,
                gaps=(Gap(Guard.STRICT, "it ends a turn, and G3: none before is verified"),),
            ),
        ),
        keys=frozenset({"thought"}),
    ),
    Carrier(
        "thought_signatures",
        Kind.MARKER,
        fields=(
            Field(
                "thought_signatures.0",
                "litellm.message.thought_signature",
                binary=True,
                gaps=_NO_LITELLM,
            ),
        ),
    ),
    Carrier("text", Kind.TEXT, payload=("text",)),
    Carrier("refusal", Kind.TEXT, payload=("refusal",)),
    *(
        Carrier(
            name,
            Kind.CALL,
            listed="tool_calls",
            fields=CALL_SEALS,
            ids=("id",),
            mark=_MARK,
            payload=(f"{name}.name", f"{name}.{arguments}"),
            keys=_OTHERS,
            label=f"{name}.name",
            arguments=f"{name}.{arguments}",
        )
        for name, arguments in (("function", "arguments"), ("custom", "input"))
    ),
    Carrier(
        "function_call",
        Kind.CALL,
        payload=("name", "arguments"),
        label="name",
        arguments="arguments",
    ),
    Carrier("tool", Kind.RESULT, ids=("tool_call_id",), mark=_MARK, label="name", result="content"),
    Carrier("image_url", Kind.MEDIA),
    Carrier("input_audio", Kind.MEDIA),
    Carrier("file", Kind.MEDIA),
)
BY_TYPE = {carrier.type: carrier for carrier in CARRIERS}

PATHS = (Path(("/chat/completions",), proof=Proof.PATH),)
