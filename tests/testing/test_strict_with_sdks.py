"""The real SDKs, driven by faithful hosts, get through the whole script unrefused.

What an older SDK does not have yet is skipped; everything runs with the newest.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from otel_sealed.testing import StrictProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

SCHEMA = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
MODELS = {"anthropic": "claude-opus-5", "openai": "gpt-5.6-sol", "gemini": "gemini-3.8-flash"}
TURNS = 4  # two with tool calls, the answer, a follow-up


@pytest.fixture(name="provider")
def _provider() -> Iterator[StrictProvider]:
    with StrictProvider(canary="CANARY", verify_signed_text=True) as provider:
        yield provider


def statuses(provider: StrictProvider) -> list[int]:
    return [exchange.status for exchange in provider.exchanges]


def unsent(provider: StrictProvider) -> list[str]:
    """List the kinds of the seals that the last request did not carry back."""
    last = provider.exchanges[-1].request_body.decode()
    answered = provider.exchanges[-1].response_body.decode()
    there = last + last.replace("-", "+").replace("_", "/")
    return [m.kind for m in provider.minted if m.value not in there and m.value not in answered]


# ------------------------------------------------------------------------------------ Anthropic


def anthropic_arguments(messages: list[Any]) -> dict[str, Any]:
    return {
        "model": MODELS["anthropic"],
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "tools": [{"name": "look", "description": "look", "input_schema": SCHEMA}],
        "messages": messages,
    }


def anthropic_follow(messages: list[Any], message: Any) -> bool:
    """Append a reply as it is, and what comes after it; True while the script goes on."""
    messages.append({"role": "assistant", "content": message.content})
    calls = [block for block in message.content if block.type == "tool_use"]
    if calls:
        assert all("CANARY" in call.input["item"] for call in calls)
        results = [{"type": "tool_result", "tool_use_id": c.id, "content": "ok"} for c in calls]
        messages.append({"role": "user", "content": results})
    else:
        messages.append({"role": "user", "content": "And then?"})
    return len(messages) < 2 * TURNS


@pytest.fixture(name="anthropic_client")
def _anthropic_client(provider: StrictProvider) -> Iterator[Any]:
    sdk = pytest.importorskip("anthropic")
    with sdk.Anthropic(base_url=provider.anthropic_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture(name="anthropic_async")
async def _anthropic_async(provider: StrictProvider) -> AsyncIterator[Any]:
    sdk = pytest.importorskip("anthropic")
    async with sdk.AsyncAnthropic(
        base_url=provider.anthropic_url, api_key="k", max_retries=0
    ) as client:
        yield client


def anthropic_create(client: Any, messages: list[Any]) -> Any:
    return client.messages.create(**anthropic_arguments(messages))


def anthropic_stream(client: Any, messages: list[Any]) -> Any:
    with client.messages.stream(**anthropic_arguments(messages)) as stream:
        return stream.get_final_message()


def anthropic_beta_stream(client: Any, messages: list[Any]) -> Any:
    with client.beta.messages.stream(**anthropic_arguments(messages)) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("ask", [anthropic_create, anthropic_stream, anthropic_beta_stream])
def test_anthropic_faithful_host_is_never_refused(
    provider: StrictProvider, anthropic_client: Any, ask: Callable[[Any, list[Any]], Any]
) -> None:
    """A host that appends `message.content` as it is gets through all turns."""
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    while anthropic_follow(messages, ask(anthropic_client, messages)):
        pass
    assert statuses(provider) == [200] * TURNS
    assert unsent(provider) == []


async def test_anthropic_async_hosts_are_never_refused(
    provider: StrictProvider, anthropic_async: Any
) -> None:
    """The async client, whole and streamed in turns."""
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    more = True
    while more:
        arguments = anthropic_arguments(messages)
        if len(messages) % 4 == 1:
            message = await anthropic_async.messages.create(**arguments)
        else:
            async with anthropic_async.messages.stream(**arguments) as stream:
                message = await stream.get_final_message()
        more = anthropic_follow(messages, message)
    assert statuses(provider) == [200] * TURNS
    assert unsent(provider) == []


def test_anthropic_refusal_is_a_bad_request_error(
    provider: StrictProvider, anthropic_client: Any
) -> None:
    """A dropped block raises the SDK's own error with the API's own words."""
    sdk = pytest.importorskip("anthropic")
    messages: list[Any] = [{"role": "user", "content": "Go."}]
    anthropic_follow(messages, anthropic_create(anthropic_client, messages))
    del messages[1]["content"][0]
    # contract-corrections, A1: only manual thinking asks for it in every turn of the loop
    manual = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    with pytest.raises(sdk.BadRequestError, match="Expected `thinking` or `redacted_thinking`"):
        anthropic_client.messages.create(**anthropic_arguments(messages) | manual)
    assert statuses(provider) == [200, 400]


def needs_threads() -> None:
    """Skip with an SDK whose tool runner keeps no thread."""
    beta = pytest.importorskip("anthropic.types.beta")
    if not hasattr(beta, "BetaMessageThreadParam"):
        pytest.skip("this anthropic has no message threads")


def runner(client: Any, while_looking: Callable[[], None] = lambda: None) -> list[Any]:
    """Run the SDK's own loop; return its messages."""
    sdk = pytest.importorskip("anthropic")

    @sdk.beta_tool  # type: ignore[untyped-decorator]
    def look(item: str) -> str:
        """Look a thing up."""
        while_looking()
        return f"found {len(item)}"

    return list(
        client.beta.messages.tool_runner(
            model=MODELS["anthropic"],
            max_tokens=4096,
            thinking={"type": "adaptive"},
            tools=[look],
            messages=[{"role": "user", "content": "Go."}],
        )
    )


