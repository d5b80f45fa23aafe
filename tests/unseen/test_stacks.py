"""Real stacks that bring a transport or a tracer of their own: observed, or named as unobserved.

Run by `.ci/run unseen`, which installs them; elsewhere what is missing is skipped. Each stack runs
as a program of its own under `otel-sealed run`, against the strict provider on loopback.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

TREE = Path(__file__).parents[2]
MAIN = [sys.executable, "-c", "import sys; from otel_sealed.cli import main; sys.exit(main())"]
SERVE = """
import json, os, sys
from otel_sealed.testing.strict import StrictProvider
provider = StrictProvider(seed=7).__enter__()
anthropic_url, openai_url = provider.anthropic_url, provider.openai_url
hello = [{"role": "user", "content": "hello"}]
"""
COMPARED = """
minted = [one.value for one in provider.minted]
sent = provider.exchanges[-1].request_body.decode()
print(json.dumps({
    "requests": len(provider.exchanges),
    "carried": sum(json.dumps(one)[1:-1] in sent for one in minted),
    "minted": len(minted),
}))
"""
LOOP = """
tools = [{"type": "function", "function": {
    "name": "look", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}}]
def loop(ask, keep):
    history = list(hello)
    for _ in range(4):
        message = ask(history)
        history.append(keep(message.model_dump(exclude_none=True)))
        if not message.tool_calls:
            return
        for call in message.tool_calls:
            history.append({"role": "tool", "tool_call_id": call.id, "content": "a result"})
def all_of(message):
    return message
def none_of(message):
    message.pop("thinking_blocks", None)
    message.pop("provider_specific_fields", None)
    return message
"""
LITELLM = (
    LOOP
    + """
import asyncio, litellm
litellm.suppress_debug_info = True
more = {"api_base": anthropic_url, "api_key": "k", "max_tokens": 4096, "num_retries": 0,
        "tools": tools, "reasoning_effort": "low"}
model = "anthropic/claude-opus-4-6"
def whole(history):
    return litellm.completion(model, history, **more).choices[0].message
def streamed(history):
    chunks = list(litellm.completion(model, history, stream=True, **more))
    return litellm.stream_chunk_builder(chunks, messages=history).choices[0].message
def asynchronous(history):
    return asyncio.run(litellm.acompletion(model, history, **more)).choices[0].message
loop(%s, %s)
"""
)
RESPONSES_LITELLM = """
import litellm
litellm.suppress_debug_info = True
litellm.responses("hello", "openai/gpt-5.2", api_base=openai_url, api_key="k")
"""
DSPY = """
import dspy
at = f"{anthropic_url}/v1"
model = dspy.LM("anthropic/claude-opus-4-6", api_base=at, api_key="k", cache=False)
model("hello")
"""
SMOLAGENTS = """
from smolagents import LiteLLMModel
model = LiteLLMModel("anthropic/claude-opus-4-6", api_base=anthropic_url, api_key="k")
model.generate([{"role": "user", "content": [{"type": "text", "text": "hello"}]}])
"""
REQUESTS = """
import requests
ask = {"model": "claude-opus-4-6", "max_tokens": 4096, "messages": hello}
headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
requests.post(f"{anthropic_url}/v1/messages", json=ask, headers=headers, timeout=10)
"""
INVOKE = """
import boto3, botocore.exceptions
client = boto3.client(
    "bedrock-runtime", "eu-west-1", endpoint_url=anthropic_url,
    aws_access_key_id="k", aws_secret_access_key="s",
    config=boto3.session.Config(retries={"total_max_attempts": 1}),
)
body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": hello}
try:
    client.invoke_model(modelId="anthropic.claude-opus-5", body=json.dumps(body))
except botocore.exceptions.ClientError:
    pass  # the strict provider has no Bedrock
"""
ONCE = {
    "litellm responses": ("litellm", RESPONSES_LITELLM),
    "dspy": ("dspy", DSPY),
    "smolagents": ("smolagents", SMOLAGENTS),
    "requests": ("requests", REQUESTS),
    "boto3, invoke": ("boto3", INVOKE),
}
PACKAGES = ("litellm", "dspy", "smolagents", "boto3")
DELIVERIES = ("whole", "streamed", "asynchronous")
URLLIB = """
import urllib.request
ask = {"model": "claude-opus-4-6", "max_tokens": 9, "messages": hello}
request = urllib.request.Request(
    f"{anthropic_url}/v1/messages", json.dumps(ask).encode(), {"content-type": "application/json"})
