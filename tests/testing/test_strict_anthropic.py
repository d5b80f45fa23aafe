"""The Messages dialect: its script, and what it refuses of what comes back."""

from __future__ import annotations

import copy
import json
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from otel_sealed.testing import StrictProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Messages = list[dict[str, Any]]

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
CANNOT_BE_MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "
    "These blocks must remain as they were in the original response."
)


@pytest.fixture(name="provider")
def _provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


def post(
    provider: StrictProvider, body: dict[str, Any], path: str = "/v1/messages"
) -> tuple[int, Any]:
    with closing(HTTPConnection(provider.base_url.removeprefix("http://"), timeout=10)) as client:
        client.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        reply = client.getresponse()
        return reply.status, json.loads(reply.read())


def ask(provider: StrictProvider, messages: Messages, **more: Any) -> tuple[int, Any]:
    body = {"model": "claude-opus-5", "max_tokens": 99, "tools": TOOLS, "messages": messages}
    return post(provider, {**body, "thinking": {"type": "adaptive"}, **more})


def play(provider: StrictProvider, turns: int, **more: Any) -> Messages:
    """Play so many turns as a faithful host; return the history up to the next request."""
    messages: Messages = [{"role": "user", "content": "Go."}]
    for _ in range(turns):
        status, message = ask(provider, messages, **more)
        assert status == 200
        messages.append({"role": "assistant", "content": message["content"]})
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call, "content": "ok"} for call in calls]
        messages.append({"role": "user", "content": results or "And then?"})
    return messages


def message_of(reply: tuple[int, Any]) -> tuple[int, str]:
    return reply[0], reply[1]["error"]["message"]


def types(messages: Messages) -> list[list[str]]:
    return [[b["type"] for b in m["content"]] for m in messages if m["role"] == "assistant"]


def altered(value: str) -> str:
    middle = len(value) // 2
    return value[:middle] + ("A" if value[middle] != "A" else "B") + value[middle + 1 :]


def test_script() -> None:
    """Two turns with calls, an answer whose thinking has no text, then answers to follow-ups."""
    with StrictProvider(canary="CANARY") as provider:
        messages = play(provider, 5)
    said = [m["content"] for m in messages if m["role"] == "assistant"]
    assert types(messages) == [
        ["thinking", "tool_use"],
        ["thinking", "redacted_thinking", "text", "tool_use"],
        ["thinking", "text"],
        ["thinking", "text"],
        ["thinking", "text"],
    ]
    assert said[2][0]["thinking"] == ""
    texts = [said[0][0]["thinking"], said[1][2]["text"], said[2][1]["text"], said[3][0]["thinking"]]
    assert all("CANARY" in text for text in texts)
    assert "CANARY" in said[0][1]["input"]["query"]


def test_without_tools_the_answer_comes_at_once(provider: StrictProvider) -> None:
    """No tools offered, no tools called."""
    _, message = ask(provider, [{"role": "user", "content": "Go."}], tools=[])
    assert [block["type"] for block in message["content"]] == ["thinking", "text"]
    assert message["stop_reason"] == "end_turn"


def test_disabled_thinking_seals_nothing(provider: StrictProvider) -> None:
    """With thinking disabled no block is sealed, and none is missed in the loop."""
    messages = play(provider, 2, thinking={"type": "disabled"})
    assert types(messages) == [["tool_use"], ["text", "tool_use"]]
    assert provider.minted == ()


def test_omitted_display_leaves_the_seal(provider: StrictProvider) -> None:
    """Display `omitted` gives thinking without text, sealed all the same (A7)."""
    _, message = ask(
        provider,
        [{"role": "user", "content": "Go."}],
        thinking={"type": "adaptive", "display": "omitted"},
    )
    assert message["content"][0]["thinking"] == ""
    assert len(message["content"][0]["signature"]) >= 300


def test_usage_counts_thinking_and_cache(provider: StrictProvider) -> None:
    """Usage has thinking tokens inside the output tokens, and cached tokens from turn two on."""
    _, message = ask(provider, play(provider, 1))
    usage = message["usage"]
    assert 0 < usage["output_tokens_details"]["thinking_tokens"] <= usage["output_tokens"]
    assert usage["cache_read_input_tokens"] > 0


def set_field(at: int, name: str, value: Any) -> Callable[[Messages], None]:
    def change(messages: Messages) -> None:
        messages[3]["content"][at][name] = value

    return change


