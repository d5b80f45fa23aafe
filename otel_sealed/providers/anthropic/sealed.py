"""What is sealed in the Messages API of Anthropic, and in which blocks.

Sources: docs/contract/anthropic.md. Checked 2026-11-29.
"""

from __future__ import annotations

from otel_sealed.contract import Carrier, Field, Gap, Guard, Named, Path, Proof
from otel_sealed.model import Kind, Role

_THINKING_KEYS = frozenset({"type"})
_NEVER_COMPACTED = Gap(Guard.STRICT, "the script of the strict provider never compacts")
_NO_SERVER_TOOLS = (
    Gap(Guard.MUTATION, "the conversations of the catalogue use no tool of the server's"),
    Gap(Guard.STRICT, "the script of the strict provider uses no tool of the server's"),
)
CARRIERS = (
    Carrier(
        "thinking",
        Kind.REASONING,
        fields=(
            Field("signature", "anthropic.thinking.signature", named=Named.OPAQUE),
            Field("thinking", "anthropic.thinking.text", Role.SIGNED),
        ),
        payload=("thinking",),
        shadows=("thinking",),
        keys=_THINKING_KEYS,
        envelope="anthropic.thinking.envelope",
    ),
    Carrier(
        "redacted_thinking",
        Kind.REASONING,
        fields=(
            Field("data", "anthropic.redacted_thinking.data", named=Named.NEAR, near=("redacted",)),
        ),
        keys=_THINKING_KEYS,
        envelope="anthropic.redacted_thinking.envelope",
    ),
    Carrier(
        "compaction",
        Kind.COMPACTION,
        fields=(
            Field(
                "encrypted_content",
                "anthropic.compaction.encrypted_content",
                gaps=(_NEVER_COMPACTED,),
            ),
            Field(
                "signature",
                "anthropic.compaction.signature",
                gaps=(
                    Gap(Guard.MUTATION, "no host is known that spoils a signed compaction"),
                    _NEVER_COMPACTED,
                ),
                named=Named.OPAQUE,
            ),
            Field("content", "anthropic.compaction.text", Role.SIGNED),
        ),
        payload=("content",),
        shadows=("content",),
    ),
    Carrier("text", Kind.TEXT, payload=("text",), children=("citations",)),
    *(
        Carrier(
            name,
            Kind.CALL,
            ids=("id",),
            payload=("name", "input"),
            label="name",
            arguments="input",
        )
        for name in ("tool_use", "server_tool_use", "mcp_tool_use")
    ),
    Carrier("tool_result", Kind.RESULT, ids=("tool_use_id",), result="content", failed="is_error"),
    Carrier("mcp_tool_result", Kind.RESULT, ids=("tool_use_id",)),
    *(
        Carrier(name, Kind.RESULT, ids=("tool_use_id",), children=("content",))
        for name in (
            "web_search_tool_result",
            "web_fetch_tool_result",
            "code_execution_tool_result",
            "bash_code_execution_tool_result",
            "text_editor_code_execution_tool_result",
            "advisor_tool_result",
            "tool_search_tool_result",
        )
    ),
    Carrier(
        "web_search_result",
        Kind.RESULT,
        nested=True,
        fields=(
            Field(
                "encrypted_content",
                "anthropic.web_search_result.encrypted_content",
                gaps=_NO_SERVER_TOOLS,
            ),
        ),
        payload=("url",),
    ),
    Carrier(
        "web_search_result_location",
        Kind.RESULT,
        nested=True,
        fields=(
            Field("encrypted_index", "anthropic.citation.encrypted_index", gaps=_NO_SERVER_TOOLS),
        ),
        payload=("url", "cited_text"),
    ),
    Carrier(
        "encrypted_code_execution_result",
        Kind.RESULT,
        nested=True,
        fields=(
            Field(
                "encrypted_stdout",
                "anthropic.encrypted_code_execution_result.encrypted_stdout",
                gaps=_NO_SERVER_TOOLS,
            ),
        ),
    ),
    Carrier(
        "advisor_redacted_result",
        Kind.RESULT,
        nested=True,
        fields=(
            Field(
                "encrypted_content",
                "anthropic.advisor_redacted_result.encrypted_content",
                gaps=_NO_SERVER_TOOLS,
            ),
        ),
    ),
    Carrier("fallback", Kind.MARKER),
    Carrier("image", Kind.MEDIA),
    Carrier("document", Kind.MEDIA),
    Carrier("container_upload", Kind.MEDIA),
)
BY_TYPE = {carrier.type: carrier for carrier in CARRIERS}

PATHS = (
    Path(("/messages",), proof=Proof.BODY, gateway="/v1/messages"),
    Path(("/messages/count_tokens",), "count_tokens", sends=False),
    Path((":rawPredict", ":streamRawPredict"), under="/models/", proof=Proof.BODY),
    Path(("/invoke", "/invoke-with-response-stream"), under="/model/", proof=Proof.BODY),
)
