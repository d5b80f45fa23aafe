"""The generateContent dialect: its script, and what it refuses of what comes back."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from otel_sealed.testing import StrictProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Contents = list[dict[str, Any]]

TOOLS = [{"functionDeclarations": [{"name": "look"}, {"name": "find"}]}]
VERTEX = "/v1beta1/projects/p/locations/l/publishers/google"
CORRUPTED = "Corrupted thought signature."


@pytest.fixture(name="provider")
def _provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


def post(provider: StrictProvider, path: str, body: dict[str, Any]) -> tuple[int, str]:
    with closing(HTTPConnection(provider.base_url.removeprefix("http://"), timeout=10)) as client:
        client.request("POST", path, json.dumps(body))
        reply = client.getresponse()
        return reply.status, reply.read().decode()


def ask(
    provider: StrictProvider,
    contents: Contents,
    *,
    model: str = "gemini-3.8-flash",
    root: str = "/v1beta",
    **more: Any,
) -> tuple[int, Any]:
    body = {"contents": contents, "tools": TOOLS, **more}
    status, text = post(provider, f"{root}/models/{model}:generateContent", body)
    return status, json.loads(text)


def play(provider: StrictProvider, turns: int, **more: Any) -> Contents:
    """Play so many turns as a faithful host; return the contents of the next request."""
    contents: Contents = [{"role": "user", "parts": [{"text": "Go."}]}]
    for _ in range(turns):
        status, reply = ask(provider, contents, **more)
        assert status == 200
        content = reply["candidates"][0]["content"]
        contents.append(content)
        results: list[dict[str, Any]] = [
            {"functionResponse": {"name": part["functionCall"]["name"], "response": {"ok": 1}}}
            for part in content["parts"]
            if "functionCall" in part
        ]
        contents.append({"role": "user", "parts": results or [{"text": "And then?"}]})
    return contents


def message_of(reply: tuple[int, Any]) -> tuple[int, str]:
    return reply[0], reply[1]["error"]["message"]


def missing(name: str, position: int) -> str:
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        f"performance. Additional data, function call `default_api:{name}` , position {position}."
    )


def keys(contents: Contents) -> list[list[str]]:
    return [["+".join(sorted(p)) for p in c["parts"]] for c in contents if c["role"] == "model"]


def test_script() -> None:
    """One signed call, two parallel calls of which the first is signed, then signed answers."""
    with StrictProvider(canary="CANARY") as provider:
        contents = play(provider, 4)
    assert keys(contents) == [
        ["text+thought", "functionCall+thoughtSignature"],
        ["functionCall+thoughtSignature", "functionCall"],
        ["text", "text+thoughtSignature"],
        ["text", "text+thoughtSignature"],
    ]
    assert "CANARY" in contents[1]["parts"][0]["text"]
    assert "CANARY" in contents[1]["parts"][1]["functionCall"]["args"]["query"]
    assert "CANARY" in contents[5]["parts"][0]["text"]


def test_streamed_answer_ends_in_an_empty_signed_part(provider: StrictProvider) -> None:
    """In a stream the signature comes last, on a part whose text is empty (G5)."""
    contents = play(provider, 2)
    path = "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    status, text = post(provider, path, {"contents": contents, "tools": TOOLS})
    chunks = [json.loads(line[6:]) for line in text.split("\r\n") if line.startswith("data: ")]
    told = [chunk["candidates"][0]["content"]["parts"] for chunk in chunks]
    assert status == 200
    assert [len(parts) for parts in told] == [1, 1, 1]
    assert told[-1][0]["text"] == ""
    assert told[-1][0]["thoughtSignature"]
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"


def test_stream_without_sse_is_an_array(provider: StrictProvider) -> None:
    """Without `alt=sse` the chunks come as one JSON array."""
    path = "/v1/models/gemini-3.8-flash:streamGenerateContent"
    _, text = post(provider, path, {"contents": [{"parts": [{"text": "Go."}]}]})
    assert len(json.loads(text)) == 3


def test_usage_counts_thoughts_and_cache(provider: StrictProvider) -> None:
    """Usage has thought tokens beside the candidates', and cached tokens from turn two on."""
    usage = ask(provider, play(provider, 1))[1]["usageMetadata"]
    assert usage["thoughtsTokenCount"] > 0
    assert usage["cachedContentTokenCount"] > 0


