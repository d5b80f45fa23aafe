"""Makes tests/data/sessions: session files in the shape Claude Code 2.1 and Codex 0.65 write.

    python tests/golden/sessions.py

Every record type and field is one that published session files and the sources of Codex have; every
value is made up.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any
from uuid import UUID

TARGET = Path(__file__).parents[1] / "data" / "sessions"
RANDOM = random.Random(7)
Json = dict[str, Any]


def seal(size: int = 240) -> str:
    return base64.b64encode(RANDOM.randbytes(size)).decode()


def uuid() -> str:
    return str(UUID(bytes=RANDOM.randbytes(16), version=4))


def write(name: str, *lines: Json | str) -> None:
    path = TARGET / name
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [x if isinstance(x, str) else json.dumps(x, separators=(",", ":")) for x in lines]
    path.write_text("\n".join(texts) + "\n", "utf-8")


# ---------------------------------------------------------------------------------- Claude Code


class Claude:
    """Records of one session, each the child of the one before."""

    def __init__(self, *, sidechain: bool = False) -> None:
        self.session, self.parent, self.sidechain = uuid(), None, sidechain

    def record(self, kind: str, **more: Any) -> Json:
        made = {
            "parentUuid": self.parent,
            "isSidechain": self.sidechain,
            "userType": "external",
            "cwd": "/home/dev/shop",
            "sessionId": self.session,
            "version": "2.1.156",
            "gitBranch": "main",
            **({"agentId": "a1b2c3d"} if self.sidechain else {}),
            "type": kind,
            **more,
            "uuid": (own := uuid()),
            "timestamp": "2026-11-20T08:00:00.000Z",
        }
        self.parent = own  # type: ignore[assignment] # None for the first record only
        return made

    def user(self, content: Any, **more: Any) -> Json:
        return self.record("user", message={"role": "user", "content": content}, **more)

    def turn(self, *blocks: Json) -> list[Json]:
        """One message of the model: a record for each block, with the same id and usage."""
        ident = f"msg_{seal(15)}"
        usage = {
            "input_tokens": 12,
            "cache_creation_input_tokens": 400,
            "cache_read_input_tokens": 9000,
            "output_tokens": 150,
            "service_tier": "standard",
        }
        return [
            self.record(
                "assistant",
                message={
                    "model": "claude-opus-5",
                    "id": ident,
                    "type": "message",
                    "role": "assistant",
                    "content": [block],
                    "stop_reason": None,
                    "stop_sequence": None,
                    "usage": usage,
                },
                requestId=f"req_{seal(15)}",
            )
            for block in blocks
        ]


def thinking(text: str, signature: str | None) -> Json:
    made = {"type": "thinking", "thinking": text}
    return made if signature is None else {**made, "signature": signature}


CALL = {"type": "tool_use", "id": "toolu_01", "name": "Read", "input": {"file": "a.py"}}
RESULT = [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "made up"}]
SAYS: Json = {"type": "text", "text": "Both ledgers agree."}
SNAPSHOT: Json = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}


def claude_code() -> None:
    one = Claude()
    side = Claude(sidechain=True)
    side.session = one.session
    write(
        "claude/complete.jsonl",
        {"type": "summary", "summary": "Two ledgers", "leafUuid": uuid()},
        SNAPSHOT,
        one.user("Which ledger is right?"),
        *one.turn(thinking("Weigh both first.", seal()), CALL),
        one.user(RESULT),
        *one.turn({"type": "redacted_thinking", "data": seal(90)}, SAYS),
        side.user("Look at the second one."),
        *side.turn(thinking("Only this one.", seal()), SAYS),
    )
    two = Claude()
    write(
        "claude/redacted.jsonl",
        two.user("Which ledger is right?"),
        *two.turn(thinking("", seal()), CALL),
        two.user(RESULT),
        two.record(
            "system",
            subtype="compact_boundary",
            content="Conversation compacted",
            level="info",
            compactMetadata={"trigger": "auto", "preTokens": 155000},
        ),
        two.user("It was about ledgers.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        *two.turn(thinking("", seal()), SAYS),
    )
    three = Claude()
    error = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
        },
    }
    masked = seal()
    write(
        "claude/truncated.jsonl",
        three.user("Which ledger is right?"),
        *three.turn(thinking("Weigh both first.", None), CALL),
        three.user(RESULT),
        *three.turn(thinking("Then the second.", ""), SAYS),
        '{"type":"assistant","message":{"content":[{"type":"thinki',
        three.record(
            "assistant",
            isApiErrorMessage=True,
            message={
                "id": uuid(),
                "model": "<synthetic>",
                "role": "assistant",
                "content": [{"type": "text", "text": f"API Error: 400 {json.dumps(error)}"}],
            },
        ),
    )
    four = Claude()
    write(
        "claude/mixed.jsonl",
        four.user("Which ledger is right?"),
        *four.turn(thinking("Weigh both.", f"{masked[:90]}…{masked[-90:]}"), CALL),
        four.user(RESULT),
        *four.turn(thinking("Then the second.", None), SAYS),
    )


# ---------------------------------------------------------------------------------------- Codex


def line(kind: str, payload: Json) -> Json:
    return {"timestamp": "2026-11-20T08:00:00.000Z", "type": kind, "payload": payload}


def reasoning(text: str, encrypted: str | None) -> Json:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item = {"type": "reasoning", "summary": summary, "content": None}
    return line("response_item", {**item, "encrypted_content": encrypted})


def message(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return line("response_item", {"type": "message", "role": role, "content": content})


def tokens(reasoned: int, cached: int) -> Json:
    usage = {
        "input_tokens": 5000,
        "cached_input_tokens": cached,
        "output_tokens": 300,
        "reasoning_output_tokens": reasoned,
        "total_tokens": 5300,
    }
    info = {"total_token_usage": usage, "last_token_usage": usage, "model_context_window": 272000}
    return line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})


def meta(**more: Any) -> Json:
    payload = {
        "id": uuid(),
        "timestamp": "2026-11-20T08:00:00.000Z",
        "cwd": "/home/dev/shop",
        "originator": "codex_cli_rs",
        "cli_version": "0.65.0",
        "source": "cli",
        "model_provider": "openai",
    }
    return line("session_meta", {**payload, **more})


CONTEXT = line("turn_context", {"cwd": "/home/dev/shop", "model": "gpt-5.6-sol", "effort": "high"})
CALLS = line(
    "response_item",
    {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_1"},
)
OUTPUT = line(
    "response_item", {"type": "function_call_output", "call_id": "call_1", "output": "made up"}
)


def codex() -> None:
    write(
        "codex/2026/11/20/rollout-complete.jsonl",
        meta(),
        message("user", "Which ledger is right?"),
        CONTEXT,
        line("event_msg", {"type": "agent_reasoning", "text": "Weighing"}),
        reasoning("Weighing", seal()),
        CALLS,
        OUTPUT,
        reasoning("", seal()),
        message("assistant", "The second."),
        tokens(640, 2048),
    )
    history = [
        {"type": "message", "role": "user", "content": []},
        {"type": "compaction", "encrypted_content": seal(600)},
    ]
    write(
        "codex/2026/11/20/rollout-redacted.jsonl",
        meta(source={"subagent": "review"}),
        CONTEXT,
        reasoning("", seal()),
        line("compacted", {"message": "", "replacement_history": history}),
        CONTEXT,
        reasoning("", seal()),
        message("assistant", "The second."),
        tokens(900, 4096),
    )
    write(
        "codex/2026/11/20/rollout-truncated.jsonl",
        meta(),
        CONTEXT,
        message("assistant", "The second."),
        tokens(320, 0),
    )
    write(
        "codex/rollout-old.jsonl",
        {"id": uuid(), "timestamp": "2025-06-01T08:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": []},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
    )


if __name__ == "__main__":
    claude_code()
    codex()
