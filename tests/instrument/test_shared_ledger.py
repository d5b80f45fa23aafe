"""Two real processes of one conversation: the first receives, the second replays and loses a seal.

With a shared ledger the second knows what it lost; without, it knows nothing and accuses nobody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.testing.strict import StrictProvider

PROGRAM = """
import json, sys
from pathlib import Path
import anthropic
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import otel_sealed

url, role, chat = sys.argv[1], sys.argv[2], Path(sys.argv[3])
spans = InMemorySpanExporter()
tracer = TracerProvider()
tracer.add_span_processor(SimpleSpanProcessor(spans))
otel_sealed.instrument("anthropic", tracer_provider=tracer)
ask = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}],
}
client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)

def results(content):
    return [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "found"}
        for block in content
        if block["type"] == "tool_use"
    ]

def call(messages):
    message = client.messages.create(**ask, messages=messages)
    return [block.model_dump(mode="json", exclude_none=True) for block in message.content]

if role == "receives":
    messages = [{"role": "user", "content": "hi"}]
    for _ in range(2):
        content = call(messages)
        messages.append({"role": "assistant", "content": content})
        messages.append({"role": "user", "content": results(content) or "go on"})
    chat.write_text(json.dumps(messages))
else:
    messages = json.loads(chat.read_text())
    last = messages[3]["content"]
    if role == "loses":
        last[:] = [block for block in last if "thinking" not in block["type"]]
    try:
        call(messages)
    except anthropic.BadRequestError:
        assert role == "loses"
attributes = dict(spans.get_finished_spans()[-1].attributes)
fates = attributes.get("otel_sealed.returned.fates", ())
print(json.dumps({"fates": sorted(set(fates)), "verdict": attributes.get("otel_sealed.verdict")}))
"""


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as strict:
        yield strict


def process(provider: StrictProvider, role: str, folder: Path, ledger: str) -> dict[str, Any]:
    """A process of its own; what the span of its last call said."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    if ledger:
        environ["OTEL_SEALED_LEDGER"] = ledger
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, provider.anthropic_url, role, str(folder / "chat.json")],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be used" not in done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_with_a_shared_ledger_the_second_process_knows_what_it_lost(
    provider: StrictProvider, tmp_path: Path
) -> None:
    ledger = str(tmp_path / "ledger.db")
    process(provider, "receives", tmp_path, ledger)
    assert process(provider, "replays", tmp_path, ledger)["verdict"] == "ok"
    told = process(provider, "loses", tmp_path, ledger)
    assert "dropped" in told["fates"]
    assert "unknown" not in told["fates"]
    assert told["verdict"] == "breaks"


def test_without_one_it_knows_nothing_and_accuses_nobody(
    provider: StrictProvider, tmp_path: Path
) -> None:
    process(provider, "receives", tmp_path, "")
    for role in ("replays", "loses"):
        told = process(provider, role, tmp_path, "")
        assert (told["fates"], told["verdict"]) == (["unknown"], "unverifiable")


def test_with_a_ledger_that_cannot_be_used_it_is_as_without(
    provider: StrictProvider, tmp_path: Path
) -> None:
    """One line in each process, and the calls go through."""
    (tmp_path / "ledger.db").write_bytes(b"no database" * 1_000)
    environ = {"OTEL_SEALED_LEDGER": str(tmp_path / "ledger.db")}
    command = [sys.executable, "-c", PROGRAM, provider.anthropic_url, "receives"]
    done = subprocess.run(
        [*command, str(tmp_path / "chat.json")],
        env={**os.environ, **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    line = "the shared ledger (sqlite) cannot be used: DatabaseError; the memory of this process"
    assert done.stderr.splitlines() == [f"{line} stands in"]
    assert json.loads(done.stdout)["verdict"] == "ok"
