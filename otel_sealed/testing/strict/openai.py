"""The Responses dialect: the script's turns as output items, stored responses, compaction.

The checks on what comes back are in `openai_checks`, the events in `openai_stream`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from . import openai_checks as checks
from . import sse
from .batches import ResponseBatches
from .conversations import Conversations
from .openai_stream import events
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
from .websocket import METHOD

if TYPE_CHECKING:
    from .mint import Mint

REASONING = "openai.reasoning.encrypted_content"
COMPACTION = "openai.compaction.encrypted_content"
_PATH = re.compile(r"(?:/openai|(?:/openai)?/v1)/responses(?:/(?P<rest>[^/]+))?")
_INCLUDE = "reasoning.encrypted_content"
_BORN = 1_790_000_000
_ECHOED: Obj = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


@dataclass(frozen=True, slots=True)
class _Held:
    """A stored response and all that led to it."""

    items: list[Obj]
    response: Obj


class OpenAI:
    """Speaks `/v1/responses` (create, streamed or not; retrieve; compact), and what lies beside it.

    That is files, batches and conversations; a message of a WebSocket is a `create` that streams.
    """

    name = "openai"

    def __init__(self, mint: Mint, settings: Settings) -> None:
        self._mint = mint
        self._settings = settings
        self._made = 0
        self._book = checks.Book(self._find)
        self._held: dict[str, _Held] = {}
        self._on_socket: dict[tuple[str, str], _Held] = {}
        self._conversations = Conversations(mint)
        self._batches = ResponseBatches(mint, self.answer)

    def matches(self, path: str) -> bool:
        """Say whether a path belongs to the Responses API."""
        return _PATH.fullmatch(path) is not None or self._beside(path) is not None

    def _beside(self, path: str) -> Conversations | ResponseBatches | None:
        stores = (self._conversations, self._batches)
        return next((store for store in stores if store.matches(path)), None)

    def frame(self, event: Obj) -> bytes:
        """Write one event of a stream."""
        return sse.named(event)

    def failure(self, status: int) -> Obj:
        """Write an error that has nothing to do with what was sent."""
        kind = "rate_limit_error" if status == HTTPStatus.TOO_MANY_REQUESTS else "server_error"
        return _error_body("The server had an error while processing your request.", kind, kind)

    def forget_state(self) -> None:
        """Lose all stored responses and items."""
        self._held.clear()
        self._on_socket.clear()
        self._conversations.forget()
        self._book.forget_stored()

    def answer(self, request: Request) -> Reply:
        """Check a request and answer it."""
        try:
            return self._answer(request)
        except checks.BrokenRuleError as broken:
            error = _error_body(
                broken.message, "invalid_request_error", broken.code, broken.parameter
            )
            return self._reply(error, broken.status)
        except RefusedError as refused:
            return refused.reply

    def _answer(self, request: Request) -> Reply:
        beside = self._beside(request.path)
        if beside is not None:
            reply = beside.answer(request)
            if reply is None:
                raise checks.BrokenRuleError("Not found", status=404)
            return reply
        path = _PATH.fullmatch(request.path)
        rest = path["rest"] if path else None
        if request.method == "GET" and rest:
            return self._retrieve(rest, request)
        body = decode(request.body)
        if body is None:
            raise checks.BrokenRuleError("We could not parse the JSON body of your request.")
        if request.method not in ("POST", METHOD) or rest not in (None, "compact"):
            raise checks.BrokenRuleError("Invalid URL", status=404)
        if "model" not in body:
            raise checks.BrokenRuleError(
                "Missing required parameter: 'model'.",
                code="missing_required_parameter",
                parameter="model",
            )
        history = self._history(body, request.connection)
        if rest:
            return self._compact(body, history)
        return self._create(body, history, request.connection)

    # ------------------------------------------------------------------------------ reading

    def _history(self, body: Obj, connection: str) -> list[Obj]:
        """Check the items sent, and put those the server holds before them."""
        sent = _items(body.get("input"))
        previous = body.get("previous_response_id")
        held: list[Obj] = []
        conversation = _conversation(body)
        if conversation is not None:
            kept = self._conversations.held(conversation)
            if kept is None:
                raise checks.BrokenRuleError("Conversation not found.", status=404)
            held = list(kept)
        if previous is not None:
            response = self._held.get(previous) or self._on_socket.get((connection, previous))
            if response is None:
                raise checks.BrokenRuleError(
                    f"Previous response with id '{previous}' not found.",
                    code="previous_response_not_found",
                    parameter="previous_response_id",
                )
            held = response.items
        by_reference = previous is not None or conversation is not None
        own = self._settings.own_host
        checks.check(sent, self._book, by_reference=by_reference, own_host=own)
        if self._settings.refuse_held_duplicates:
            checks.check_duplicates([*held, *sent])
        return [*held, *sent]

    def _find(self, item_type: str, value: str) -> str | None:
        """Find the item id that a sealed value is bound to; None where it was not minted here."""
        kind = COMPACTION if item_type == "compaction" else REASONING
        seal = self._mint.known(kind, value)
        return seal.item_id if seal else None

    def _retrieve(self, ident: str, request: Request) -> Reply:
        if ident not in self._held:
            raise checks.BrokenRuleError(f"Response with id '{ident}' not found.", status=404)
        if _INCLUDE in (request.query.get("include"), request.query.get("include[]")):
            # O24: what the server keeps it does not also hand out.
            raise checks.BrokenRuleError(
                "Encrypted content cannot be requested for persisted responses."
            )
        response = self._held[ident].response
        bare = [
            {name: x for name, x in item.items() if name != "encrypted_content"}
            for item in response["output"]
        ]
        return self._reply({**response, "output": bare})

    # ------------------------------------------------------------------------------ writing

    def _create(self, body: Obj, history: list[Obj], connection: str) -> Reply:
        tool = _tool(body)
        output = self._output(body, tool, _stage(history, tool))
        response = self._response(body, history, output)
        stored = response["store"]
        self._book.add(output, stored=stored)
        holds = _Held([*history, *output], response)
        if stored:
            self._held[response["id"]] = holds
        elif connection:  # O27: on its connection it can be continued all the same
            self._on_socket[connection, response["id"]] = holds
        conversation = _conversation(body)
        if conversation is not None:
            self._conversations.add(conversation, [*_items(body.get("input")), *output])
        shown = {**response, "output": [self._shown(item, body) for item in output]}
        if body.get("stream") is True or connection:
            sent = events(shown, self._resealed)
            return stream([sse.named(event) for event in sent], self._headers())
        return self._reply(shown)

    def _resealed(self, item: Obj) -> Obj:
        """O11: where each event seals anew, the blob of `done` is another one, and as good."""
        if not self._settings.seal_each_event or item.get("encrypted_content") is None:
            return item
        kind = COMPACTION if item["type"] == "compaction" else REASONING
        blob = self._mint.seal(self.name, kind, item_id=item["id"])
        return {**item, "encrypted_content": blob}

    def _shown(self, item: Obj, body: Obj) -> Obj:
        """Contract 1.4: the blob is on every item by now; before, only where it was asked for."""
        asked = _INCLUDE in (body.get("include") or [])
        if self._settings.populate_encrypted or asked or item["type"] != "reasoning":
            return item
        return {name: x for name, x in item.items() if name != "encrypted_content"}

    def _output(self, body: Obj, tool: Obj | None, now: Stage) -> list[Obj]:
        reasoning = body.get("reasoning")
        output: list[Obj] = []
        if not (isinstance(reasoning, dict) and reasoning.get("effort") == "none"):
            output.append(self._reasoning(silent=now is Stage.SECOND))
        if tool is not None and now in (Stage.FIRST, Stage.SECOND):
            output.append(self._call(tool))
        else:
            output.append(self._said())
        return output

    def _reasoning(self, *, silent: bool) -> Obj:
        ident = self._mint.ident("rs_0", 47)
        # O9: an empty summary is a complete item.
        summary = [] if silent else [{"type": "summary_text", "text": self._mint.text("summary")}]
        blob = self._mint.seal(self.name, REASONING, item_id=ident)
        return {"id": ident, "type": "reasoning", "summary": summary, "encrypted_content": blob}

    def _call(self, tool: Obj) -> Obj:
        made = arguments(tool.get("parameters"), self._mint.word)
        return {
            "id": self._mint.ident("fc_0", 47),
            "type": "function_call",
            "status": "completed",
            "call_id": self._mint.ident("call_"),
            "name": tool["name"],
            "arguments": json.dumps(made, ensure_ascii=False),
        }

    def _said(self) -> Obj:
        text = {
            "type": "output_text",
            "text": self._mint.text("answer"),
            "annotations": [],
            "logprobs": [],
        }
        return {
            "id": self._mint.ident("msg_0", 47),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [text],
        }

    def _response(self, body: Obj, history: list[Obj], output: list[Obj]) -> Obj:
        self._made += 1
        asked = body.get("reasoning")
        return {
            "id": self._mint.ident("resp_0", 47),
            "object": "response",
            "created_at": _BORN + self._made,
            "status": "completed",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": body["model"],
            "output": output,
            "reasoning": {"effort": "medium", "summary": None, **(asked or {})},
            "store": body.get("store") is not False,
            "usage": _usage(history, output),
            **{name: body.get(name, default) for name, default in _ECHOED.items()},
        }

    def _compact(self, body: Obj, history: list[Obj]) -> Reply:
        """O17: all user messages, then one compaction item."""
        output: list[Obj] = [
            {
                "id": self._mint.ident("msg_0", 47),
                "type": "message",
                "status": "completed",
                "role": "user",
                "content": item["content"]
                if isinstance(item.get("content"), list)
                else [{"type": "input_text", "text": item.get("content")}],
            }
            for item in history
            if item.get("role") == "user"
        ]
        ident = self._mint.ident("cmp_0", 47)
        blob = self._mint.seal(self.name, COMPACTION, item_id=ident)
        output.append({"id": ident, "type": "compaction", "encrypted_content": blob})
        self._made += 1
        return self._reply(
            {
                "id": self._mint.ident("resp_0", 47),
                "object": "response.compaction",
                "created_at": _BORN + self._made,
                "model": body["model"],
                "output": output,
                "usage": _usage(history, output),
            }
        )

    def _reply(self, value: Obj, status: int = 200) -> Reply:
        return whole(value, status, self._headers())

    def _headers(self) -> dict[str, str]:
        return {"x-request-id": self._mint.ident("req_", 32)}


def _error_body(
    message: str, kind: str, code: str | None = None, parameter: str | None = None
) -> Obj:
    return {"error": {"message": message, "type": kind, "param": parameter, "code": code}}


def _conversation(body: Obj) -> str | None:
    named = body.get("conversation")
    ident = named.get("id") if isinstance(named, dict) else named
    return ident if isinstance(ident, str) else None


def _items(sent: Any) -> list[Obj]:
    if isinstance(sent, str):
        return [{"role": "user", "content": sent}]
    return objects(sent)


def _tool(body: Obj) -> Obj | None:
    """Choose the function to call: the one the request forces, else the first offered."""
    choice = body.get("tool_choice")
    if choice == "none":
        return None
    own = [t for t in objects(body.get("tools")) if t.get("type") == "function" and "name" in t]
    if isinstance(choice, dict):
        own = [t for t in own if t["name"] == choice.get("name")] or own
    return own[0] if own else None


def _stage(history: list[Obj], tool: Obj | None) -> Stage:
    told = [x for x in history if x.get("role") not in ("system", "developer")]
    return stage(
        tools=tool is not None,
        results=sum(x.get("type") == "function_call_output" for x in told),
        ends_in_result=bool(told) and told[-1].get("type") == "function_call_output",
        follows=any(x.get("role") != "user" for x in told),
    )


def _usage(history: list[Obj], output: list[Obj]) -> Obj:
    into, out = tokens(history), tokens(output)
    cached = tokens(history[:-1]) if len(history) > 1 else 0
    thought = tokens([x for x in output if x["type"] == "reasoning"])
    return {
        "input_tokens": into,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": out,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": into + out,
    }
