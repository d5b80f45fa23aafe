"""What is sealed in generateContent of Gemini: a signature on a part of any kind.

Sources: docs/contract/gemini.md. Checked 2026-11-29.
"""

from __future__ import annotations

from otel_sealed.contract import Carrier, Field, Path, Proof
from otel_sealed.model import Kind, Role

_SIGNATURE = Field(
    "thoughtSignature",
    "gemini.part.thought_signature",
    binary=True,
    aliases=("thought_signature",),
)
_TEXT = Field("text", "gemini.part.text", Role.SIGNED)

CARRIERS = (
    Carrier("text", Kind.TEXT, fields=(_SIGNATURE, _TEXT), payload=("text",)),
    Carrier(
        "signed_thought",
        Kind.TEXT,
        fields=(_SIGNATURE, _TEXT),
        payload=("text",),
        shadows=("text",),
    ),
    Carrier("thought", Kind.REASONING, payload=("text",), shadows=("text",)),
    Carrier(
        "function_call",
        Kind.CALL,
        fields=(_SIGNATURE,),
        ids=("functionCall.id", "function_call.id"),
        payload=("functionCall.name", "functionCall.args"),
        label="functionCall.name",
        arguments="functionCall.args",
    ),
    Carrier(
        "tool_call",
        Kind.CALL,
        fields=(_SIGNATURE,),
        ids=("toolCall.id",),
        payload=("toolCall",),
    ),
    Carrier("tool_response", Kind.RESULT, fields=(_SIGNATURE,), ids=("toolResponse.id",)),
    Carrier(
        "function_response",
        Kind.RESULT,
        ids=("functionResponse.id", "function_response.id"),
        label="functionResponse.name",
        result="functionResponse.response",
        failed="functionResponse.response.error",
    ),
    Carrier("inline_data", Kind.MEDIA, fields=(_SIGNATURE,)),
    Carrier("file_data", Kind.MEDIA, fields=(_SIGNATURE,)),
    Carrier("executable_code", Kind.CALL, fields=(_SIGNATURE,), payload=("executableCode.code",)),
    Carrier("code_execution_result", Kind.RESULT, fields=(_SIGNATURE,)),
    Carrier("signature", Kind.MARKER, fields=(_SIGNATURE,)),
)
BY_TYPE = {carrier.type: carrier for carrier in CARRIERS}

PATHS = (
    Path((":generateContent", ":streamGenerateContent"), proof=Proof.PATH),
    Path((":countTokens",), "countTokens", sends=False),
)
