"""What is sealed in the Interactions API of Gemini, and in which steps.

Sources: docs/contract/interactions.md. Checked 2026-11-29.
"""

from __future__ import annotations

from otel_sealed.contract import Carrier, Field, Gap, Guard, Named, Path
from otel_sealed.model import Kind

_SIGNED_STEPS = (
    "code_execution",
    "file_search",
    "google_search",
    "google_maps",
    "url_context",
    "retrieval",
    "tool_search",
    "processing",
    "mcp_server_tool",
)
_NOT_PLAYED = (
    Gap(Guard.MUTATION, "no host is known that spoils a step"),
    Gap(Guard.STRICT, "the strict provider does not speak this wire: what the API refuses is open"),
)
_STEP = Field("signature", "interactions.step.signature", gaps=_NOT_PLAYED, named=Named.OPAQUE)

CARRIERS = (
    Carrier(
        "thought",
        Kind.REASONING,
        fields=(
            Field(
                "signature", "interactions.thought.signature", gaps=_NOT_PLAYED, named=Named.OPAQUE
            ),
        ),
        shadows=("summary",),
        keys=frozenset({"type", "summary"}),
    ),
    Carrier("model_output", Kind.TEXT, payload=("content",)),
    Carrier("text", Kind.TEXT, payload=("text",)),
    Carrier("user_input", Kind.OTHER),
    Carrier(
        "function_call",
        Kind.CALL,
        fields=(_STEP,),
        ids=("id",),
        payload=("name", "arguments"),
        label="name",
        arguments="arguments",
    ),
    Carrier(
        "function_result",
        Kind.RESULT,
        ids=("call_id",),
        label="name",
        result="result",
        failed="is_error",
    ),
    *(
        carrier
        for name in _SIGNED_STEPS
        for carrier in (
            Carrier(f"{name}_call", Kind.CALL, fields=(_STEP,), ids=("id",)),
            Carrier(f"{name}_result", Kind.OTHER, fields=(_STEP,), ids=("call_id",)),
        )
    ),
)
BY_TYPE = {carrier.type: carrier for carrier in CARRIERS}

PATHS = (Path(("/interactions",)),)
