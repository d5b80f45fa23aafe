"""What is sealed in the Responses API of OpenAI, and in which items.

Sources: docs/contract/openai.md. Checked 2026-11-29.
"""

from __future__ import annotations

from otel_sealed.contract import Carrier, Field, Gap, Guard, Named, Path
from otel_sealed.model import Kind, Role

_PASSED = frozenset({"internal_chat_message_metadata_passthrough"})
TOOL_OUTPUTS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "computer_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "mcp_approval_response",
        "tool_search_output",
        "program_output",
    }
)
_NOT_PLAYED = (
    Gap(Guard.MUTATION, "the conversations of the catalogue have none: no recording is public"),
    Gap(Guard.STRICT, "the script of the strict provider has none: no recording is public"),
)

# A call of ours is known by its `call_id`, too; one of a hosted tool has an `id` alone (O3).
_CALLED = ("call_id", "id")
_BY_ID = ("id",)

CARRIERS = (
    Carrier(
        "reasoning",
        Kind.REASONING,
        fields=(
            Field("encrypted_content", "openai.reasoning.encrypted_content"),
            Field("id", "openai.reasoning.id", Role.ID),
            Field("summary", "openai.reasoning.envelope", Role.ECHO),
        ),
        ids=("id",),
        server_id="id",
        transient="rs_tmp",
        shadows=("summary", "content"),
        keys=frozenset({"type"}),
        hollow=frozenset({"content"}),
        filled=frozenset({"status", "created_by"}),
        envelope="openai.reasoning.envelope",
        passed=_PASSED,
        paired=True,
        orphan="openai.reasoning",
    ),
    Carrier(
        "compaction",
        Kind.COMPACTION,
        fields=(
            Field("encrypted_content", "openai.compaction.encrypted_content"),
            Field("id", "openai.compaction.id", Role.ID),
        ),
        ids=("id",),
        server_id="id",
        keys=frozenset({"type", "created_by", "status"}),
        envelope="openai.compaction.envelope",
        passed=_PASSED,
    ),
    Carrier(
        "message",
        Kind.TEXT,
        fields=(Field("phase", "openai.message.phase", Role.ECHO),),
        ids=("id",),
        server_id="id",
        payload=("content",),
        paired_by_id=True,
        orphan="openai.message",
    ),
    Carrier(
        "program",
        Kind.OTHER,
        fields=(
            Field(
                "fingerprint",
                "openai.program.fingerprint",
                gaps=(
                    Gap(Guard.DROPPED, "no source says what becomes of a program without it"),
                    *_NOT_PLAYED,
                ),
                named=Named.NEVER,
            ),
            Field("code", "openai.program.code", Role.SIGNED),
        ),
        ids=("call_id",),
    ),
    Carrier("agent_message", Kind.OTHER, ids=("id",), children=("content",)),
    Carrier(
        "encrypted_content",
        Kind.OTHER,
        nested=True,
        fields=(
            Field(
                "encrypted_content",
                "openai.agent_message.encrypted_content",
                gaps=_NOT_PLAYED,
            ),
        ),
    ),
    *(
        Carrier(
            name,
            Kind.CALL,
            ids=ids,
            server_id="id",
            payload=payload,
            paired_by_id=ids == _BY_ID,
            orphan=f"openai.{name}",
            label="name",
            arguments=payload[-1] if payload else "",
        )
        for name, ids, payload in (
            ("function_call", _CALLED, ("name", "arguments")),
            ("custom_tool_call", _CALLED, ("name", "input")),
            ("computer_call", _CALLED, ("action",)),
            ("local_shell_call", _CALLED, ("action",)),
            ("shell_call", _CALLED, ("action",)),
            ("apply_patch_call", _CALLED, ("operation",)),
            ("tool_search_call", _CALLED, ("arguments",)),
            ("web_search_call", _BY_ID, ("action",)),
            ("file_search_call", _BY_ID, ("queries",)),
            ("code_interpreter_call", _BY_ID, ("code",)),
            ("mcp_call", _BY_ID, ("name", "arguments")),
            ("mcp_approval_request", _BY_ID, ("name", "arguments")),
            ("image_generation_call", _BY_ID, ()),
        )
    ),
    *(
        Carrier(name, Kind.RESULT, ids=("call_id",), result="output")
        for name in sorted(TOOL_OUTPUTS)
    ),
    Carrier("output_text", Kind.TEXT, payload=("text",)),
    Carrier("input_text", Kind.TEXT, payload=("text",)),
    Carrier("item_reference", Kind.MARKER, ids=("id",), server_id="id"),
    Carrier("mcp_list_tools", Kind.OTHER, ids=("id",)),
    Carrier("compaction_trigger", Kind.MARKER),
    Carrier("additional_tools", Kind.OTHER),
    Carrier("configuration_update", Kind.OTHER),
)
BY_TYPE = {carrier.type: carrier for carrier in CARRIERS}

PATHS = (
    Path(("/responses",), gateway="/v1/responses"),
    Path(("/responses/compact",), "compact", gateway="/v1/responses/compact"),
    Path(("/responses/input_tokens",), "input_tokens", sends=False),
)