def test_anthropic_tool_runner_keeps_a_thread(
    provider: StrictProvider, anthropic_client: Any
) -> None:
    """The tool runner creates a thread and sends only what is new (A31)."""
    needs_threads()
    assert len(runner(anthropic_client)) == 3
    bodies = [json.loads(exchange.request_body) for exchange in provider.exchanges]
    assert [body["thread"]["type"] for body in bodies] == ["create", "continue", "continue"]
    assert [len(body["messages"]) for body in bodies] == [1, 1, 1]
    assert statuses(provider) == [200] * 3


def test_anthropic_tool_runner_replays_after_a_lost_thread(
    provider: StrictProvider, anthropic_client: Any
) -> None:
    """On `thread_not_found` the runner replays everything, sealed blocks and all (A31)."""
    needs_threads()
    told = runner(anthropic_client, provider.forget_state)
    assert len(told) == 3
    assert {200, 404} == set(statuses(provider))
    assert unsent(provider) == []


# --------------------------------------------------------------------------------------- OpenAI


def openai_arguments(items: list[Any]) -> dict[str, Any]:
    return {
        "model": MODELS["openai"],
        "store": False,
        "tools": [{"type": "function", "name": "look", "parameters": SCHEMA, "strict": False}],
        "input": items,
    }


def openai_follow(items: list[Any], response: Any) -> bool:
    """Append a reply's output as it is, and what comes after it; True while the script goes on."""
    items += response.output
    calls = [item for item in response.output if item.type == "function_call"]
    for call in calls:
        assert "CANARY" in json.loads(call.arguments)["item"]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "ok"})
    if not calls:
        items.append({"role": "user", "content": "And then?"})
    return len(items) < 3 * TURNS