@pytest.mark.parametrize("root", ["/v1", "/v1beta", "/v1alpha", VERTEX])
def test_any_version_segment_is_served(provider: StrictProvider, root: str) -> None:
    """No version segment is special, and Vertex paths are served too."""
    assert ask(provider, play(provider, 3, root=root), root=root)[0] == 200


def test_count_tokens_is_no_turn(provider: StrictProvider) -> None:
    """Counting answers with a number and mints nothing."""
    status, text = post(provider, "/v1/models/gemini-3.8-flash:countTokens", {"contents": []})
    assert status == 200
    assert json.loads(text)["totalTokens"] > 0
    assert provider.minted == ()


# The contents replayed are: 0 user, 1 model (summary, call), 2 user, 3 model (call, call), 4 user.


def drop_first(contents: Contents) -> None:
    del contents[1]["parts"][1]["thoughtSignature"]


def empty_second(contents: Contents) -> None:
    contents[3]["parts"][0]["thoughtSignature"] = ""


def move_to_second_call(contents: Contents) -> None:
    parts = contents[3]["parts"]
    parts[1]["thoughtSignature"] = parts[0].pop("thoughtSignature")


def split_parallel_calls(contents: Contents) -> None:
    """Send call, response, call, response for what was one step (G14)."""
    calls, results = contents[3]["parts"], contents[4]["parts"]
    contents[3:] = [
        {"role": "model", "parts": [calls[0]]},
        {"role": "user", "parts": [results[0]]},
        {"role": "model", "parts": [calls[1]]},
        {"role": "user", "parts": [results[1]]},
    ]


def alter(contents: Contents) -> None:
    signature = contents[1]["parts"][1]["thoughtSignature"]
    contents[1]["parts"][1]["thoughtSignature"] = signature[4:]


def encode_twice(contents: Contents) -> None:
    signature = contents[1]["parts"][1]["thoughtSignature"]
    contents[1]["parts"][1]["thoughtSignature"] = base64.b64encode(signature.encode()).decode()


REFUSED = {
    "first dropped": (drop_first, missing("look", 2)),
    "second empty": (empty_second, missing("look", 4)),
    "moved to the second call": (move_to_second_call, missing("look", 4)),
    "parallel calls split": (split_parallel_calls, missing("find", 6)),
    "altered": (alter, CORRUPTED),
    "encoded twice": (encode_twice, CORRUPTED),
}