def alter(at: int, name: str) -> Callable[[Messages], None]:
    def change(messages: Messages) -> None:
        block = messages[3]["content"][at]
        block[name] = altered(block[name])

    return change


def drop_field(at: int, name: str) -> Callable[[Messages], None]:
    def change(messages: Messages) -> None:
        del messages[3]["content"][at][name]

    return change


def drop(*places: int) -> Callable[[Messages], None]:
    def change(messages: Messages) -> None:
        content = messages[3]["content"]
        messages[3]["content"] = [b for i, b in enumerate(content) if i not in places]

    return change


def order(*places: int) -> Callable[[Messages], None]:
    def change(messages: Messages) -> None:
        messages[3]["content"] = [messages[3]["content"][i] for i in places]

    return change


def swap_across(messages: Messages) -> None:
    """Exchange the signed blocks of two turns."""
    first, second = messages[1]["content"], messages[3]["content"]
    first[0], second[0] = second[0], first[0]


def retype(messages: Messages) -> None:
    """Send the signature as the data of a redacted block."""
    block = messages[3]["content"][0]
    messages[3]["content"][0] = {"type": "redacted_thinking", "data": block["signature"]}


def merge_turns(messages: Messages) -> None:
    """Make one assistant turn of two."""
    messages[3]["content"] = [*messages[1]["content"], *messages[3]["content"]]
    messages[4]["content"] = [*messages[2]["content"], *messages[4]["content"]]
    del messages[1:3]


# The turn replayed is: 0 thinking, 1 redacted_thinking, 2 text, 3 tool_use.
REFUSED = {
    "signature altered": (
        alter(0, "signature"),
        "messages.3.content.0: Invalid `signature` in `thinking` block",
    ),
    "signature empty": (
        set_field(0, "signature", ""),
        "messages.3.content.0: Invalid `signature` in `thinking` block",
    ),
    "signature absent": (
        drop_field(0, "signature"),
        "messages.3.content.0.thinking.signature: Field required",
    ),
    "signature null": (
        set_field(0, "signature", None),
        "messages.3.content.0.thinking.signature.str: Input should be a valid string",
    ),
    "text absent": (
        drop_field(0, "thinking"),
        "messages.3.content.0.thinking.thinking: Field required",
    ),
    "cache_control added": (
        set_field(0, "cache_control", {"type": "ephemeral"}),
        "messages.3.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    "data altered": (
        alter(1, "data"),
        "messages.3.content.1: Invalid `data` in `redacted_thinking` block",
    ),
    "retyped": (retype, "messages.3.content.0: Invalid `data` in `redacted_thinking` block"),
    "redacted dropped": (drop(1), f"messages.3.content.0: {CANNOT_BE_MODIFIED}"),
    "thinking dropped": (drop(0), f"messages.3.content.0: {CANNOT_BE_MODIFIED}"),
    "reordered": (order(1, 0, 2, 3), f"messages.3.content.0: {CANNOT_BE_MODIFIED}"),
    "duplicated": (order(0, 0, 1, 2, 3), f"messages.3.content.1: {CANNOT_BE_MODIFIED}"),
    "moved behind the text": (order(0, 2, 1, 3), f"messages.3.content.2: {CANNOT_BE_MODIFIED}"),
    "moved behind the call": (order(0, 3, 1, 2), f"messages.3.content.2: {CANNOT_BE_MODIFIED}"),
    "swapped across turns": (swap_across, f"messages.1.content.0: {CANNOT_BE_MODIFIED}"),
    "turns merged": (merge_turns, f"messages.1.content.2: {CANNOT_BE_MODIFIED}"),
}


@pytest.mark.parametrize(("change", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_deviation_in_the_loop_is_refused(
    provider: StrictProvider, change: Callable[[Messages], None], said: str
) -> None:
    """In the active loop any deviation is a 400 in the API's own words (A1 to A5, A30)."""
    messages = play(provider, 2)
    change(messages)
    assert message_of(ask(provider, messages)) == (400, said)


MANUAL = {"type": "enabled", "budget_tokens": 2048}


def test_turn_that_starts_with_its_call_is_refused(provider: StrictProvider) -> None:
    """All sealed blocks dropped: the API names what it found in their place (A1, manual mode)."""
    messages = play(provider, 1)
    messages[1]["content"] = messages[1]["content"][1:]
    status, said = message_of(ask(provider, messages, thinking=MANUAL))
    assert status == 400
    assert said.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
        "thinking block"
    )


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, None])
def test_an_adaptive_loop_goes_on_without_any_thinking(
    provider: StrictProvider, thinking: Any
) -> None:
    """Asked for, or the model's default: a turn may come without all of its thinking (A1, A9)."""
    messages = play(provider, 2)
    for turn in (1, 3):
        content = messages[turn]["content"]
        messages[turn]["content"] = [b for b in content if b["type"] in ("text", "tool_use")]
    assert ask(provider, messages, thinking=thinking)[0] == 200


