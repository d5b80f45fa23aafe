"""How each dialect writes what a conversation is made of.

A piece is one letter: T readable thought, H hidden thought, S text, C call, K compaction. The
dialects of `tests.core.conversations` keep their bodies, results and events from there; the fifth
wire, Interactions, is here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from otel_sealed.contract import Api, Exchange
from tests.core import conversations as known
from tests.core.chat_wire import CHAT_MODELS, completion
from tests.core.conversations import WHOLE, Body, Delivery, Mint
from tests.core.test_interactions import events as step_events

INTERACTIONS = "interactions"
DIALECTS = ("anthropic", "openai", "gemini", INTERACTIONS, "chat", "openrouter")
"""Five wires; two vendors speak `chat.completions`, each with carriers of its own."""
STEPWISE = ("anthropic", "openai", INTERACTIONS)
"""Their answers may think again between calls."""
COMPACTING = ("anthropic", "openai")
SEALS = known.SEALS | {INTERACTIONS: "interactions.thought.signature"}
_KEYS = ("signature", "data", "encrypted_content", "thoughtSignature", "thought_signature")


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of an answer. `seal` is None where it came without one; `id` where it has none."""

    kind: str
    words: str
    seal: str | None
    id: str | None


# ------------------------------------------------------------------------------------ answers


def answer(dialect: str, mint: Mint, pieces: list[Piece]) -> Body:
    """The whole response that brings these pieces."""
    return _ANSWERS[dialect](mint, pieces)


def _named(body: Body, piece: Piece, key: str = "id") -> Body:
    return body | ({key: piece.id} if piece.id else {})


def _anthropic(mint: Mint, pieces: list[Piece]) -> Body:
    def block(p: Piece) -> Body:
        made: dict[str, Body] = {
            "T": {"type": "thinking", "thinking": p.words, "signature": p.seal},
            "H": {"type": "redacted_thinking", "data": p.seal},
            "K": {"type": "compaction", "content": p.words, "encrypted_content": p.seal},
            "S": {"type": "text", "text": p.words},
            "C": {"type": "tool_use", "id": p.id, "name": "look_up", "input": {"query": p.words}},
        }
        return made[p.kind]

    calls = any(p.kind == "C" for p in pieces)
    return {
        "id": mint.name("msg"),
        "type": "message",
        "role": "assistant",
        "model": known.MODELS["anthropic"],
        "content": [block(p) for p in pieces],
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "output_tokens": 30},
    }


def _openai(mint: Mint, pieces: list[Piece]) -> Body:
    def item(p: Piece) -> Body:
        if p.kind in "TH":
            told = [{"type": "summary_text", "text": p.words}] if p.kind == "T" else []
            return {"type": "reasoning", "summary": told, "encrypted_content": p.seal}
        if p.kind == "K":
            return {"type": "compaction", "encrypted_content": p.seal}
        if p.kind == "S":
            content = [{"type": "output_text", "text": p.words, "annotations": []}]
            return {"type": "message", "role": "assistant", "content": content}
        arguments = json.dumps({"query": p.words})
        call = {"type": "function_call", "name": "look_up", "arguments": arguments}
        return call | {"call_id": mint.name("call")}

    return {
        "id": mint.name("resp"),
        "object": "response",
        "status": "completed",
        "model": known.MODELS["openai"],
        "output": [_named(item(p), p) for p in pieces],
        "store": False,
    }


def _gemini(mint: Mint, pieces: list[Piece]) -> Body:
    def part(p: Piece) -> Body:
        call: Body = _named({"name": "look_up", "args": {"query": p.words}}, p)
        made: dict[str, Body] = {
            "T": {"text": p.words, "thought": True},
            "H": {"text": ""},
            "S": {"text": p.words},
            "C": {"functionCall": call},
        }
        return made[p.kind] | ({"thoughtSignature": p.seal} if p.seal else {})

    content = {"role": "model", "parts": [part(p) for p in pieces]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "modelVersion": known.MODELS["gemini"],
        "responseId": mint.name("r"),
    }


def _interactions(mint: Mint, pieces: list[Piece]) -> Body:
    def step(p: Piece) -> Body:
        if p.kind in "TH":
            summary = [{"type": "text", "text": p.words}] if p.kind == "T" else []
            return {"type": "thought", "signature": p.seal, "summary": summary}
        said = [{"type": "text", "text": p.words}]
        if p.kind == "S":
            return {"type": "model_output", "content": said}
        return _named(
            {"type": "function_call", "name": "look_up", "arguments": {"query": p.words}}, p
        )

    return {
        "id": mint.name("i"),
        "model": known.MODELS["gemini"],
        "status": "completed",
        "steps": [step(p) for p in pieces],
    }


def _calls(pieces: list[Piece]) -> list[Body]:
    """Tool calls of Chat Completions, the signature of Google beside the first."""
    made: list[Body] = []
    for p in pieces:
        if p.kind == "C":
            function = {"name": "look_up", "arguments": json.dumps({"query": p.words})}
            call: Body = {"id": p.id, "type": "function", "function": function}
            made.append(call | (_beside(p.seal) if p.seal else {}))
    return made


