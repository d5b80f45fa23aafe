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
LITELLM = """
import litellm
litellm.suppress_debug_info = True
model = "anthropic/claude-opus-4-6"
litellm.completion(model, hello, api_base=anthropic_url, api_key="k", max_tokens=9)
"""
ASYNC_LITELLM = """
import asyncio, litellm
litellm.suppress_debug_info = True
model = "anthropic/claude-opus-4-6"
asyncio.run(
    litellm.acompletion(model, hello, api_base=anthropic_url, api_key="k", max_tokens=9)
)
"""
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
BOTO3 = """
import boto3, botocore.exceptions
client = boto3.client(
    "bedrock-runtime", "eu-west-1", endpoint_url=f"{anthropic_url}",
    aws_access_key_id="k", aws_secret_access_key="s",
    config=boto3.session.Config(retries={"total_max_attempts": 1}),
)
try:
    client.converse(
        modelId="anthropic.claude-opus-5",
        messages=[{"role": "user", "content": [{"text": "hello"}]}],
    )
except botocore.exceptions.ClientError:
    pass  # the strict provider has no Bedrock
"""
PASS_BY = {
    "litellm": ("litellm", LITELLM, r"httpx|aiohttp"),
    "litellm async": ("litellm", ASYNC_LITELLM, r"httpx|aiohttp"),
    "litellm responses": ("litellm", RESPONSES_LITELLM, r"httpx|aiohttp"),
    "dspy": ("dspy", DSPY, r"lm15|httpx"),
    "smolagents": ("smolagents", SMOLAGENTS, r"httpx|aiohttp"),
    "boto3": ("boto3", BOTO3, r"botocore"),
}


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


@pytest.mark.parametrize("name", PASS_BY)
def test_what_goes_past_the_sdks_is_named(name: str, tmp_path: Path) -> None:
    """By the metric that the summary is read from, in the summary, and in one log line."""
    package, script, client = PASS_BY[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = ran(tmp_path, SERVE + script)
    assert done.returncode == 0, done.stderr
    screen = done.stderr[done.stderr.index("otel-sealed: ") :].splitlines()
    assert screen[0].startswith("otel-sealed: no call was observed")
    assert screen[1].startswith("1 request with turns of a model passed unobserved")
    assert re.fullmatch(rf"  1 to 127\.0\.0\.1 by (?:{client})", screen[2])
    line = rf"calls of models over (?:{client}) to 127\.0\.0\.1 pass unobserved"
    assert len(re.findall(line, done.stderr)) == 1


@pytest.mark.parametrize("name", sorted({package for package, _, _ in PASS_BY.values()}))
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
    assert (line["level"], "not judged" in line["says"]) == ("note", True)


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
