"""What the provider itself said: classes of refusals, removals, and what they are laid on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_sealed.contract import Api, Exchange, RawAnswer
from otel_sealed.digest import Digest
from otel_sealed.model import Locus, ProviderVerdict, Rejection, Report
from otel_sealed.overlay import provider_says, refused
from otel_sealed.providers.refusals import FRAGMENTS, classify
from otel_sealed.tracker import Tracker
from tests.core.builders import (
    call,
    candidate,
    message,
    part,
    reasoning,
    response,
    text,
    thinking,
    use,
)
from tests.core.chat_cases import called, reasoned
from tests.core.conversations import (
    KEY,
    MATRIX,
    Body,
    conversation,
    exchange,
    history,
    observe,
    request,
    server_sent,
    step,
)

R = Rejection

# (class, code or type, message) as providers, gateways and SDKs write them
REFUSALS: list[tuple[Rejection, str, str]] = [
    (
        R.PREFIX_BINDING,
        "invalid_request_error",
        "messages.3.content.0: `thinking` block is bound to a different conversation",
    ),
    (R.COMPACTION_INVALID, "compaction_signature_invalid", "messages.0.content.0: bad"),
    (R.COMPACTION_INVALID, "compaction_content_mismatch", "changed"),
    (R.COMPACTION_INVALID, "compaction_tool_changes_mismatch", "changed"),
    (R.COMPACTION_INVALID, "compaction_block_ambiguous", "two"),
    (R.COMPACTION_INVALID, "compaction_block_misplaced", "first"),
    (R.COMPACTION_INVALID, "compaction_incomplete_turn", "turn"),
    (
        R.COMPACTION_INVALID,
        "invalid_request_error",
        "Could not decode the compaction blob. Ensure it is unmodified from the compact response",
    ),
    (
        R.COMPACTION_UNSUPPORTED,
        "invalid_request_error",
        'item type "compaction" is not supported',
    ),
    (
        R.ACCOUNT_OR_MODEL_BINDING,
        "invalid_request_error",
        "The encrypted reasoning was created for a different account or model.",
    ),
    (
        R.ACCOUNT_OR_MODEL_BINDING,
        "",
        "reasoning `encrypted_content` was not issued to this caller",
    ),
    (R.ACCOUNT_OR_MODEL_BINDING, "", "encrypted_content organization_id did not match"),
    (
        R.ID_BINDING,
        "invalid_encrypted_content",
        "Encrypted content item_id did not match the target item id.",
    ),
    (
        R.UNDECRYPTABLE,
        "invalid_encrypted_content",
        "The encrypted content gAAA...DQ== is broken",
    ),
    (
        R.UNDECRYPTABLE,
        "",
        "The encrypted content for item rs_1 could not be verified. Reason: bad.",
    ),
    (R.UNDECRYPTABLE, "", "Encrypted content could not be decrypted or parsed."),
    (
        R.SIGNATURE_INVALID,
        "invalid_request_error",
        "messages.5.content.2: Invalid `signature` in `thinking` block",
    ),
    (R.SIGNATURE_INVALID, "INVALID_ARGUMENT", "Corrupted thought signature."),
    (R.SIGNATURE_INVALID, "INVALID_ARGUMENT", "Invalid thought signature."),
    (R.SIGNATURE_INVALID, "INVALID_ARGUMENT", "Thought signature is not valid"),
    (
        R.SIGNATURE_MISSING,
        "",
        "messages.1.content.0.thinking.signature: Field required",
    ),
    (
        R.SIGNATURE_MISSING,
        "",
        "messages.1.content.0.thinking.signature.str: Input should be a valid string",
    ),
    (R.SIGNATURE_MISSING, "", "each thinking block must contain thinking"),
    (
        R.SIGNATURE_MISSING,
        "INVALID_ARGUMENT",
        "Function call is missing a thought_signature in functionCall parts. See position 2.",
    ),
    (
        R.SIGNATURE_MISSING,
        "INVALID_ARGUMENT",
        "Function call `f` in the 2. content block is missing a `thought_signature`.",
    ),
    (R.SIGNATURE_MISSING, "MISSING_THOUGHT_SIGNATURE", ""),
    (
        R.THINKING_MODIFIED,
        "invalid_request_error",
        (
            "messages.7.content.16: `thinking` or `redacted_thinking` blocks in the latest"
            " assistant message cannot be modified. These blocks must remain as they were."
        ),
    ),
    (
        R.THINKING_MISSING,
        "",
        (
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found"
            " `tool_use`. To avoid this requirement, disable `thinking`."
        ),
    ),
    (R.THINKING_MISSING, "", "a final assistant message must start with a thinking block"),
    (R.THINKING_MISSING, "", "the first block must be thinking"),
    (R.PREFILL_REFUSED, "", "This model does not support assistant message prefill."),
    (
        R.THINKING_NOT_ALLOWED,
        "",
        (
            "When thinking is disabled, an `assistant` message in the final position cannot contain"
            " `thinking`"
        ),
    ),
    (
        R.ORPHAN_REASONING,
        "",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    ),
    (
        R.ORPHAN_FOLLOWER,
        "",
        (
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning'"
            " item: 'rs_1'."
        ),
    ),
    (R.ORPHAN_FOLLOWER, "", "missing required preceding item of type 'reasoning'"),
    (
        R.ITEM_NOT_PERSISTED,
        "",
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
    ),
    (R.STATE_LOST, "previous_response_not_found", "Previous response with id not found."),
    (R.STATE_LOST, "thread_not_found", "no such thread"),
    (R.DUPLICATE_ITEM, "", "Duplicate item found with id rs_1"),
    (R.ENVELOPE_POLLUTED, "unknown_parameter", "Unknown parameter: 'input[1].status'."),
    (
        R.ENVELOPE_POLLUTED,
        "",
        "Invalid 'input[2].content': array too long. Expected an array with maximum length 0",
    ),
    (
        R.ENVELOPE_POLLUTED,
        "",
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
    (R.MODE_CONFLICT, "", "Encrypted content cannot be requested for persisted responses"),
    (R.MODE_CONFLICT, "", "Encrypted content is not supported with this model"),
    (
        R.PLAINTEXT_REASONING_REQUIRED,
        "",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ),
    (
        R.PLAINTEXT_REASONING_REQUIRED,
        "",
        "reasoning_content is missing in assistant tool call message",
    ),
]
OTHER_WORDING = [
    (
        R.ITEM_NOT_PERSISTED,
        "litellm.NotFoundError: OpenAIException - Item with id 'fc_9a' not found.",
    ),
    (R.ITEM_NOT_PERSISTED, "The item with id rs_0f3a1 was not found"),
    (R.ITEM_NOT_PERSISTED, "Item 'rs_0f3a1' could not be found."),
    (R.ITEM_NOT_PERSISTED, "Item with id &#39;msg_1&#39; not found."),
    (R.STATE_LOST, "AzureException - Previous response with id 'resp_1' not found."),
    (R.STATE_LOST, "previous_response_id 'resp_1' does not exist"),
    (R.STATE_LOST, "Conversation with id 'conv_12' not found."),
    (R.STATE_LOST, "Thread not found: thread_9"),
    (R.SIGNATURE_MISSING, "Gemini models require OpenRouter reasoning details to be preserved"),
    (R.SIGNATURE_MISSING, "Gemini 3 requires reasoning_details to be passed back in each request"),
    (R.SIGNATURE_MISSING, "messages.1.content.0.redacted_thinking.data: Field required"),
    (R.SIGNATURE_MISSING, "Missing required parameter: 'input[2].encrypted_content'."),
    (R.UNDECRYPTABLE, "Invalid 'input[2].encrypted_content': empty string."),
    (
        R.PREFILL_REFUSED,
        "ValidationException: The conversation must end with a user message.",
    ),
    (
        R.PREFILL_REFUSED,
        "a message in the final position, which would pre-fill the `assistant` response",
    ),
    (R.ENVELOPE_POLLUTED, "Invalid 'input[6].id': ''. Expected an ID that contains letters"),
    (R.ENVELOPE_POLLUTED, "Invalid 'input[12].id': 'x'. Expected an ID that begins with 'rs'."),
    (R.ENVELOPE_POLLUTED, "Missing required parameter: 'input[3].id'."),
    (
        R.ENVELOPE_POLLUTED,
        "messages.1.content.0.thinking.my own key: Extra inputs are not permitted",
    ),
    (R.STATE_LOST, "Previous response cannot be used due to Zero Data Retention."),
    (R.SIGNATURE_INVALID, "Request contains an invalid thought_signature."),
    (R.PREFILL_REFUSED, "Assistant response prefill is not supported while thinking is on."),
    (R.ENVELOPE_POLLUTED, "Invalid type for 'input[0].id': expected a string, but got null."),
    (
        R.ORPHAN_REASONING,
        "Item 'rs_1' of type 'reasoning' was provided\n    without its required\n following item.",
    ),
]
"""Texts of public reports, and of their kinds in other words, wrapped and broken into lines."""
UNRELATED = [
    "File with id 'file_1' not found.",
    "Model not found",
    "No tool output found for function call call_1.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128",
    "tools.0.custom.foo: Extra inputs are not permitted",
    "messages.0: too long; tools.0.custom.my own key: Extra inputs are not permitted",
    "Chunked prefill is not supported.",
    "Missing required parameter: 'input[2].content'.",
    "Your identity could not be verified.",
    "The KV cache prefill failed.",
    "Overloaded",
    "Your credit balance is too low to access the API.",
    "max_tokens: 99999 > 8192, which is the maximum allowed number of output tokens",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Rate limit reached for requests",
    "The model `gpt-9` does not exist",
    "",
]


def bodies(code: str, words: str) -> dict[str, Any]:
    """The shapes in which one refusal arrives."""
    anthropic = {
        "type": "error",
        "error": {"type": code or "invalid_request_error", "message": words},
    }
    openai = {"error": {"message": words, "type": "invalid_request_error", "code": code or None}}
    google = {"error": {"code": 400, "message": words, "status": code or "INVALID_ARGUMENT"}}
    return {
        "anthropic": anthropic,
        "anthropic with error_code": {"error": {"error_code": code, "message": words}},
        "openai": openai,
        "google": google,
        "google list": [google],
        "bedrock": {"message": f"The model returned the following errors: {code} {words}"},
        "gateway": {"error": {"message": f"litellm.BadRequestError: {json.dumps(anthropic)}"}},
        "wrapped": {"detail": {"upstream": {"body": openai}}},
        "text": f"{code}: {words}",
    }


@pytest.mark.parametrize(("expected", "code", "words"), REFUSALS)
@pytest.mark.parametrize("shape", list(bodies("", "")))
def test_a_refusal_is_classed_by_its_words_in_every_shape(
    expected: Rejection, code: str, words: str, shape: str
) -> None:
    """Code and message tell the class, wherever they stand."""
    assert classify(bodies(code, words)[shape]) is expected


@pytest.mark.parametrize(("expected", "words"), OTHER_WORDING)
@pytest.mark.parametrize("shape", list(bodies("", "")))
def test_so_is_one_in_other_words(expected: Rejection, words: str, shape: str) -> None:
    assert classify(bodies("", words)[shape]) is expected


@pytest.mark.parametrize("words", UNRELATED)
@pytest.mark.parametrize("shape", list(bodies("", "")))
def test_an_unrelated_error_has_no_class(words: str, shape: str) -> None:
    """Nothing in it speaks of sealed state."""
    assert classify(bodies("", words)[shape]) is None


def test_every_class_has_a_refusal_of_its_own() -> None:
    """All classes of the table are shown by a message."""
    assert {cls for cls, _ in FRAGMENTS} == {cls for cls, _, _ in REFUSALS}
    assert set(Rejection) - {cls for cls, _ in FRAGMENTS} == {Rejection.OTHER}


def test_fragments_are_written_as_they_are_compared() -> None:
    """In lower case, without quotes."""
    fragments = [text for _, texts in FRAGMENTS for text in texts]
    assert [t for t in fragments if t != t.lower() or set(t) & set("`'\"")] == []
    assert len(fragments) == len(set(fragments))


def test_words_are_looked_for_in_bounded_depth_and_length() -> None:
    """A hostile error body ends somewhere."""
    deep: Any = "Corrupted thought signature."
    for _ in range(50):
        deep = {"error": [deep]}
    assert classify(deep) is None
    assert classify({"a": "x" * 100_000, "b": "Corrupted thought signature."}) is None
    assert classify([["x"]] * 40 + ["Corrupted thought signature."]) is None
    assert classify(17) is None


# ------------------------------------------------------------------------------------ verdicts

WORDS = {
    "anthropic": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "openai": "The encrypted content for item rs_1 could not be verified.",
    "gemini": "Thought signature is not valid",
    "chat": "Function call is missing a thought_signature in functionCall parts.",
    "openrouter": "messages.1.content.0: Invalid `signature` in `thinking` block",
}
CLASSES = {
    "anthropic": R.SIGNATURE_INVALID,
    "openai": R.UNDECRYPTABLE,
    "gemini": R.SIGNATURE_INVALID,
    "chat": R.SIGNATURE_MISSING,
    "openrouter": R.SIGNATURE_INVALID,
}
SHAPES = {"gemini": "google", "chat": "google", "openrouter": "openai"}


def second(dialect: str, **around: Any) -> Report:
    """The report of a faithful second call that is answered in some way."""
    plan = conversation(dialect)
    tracker = Tracker(KEY)
    tracker.observe(plan[0])
    return tracker.observe(exchange(dialect, plan[1].request, None, **around))


def error_events(dialect: str) -> list[Body]:
    """The same refusal inside a stream that began with 200."""
    error = bodies("", WORDS[dialect])[SHAPES.get(dialect, dialect)]["error"]
    if dialect == "openai":
        return [
            {"type": "response.created", "response": {"id": "r", "output": []}},
            {"type": "response.failed", "response": {"id": "r", "error": error, "output": []}},
        ]
    if dialect in SHAPES:
        return [{"error": error}]
    return [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "error", "error": error},
    ]


def refusals(dialect: str) -> dict[str, dict[str, Any]]:
    body = bodies("", WORDS[dialect])[SHAPES.get(dialect, dialect)]
    raw = json.dumps(body).encode()
    stream = error_events(dialect)
    found = {
        "400": {"response": body, "status": 400},
        "raw": {"response": raw, "status": 400},
        "500 of a gateway": {"response": {"detail": body}, "status": 500},
        "429 of a gateway": {"response": raw.decode(), "status": 429},
        "no JSON at all": {"response": WORDS[dialect].encode(), "status": 502},
        "inside a 200": {"response": body, "status": 200},
        "inside a stream": {"events": stream, "complete": False},
        "inside raw server-sent events": {"events": server_sent(stream), "complete": False},
    }
    if dialect == "openai":
        failed = [{**body["error"], "type": "error"}]
        found["an error event"] = {"events": failed, "complete": False}
    return found


CELLS = [(dialect, way) for dialect in MATRIX for way in refusals(dialect)]


@pytest.mark.parametrize(("dialect", "way"), CELLS)
def test_a_refusal_is_seen_wherever_it_arrives(dialect: str, way: str) -> None:
    """By its words: in a 4xx, wrapped by a gateway, or inside a 200."""
    report = second(dialect, **refusals(dialect)[way])
    assert report.provider_verdict is ProviderVerdict.REJECTED
    assert report.rejection is CLASSES[dialect]
    assert {f.provider_verdict for f in report.findings} == {ProviderVerdict.REJECTED}
    assert {f.rejection for f in report.findings} == {CLASSES[dialect]}


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_clean_artifact_that_was_refused_broke_beyond_us(dialect: str) -> None:
    """Fate and verdict stay; the place where it happened is beyond our boundary."""
    report = second(dialect, **refusals(dialect)["400"])
    assert {f.fate.value for f in report.findings} == {"intact"}
    assert {f.verdict.value for f in report.findings} == {"ok"}
    assert {f.locus for f in report.findings} == {Locus.BEYOND}


@pytest.mark.parametrize("status", [400, 429, 503])
def test_an_error_that_speaks_of_something_else_says_nothing(status: int) -> None:
    """An overloaded provider has not judged our seals."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    report = second("anthropic", response=error, status=status)
    assert (report.provider_verdict, report.rejection) == (ProviderVerdict.UNREPORTED, None)


