"""The Responses dialect: its script, and what it refuses of what comes back."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import pytest

from otel_sealed.testing import StrictProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Items = list[dict[str, Any]]

TOOLS = [{"type": "function", "name": "look", "parameters": {"type": "object"}}]


@pytest.fixture(name="provider")
def _provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


def send(
    provider: StrictProvider, method: str, path: str, body: dict[str, Any] | None = None
) -> tuple[int, Any]:
    with closing(HTTPConnection(provider.base_url.removeprefix("http://"), timeout=10)) as client:
        client.request(method, path, None if body is None else json.dumps(body))
        reply = client.getresponse()
        return reply.status, json.loads(reply.read())


def ask(provider: StrictProvider, items: Items | str, **more: Any) -> tuple[int, Any]:
    body = {"model": "gpt-5.6-sol", "store": False, "tools": TOOLS, "input": items, **more}
    return send(provider, "POST", "/v1/responses", body)


def play(provider: StrictProvider, turns: int, **more: Any) -> Items:
    """Play so many turns as a faithful host; return the input of the next request."""
    items: Items = [{"role": "user", "content": "Go."}]
    for _ in range(turns):
        status, response = ask(provider, items, **more)
        assert status == 200
        last = response["output"][-1]
        items += response["output"]
        if last["type"] == "function_call":
            items.append(result_of(last))
        else:
            items.append({"role": "user", "content": "And then?"})
    return items


def result_of(call: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}


def refusal(reply: tuple[int, Any]) -> tuple[int, str | None, str]:
    error = reply[1]["error"]
    return reply[0], error["code"], error["message"]


def altered(value: str) -> str:
    middle = len(value) // 2
    return value[:middle] + ("A" if value[middle] != "A" else "B") + value[middle + 1 :]


def test_script() -> None:
    """Two turns with calls, the second without a summary, an answer, answers to follow-ups."""
    with StrictProvider(canary="CANARY") as provider:
        items = play(provider, 5)
    output = [item for item in items if item.get("id")]
    assert [item["type"] for item in output] == [
        "reasoning",
        "function_call",
        "reasoning",
        "function_call",
        *(["reasoning", "message"] * 3),
    ]
    assert [len(item["summary"]) for item in output[::2]] == [1, 0, 1, 1, 1]
    assert "CANARY" in output[0]["summary"][0]["text"]
    assert "CANARY" in json.loads(output[1]["arguments"])["query"]
    assert "CANARY" in output[-1]["content"][0]["text"]


def test_without_tools_the_answer_comes_at_once(provider: StrictProvider) -> None:
    """No tools offered, no tools called; a string is a user message."""
    _, response = ask(provider, "Go.", tools=[])
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]


def test_usage_counts_reasoning_and_cache(provider: StrictProvider) -> None:
    """Usage has reasoning tokens inside the output tokens, and cached tokens from turn two on."""
    usage = ask(provider, play(provider, 1))[1]["usage"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] <= usage["output_tokens"]
    assert usage["input_tokens_details"]["cached_tokens"] > 0
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_blob_is_there_by_default(provider: StrictProvider) -> None:
    """`encrypted_content` comes without being asked for (contract 1.4)."""
    assert len(ask(provider, "Go.")[1]["output"][0]["encrypted_content"]) >= 300


def test_blob_only_where_asked_for() -> None:
    """With `populate_encrypted` off it comes only where `include` asks for it."""
    with StrictProvider(populate_encrypted=False) as provider:
        bare = ask(provider, "Go.")[1]["output"][0]
        full = ask(provider, "Go.", include=["reasoning.encrypted_content"])[1]["output"][0]
    assert "encrypted_content" not in bare
    assert "encrypted_content" in full


# The input replayed is: 0 user, 1 reasoning, 2 function_call, 3 output, then again 4, 5, 6.


def set_field(name: str, value: Any) -> Callable[[Items], None]:
    def change(items: Items) -> None:
        items[4][name] = value

    return change


def alter_blob(items: Items) -> None:
    items[4]["encrypted_content"] = altered(items[4]["encrypted_content"])


def prose_for_blob(items: Items) -> None:
    items[4]["encrypted_content"] = "I thought about it."


def swap_blobs(items: Items) -> None:
    one, two = items[1], items[4]
    one["encrypted_content"], two["encrypted_content"] = (
        two["encrypted_content"],
        one["encrypted_content"],
    )


def strip_blob(items: Items) -> None:
    del items[4]["encrypted_content"]


def drop_reasoning(items: Items) -> None:
    del items[4]


def drop_call(items: Items) -> None:
    del items[5]


def part_from_call(items: Items) -> None:
    items.insert(5, {"role": "user", "content": "hm"})


def duplicate(items: Items) -> None:
    items.insert(4, dict(items[4]))


UNDECRYPTABLE = "Encrypted content could not be decrypted or parsed."
OTHER_ID = "Encrypted content item_id did not match the target item id."
REFUSED: dict[str, tuple[Callable[[Items], None], int, str | None, str]] = {
    "blob altered": (alter_blob, 400, "invalid_encrypted_content", UNDECRYPTABLE),
    "blob empty": (
        set_field("encrypted_content", ""),
        400,
        "invalid_encrypted_content",
        UNDECRYPTABLE,
    ),
    "prose for blob": (prose_for_blob, 400, "invalid_encrypted_content", "could not be verified."),
    "id rewritten": (set_field("id", "rs_x"), 400, "invalid_encrypted_content", OTHER_ID),
    "blobs swapped": (swap_blobs, 400, "invalid_encrypted_content", OTHER_ID),
    "blob stripped": (
        strip_blob,
        404,
        None,
        "Item with id '{rs}' not found. Items are not persisted when `store` is set to false.",
    ),
    "reasoning dropped": (
        drop_reasoning,
        400,
        None,
        (
            "Item '{fc}' of type 'function_call' was provided without its required 'reasoning' "
            "item: '{rs}'."
        ),
    ),
    "call dropped": (
        drop_call,
        400,
        None,
        "Item '{rs}' of type 'reasoning' was provided without its required following item.",
    ),
    "parted from its call": (
        part_from_call,
        400,
        None,
        "Item '{rs}' of type 'reasoning' was provided without its required following item.",
    ),
    "duplicated": (
        duplicate,
        400,
        None,
        "Duplicate item found with id {rs}. Remove duplicate items from your input and try again.",
    ),
    "status added": (
        set_field("status", "completed"),
        400,
        "unknown_parameter",
        "Unknown parameter: 'input[4].status'.",
    ),
    "content added": (
        set_field("content", [{"type": "reasoning_text", "text": "hm"}]),
        400,
        "array_above_max_length",
        "Invalid 'input[4].content': array too long. Expected an array with maximum length 0",
    ),
}


@pytest.mark.parametrize(("change", "status", "code", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_deviation_is_refused(
    provider: StrictProvider,
    change: Callable[[Items], None],
    status: int,
    code: str | None,
    said: str,
) -> None:
    """Each deviation is refused with the API's own status, code and words (O3 to O11, O23)."""
    items = play(provider, 2)
    said = said.format(rs=items[4]["id"], fc=items[5]["id"])
    change(items)
    found_status, found_code, found = refusal(ask(provider, items))
    assert (found_status, found_code) == (status, code)
    assert said in found


