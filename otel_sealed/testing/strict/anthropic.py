"""The Messages dialect: the script's turns as content blocks, threads, and the error shape.

The checks on what comes back are in `anthropic_checks`, the events in `anthropic_stream`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import anthropic_checks as checks
from . import sse
from .anthropic_stream import events
from .batches import MessageBatches
from .records import (
    Obj,
    RefusedError,
    Reply,
    Request,
    Settings,
    decode,
    objects,
    stream,
    tokens,
    whole,
)
from .script import Stage, arguments, stage

if TYPE_CHECKING:
    from .mint import Mint

SIGNATURE = "anthropic.thinking.signature"
REDACTED = "anthropic.redacted_thinking.data"
_HELD = ("system", "tools", "tool_choice", "thinking")
_BINDING_CONTROLS = "thinking-binding-controls-2026-08-01"
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(slots=True)
class _Thread:
    """What the server holds of a conversation, up to and with one response (A31)."""

    messages: list[Any]
    fields: Obj
    continued: bool = False


@dataclass(frozen=True, slots=True)
class _Turn:
    """One request, read: the whole history it stands for, and what it asks for."""

    body: Obj
    messages: list[Any]
    thread: _Thread | None
    betas: str
    tool: Obj | None = field(default=None)

    @property
    def mode(self) -> str:
        """How the model thinks."""
        return checks.thinks(self.body.get("thinking"), str(self.body.get("model")))

    @property
    def omits_text(self) -> bool:
        """The request wants thinking sealed only, without readable text (A7)."""
        thinking = self.body.get("thinking")
        return isinstance(thinking, dict) and thinking.get("display") == "omitted"


class Anthropic:
    """Speaks `POST /v1/messages`, streamed or not, and holds message threads."""

    name = "anthropic"

    def __init__(self, mint: Mint, settings: Settings) -> None:
        self._mint = mint
        self._settings = settings
        self._turns: dict[str, tuple[checks.Shape, ...]] = {}
        self._threads: dict[str, _Thread] = {}
        self._batches = MessageBatches(mint, self.answer)

    def matches(self, path: str) -> bool:
        """Say whether a path belongs to the Messages API."""
        return path.startswith("/v1/messages")

    def frame(self, event: Obj) -> bytes:
        """Write one event of a stream."""
        return sse.named(event)

    def failure(self, status: int) -> Obj:
        """Write an error that has nothing to do with what was sent."""
        return _error_body(status, "Overloaded", self._request_id())

    def forget_state(self) -> None:
        """Let all threads expire (A31)."""
        self._threads.clear()

    def answer(self, request: Request) -> Reply:
        """Check a request and answer it."""
        try:
            return self._answer(request)
        except checks.BrokenRuleError as broken:
            return self._refusal(400, broken.message)
        except RefusedError as refused:
            return refused.reply

    def _answer(self, request: Request) -> Reply:
        if self._batches.matches(request.path):
            return self._batches.answer(request) or self._refusal(404, "Not Found")
        body = decode(request.body)
        if request.method != "POST":
            return self._refusal(404, "Not Found")
        if body is None:
            return self._refusal(400, "The request body is not valid JSON")
        if request.path == "/v1/messages/count_tokens":
            return whole({"input_tokens": tokens(body)})
        if request.path != "/v1/messages":
            return self._refusal(404, "Not Found")
        for name in ("model", "max_tokens", "messages"):
            if name not in body:
                return self._refusal(400, f"{name}: Field required")
        turn = self._read(body, request.headers.get("anthropic-beta", ""))
        checks.check_blocks(turn.messages, self._vouched)
        checks.check_loop(turn.messages, turn.mode, self._turns)
        message = self._message(turn)
        self._remember(turn, message)
        headers = {"request-id": self._request_id()}
        if body.get("stream") is True:
            return stream([sse.named(event) for event in events(message)], headers)
        return whole(message, headers=headers)

    # ------------------------------------------------------------------------------ reading

    def _read(self, body: Obj, betas: str) -> _Turn:
        messages = body["messages"] if isinstance(body["messages"], list) else []
        thread = self._thread(body.get("thread"))
        if thread is not None:
            # The SDK's own threads send neither `tools` nor `system` again.
            body = {**thread.fields, **body}
            messages = [*thread.messages, *messages]
        return _Turn(body, messages, thread, betas, _tool(body))

    def _thread(self, asked: Any) -> _Thread | None:
        if not isinstance(asked, dict) or asked.get("type") != "continue":
            return None
        held = self._threads.get(str(asked.get("previous_message_id")))
        if held is None:
            raise RefusedError(
                self._refusal(
                    404,
                    "No usable Thread state was found for `previous_message_id`.",
                    code="thread_not_found",
                )
            )
        if held.continued:
            raise RefusedError(
                self._refusal(
                    400,
                    "The response that `previous_message_id` names has already been continued.",
                    code="thread_already_continued",
                )
            )
        return held

    def _vouched(self, block_type: str, value: str, text: str) -> bool:
        """Say whether a sealed value was minted here, and for this text where that is asked."""
        if block_type == "redacted_thinking":
            return self._mint.known(REDACTED, value) is not None
        seal = self._mint.known(SIGNATURE, value)
        if seal is None:
            return False
        # A6: whether the signature covers the text is contradictory in the field, hence a knob.
        return not self._settings.verify_signed_text or seal.signed == text

    # ------------------------------------------------------------------------------ writing

    def _message(self, turn: _Turn) -> Obj:
        content = self._content(turn, _stage(turn))
        calls = any(block["type"] == "tool_use" for block in content)
        message: Obj = {
            "id": self._mint.ident("msg_01"),
            "type": "message",
            "role": "assistant",
            "model": turn.body["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": _usage(turn, content),
        }
        if _BINDING_CONTROLS in turn.betas:
            message["input_transformations"] = []  # contract 1.1: "nothing removed"
        return message

    def _content(self, turn: _Turn, now: Stage) -> list[Obj]:
        sealed = turn.mode != "disabled"
        blocks: list[Obj] = []
        if sealed:
            # A7: the answer's thinking has a seal and no text, whatever the display.
            blocks.append(self._thinking(silent=now is Stage.ANSWER or turn.omits_text))
        if now is Stage.SECOND:
            if sealed:
                data = self._mint.seal(self.name, REDACTED)
                blocks.append({"type": "redacted_thinking", "data": data})
            blocks.append({"type": "text", "text": self._mint.text("note")})
        if now in (Stage.FIRST, Stage.SECOND) and turn.tool is not None:
            blocks.append(self._call(turn.tool))
        else:
            blocks.append({"type": "text", "text": self._mint.text("answer")})
        return blocks

    def _thinking(self, *, silent: bool) -> Obj:
        text = "" if silent else self._mint.text("thinking", 5)
        signature = self._mint.seal(self.name, SIGNATURE, signed=text)
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _call(self, tool: Obj) -> Obj:
        return {
            "type": "tool_use",
            "id": self._mint.ident("toolu_01"),
            "name": tool["name"],
            "input": arguments(tool.get("input_schema"), self._mint.word),
        }

    def _remember(self, turn: _Turn, message: Obj) -> None:
        shape = tuple(checks.shape(block) for block in message["content"])
        for block in message["content"]:
            if block["type"] == "tool_use":
                self._turns[block["id"]] = shape
        if turn.thread is not None:
            turn.thread.continued = True
        if isinstance(turn.body.get("thread"), dict):
            said = {"role": "assistant", "content": message["content"]}
            fields = {name: turn.body[name] for name in _HELD if name in turn.body}
            self._threads[message["id"]] = _Thread([*turn.messages, said], fields)

    def _refusal(self, status: int, message: str, code: str | None = None) -> Reply:
        request_id = self._request_id()
        return whole(
            _error_body(status, message, request_id, code), status, {"request-id": request_id}
        )

    def _request_id(self) -> str:
        return self._mint.ident("req_01")


def _error_body(status: int, message: str, request_id: str, code: str | None = None) -> Obj:
    error: Obj = {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}
    if code is not None:
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error, "request_id": request_id}


def _tool(body: Obj) -> Obj | None:
    """Choose the tool to call: the one the request forces, else the first of the client's own."""
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "none":
        return None
    offered = objects(body.get("tools"))
    own = [t for t in offered if t.get("type") in (None, "custom") and "name" in t]
    if isinstance(choice, dict) and kind == "tool":
        own = [t for t in own if t["name"] == choice.get("name")] or own
    return own[0] if own else None


def _stage(turn: _Turn) -> Stage:
    runs = checks.runs(turn.messages)
    results = [
        block for run in runs for _, block in run.blocks if block.get("type") == "tool_result"
    ]
    last = runs[-1] if runs else None
    return stage(
        tools=turn.tool is not None,
        results=len(results),
        ends_in_result=last is not None
        and any(block.get("type") == "tool_result" for _, block in last.blocks),
        follows=any(run.role == "assistant" for run in runs),
    )


def _usage(turn: _Turn, content: list[Obj]) -> Obj:
    read = tokens(turn.messages[:-1]) if len(turn.messages) > 1 else 0
    thought = tokens([b for b in content if b["type"] in checks.SEALED])
    return {
        "input_tokens": tokens(turn.messages[-1:]),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": tokens(content),
        "output_tokens_details": {"thinking_tokens": thought},
        "service_tier": "standard",
    }