@pytest.mark.parametrize(
    ("status", "kind"), [(400, R.OTHER), (422, R.OTHER), (404, None), (413, None), (500, None)]
)
def test_a_refusal_of_the_request_without_a_class_is_kept_as_one(
    status: int, kind: Rejection | None
) -> None:
    """It may be about sealed state: the record shows it, the provider's verdict stays open."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}
    report = second("anthropic", response=error, status=status)
    assert (report.provider_verdict, report.rejection) == (ProviderVerdict.UNREPORTED, kind)


@pytest.mark.parametrize(("status", "kind"), [(400, R.OTHER), (500, None)])
def test_a_refusal_of_which_no_body_was_read_is_kept_all_the_same(
    status: int, kind: Rejection | None
) -> None:
    report = second("anthropic", response=None, status=status)
    assert (report.provider_verdict, report.rejection) == (ProviderVerdict.UNREPORTED, kind)


@pytest.mark.parametrize(("code", "kind"), [(400, R.OTHER), (502, None), ("400", None)])
def test_so_is_one_that_a_relay_puts_into_a_reply(code: Any, kind: Rejection | None) -> None:
    said = {"error": {"message": "Provider returned error", "code": code}}
    report = second("openrouter", response=said)
    assert (report.provider_verdict, report.rejection) == (ProviderVerdict.UNREPORTED, kind)


def test_one_of_a_request_without_sealed_state_is_about_something_else() -> None:
    error = {"error": {"type": "invalid_request_error", "message": "No."}}
    report = Tracker(KEY).observe(
        exchange("anthropic", request("anthropic", []), error, status=400)
    )
    assert (report.findings, report.rejection) == ((), None)


def test_an_answer_is_an_acceptance() -> None:
    """What was answered was accepted; no answer says nothing."""
    assert second("anthropic", response=message(text())).provider_verdict.value == "accepted"
    assert second("anthropic").provider_verdict.value == "unreported"


@pytest.mark.parametrize(
    ("status", "expected"), [(None, False), (200, False), (400, True), (503, True)]
)
def test_a_status_of_400_and_more_is_a_refusal_of_the_transport(
    status: int | None,
    expected: bool,  # noqa: FBT001 - a table
) -> None:
    """What it means is told by the words."""
    assert refused(Exchange(api=Api.MESSAGES, status=status)) is expected


def test_undecodable_bytes_of_an_error_are_read_as_far_as_they_go() -> None:
    """A gateway's page in some other encoding is still looked at."""
    page = b"\xff\xfe <p>Corrupted thought signature.</p>"
    said = provider_says(
        Exchange(api=Api.GENERATE_CONTENT, status=502, response=page), RawAnswer(()), Digest(KEY)
    )
    assert said.rejection is R.SIGNATURE_INVALID