urllib.request.urlopen(request).read()
"""


def clean() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "AWS_"))}
    quiet = {
        "PYTHONWARNINGS": "ignore",
        "NO_PROXY": "127.0.0.1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "1",
    }
    return {**kept, **quiet, "PYTHONPATH": str(TREE), "LOGFIRE_IGNORE_NO_CONFIG": "1"}


def ran(folder: Path, script: str, *, observed: bool = True) -> subprocess.CompletedProcess[str]:
    (folder / "stack.py").write_text(script, "utf-8")
    command = [sys.executable, "stack.py"]
    return subprocess.run(
        [*MAIN, "run", "--", *command] if observed else command,
        cwd=folder,
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )


def spans(folder: Path) -> list[dict[str, Any]]:
    """The attributes of every span that a run left, in the order of their starts."""
    found = []
    for path in sorted((folder / ".otel-sealed").rglob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            for resource in json.loads(line).get("resourceSpans", ()):
                for scope in resource["scopeSpans"]:
                    found += scope["spans"]
    found.sort(key=lambda span: int(span["startTimeUnixNano"]))
    return [{a["key"]: a["value"] for a in span["attributes"]} for span in found]


@pytest.mark.parametrize("name", ONCE)
def test_a_stack_is_observed_once_a_call(name: str, tmp_path: Path) -> None:
    """Under `otel-sealed run`, without a word about it in its code."""
    package, script = ONCE[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = ran(tmp_path, SERVE + script + COMPARED)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["requests"] == len(spans(tmp_path)) == 1
    assert "unobserved" not in done.stderr


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("host", ["all_of", "none_of"])
def test_what_litellm_carries_is_what_the_provider_got(
    host: str, delivery: str, tmp_path: Path
) -> None:
    """The last request of a loop: what is said to be returned against the bytes that came."""
    if find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    done = ran(tmp_path, SERVE + LITELLM % (delivery, host) + COMPARED)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    calls = spans(tmp_path)
    assert seen["requests"] == len(calls) == 3
    last = calls[-1]
    returned = int(last["otel_sealed.returned.count"]["intValue"])
    assert returned == seen["carried"]
    assert (returned > 0) is (host == "all_of")
    assert last["otel_sealed.verdict"]["stringValue"] == ("ok" if returned else "degrades")


def test_what_no_hook_can_look_on_is_named(tmp_path: Path) -> None:
    """By the metric that the summary is read from, in the summary, and in one log line."""
    done = ran(tmp_path, SERVE + URLLIB)
    assert done.returncode == 0, done.stderr
    screen = done.stderr[done.stderr.index("otel-sealed: ") :].splitlines()
    assert screen[0].startswith("otel-sealed: no call was observed")
    assert screen[1].startswith("1 request with turns of a model passed unobserved")
    assert screen[2] == "  1 to 127.0.0.1 by http.client"
    line = r"calls of models over http\.client to 127\.0\.0\.1 pass unobserved"
    assert len(re.findall(line, done.stderr)) == 1


@pytest.mark.parametrize("name", PACKAGES)
def test_doctor_names_it(name: str) -> None:
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [*MAIN, "doctor", "--json"],
        env=clean(),
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    (line,) = (line for line in found if re.fullmatch(rf"{name} \d[\d.]*", line["about"]))
    assert (line["level"], 'instrument("http")' in line["says"]) == ("note", True)


SILENCED = (
    SERVE
    + """
import asyncio
import logfire, otel_sealed
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exported = InMemorySpanExporter()
logfire.configure(
    send_to_logfire=False, console=False, inspect_arguments=False,
    additional_span_processors=[SimpleSpanProcessor(exported)],
)
ORDER, DELIVERY = "%s", "%s"
if ORDER == "ours first":
    otel_sealed.instrument()
logfire.instrument_anthropic()
otel_sealed.instrument()
import anthropic

tool = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
thinks = {"type": "enabled", "budget_tokens": 1024}
ask = {"model": "claude-opus-4-6", "max_tokens": 4096, "thinking": thinks, "tools": [tool]}


def sent(messages):
    if DELIVERY == "async":
        async def send():
            async with anthropic.AsyncAnthropic(api_key="k", base_url=anthropic_url) as client:
                return await client.messages.create(messages=messages, **ask)
        return asyncio.run(send())
    with anthropic.Anthropic(api_key="k", base_url=anthropic_url) as client:
        if DELIVERY == "helper":
            with client.messages.stream(messages=messages, **ask) as stream:
                return stream.get_final_message()
        made = client.messages.create(messages=messages, **ask)
        if DELIVERY == "streamed":
            for _ in client.messages.create(messages=messages, stream=True, **ask):
                pass
        return made


reply = sent(hello)
kept = [block for block in reply.content if block.type == "tool_use"]
results = [{"type": "tool_result", "tool_use_id": block.id, "content": "x"} for block in kept]
turn = [{"role": "assistant", "content": kept}, {"role": "user", "content": results}]
try:
    sent([*hello, *turn])
except anthropic.BadRequestError:
    pass
spans = [span for span in exported.get_finished_spans() if span.attributes]
verdicts = [span.attributes["otel_sealed.verdict"] for span in spans
            if "otel_sealed.verdict" in span.attributes]
print(json.dumps({"verdicts": verdicts}))
"""
)


@pytest.mark.parametrize("delivery", ["whole", "async", "streamed", "helper"])
@pytest.mark.parametrize("order", ["theirs first", "ours first"])
def test_calls_under_logfire_are_observed(order: str, delivery: str, tmp_path: Path) -> None:
    if find_spec("logfire") is None:
        pytest.skip("logfire is not installed")
    done = ran(tmp_path, SILENCED % (order, delivery), observed=False)
    assert done.returncode == 0, done.stderr
    assert "breaks" in json.loads(done.stdout.splitlines()[-1])["verdicts"]
    assert "pass unobserved" not in done.stderr
