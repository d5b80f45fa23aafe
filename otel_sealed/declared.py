"""What the dialects declare, as names.

Written by `python -m docs.generate`, not by hand. A sealed field is declared in `sealed.py` of
its dialect; what is below the dialects has its name from here. `tests/declared` fails where this is
not what they declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SEALS: Final = frozenset(
    {
        "anthropic.advisor_redacted_result.encrypted_content",
        "anthropic.citation.encrypted_index",
        "anthropic.compaction.encrypted_content",
        "anthropic.compaction.signature",
        "anthropic.encrypted_code_execution_result.encrypted_stdout",
        "anthropic.redacted_thinking.data",
        "anthropic.thinking.signature",
        "anthropic.web_search_result.encrypted_content",
        "bedrock.reasoning_text.signature",
        "bedrock.redacted_content",
        "gemini.message.thought_signature",
        "gemini.part.thought_signature",
        "gemini.tool_call.thought_signature",
        "interactions.step.signature",
        "interactions.thought.signature",
        "litellm.message.thought_signature",
        "litellm.thinking_blocks.data",
        "litellm.thinking_blocks.signature",
        "litellm.tool_call.thought_signature",
        "openai.agent_message.encrypted_content",
        "openai.compaction.encrypted_content",
        "openai.program.fingerprint",
        "openai.reasoning.encrypted_content",
        "openrouter.reasoning_details.data",
        "openrouter.reasoning_details.signature",
    }
)
"""Opaque values."""
COMPANIONS: Final = frozenset(
    {
        "anthropic.compaction.text",
        "anthropic.thinking.text",
        "bedrock.reasoning_text.text",
        "gemini.part.text",
        "litellm.thinking_blocks.text",
        "openai.compaction.id",
        "openai.message.phase",
        "openai.program.code",
        "openai.reasoning.id",
        "openrouter.reasoning_details.id",
        "openrouter.reasoning_details.text",
    }
)
"""Readable values and ids that a seal vouches for."""
CIRCUMSTANCES: Final = frozenset(
    {
        "anthropic.redacted_thinking.envelope",
        "anthropic.thinking.envelope",
        "openai.apply_patch_call",
        "openai.code_interpreter_call",
        "openai.compaction.envelope",
        "openai.computer_call",
        "openai.custom_tool_call",
        "openai.file_search_call",
        "openai.function_call",
        "openai.image_generation_call",
        "openai.local_shell_call",
        "openai.mcp_approval_request",
        "openai.mcp_call",
        "openai.message",
        "openai.reasoning",
        "openai.reasoning.envelope",
        "openai.shell_call",
        "openai.tool_search_call",
        "openai.web_search_call",
    }
)
"""What has a row of its own beside the seals."""
ALWAYS: Final = frozenset(
    {
        "encrypted_content",
        "encrypted_index",
        "encrypted_stdout",
        "redacted_content",
        "thought_signature",
    }
)
"""Keys under which there are sealed values alone."""
OPAQUE: Final = frozenset(
    {
        "signature",
    }
)
"""Keys of sealed values and of other things."""
NEAR: Final[Mapping[str, tuple[str, ...]]] = {
    "data": (
        "reasoning.encrypted",
        "reasoning_details",
        "redacted",
    ),
}
"""Keys of many things, with the words that show a sealed value."""
IN_BYTES: Final = frozenset(
    {
        "redacted_content",
        "thought_signature",
    }
)
"""Keys of values that SDKs hold as bytes."""
LISTED: Final = frozenset(
    {
        "thought_signatures",
    }
)
"""Keys of lists of sealed values."""
MARKS: Final = frozenset(
    {
        "__thought__",
    }
)
"""What a value is hidden after in the text of an id."""
SPELLED: Final = frozenset(
    {
        "redactedContent",
        "thoughtSignature",
    }
)
"""Keys of sealed values that are not in lower case on the wire."""