# ------------------------------------------------------------------------------------ removals


def removed(dialect: str, entries: Any) -> Report:
    plan = conversation(dialect, turns=2)
    answer = dict(plan[1].response) | {"input_transformations": entries}
    tracker = Tracker(KEY)
    tracker.observe(plan[0])
    return tracker.observe(exchange(dialect, plan[1].request, answer))


def test_a_removal_is_laid_on_the_block_it_names() -> None:
    """By path for Anthropic; the other blocks were accepted."""
    entry = {
        "type": "thinking_dropped",
        "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch",
    }
    report = removed("anthropic", [entry])
    assert [f.provider_verdict.value for f in report.findings] == ["removed", "removed"]
    other = removed("anthropic", [entry | {"path": "messages.9.content.0"}])
    assert other.provider_verdict is ProviderVerdict.REMOVED
    assert [f.provider_verdict.value for f in other.findings] == ["accepted", "accepted"]


def test_a_mismatch_that_was_allowed_is_an_acceptance() -> None:
    """Older accounts are told and nothing is removed."""
    entry = {
        "type": "thinking_mismatch_allowed",
        "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch",
    }
    report = removed("anthropic", [entry])
    assert report.provider_verdict is ProviderVerdict.ACCEPTED
    assert [(r.reason, r.allowed) for r in report.removals] == [("prefix_binding_mismatch", True)]