@pytest.fixture(name="openai_client")
def _openai_client(provider: StrictProvider) -> Iterator[Any]:
    sdk = pytest.importorskip("openai")
    with sdk.OpenAI(base_url=provider.openai_url, api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture(name="openai_async")
async def _openai_async(provider: StrictProvider) -> AsyncIterator[Any]:
    sdk = pytest.importorskip("openai")
    async with sdk.AsyncOpenAI(base_url=provider.openai_url, api_key="k", max_retries=0) as client:
        yield client


def openai_create(client: Any, items: list[Any]) -> Any:
    return client.responses.create(**openai_arguments(items))


def openai_stream(client: Any, items: list[Any]) -> Any:
    with client.responses.stream(**openai_arguments(items)) as stream:
        return stream.get_final_response()


def openai_raw_stream(client: Any, items: list[Any]) -> Any:
    events = list(client.responses.create(**openai_arguments(items), stream=True))
    assert list(range(len(events))) == [event.sequence_number for event in events]
    return events[-1].response


@pytest.mark.parametrize("ask", [openai_create, openai_stream, openai_raw_stream])
def test_openai_faithful_host_is_never_refused(
    provider: StrictProvider, openai_client: Any, ask: Callable[[Any, list[Any]], Any]
) -> None:
    """A host that appends `response.output` as it is gets through all turns."""
    items: list[Any] = [{"role": "user", "content": "Go."}]
    while openai_follow(items, ask(openai_client, items)):
        pass
    assert statuses(provider) == [200] * TURNS
    assert unsent(provider) == []


async def test_openai_async_hosts_are_never_refused(
    provider: StrictProvider, openai_async: Any
) -> None:
    """The async client, whole and streamed in turns."""
    items: list[Any] = [{"role": "user", "content": "Go."}]
    more = True
    while more:
        arguments = openai_arguments(items)
        if len(items) % 2:
            response = await openai_async.responses.create(**arguments)
        else:
            async with openai_async.responses.stream(**arguments) as stream:
                response = await stream.get_final_response()
        more = openai_follow(items, response)
    assert statuses(provider) == [200] * TURNS
    assert unsent(provider) == []


def test_openai_added_event_holds_an_incomplete_blob(openai_client: Any) -> None:
    """What `output_item.added` brings is a beginning of what `done` brings (contract 1.5)."""
    events = list(
        openai_client.responses.create(
            **openai_arguments([{"role": "user", "content": "Go."}]), stream=True
        )
    )
    added = next(e.item for e in events if e.type == "response.output_item.added")
    done = next(e.item for e in events if e.type == "response.output_item.done")
    assert 0 < len(added.encrypted_content) < len(done.encrypted_content)
    assert done.encrypted_content.startswith(added.encrypted_content)


def test_openai_model_dump_is_accepted(provider: StrictProvider, openai_client: Any) -> None:
    """The nulls that `model_dump` adds are no fault (contract 2.2)."""
    items: list[Any] = [{"role": "user", "content": "Go."}]
    response = openai_create(openai_client, items)
    openai_follow(items, response)
    items[1:3] = [item.model_dump() for item in response.output]
    openai_create(openai_client, items)
    assert statuses(provider) == [200, 200]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # the SDK's, on user messages
def test_openai_compacted_window_is_accepted(provider: StrictProvider, openai_client: Any) -> None:
    """The window that `compact` returns can be sent on in order (O14, O17)."""
    if not hasattr(openai_client.responses, "compact"):
        pytest.skip("this openai has no compact")
    items: list[Any] = [{"role": "user", "content": "Go."}]
    openai_follow(items, openai_create(openai_client, items))
    compacted = openai_client.responses.compact(model=MODELS["openai"], input=items)
    assert [item.type for item in compacted.output] == ["message", "compaction"]
    window = [*compacted.output, {"role": "user", "content": "And then?"}]
    answer = openai_create(openai_client, window)
    assert "CANARY" in answer.output_text
    assert statuses(provider) == [200, 200, 200]


def test_openai_stored_response_is_continued_and_retrieved(openai_client: Any) -> None:
    """`previous_response_id` carries everything, and what is stored has no blob (O2, O24)."""
    arguments = {**openai_arguments([]), "store": True}
    first = openai_client.responses.create(**{**arguments, "input": "Go."})
    call = first.output[-1]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "ok"}
    second = openai_client.responses.create(
        **{**arguments, "input": [result], "previous_response_id": first.id}
    )
    assert [item.type for item in second.output] == ["reasoning", "function_call"]
    assert second.output[0].summary == []
    assert openai_client.responses.retrieve(second.id).output[0].encrypted_content is None


# --------------------------------------------------------------------------------------- Gemini


@pytest.fixture(name="gemini_client")
def _gemini_client(provider: StrictProvider) -> Iterator[Any]:
    sdk = pytest.importorskip("google.genai")
    client = sdk.Client(api_key="k", http_options={"base_url": provider.gemini_url})
    yield client
    if hasattr(client, "close"):
        client.close()


def needs_signatures() -> None:
    """Skip with an SDK whose parts have no signature: it loses every one of them."""
    types = pytest.importorskip("google.genai.types")
    if "thought_signature" not in types.Part.model_fields:
        pytest.skip("this google-genai loses thought signatures")