def test_refusal_echoes_only_the_ends_of_a_blob(provider: StrictProvider) -> None:
    """The message quotes four characters of either end (docs/contract/openai.md#o10)."""
    items = play(provider, 1)
    blob = items[1]["encrypted_content"] = altered(items[1]["encrypted_content"])
    assert f"content {blob[:4]}...{blob[-4:]} could" in refusal(ask(provider, items))[2]


def drop_ids(items: Items) -> None:
    for item in items:
        item.pop("id", None)


def drop_reasoning_and_ids(items: Items) -> None:
    items[:] = [item for item in items if item.get("type") != "reasoning"]
    drop_ids(items)


def add_nulls(items: Items) -> None:
    items[4] |= {"status": None, "content": None}


def drop_summary(items: Items) -> None:
    items[1]["summary"] = []


def drop_reasoning_id(items: Items) -> None:
    del items[4]["id"]


def drop_call_id(items: Items) -> None:
    del items[5]["id"]


ACCEPTED = {
    "ids dropped": drop_ids,
    "reasoning and ids dropped": drop_reasoning_and_ids,
    "nulls added": add_nulls,
    "summary dropped": drop_summary,
    "reasoning id dropped": drop_reasoning_id,
    "call id dropped": drop_call_id,
}


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_the_api_cannot_see_is_accepted(
    provider: StrictProvider, change: Callable[[Items], None]
) -> None:
    """Pairs are known by ids alone: without them nothing is missed (O5, O7, O9)."""
    items = play(provider, 2)
    change(items)
    assert ask(provider, items)[0] == 200


