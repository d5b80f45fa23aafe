"""Small applications over the SDKs that reach as much of us as they can, and what came of them.

Each makes a few calls with sealed state, sends some of it back damaged, meets a refusal, and
returns what an application sees: dumped results and errors, in order.
"""

from __future__ import annotations

from typing import Final

from tests.instrument.scene_tools import Outcome, Scene
from tests.instrument.scenes_anthropic import anthropic_async, anthropic_stream, anthropic_whole
from tests.instrument.scenes_chat import chat_async, chat_stream, chat_whole
from tests.instrument.scenes_doors import (
    CONNECTS,
    anthropic_batches,
    openai_held,
    openai_socket,
    openai_socket_async,
)
from tests.instrument.scenes_google import (
    INTERACTIONS,
    interactions,
    interactions_async,
    loop,
    loop_async,
    loop_stream,
)
from tests.instrument.scenes_others import (
    gemini_async,
    gemini_stream,
    gemini_whole,
    openai_async,
    openai_stream,
    openai_whole,
)

__all__ = ["SCENES", "Outcome", "Scene"]

SCENES: Final[dict[str, Scene]] = {
    "anthropic-whole": anthropic_whole,
    "anthropic-stream": anthropic_stream,
    "anthropic-async": anthropic_async,
    "openai-whole": openai_whole,
    "openai-stream": openai_stream,
    "gemini-whole": gemini_whole,
    "gemini-stream": gemini_stream,
    "openai-async": openai_async,
    "chat-whole": chat_whole,
    "chat-stream": chat_stream,
    "chat-async": chat_async,
    "gemini-async": gemini_async,
    "gemini-loop": loop,
    "gemini-loop-stream": loop_stream,
    "gemini-loop-async": loop_async,
    "anthropic-batches": anthropic_batches,
    "openai-held": openai_held,
    **(
        {"openai-socket": openai_socket, "openai-socket-async": openai_socket_async}
        if CONNECTS
        else {}
    ),
    **(
        {"interactions": interactions, "interactions-async": interactions_async}
        if INTERACTIONS
        else {}
    ),
}