def gemini_config() -> Any:
    types = pytest.importorskip("google.genai.types")
    schema = {"type": "OBJECT", "properties": {"item": {"type": "STRING"}}, "required": ["item"]}
    look = types.FunctionDeclaration(name="look", parameters=schema)
    return types.GenerateContentConfig(tools=[types.Tool(function_declarations=[look])])


def gemini_arguments(contents: list[Any]) -> dict[str, Any]:
    return {
        "model": MODELS["gemini"],
        "contents": contents,
        "config": gemini_config(),
    }


def gemini_follow(contents: list[Any], parts: list[Any]) -> bool:
    """Append a turn's parts as they are, and what comes after; True while the script goes on."""
    types = pytest.importorskip("google.genai.types")
    contents.append(types.Content(role="model", parts=parts))
    calls = [part.function_call for part in parts if part.function_call]
    if calls:
        assert all("CANARY" in call.args["item"] for call in calls)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"ok": True}
                )
            )
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=results))
    else:
        contents.append(types.Content(role="user", parts=[types.Part(text="And then?")]))
    return len(contents) < 2 * TURNS


def gemini_opening() -> list[Any]:
    types = pytest.importorskip("google.genai.types")
    return [types.Content(role="user", parts=[types.Part(text="Go.")])]


def gemini_create(client: Any, contents: list[Any]) -> list[Any]:
    reply = client.models.generate_content(**gemini_arguments(contents))
    return list(reply.candidates[0].content.parts)


def gemini_stream(client: Any, contents: list[Any]) -> list[Any]:
    parts: list[Any] = []
    for chunk in client.models.generate_content_stream(**gemini_arguments(contents)):
        parts += chunk.candidates[0].content.parts
    return parts


@pytest.mark.parametrize("ask", [gemini_create, gemini_stream])
def test_gemini_faithful_host_is_never_refused(
    provider: StrictProvider, gemini_client: Any, ask: Callable[[Any, list[Any]], list[Any]]
) -> None:
    """A host that appends the parts as they are gets through, though the SDK re-spells seals."""
    needs_signatures()
    contents = gemini_opening()
    while gemini_follow(contents, ask(gemini_client, contents)):
        pass
    assert statuses(provider) == [200] * TURNS
    assert unsent(provider) == []


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
async def test_gemini_async_hosts_are_never_refused(
    provider: StrictProvider, gemini_client: Any
) -> None:
    """The async client, whole and streamed in turns."""
    needs_signatures()
    contents = gemini_opening()
    models = gemini_client.aio.models
    more = True
    while more:
        arguments = gemini_arguments(contents)
        parts: list[Any] = []
        if len(contents) % 4 == 1:
            reply = await models.generate_content(**arguments)
            parts += reply.candidates[0].content.parts
        else:
            async for chunk in await models.generate_content_stream(**arguments):
                parts += chunk.candidates[0].content.parts
        more = gemini_follow(contents, parts)
    await gemini_client.aio.aclose()
    assert statuses(provider) == [200] * TURNS
    assert unsent(provider) == []


def test_gemini_chat_stream_is_never_refused(provider: StrictProvider, gemini_client: Any) -> None:
    """The SDK's chat keeps one content for each chunk; together they are one step."""
    needs_signatures()
    types = pytest.importorskip("google.genai.types")
    chat = gemini_client.chats.create(model=MODELS["gemini"], config=gemini_config())
    message: Any = "Go."
    for _ in range(TURNS):
        calls: list[Any] = []
        for chunk in chat.send_message_stream(message):
            calls += [p.function_call for p in chunk.candidates[0].content.parts if p.function_call]
        message = [
            types.Part.from_function_response(name=c.name, response={"ok": True}) for c in calls
        ] or "And then?"
    assert statuses(provider) == [200] * TURNS


def test_gemini_sdk_without_the_field_is_refused(gemini_client: Any) -> None:
    """An SDK that drops signatures on its own is found out on the second turn (G1)."""
    types = pytest.importorskip("google.genai.types")
    if "thought_signature" in types.Part.model_fields:
        pytest.skip("this google-genai keeps thought signatures")
    contents = gemini_opening()
    gemini_follow(contents, gemini_create(gemini_client, contents))
    errors = pytest.importorskip("google.genai.errors")
    with pytest.raises(errors.ClientError, match="missing a thought_signature"):
        gemini_create(gemini_client, contents)