def test_message_needs_its_reasoning(provider: StrictProvider) -> None:
    """An answer that kept its id is paired like a call (O4)."""
    items = play(provider, 3)
    reasoning, message = items[7], items[8]
    del items[7]
    assert refusal(ask(provider, items)) == (
        400,
        None,
        (
            f"Item '{message['id']}' of type 'message' was provided without its required "
            f"'reasoning' item: '{reasoning['id']}'."
        ),
    )


def test_stored_item_may_be_named(provider: StrictProvider) -> None:
    """Where it was stored, a reasoning item may come back by its id alone (O8)."""
    items = play(provider, 1, store=True)
    del items[1]["encrypted_content"]
    assert ask(provider, items)[0] == 200
    provider.forget_state()
    assert ask(provider, items)[0] == 404


def test_foreign_seal_is_refused(provider: StrictProvider) -> None:
    """A value minted for another vendor is no reasoning."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Go."}]}
    send(provider, "POST", "/v1/messages", body)
    foreign = provider.minted[0].value
    item = {"type": "reasoning", "summary": [], "encrypted_content": foreign}
    status, code, _ = refusal(ask(provider, [{"role": "user", "content": "Go."}, item]))
    assert (status, code) == (400, "invalid_encrypted_content")


def test_previous_response_carries_all(provider: StrictProvider) -> None:
    """With `previous_response_id` only new items are sent (O2)."""
    _, first = ask(provider, "Go.", store=True)
    new = [result_of(first["output"][-1])]
    _, second = ask(provider, new, store=True, previous_response_id=first["id"])
    assert second["previous_response_id"] == first["id"]
    assert second["output"][0]["summary"] == []
    status, _ = ask(provider, [*first["output"], *new], previous_response_id=first["id"])
    assert status == 200


def test_held_items_sent_again_are_refused_when_asked() -> None:
    """With `refuse_held_duplicates` an item the server holds may not be sent too."""
    with StrictProvider(refuse_held_duplicates=True) as provider:
        _, first = ask(provider, "Go.", store=True)
        sent = [*first["output"], result_of(first["output"][-1])]
        reply = ask(provider, sent, previous_response_id=first["id"])
    assert reply[0] == 400
    assert f"Duplicate item found with id {first['output'][0]['id']}" in refusal(reply)[2]


@pytest.mark.parametrize("store", [True, False])
def test_unknown_previous_response_is_not_found(provider: StrictProvider, *, store: bool) -> None:
    """What was not stored, or is lost, cannot be continued (O27)."""
    _, first = ask(provider, "Go.", store=store)
    if store:
        provider.forget_state()
    status, code, said = refusal(ask(provider, "More.", previous_response_id=first["id"]))
    assert (status, code) == (400, "previous_response_not_found")
    assert said == f"Previous response with id '{first['id']}' not found."


def test_stored_response_is_retrieved_without_its_blob(provider: StrictProvider) -> None:
    """What the server keeps it does not also hand out (O24)."""
    _, made = ask(provider, "Go.", store=True)
    path = f"/v1/responses/{made['id']}"
    status, found = send(provider, "GET", path)
    assert status == 200
    assert "encrypted_content" not in found["output"][0]
    reply = send(provider, "GET", f"{path}?include=reasoning.encrypted_content")
    assert refusal(reply)[2] == "Encrypted content cannot be requested for persisted responses."
    assert send(provider, "GET", "/v1/responses/resp_none")[0] == 404


def compact(provider: StrictProvider, items: Items) -> tuple[int, Any]:
    body = {"model": "gpt-5.6-sol", "input": items}
    return send(provider, "POST", "/v1/responses/compact", body)


def test_compact_returns_user_messages_and_one_item(provider: StrictProvider) -> None:
    """The window is all user messages, then the compaction item (O17)."""
    _, compacted = compact(provider, play(provider, 3))
    assert [item["type"] for item in compacted["output"]] == ["message", "message", "compaction"]
    assert compacted["output"][-1]["id"].startswith("cmp_")
    _, answer = ask(provider, [*compacted["output"], {"role": "user", "content": "More."}])
    assert answer["output"][-1]["type"] == "message"


def test_compaction_item_is_verified(provider: StrictProvider) -> None:
    """A compaction blob altered, or under another id, is refused (O11, O20)."""
    window = compact(provider, play(provider, 1))[1]["output"]
    last = window[-1]
    reply = ask(provider, [*window[:-1], {**last, "id": "cmp_other"}])
    assert OTHER_ID in refusal(reply)[2]
    blob = altered(last["encrypted_content"])
    reply = ask(provider, [*window[:-1], {**last, "encrypted_content": blob}])
    assert UNDECRYPTABLE in refusal(reply)[2]
    as_reasoning = {**last, "type": "reasoning", "summary": []}
    assert UNDECRYPTABLE in refusal(ask(provider, [*window[:-1], as_reasoning]))[2]


def test_compact_checks_its_input(provider: StrictProvider) -> None:
    """A compact call is refused for the same reasons as a turn."""
    items = play(provider, 1)
    items[1]["encrypted_content"] = altered(items[1]["encrypted_content"])
    assert refusal(compact(provider, items))[1] == "invalid_encrypted_content"


METADATA = "internal_chat_message_metadata_passthrough"


def test_a_message_without_its_id_leaves_its_reasoning_alone(provider: StrictProvider) -> None:
    """O3: a message is known by its id, an empty one is none; a call by its call_id."""
    items = play(provider, 3)
    said = next(i for i in items if i.get("type") == "message")
    calls = [i for i in items if i.get("type") == "function_call"]
    for call in calls:
        del call["id"]
    assert ask(provider, items)[0] == 200
    for value in (None, ""):
        said["id"] = value
        status, _, words = refusal(ask(provider, items))
        assert status == 400
        assert words.endswith("was provided without its required following item.")


def test_an_empty_id_of_a_reasoning_item_is_none(provider: StrictProvider) -> None:
    """O6, O7: two of them are no duplicates either."""
    items = play(provider, 2)
    for item in items:
        if item.get("type") == "reasoning":
            item["id"] = ""
        elif item.get("type") == "function_call":
            del item["id"]
    assert ask(provider, items)[0] == 200


def test_a_reference_to_a_message_alone_needs_its_reasoning(provider: StrictProvider) -> None:
    """O4: both referred to are held, one alone is not."""
    items = play(provider, 3, store=True)
    at = next(i for i, item in enumerate(items) if item.get("type") == "message")
    both = [{"type": "item_reference", "id": item["id"]} for item in items[at - 1 : at + 1]]
    assert ask(provider, [*items[: at - 1], *both, *items[at + 1 :]], store=True)[0] == 200
    status, _, words = refusal(ask(provider, [*items[: at - 1], both[1], *items[at + 1 :]]))
    assert status == 400
    assert "was provided without its required 'reasoning' item" in words


@pytest.mark.parametrize(("own_host", "status"), [(True, 200), (False, 400)])
def test_the_metadata_of_codex_is_taken_by_openais_own_hosts(
    *, own_host: bool, status: int
) -> None:
    """O23: relays and clouds refuse it."""
    with StrictProvider(own_host=own_host) as provider:
        items = play(provider, 1)
        for item in items:
            item[METADATA] = {"turn_id": "t1"}
        assert ask(provider, items)[0] == status


@pytest.mark.parametrize("event", ["response.output_item.done", "response.completed"])
def test_where_each_event_seals_anew_both_values_are_taken(event: str) -> None:
    """O11: that of `added` is not."""
    with StrictProvider(seal_each_event=True) as provider:
        body = {"model": "gpt-5.6-sol", "store": False, "tools": TOOLS, "stream": True}
        url = provider.base_url.removeprefix("http://")
        with closing(HTTPConnection(url, timeout=10)) as client:
            client.request("POST", "/v1/responses", json.dumps({**body, "input": "Go."}))
            text = client.getresponse().read().decode()
        lines = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
        events = [json.loads(line) for line in lines]
        by_type: dict[str, Items] = {}
        for one in events:
            found = one["response"]["output"] if "response" in one else [one.get("item")]
            by_type.setdefault(one["type"], []).extend(i for i in found if i)
        done, closed = (by_type[f"response.{x}"] for x in ("output_item.done", "completed"))
        assert done[0]["encrypted_content"] != closed[0]["encrypted_content"]
        sent = by_type[event]
        assert ask(provider, [*sent, result_of(sent[-1])])[0] == 200
        begun = [by_type["response.output_item.added"][0], sent[1], result_of(sent[1])]
        assert refusal(ask(provider, begun))[:2] == (400, "invalid_encrypted_content")