def _beside(seal: str) -> Body:
    return {"extra_content": {"google": {"thought_signature": seal}}}


def _google(mint: Mint, pieces: list[Piece]) -> Body:
    said = next((p for p in pieces if p.kind == "S"), None)
    message: Body = {"content": said.words if said else None}
    message |= _beside(said.seal) if said and said.seal else {}
    calls = _calls(pieces)
    return completion(mint, CHAT_MODELS["chat"], message | ({"tool_calls": calls} if calls else {}))


def _openrouter(mint: Mint, pieces: list[Piece]) -> Body:
    said = next((p.words for p in pieces if p.kind == "S"), None)
    details: list[Body] = []
    for p in pieces:
        common: Body = {"format": "anthropic-claude-v1", "index": len(details)}
        if p.kind == "T":
            read = {"type": "reasoning.text", "text": p.words, "signature": p.seal}
            details.append(read | common)
        elif p.kind == "H":
            details.append({"type": "reasoning.encrypted", "data": p.seal} | common)
    calls = _calls(pieces)
    message: Body = {"content": said} | ({"reasoning_details": details} if details else {})
    message |= {"tool_calls": calls} if calls else {}
    return completion(mint, CHAT_MODELS["openrouter"], message)


_ANSWERS: dict[str, Callable[[Mint, list[Piece]], Body]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "gemini": _gemini,
    INTERACTIONS: _interactions,
    "chat": _google,
    "openrouter": _openrouter,
}


# ----------------------------------------------------------------------------------- requests


def base(dialect: str) -> Body:
    """A request without a history, but for what a system message says."""
    if dialect == INTERACTIONS:
        tool = {"type": "function", "name": "look_up"}
        return {"model": known.MODELS["gemini"], "store": False, "tools": [tool], "input": []}
    return known.base(dialect)


def ask(dialect: str, text: str) -> list[Body]:
    """What a user's own words add to the history."""
    if dialect == INTERACTIONS:
        return [{"type": "user_input", "content": [{"type": "text", "text": text}]}]
    return known.ask(dialect, text)


def reply(dialect: str, response: Body) -> list[Body]:
    """What a response adds to the history."""
    if dialect == INTERACTIONS:
        return copy.deepcopy(response["steps"])
    return known.reply(dialect, response)


def results(dialect: str, response: Body) -> list[Body]:
    """What the results of its calls add to the history; nothing where it called nothing."""
    if dialect == INTERACTIONS:
        calls = [s for s in response["steps"] if s["type"] == "function_call"]
        return [
            _result({"type": "function_result", "name": "look_up"}, "call_id", c) for c in calls
        ]
    if dialect == "gemini":
        parts = response["candidates"][0]["content"]["parts"]
        called = [part["functionCall"] for part in parts if "functionCall" in part]
        found = [
            {"functionResponse": _result({"name": "look_up"}, "id", c, "response")} for c in called
        ]
        return [{"role": "user", "parts": found}] if found else []
    return known.results(dialect, response)


def _result(body: Body, key: str, call: Body, where: str = "result") -> Body:
    """The result of a call, which may have no id; it says nothing of the call's own."""
    named = {key: call["id"]} if "id" in call else {}
    return body | named | {where: {"output": "Found."} if where == "response" else "Found."}


def exchange(
    dialect: str, asked: Body | None, response: Body | None, delivery: Delivery = WHOLE, **more: Any
) -> Exchange:
    """One exchange of a dialect; `more` overrides what surrounds the bodies."""
    if dialect != INTERACTIONS:
        return known.exchange(dialect, asked, response, delivery, **more)
    around: dict[str, Any] = {
        "provider": "google",
        "host": known.HOSTS["gemini"],
        "account": "account-one",
        "status": 200,
    }
    if delivery.stream and response is not None:
        sent = events(dialect, response)
        around["events"] = sent[: delivery.cut]
        around["complete"] = delivery.cut is None or delivery.cut >= len(sent)
    else:
        around["response"] = response
    return Exchange(Api.INTERACTIONS, request=asked, **(around | more))


def events(dialect: str, response: Body) -> list[Any]:
    """The stream events that bring a response."""
    if dialect != INTERACTIONS:
        return known.events(dialect, response)
    *begun, done = step_events(copy.deepcopy(response["steps"]))
    of_it = done["interaction"] | {"id": response["id"], "model": response["model"]}
    return [*begun, done | {"interaction": of_it}]


# ------------------------------------------------------------------------------ sealed places


def carriers(element: Body) -> list[list[Body]]:
    """The lists inside one element of a history whose members may be sealed; itself is another."""
    found = [element.get(key) for key in ("content", "parts", "reasoning_details", "tool_calls")]
    return [inner for inner in found if isinstance(inner, list)]


def sealed(element: Body) -> Iterator[tuple[Body, str]]:
    """(holder, key) of every sealed value of one element of a history, in order."""
    inner = [block for blocks in carriers(element) for block in blocks]
    for block in (element, *inner):
        beside = (block.get("extra_content") or {}).get("google")
        for holder in (block, beside) if isinstance(beside, dict) else (block,):
            for key in _KEYS:
                if isinstance(holder.get(key), str):
                    yield holder, key