def test_an_adaptive_loop_misses_a_part_of_the_thinking_of_a_turn(provider: StrictProvider) -> None:
    messages = play(provider, 2)
    del messages[3]["content"][1]
    assert message_of(ask(provider, messages)) == (
        400,
        f"messages.3.content.0: {CANNOT_BE_MODIFIED}",
    )


def test_results_and_a_word_of_the_user_are_one_message(provider: StrictProvider) -> None:
    """Two messages of a role in a row are one to the API: the loop they answer goes on (A2)."""
    messages = play(provider, 2)
    del messages[3]["content"][1]
    messages.append({"role": "user", "content": "Be brief."})
    assert message_of(ask(provider, messages)) == (
        400,
        f"messages.3.content.0: {CANNOT_BE_MODIFIED}",
    )


@pytest.mark.parametrize(
    ("model", "status"),
    [("claude-opus-4-5", 400), ("claude-3-7-sonnet-20250219", 400), ("claude-sonnet-5", 200)],
)
def test_absent_thinking_is_off_on_older_models(
    provider: StrictProvider, model: str, status: int
) -> None:
    """What a model does that is not asked to think decides whether thinking may come (A9)."""
    messages = play(provider, 1)
    assert ask(provider, messages, thinking=None, model=model)[0] == status


def drop_text(messages: Messages) -> None:
    del messages[3]["content"][2]


def split_message(messages: Messages) -> None:
    """Send one assistant turn as two messages in a row, which the API reads as one."""
    said = messages[3]["content"]
    messages[3:4] = [
        {"role": "assistant", "content": said[:2]},
        {"role": "assistant", "content": said[2:]},
    ]


def add_text(messages: Messages) -> None:
    messages[3]["content"].insert(2, {"type": "text", "text": "hm"})


def add_system(messages: Messages) -> None:
    messages.append({"role": "system", "content": "Be brief."})


def change_signed_text(messages: Messages) -> None:
    messages[3]["content"][0]["thinking"] += " "


ACCEPTED = {
    "text dropped": drop_text,
    "turn in two messages": split_message,
    "text added outside the sealed run": add_text,
    "system message appended": add_system,
    "signed text changed": change_signed_text,
}


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_moves_no_seal_is_accepted(
    provider: StrictProvider, change: Callable[[Messages], None]
) -> None:
    """What leaves every seal in its place is not the check's business (A6, A33)."""
    messages = play(provider, 2)
    change(messages)
    assert ask(provider, messages)[0] == 200


def test_changed_signed_text_is_refused_when_asked() -> None:
    """With `verify_signed_text` the text is covered by the signature (A6)."""
    with StrictProvider(verify_signed_text=True) as provider:
        messages = play(provider, 2)
        change_signed_text(messages)
        said = message_of(ask(provider, messages))
    assert said == (400, "messages.3.content.0: Invalid `signature` in `thinking` block")


def test_finished_turns_may_lack_thinking(provider: StrictProvider) -> None:
    """Before the last user message that is not tool results alone nothing is missed (A8)."""
    messages = play(provider, 3)
    for message in messages:
        if message["role"] == "assistant":
            message["content"] = [
                b for b in message["content"] if b["type"] in ("text", "tool_use")
            ]
    assert ask(provider, messages)[0] == 200


def test_finished_turns_are_still_verified(provider: StrictProvider) -> None:
    """A thinking block that is there is verified wherever it stands."""
    messages = play(provider, 3)
    messages[1]["content"][0]["signature"] = altered(messages[1]["content"][0]["signature"])
    assert message_of(ask(provider, messages)) == (
        400,
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    )


