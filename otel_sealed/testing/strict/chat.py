"""Chat Completions: the script's turns as messages, sealed as two hosts of that wire seal them.

A model named `gemini…` answers as on Google's compatible endpoint, with signatures in
`extra_content`; any other as a Claude behind OpenRouter, with `reasoning_details`. What comes back
is checked as they do: Gemini refuses a first call of the current turn without its signature (G19)
and any it did not make; Claude any signature or text of reasoning that changed, nothing missing.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from . import sse
from .records import (
    Obj,
    RefusedError,
    Reply,
    Request,
    Settings,
    decode,
    encode,
    objects,
    stream,
    tokens,
    whole,
)
from .script import Stage, arguments, stage

if TYPE_CHECKING:
    from .mint import Mint

ON_CALL = "gemini.tool_call.thought_signature"
ON_TEXT = "gemini.message.thought_signature"
DETAIL = "openrouter.reasoning_details.signature"
HIDDEN = "openrouter.reasoning_details.data"
_PATH = re.compile(r"\A(?:/.*)?/chat/completions")
_FORMAT = "anthropic-claude-v1"
_PIECES = 3
_DONE = b"data: [DONE]\n\n"


class Chat:
    """Speaks `/chat/completions`, streamed or not, below any prefix."""

    name = "chat"

    def __init__(self, mint: Mint, settings: Settings) -> None:
        self._mint = mint
        self._settings = settings

    def matches(self, path: str) -> bool:
        """Say whether a path is that of the one method."""
        return _PATH.fullmatch(path) is not None

    def frame(self, event: Obj) -> bytes:
        """Write one event of a stream."""
        return b"data: " + encode(event) + b"\n\n"

    def failure(self, _status: int) -> Obj:
        """Write an error that has nothing to do with what was sent."""
        return _error("The server had an error while processing your request.")

    def forget_state(self) -> None:
        """Do nothing: this dialect holds no state for clients."""

    def answer(self, request: Request) -> Reply:
        """Check a request and answer it."""
        if request.method != "POST":
            return whole(_error("Not Found"), 404)
        body = decode(request.body)
        if body is None:
            return whole(_error("Could not parse the JSON body of your request."), 400)
        messages = objects(body.get("messages"))
        try:
            if _is_gemini(body):
                self._check_signatures(messages, str(body.get("model")))
            else:
                self._check_details(messages)
        except RefusedError as refused:
            return refused.reply
        return self._reply(body, messages)

    # ----------------------------------------------------------------------------- checking

    def _check_signatures(self, messages: list[Obj], model: str) -> None:
        live = max((n for n, m in enumerate(messages) if m.get("role") == "user"), default=0)
        for message in messages[live:]:
            for number, call in enumerate(objects(message.get("tool_calls"))):
                signature = _google(call)
                if signature is None:
                    if number == 0 and "gemini-3" in model:
                        raise _refused(
                            "Function call is missing a thought_signature in functionCall parts."
                        )
                elif self._mint.known(ON_CALL, signature) is None:
                    raise _refused("Thought signature is not valid")

    def _check_details(self, messages: list[Obj]) -> None:
        live = _claudes_loop(messages)
        for at, message in enumerate(messages):
            for number, one in enumerate(objects(message.get("reasoning_details"))):
                sealed = one.get("type") == "reasoning.encrypted"
                if not sealed and one.get("signature") is None and at < live:
                    continue  # R7: only in the tool loop a text without its signature is refused
                kind, key = (HIDDEN, "data") if sealed else (DETAIL, "signature")
                minted = self._mint.known(kind, str(one.get(key)))
                changed = self._settings.verify_signed_text and minted is not None
                if minted is None or (changed and one.get("text", "") != (minted.signed or "")):
                    where = f"messages.{at}.content.{number}"
                    raise _refused(f"{where}: Invalid `signature` in `thinking` block")

    # ------------------------------------------------------------------------------ writing

    def _reply(self, body: Obj, messages: list[Obj]) -> Reply:
        message = self._message(body, messages)
        head: Obj = {"id": self._mint.ident("chatcmpl-"), "created": 1, "model": body.get("model")}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        into, out = tokens(messages), tokens(message)
        usage: Obj = {
            "prompt_tokens": into,
            "completion_tokens": out,
            "total_tokens": into + out,
            "completion_tokens_details": {"reasoning_tokens": 40},
        }
        if body.get("stream") is True:
            head["object"] = "chat.completion.chunk"
            deltas = [{"role": "assistant", "content": ""}, *_deltas(message)]
            chunks = [_chunk(head, delta, None) for delta in deltas]
            chunks += [_chunk(head, {}, finish), {**head, "choices": [], "usage": usage}]
            return stream([*map(self.frame, chunks), _DONE])
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    def _message(self, body: Obj, messages: list[Obj]) -> Obj:
        tools = [tool["function"] for tool in objects(body.get("tools")) if "function" in tool]
        now = _stage(messages, tools=bool(tools))
        message: Obj = {"role": "assistant", "content": None}
        if now is Stage.FIRST:
            message["tool_calls"] = [self._call(tools[0])]
        elif now is Stage.SECOND:
            message["tool_calls"] = [self._call(tools[0]), self._call(tools[-1])]
        else:
            message["content"] = self._mint.text("answer")
        if _is_gemini(body):
            held = message.get("tool_calls", [message])[0]  # G2: of parallel calls only the first
            kind = ON_TEXT if held is message else ON_CALL
            signature = self._mint.seal(self.name, kind)
            held["extra_content"] = {"google": {"thought_signature": signature}}
        else:
            message["reasoning_details"] = list(self._details(hidden=now is Stage.SECOND))
        return message

    def _details(self, *, hidden: bool) -> list[Obj]:
        found: list[Obj] = []
        if hidden:
            data = self._mint.seal(self.name, HIDDEN)
            found.append({"type": "reasoning.encrypted", "data": data})
        text = self._mint.text("thought")
        seal = self._mint.seal(self.name, DETAIL, signed=text)
        found.append({"type": "reasoning.text", "text": text, "signature": seal})
        return [{**one, "format": _FORMAT, "index": index} for index, one in enumerate(found)]

    def _call(self, tool: Obj) -> Obj:
        made = json.dumps(arguments(tool.get("parameters"), self._mint.word), ensure_ascii=False)
        function = {"name": tool["name"], "arguments": made}
        return {"id": self._mint.ident("call_"), "type": "function", "function": function}


def _claudes_loop(messages: list[Obj]) -> int:
    """The last word of the user; one after results at the end is read as one message with them."""
    roles = [message.get("role") for message in messages]
    end = max((n + 1 for n, role in enumerate(roles) if role == "assistant"), default=0)
    words = [n for n, role in enumerate(roles) if role == "user"]
    if "tool" in roles[end:]:
        words = [n for n in words if n < end]
    return max(words, default=0)


def _is_gemini(body: Obj) -> bool:
    return "gemini" in str(body.get("model"))


def _google(call: Obj) -> str | None:
    extra = call.get("extra_content")
    google = extra.get("google") if isinstance(extra, dict) else None
    found = google.get("thought_signature") if isinstance(google, dict) else None
    return None if found is None else str(found)


def _stage(messages: list[Obj], *, tools: bool) -> Stage:
    roles = [message.get("role") for message in messages]
    return stage(
        tools=tools,
        results=roles.count("tool"),
        ends_in_result=roles[-1:] == ["tool"],
        follows="assistant" in roles,
    )


def _deltas(message: Obj) -> list[Obj]:
    """The pieces of a message: reasoning, text, calls, and what stands beside the text."""
    found: list[Obj] = []
    for one in message.get("reasoning_details", []):
        text, signature = one.get("text"), one.get("signature")
        if text is None:
            found.append({"reasoning_details": [one]})
            continue
        rest = {k: v for k, v in one.items() if k not in ("text", "signature")}
        pieces: list[Obj] = [{"text": piece} for piece in sse.deltas(text, _PIECES)]
        pieces.append({"text": "", "signature": signature})
        found += [{"reasoning_details": [{**rest, **piece}]} for piece in pieces]
    found += [{"content": piece} for piece in sse.deltas(message["content"] or "", _PIECES)]
    for index, call in enumerate(message.get("tool_calls", [])):
        first, *more = sse.deltas(call["function"]["arguments"], _PIECES)
        begun = {**call, "index": index, "function": {**call["function"], "arguments": first}}
        found.append({"tool_calls": [begun]})
        found += [{"tool_calls": [{"index": index, "function": {"arguments": x}}]} for x in more]
    if "extra_content" in message:
        found.append({"content": "", "extra_content": message["extra_content"]})
    return found


def _chunk(head: Obj, delta: Obj, finish: str | None) -> Obj:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _error(message: str) -> Obj:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


def _refused(message: str) -> RefusedError:
    return RefusedError(whole(_error(message), 400))
