"""Cases for the rules of Chat Completions: one in which a rule fires, one in which it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.core.builders import MINT, Case, edit, once, turns
from tests.core.chat_wire import (
    CHAT_MODELS,
    completion,
    detail,
    encrypted,
    signature,
    tool_call,
)
from tests.core.conversations import Body, Change, request

Touch = Callable[[Body], object]
DUMMY = "skip_thought_signature_validator"


def answer(dialect: str, *, model: str = "", **message: Any) -> Body:
    """A reply of one choice; `calls` are its tool calls."""
    calls = message.pop("calls", None)
    said = {"content": None} | message | ({"tool_calls": list(calls)} if calls else {})
    return completion(MINT, model or CHAT_MODELS[dialect], said)


def called(*, signed: bool = True, count: int = 1, model: str = "") -> Body:
    """A reply of Gemini on Google's endpoint that calls tools."""
    calls = [tool_call(MINT, signed=signed and not n) for n in range(count)]
    return answer("chat", calls=calls, model=model)


def texted() -> Body:
    """A reply of Gemini with a signature beside its text."""
    return answer("chat", content=MINT.text("Answer"), extra_content=signature(MINT))


def in_id() -> Body:
    """A reply through a relay that hides the signature in the id of the call."""
    call = tool_call(MINT)
    call["id"] += f"__thought__{MINT.seal()}"
    return answer("chat", calls=[call])


def relayed(*, count: int = 1, hidden: bool = True) -> Body:
    """A reply of Gemini through LiteLLM: the seal beside the call, in its id, and listed."""
    calls = [tool_call(MINT) for _ in range(count)]
    seal = MINT.seal()
    calls[0]["provider_specific_fields"] = {"thought_signature": seal}
    if hidden:
        calls[0]["id"] += f"__thought__{seal}"
    return answer("chat", calls=calls, provider_specific_fields={"thought_signatures": [seal]})


def relayed_text() -> Body:
    """A reply of Gemini through LiteLLM that has a text and no call."""
    beside = {"thought_signatures": [MINT.seal()]}
    return answer("chat", content=MINT.text("Answer"), provider_specific_fields=beside)


def reasoned(*details: Body, calls: int = 1, model: str = "") -> Body:
    """A reply behind OpenRouter with its reasoning."""
    found = list(details) or [detail(MINT)]
    made = [tool_call(MINT) for _ in range(calls)]
    content = None if made else MINT.text("Answer")
    return answer("openrouter", content=content, reasoning_details=found, calls=made, model=model)


def blocked(*blocks: Body) -> Body:
    """A reply through LiteLLM with thinking blocks."""
    return answer("openrouter", thinking_blocks=list(blocks), calls=[tool_call(MINT)])


def thought(**more: Any) -> Body:
    """A thinking block as LiteLLM hands it on."""
    block = {"type": "thinking", "thinking": MINT.text("Thought"), "signature": MINT.seal()}
    return block | more


def on_first(touch: Touch) -> Change:
    """A host that does something to the first message of the model."""

    def change(body: Body) -> None:
        touch(next(m for m in body["messages"] if m["role"] == "assistant"))

    return edit(change)


def without(key: str) -> Change:
    """A host that loses a key of the first message, and of its calls."""

    def touch(message: Body) -> None:
        message.pop(key, None)
        for call in message.get("tool_calls") or ():
            call.pop(key, None)

    return on_first(touch)


def on_call(touch: Touch) -> Change:
    return on_first(lambda message: touch(message["tool_calls"][0]))


def on_detail(touch: Touch, key: str = "reasoning_details") -> Change:
    return on_first(lambda message: touch(message[key][0]))


def sign(value: str) -> Change:
    return on_call(lambda call: call["extra_content"]["google"].update(thought_signature=value))


def last_call_signed(message: Body) -> None:
    first, *_, last = message["tool_calls"]
    last["extra_content"] = first.pop("extra_content")


def first_call_copied(message: Body) -> None:
    first, *_, last = message["tool_calls"]
    last["extra_content"] = first["extra_content"]


@edit
def short_ids(body: Body) -> None:
    """Ids are cut to what an API of OpenAI's would give out, on both sides of a pair."""
    for message in body["messages"]:
        for call in message.get("tool_calls") or ():
            call["id"] = call["id"].partition("__")[0]
        if "tool_call_id" in message:
            message |= {"tool_call_id": message["tool_call_id"].partition("__")[0], "content": "1"}