def test_a_removal_of_openai_names_an_item_by_its_id() -> None:
    """The id is kept as a digest, and the item is found by it."""
    first = conversation("openai")[0].response["output"][0]
    entry = {
        "type": "reasoning",
        "action": "removed",
        "id": first["id"],
        "reason": "model_mismatch",
    }
    report = removed("openai", [entry])
    assert {f.provider_verdict.value for f in report.findings} == {"removed"}
    assert [(r.reason, r.path) for r in report.removals] == [("model_mismatch", "")]
    assert report.removals[0].item == Digest(KEY).name(first["id"])


@pytest.mark.parametrize("entries", [None, [], {}, "x", [None, 5, "x"]], ids=repr)
def test_nothing_removed_is_nothing_said(entries: Any) -> None:
    """An empty list means that nothing was removed."""
    report = removed("anthropic", entries)
    assert (report.provider_verdict.value, report.removals) == ("accepted", ())


def test_odd_removals_become_words_of_ours() -> None:
    """A reason or path that could be content does not pass."""
    report = removed("anthropic", [{"reason": "Secret Words!", "path": "<script>"}, {}])
    assert [(r.reason, r.path) for r in report.removals] == [("other", ""), ("other", "")]


def test_removals_are_bounded() -> None:
    """A hostile answer names no more than 64."""
    entry = {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "x"}
    assert len(removed("anthropic", [entry] * 500).removals) == 64


def test_the_class_of_a_refusal_never_changes_a_fate_or_a_verdict() -> None:
    """The provider's word stands beside ours."""
    tracker = Tracker(KEY)
    answers = {
        "anthropic": message(thinking(), use()),
        "openai": response(reasoning(), call()),
        "gemini": candidate(part()),
        "chat": called(),
        "openrouter": reasoned(),
    }
    for dialect, answer in answers.items():
        body = request(dialect, [])
        tracker.observe(exchange(dialect, body, answer))
        again = request(dialect, [])
        history(again).extend(step(dialect, answer, "And?"))
        report = tracker.observe(exchange(dialect, again, None, **refusals(dialect)["400"]))
        assert {(f.fate.value, f.verdict.value) for f in report.findings} == {("intact", "ok")}
    assert set(answers) == set(MATRIX)
    assert observe([]) == []