def test_loop_is_not_checked_without_thinking(provider: StrictProvider) -> None:
    """Thinking turned off mid-loop: dropping thinking is right (A9)."""
    messages = play(provider, 1)
    messages[1]["content"] = messages[1]["content"][1:]
    assert ask(provider, messages, thinking={"type": "disabled"})[0] == 200


def test_thinking_in_a_final_assistant_message_needs_thinking(provider: StrictProvider) -> None:
    """Thinking disabled while the final assistant message contains thinking (A9)."""
    messages = play(provider, 1)[:2]
    status, said = message_of(ask(provider, messages, thinking={"type": "disabled"}))
    assert status == 400
    assert "an `assistant` message in the final position cannot contain `thinking`" in said


def test_so_does_thinking_of_an_earlier_turn_of_the_same_loop(provider: StrictProvider) -> None:
    """The final message is the whole loop: its last turn need not be the one that thought (A9)."""
    messages = play(provider, 2)
    messages[3]["content"] = [b for b in messages[3]["content"] if b["type"] == "tool_use"]
    status, said = message_of(ask(provider, messages, thinking={"type": "disabled"}))
    assert (status, said.partition(":")[0]) == (400, "messages.1.content.0")


@pytest.mark.parametrize(("mode", "status"), [("enabled", 400), ("adaptive", 200)])
def test_thinking_enabled_mid_loop(provider: StrictProvider, mode: str, status: int) -> None:
    """A turn that never had thinking is refused where `enabled` demands it (A10)."""
    messages = play(provider, 1, thinking={"type": "disabled"})
    assert ask(provider, messages, thinking={"type": mode})[0] == status


@pytest.mark.parametrize("kind", ["openai.reasoning.encrypted_content"])
def test_foreign_seal_is_refused(provider: StrictProvider, kind: str) -> None:
    """A value minted for another vendor is no signature (A18)."""
    post(provider, {"model": "gpt-5.6-sol", "input": "Go."}, "/v1/responses")
    foreign = next(seal.value for seal in provider.minted if seal.kind == kind)
    messages = play(provider, 1)
    messages[1]["content"][0]["signature"] = foreign
    assert ask(provider, messages)[0] == 400


def test_interleaved_conversations_do_not_mix(provider: StrictProvider) -> None:
    """Which turn is next is in the history alone."""
    one, two = play(provider, 2), play(provider, 1)
    assert ask(provider, two)[1]["content"][1]["type"] == "redacted_thinking"
    assert ask(provider, one)[1]["stop_reason"] == "end_turn"


def test_count_tokens_is_no_turn(provider: StrictProvider) -> None:
    """Counting answers with a number and mints nothing."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Go."}]}
    status, counted = post(provider, body, "/v1/messages/count_tokens")
    assert status == 200
    assert counted["input_tokens"] > 0
    assert provider.minted == ()


def test_thread_is_held(provider: StrictProvider) -> None:
    """A thread is continued with new messages alone, once per response (A31)."""
    opening: Messages = [{"role": "user", "content": "Go."}]
    _, first = ask(provider, opening, thread={"type": "create"})
    call = first["content"][-1]["id"]
    result = {"type": "tool_result", "tool_use_id": call, "content": "ok"}
    onward = {"type": "continue", "previous_message_id": first["id"]}
    new: Messages = [{"role": "user", "content": [result]}]
    status, second = ask(provider, copy.deepcopy(new), thread=onward)
    assert status == 200
    assert second["content"][1]["type"] == "redacted_thinking"
    status, refused = ask(provider, new, thread=onward)
    assert status == 400
    assert refused["error"]["details"] == {"error_code": "thread_already_continued"}


def test_lost_thread_is_not_found(provider: StrictProvider) -> None:
    """An unknown or expired thread is a 404 with its error code (A31)."""
    _, first = ask(provider, [{"role": "user", "content": "Go."}], thread={"type": "create"})
    provider.forget_state()
    onward = {"type": "continue", "previous_message_id": first["id"]}
    status, refused = ask(provider, [{"role": "user", "content": "More."}], thread=onward)
    assert status == 404
    assert refused["error"]["type"] == "not_found_error"
    assert refused["error"]["details"] == {"error_code": "thread_not_found"}


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_missing_field_is_refused(provider: StrictProvider, name: str) -> None:
    """What the API requires has to be there."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}
    del body[name]
    assert message_of(post(provider, body)) == (400, f"{name}: Field required")
