"""Zero code: the real launcher, a script, a real OTLP receiver on loopback, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

for module in ("opentelemetry.instrumentation.auto_instrumentation", "anthropic"):
    pytest.importorskip(module)
pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

import anthropic  # noqa: E402 - behind the checks that the packages are there
import wrapt  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402

import otel_sealed  # noqa: E402
from otel_sealed.instrument import patch, uninstrument  # noqa: E402
from otel_sealed.telemetry import attach  # noqa: E402
from otel_sealed.zerocode import SealedInstrumentor, add_processor  # noqa: E402
from tests.otlp import Receiver  # noqa: E402

SCRIPT = """\
import anthropic
from otel_sealed.testing.strict import StrictProvider

TOOL = {"name": "look", "input_schema": {"type": "object", "properties": {}}}
thinking = {"type": "enabled", "budget_tokens": 1024}
ask = {"model": "claude-sonnet-4-6", "max_tokens": 4096, "thinking": thinking}
with StrictProvider(seed=7) as provider:
    url = provider.anthropic_url
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=0) as client:
        messages = [{"role": "user", "content": "CANARY question"}]
        reply = client.messages.create(**ask, tools=[TOOL], messages=messages)
        kept = [block for block in reply.content if "thinking" not in block.type]
        calls = [block.id for block in reply.content if block.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": c, "content": "CANARY"} for c in calls]
        messages += [{"role": "assistant", "content": kept}, {"role": "user", "content": results}]
        try:
            client.messages.create(**ask, tools=[TOOL], messages=messages)
        except anthropic.BadRequestError:
            print("refused")
"""
SEAL = "anthropic.thinking.signature"
LAUNCHER = Path(sys.executable).with_name("opentelemetry-instrument")


@pytest.fixture(name="reset")
def _reset() -> Iterator[None]:
    yield
    SealedInstrumentor().uninstrument()
    uninstrument()
    attach.forget()


def launch(
    folder: Path, receiver: Receiver, *, head: str = "", **environment: str
) -> tuple[str, str]:
    """Output and errors of the script, which begins with `head`, under the launcher."""
    script = folder / "agent.py"
    script.write_text(head + SCRIPT, "utf-8")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "PYTHON"))}
    ran = subprocess.run(
        [LAUNCHER, sys.executable, script],
        cwd=folder,
        env={
            **clean,
            "NO_PROXY": "127.0.0.1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "checkout",
            **environment,
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return ran.stdout, ran.stderr


def calls_in(receiver: Receiver) -> list[dict[str, Any]]:
    return [span for span in receiver.spans if "otel_sealed.carry" in span]


def test_the_entry_points_are_ours_by_name() -> None:
    found = {
        group: [point.value for point in entry_points(group=group, name="otel_sealed")]
        for group in ("opentelemetry_pre_instrument", "opentelemetry_instrumentor")
    }
    assert found == {
        "opentelemetry_pre_instrument": ["otel_sealed.zerocode:add_processor"],
        "opentelemetry_instrumentor": ["otel_sealed.zerocode:SealedInstrumentor"],
    }


@pytest.mark.parametrize("native", ["true", "false"])
def test_spans_metrics_log_events_and_one_alert_arrive(tmp_path: Path, native: str) -> None:
    """Whether the call's span is ours or that of the SDK's own tracer."""
    with Receiver() as receiver:
        out, err = launch(tmp_path, receiver, ANTHROPIC_OPEN_TELEMETRY=native)
    assert out == "refused\n"
    assert "anthropic.thinking.signature dropped" in err
    spans = calls_in(receiver)
    assert [span.get("otel_sealed.verdict") for span in spans] == [None, "breaks"]
    assert [span["otel_sealed.provider_verdict"] for span in spans] == ["accepted", "rejected"]
    assert receiver.sums("otel_sealed.violations", "otel_sealed.verdict") == {
        "breaks": 1,
        "degrades": 0,
    }
    assert receiver.sums("otel_sealed.state", "otel_sealed.state") == {
        "active": 1,
        "killed": 0,
        "resting": 0,
    }
    violations = [e for e in receiver.events if e["name"] == "otel_sealed.violation"]
    assert [(e["otel_sealed.artifact"], e["otel_sealed.fate"]) for e in violations] == [
        ("anthropic.thinking.signature", "dropped")
    ]
    assert [body for body in receiver.bodies if b"CANARY" in body] == []


@pytest.mark.parametrize("head", ["", "import logging; logging.basicConfig()\n"])
def test_one_violation_is_one_log_record_where_logging_is_bridged(
    tmp_path: Path, head: str
) -> None:
    """The launcher's bridge; the terminal has the line where the application logs to it."""
    with Receiver() as receiver:
        bridged = {"OTEL_PYTHON_LOGGING_AUTO_INSTRUMENTATION_ENABLED": "true"}
        out, err = launch(tmp_path, receiver, head=head, **bridged)
    assert out == "refused\n"
    (record,) = [e for e in receiver.events if SEAL in str(e["body"])]
    assert record["name"] == "otel_sealed.violation"
    assert record["body"].startswith(f"{SEAL} dropped, received at content.0, in a request to ")
    assert err.count(record["body"]) == int(bool(head))


@pytest.mark.parametrize(
    "switch",
    [
        {"OTEL_SEALED_ENABLED": "false"},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "flask, otel_sealed"},
        {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "*"},
    ],
    ids=lambda switch: "=".join(*switch.items()),
)
def test_switched_off_nothing_of_ours_goes_out(tmp_path: Path, switch: dict[str, str]) -> None:
    with Receiver() as receiver:
        out, err = launch(tmp_path, receiver, **switch)
    assert (out, err) == ("refused\n", "")
    assert [body for body in receiver.bodies if b"otel_sealed" in body] == []


