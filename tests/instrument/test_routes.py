"""Which requests of any HTTP client send turns of a model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_sealed.instrument.routes import sends_turn

ASKS = json.dumps({"messages": [{"role": "user", "content": "x"}], "model": "m"})
TELEPHONE = json.dumps({"to": "1", "from": "2", "text": 'my "model": is', "channel": "sms"})
AWS = "bedrock-runtime.eu-central-1.amazonaws.com"
VERTEX = "europe-west4-aiplatform.googleapis.com"
AT = "/v1/projects/p/locations/l/publishers"

TURNS = [
    ("api.anthropic.com", "/v1/messages"),
    ("api.anthropic.com", "/v1/messages/batches"),
    ("api.openai.com", "/v1/responses"),
    ("api.openai.com", "/v1/responses/compact"),
    ("api.openai.com", "/v1/chat/completions"),
    ("api.openai.com", "/v1/conversations"),
    ("api.openai.com", "/v1/conversations/conv_1/items"),
    ("chatgpt.com", "/backend-api/codex/responses"),
    ("me.openai.azure.com", "/openai/deployments/d/chat/completions"),
    ("me.openai.azure.com", "/openai/responses"),
    ("me.services.ai.azure.com", "/anthropic/v1/messages"),
    ("generativelanguage.googleapis.com", "/v1beta/models/gemini-3:generateContent"),
    ("generativelanguage.googleapis.com", "/v1beta/models/gemini-3:streamGenerateContent"),
    ("generativelanguage.googleapis.com", "/v1beta/models/gemini-3:batchGenerateContent"),
    ("generativelanguage.googleapis.com", "/v1beta/interactions"),
    ("generativelanguage.googleapis.com", "/v1beta/openai/chat/completions"),
    (VERTEX, f"{AT}/google/models/gemini-3:generateContent"),
    (VERTEX, f"{AT}/anthropic/models/claude-opus-5:rawPredict"),
    (VERTEX, f"{AT}/anthropic/models/claude-opus-5:streamRawPredict"),
    (AWS, "/model/eu.anthropic.claude-opus-5-v1:0/invoke"),
    (AWS, "/model/eu.anthropic.claude-opus-5-v1:0/invoke-with-response-stream"),
    (AWS, "/model/arn%3Aaws%3Abedrock/converse"),
    (AWS, "/model/amazon.nova/converse-stream"),
    ("openrouter.ai", "/api/v1/chat/completions"),
    ("openrouter.ai", "/api/v1/responses"),
    ("127.0.0.1", "/v1/chat/completions"),
    ("127.0.0.1", "/v1/chat/completions/"),
    ("gateway.example", "/openai/deployments/d/chat/completions"),
    ("gateway.example", "/v1beta/models/m:streamGenerateContent"),
    ("localhost", "/model/m/converse"),
]
OTHERS = [
    ("api.anthropic.com", "/v1/messages/count_tokens"),
    ("api.anthropic.com", "/v1/models"),
    ("api.anthropic.com", "/v1/files"),
    ("api.openai.com", "/v1/embeddings"),
    ("api.openai.com", "/v1/images/generations"),
    ("api.openai.com", "/v1/files"),
    ("api.openai.com", "/v1/responses/input_tokens"),
    ("api.openai.com", "/v1/responses/resp_1/cancel"),
    ("api.openai.com", "/v1/threads/thread_1/messages"),
    ("api.openai.com", "/v1/audio/speech"),
    ("api.openai.com", "/v1/traces/ingest"),
    ("me.openai.azure.com", "/openai/deployments/d/embeddings"),
    ("generativelanguage.googleapis.com", "/v1beta/models/m:countTokens"),
    ("generativelanguage.googleapis.com", "/v1beta/models/m:embedContent"),
    (VERTEX, f"{AT}/google/models/imagen:predict"),
    (VERTEX, f"{AT}/mistralai/models/m:rawPredict"),
    (VERTEX, f"{AT}/anthropic/models/count-tokens:rawPredict"),
    (AWS, "/model/amazon.titan-embed-text-v2:0/invoke"),
    ("s3.amazonaws.com", "/bucket/messages"),
    ("example.org", "/api/responses"),
    ("example.org", "/messages"),
    ("example.org", "/converse"),
    ("example.org", "/v1/interactions"),
    ("example.org", "/"),
    ("", ""),
]


@pytest.mark.parametrize(("host", "path"), TURNS)
def test_what_sends_turns_is_known_by_its_url_alone(host: str, path: str) -> None:
    assert sends_turn(host, path, None)


@pytest.mark.parametrize(("host", "path"), OTHERS)
def test_what_sends_none_is_not_taken_for_it(host: str, path: str) -> None:
    assert not sends_turn(host, path, ASKS)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/proxy/v1/messages/"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ASKS, True),
        (ASKS.encode(), True),
        (json.loads(ASKS), True),
        (json.dumps({"model": "m", "x": "y" * 200_000}), True),
        (json.dumps({"x": "y" * 200_000, "model": "m"}), True),
        (TELEPHONE, False),
        (TELEPHONE.encode(), False),
        (json.loads(TELEPHONE), False),
        (None, False),
        (iter([b'{"model": "m"}']), False),
    ],
)
def test_a_path_that_others_have_needs_the_key_that_the_api_demands(
    path: str, body: Any, *, expected: bool
) -> None:
    """The Messages API of a telephone company has the path of Anthropic's."""
    assert sends_turn("gateway.example", path, body) == expected


def test_a_body_of_bedrock_says_whose_model_an_arn_is() -> None:
    path = "/model/arn%3Aaws%3Abedrock%3Aapplication-inference-profile%2Fx/invoke"
    assert sends_turn(AWS, path, b'{"anthropic_version":"bedrock-2023-05-31"}')
    assert not sends_turn(AWS, path, b'{"inputText":"x"}')


def test_a_long_path_is_read_at_its_end() -> None:
    assert sends_turn("h", "/x" * 1_000_000 + "/v1/chat/completions", None)
    assert not sends_turn("api.openai.com", "/v1/responses" + "/x" * 1_000_000, None)