@pytest.mark.parametrize(("change", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_deviation_is_refused(
    provider: StrictProvider, change: Callable[[Contents], None], said: str
) -> None:
    """In the current turn each step's first call must bear a signature of ours (G1, G11, G14)."""
    contents = play(provider, 2)
    change(contents)
    reply = ask(provider, contents)
    assert message_of(reply) == (400, said)
    assert reply[1]["error"]["status"] == "INVALID_ARGUMENT"


def respell(contents: Contents) -> None:
    """Spell as google-genai does: URL-safe, here without padding too."""
    part = contents[1]["parts"][1]
    text = part["thoughtSignature"].replace("+", "-").replace("/", "_").rstrip("=")
    part["thoughtSignature"] = text


def snake_case(contents: Contents) -> None:
    part = contents[1]["parts"][1]
    part["thought_signature"] = part.pop("thoughtSignature")
    part["function_call"] = part.pop("functionCall")


def use_another_steps(contents: Contents) -> None:
    """Put the signature of one step on the other: ours, though moved."""
    first, second = contents[1]["parts"][1], contents[3]["parts"][0]
    first["thoughtSignature"] = second["thoughtSignature"]


def dummy(value: str) -> Callable[[Contents], None]:
    def change(contents: Contents) -> None:
        contents[1]["parts"][1]["thoughtSignature"] = value

    return change


def one_content_each(contents: Contents) -> None:
    """Send one content for each part, as the SDK's chats do after a stream."""
    contents[3:4] = [{"role": "model", "parts": [part]} for part in contents[3]["parts"]]


def drop_summary(contents: Contents) -> None:
    del contents[1]["parts"][0]


CASE = Path(__file__).parents[1] / "cases" / "E4.jsonl"


def constant() -> str:
    """What LangChain JS puts into an unsigned call, as it was recorded."""
    sent = json.loads(CASE.read_text("utf-8").splitlines()[1])["request"]["contents"]
    found = [p["thoughtSignature"] for c in sent for p in c["parts"] if "thoughtSignature" in p]
    return str(found[1])


SKIP = "skip_thought_signature_validator"
CONTEXT = "context_engineering_is_the_way_to_go"
ACCEPTED = {
    "re-spelt": respell,
    "snake case": snake_case,
    "another step's": use_another_steps,
    "dummy": dummy(SKIP),
    "dummy encoded": dummy(base64.b64encode(SKIP.encode()).decode()),
    "other dummy": dummy(CONTEXT),
    "constant": dummy(constant()),
    "a content for each part": one_content_each,
    "summary dropped": drop_summary,
}


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_benign_is_accepted(
    provider: StrictProvider, change: Callable[[Contents], None]
) -> None:
    """Spelling, the unsigned second call, documented dummies and summaries pass (G2, G9)."""
    contents = play(provider, 2)
    change(contents)
    assert ask(provider, contents)[0] == 200


def test_older_turns_are_not_validated(provider: StrictProvider) -> None:
    """Before the current turn nothing is looked at (G3)."""
    contents = play(provider, 3)
    drop_first(contents)
    empty_second(contents)
    assert ask(provider, contents)[0] == 200


def test_text_parts_are_not_validated(provider: StrictProvider) -> None:
    """The answer's signature is recommended, not demanded (G4)."""
    contents = play(provider, 3)
    del contents[5]["parts"][1]["thoughtSignature"]
    assert ask(provider, contents)[0] == 200


def test_text_beside_a_function_response_starts_no_turn(provider: StrictProvider) -> None:
    """A content that holds both is still part of the turn (docs/contract/gemini.md#terms)."""
    contents = play(provider, 2)
    contents[2]["parts"].append({"text": "by the way"})
    drop_first(contents)
    assert message_of(ask(provider, contents)) == (400, missing("look", 2))


def test_older_models_miss_nothing(provider: StrictProvider) -> None:
    """Gemini 2.5 does not demand signatures (G8)."""
    contents = play(provider, 2)
    drop_first(contents)
    assert ask(provider, contents, model="gemini-2.5-flash")[0] == 200


def test_platforms_reject_each_others(provider: StrictProvider) -> None:
    """Developer API and Vertex cannot read each other's signatures (G10)."""
    contents = play(provider, 1)
    assert message_of(ask(provider, contents, root=VERTEX)) == (400, "Invalid thought signature.")
    contents = play(provider, 1, root=VERTEX)
    assert message_of(ask(provider, contents)) == (400, CORRUPTED)


def test_vertex_words_a_missing_signature_its_own_way(provider: StrictProvider) -> None:
    """Vertex counts content blocks (G1)."""
    contents = play(provider, 1, root=VERTEX)
    drop_first(contents)
    assert message_of(ask(provider, contents, root=VERTEX)) == (
        400,
        (
            "Unable to submit request because function call `default_api:look` in the 2. content "
            "block is missing a `thought_signature`."
        ),
    )