def test_an_invalid_setting_is_one_line_and_no_dead_app(tmp_path: Path) -> None:
    with Receiver() as receiver:
        out, err = launch(
            tmp_path, receiver, OTEL_SEALED_MAX_TURNS="many", OTEL_SEALED_KNOWN="no such file"
        )
    assert out == "refused\n"
    first, second, *_ = err.splitlines()
    assert first == (
        "invalid settings, their defaults are used: "
        "OTEL_SEALED_MAX_TURNS (takes a whole number from 1 to 10000000)"
    )
    assert (
        second == "known losses, no such file: No such file or directory; check OTEL_SEALED_KNOWN"
    )
    assert len(calls_in(receiver)) == 2


# ----------------------------------------------------------------------- the instrumentor by itself


def test_the_instrumentor_is_one_by_its_methods(reset: None) -> None:
    del reset
    ours = SealedInstrumentor()
    assert ours.instrumentation_dependencies() == ()
    assert ours.is_instrumented_by_opentelemetry is False
    tracers = TracerProvider()
    ours.instrument(skip_dep_check=True, tracer_provider=tracers, unheard_of=1)
    SealedInstrumentor().instrument()
    assert SealedInstrumentor().is_instrumented_by_opentelemetry is True
    attached = otel_sealed.instrument().attached
    assert "anthropic._base_client.SyncAPIClient.request" in attached
    SealedInstrumentor().uninstrument()
    ours.uninstrument()
    assert ours.is_instrumented_by_opentelemetry is False
    assert not isinstance(anthropic._base_client.SyncAPIClient.request, wrapt.FunctionWrapper)


@pytest.mark.parametrize("fault", [RuntimeError("CANARY"), ImportError("CANARY")])
def test_nothing_comes_out_of_an_entry_point(
    reset: None,
    fault: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What did would keep every other instrumentation from loading."""
    del reset

    def fails(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr(patch, "instrument", fails)
    monkeypatch.setattr("otel_sealed.instrument.instrument", fails)
    monkeypatch.setattr("otel_sealed.telemetry.attach.want", fails)
    add_processor()
    SealedInstrumentor().instrument()
    kind = type(fault).__name__
    assert [record.getMessage() for record in caplog.records] == [
        f"zero code: {what} failed ({kind}), calls go through unobserved"
        for what in ("the span processor", "instrumenting", "the span processor")
    ]


def test_importing_it_imports_nothing_but_the_standard_library() -> None:
    """An SDK or a wrapper that cannot be imported here must not hit the loader."""
    code = (
        "import sys, otel_sealed.zerocode\n"
        "print(*sorted({'opentelemetry', 'pydantic', 'wrapt'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"