def reversed_details(message: Body) -> None:
    message["reasoning_details"].reverse()


def doubled(message: Body) -> None:
    message["reasoning_details"] *= 2


@edit
def stepwise(body: Body) -> None:
    """Each call of the first message becomes a step of its own."""
    at = next(i for i, m in enumerate(body["messages"]) if m["role"] == "assistant")
    calls = body["messages"][at]["tool_calls"]
    results = body["messages"][at + 1 : at + 1 + len(calls)]
    steps: list[Body] = []
    for call, result in zip(calls, results, strict=True):
        steps += [{"role": "assistant", "content": None, "tool_calls": [call]}, result]
    body["messages"][at : at + 1 + len(calls)] = steps


@edit
def first_turn_cut(body: Body) -> None:
    at = next(i for i, m in enumerate(body["messages"]) if m["role"] == "assistant")
    del body["messages"][at : at + 2]


ANSWERED = {"ends": "And now?"}
GEMINI_2 = "gemini-2.5-flash"
VERTEX: dict[str, Any] = {"provider": "vertex", "host": "aiplatform.googleapis.com"}
XAI: dict[str, Any] = {"provider": "xai", "host": "api.x.ai"}


def _cut_off() -> Body:
    """A reply whose text of reasoning has an empty signature."""
    return reasoned(detail(MINT) | {"signature": ""})


CHAT_CASES: dict[str, tuple[Case, Case]] = {
    "G2": (
        once("chat", called(count=2), on_first(first_call_copied)),
        once("chat", called(count=2)),
    ),
    "G6": (
        once("chat", called(count=2), on_first(last_call_signed)),
        once("chat", called(count=2)),
    ),
    "G8": (
        once(
            "chat",
            called(model=GEMINI_2),
            without("extra_content"),
            asked=request("chat", []) | {"model": GEMINI_2},
            model=GEMINI_2,
        ),
        once("chat", called(), without("extra_content")),
    ),
    "G9": (once("chat", called(), sign(DUMMY)), once("chat", called(), sign("AAAA" * 20))),
    "G11": (once("chat", called(), sign("AAAA" * 20)), once("chat", called())),
    "G14": (once("chat", called(count=2), stepwise), once("chat", called(count=2))),
    "G19": (
        once("chat", called(), without("extra_content")),
        once("chat", called(count=2), on_first(lambda m: m["tool_calls"][1].update(index=1))),
    ),
    "G20": (once("chat", in_id(), short_ids), once("chat", in_id())),
    "R1": (
        once("openrouter", reasoned(), on_detail(lambda one: one.update(text="Other."))),
        once("openrouter", reasoned()),
    ),
    "R2": (
        once(
            "openrouter",
            reasoned(detail(MINT) | {"id": "reasoning-text-1"}),
            on_detail(lambda one: one.pop("id")),
        ),
        once("openrouter", reasoned(detail(MINT) | {"id": "reasoning-text-1"})),
    ),
    "R3": (
        once("openrouter", reasoned(), on_detail(lambda one: one.update(signature=MINT.seal()))),
        once("openrouter", reasoned()),
    ),
    "R4": (
        once("openrouter", reasoned(), **XAI),
        once("openrouter", reasoned(), without("reasoning_details")),
    ),
    "R5": (
        once("openrouter", reasoned(encrypted(MINT), detail(MINT, 1)), on_first(reversed_details)),
        once("openrouter", reasoned(encrypted(MINT), detail(MINT, 1))),
    ),
    "R6": (once("openrouter", reasoned(), on_first(doubled)), once("openrouter", reasoned())),
    "R7": (
        once("openrouter", reasoned(), without("reasoning_details")),
        once("openrouter", reasoned(), without("reasoning_details"), **XAI),
    ),
    "R8": (once("openrouter", _cut_off()), once("openrouter", reasoned())),
    "R9": (once("chat", called(), **VERTEX), once("chat", called())),
    "X7": (
        turns("chat", texted(), texted(), change=first_turn_cut),
        turns("chat", texted(), texted(), change=without("extra_content")),
    ),
}
