"""No content by construction (design, principle 8), proved on everything that goes out.

Theory of operation. Canaries stand in prompts, answers, thinking, tool names, arguments, results,
block types, keys, ids, stop reasons and error texts; every sealed value is one by itself. The hosts
of the demo, and some stranger ones, are run over them, and every output is gathered: spans,
metrics, log events, Python logging, the repr of every record in reach, alerts, the files under
`.otel-sealed` and what the commands print. The sweeper then looks for each canary and each seal,
whole or any 12 characters of it, plain or encoded. The same sweep fails as soon as a leak is
planted, whichever output it is planted in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed import transcript
from otel_sealed.cli import verify
from otel_sealed.contract import Exchange
from otel_sealed.errors import SealedError
from otel_sealed.instrument import guard
from otel_sealed.model import Report
from otel_sealed.telemetry import attributes, lines
from otel_sealed.testing.hosts import hosts, on_chat, play
from otel_sealed.testing.sweep import Sweeper, encodings
from otel_sealed.tracker import Tracker
from tests.harvest import WORDS, Harvest, body_of, harvested, logged

# -------------------------------------------------------------------------------------- tests


@pytest.fixture(scope="module", name="harvest")
def _harvest(tmp_path_factory: pytest.TempPathFactory) -> Harvest:
    return harvested(tmp_path_factory.mktemp("harvest"), (*hosts(), *on_chat.HOSTS))


def test_nothing_that_goes_out_holds_content(harvest: Harvest) -> None:
    assert harvest.sweeper().sweep(harvest.outputs) == []


def test_everything_that_goes_out_was_swept(harvest: Harvest) -> None:
    """An output that is empty by mistake would prove nothing."""
    empty = {name for name, output in harvest.outputs.items() if not output}
    assert empty <= {
        name for name in harvest.outputs if name.startswith("inspect") or "std" in name
    }
    kinds = {name.split()[0] for name in harvest.outputs}
    expected = {
        "spans",
        "metrics",
        "events",
        "logging",
        "records",
        "verify",
        "inspect",
        "sessions",
        "triage",
        "report",
        "demo",
        "file",
        "ledger",
        "doctor",
    }
    assert expected == kinds
    records = harvest.outputs[f"records {WORDS['tool']}"]
    assert isinstance(records, str)
    for name in (
        "Report(",
        "Exchange(",
        "Turn(",
        "Finding(",
        "Call ",
        "Alert(",
        "Value(",
        "Block(",
    ):
        assert name in records


def test_the_canaries_were_really_on_the_wire(harvest: Harvest) -> None:
    """Each word was sent or received, so that it could have leaked."""
    wire = [
        body_of(body)
        for provider in harvest.providers
        for exchange in provider.exchanges
        for body in (exchange.request_body, exchange.response_body)
    ]
    text = json.dumps(wire, ensure_ascii=False)
    lost = [
        label
        for label, word in WORDS.items()
        if json.dumps(word, ensure_ascii=False)[1:-1] not in text
    ]
    assert lost == []


# ---------------------------------------------------------------------------- planted leaks

Plant = Callable[[pytest.MonkeyPatch], None]
ONE = tuple(host for host in hosts() if host.name == "anthropic-type-filter")


def _in_a_span(patch: pytest.MonkeyPatch) -> None:
    made = attributes.span_attributes

    def leaking(*arguments: Any, **options: Any) -> dict[str, Any]:
        leak = encodings(WORDS["question"])["base64 of a longer text"]
        return {**made(*arguments, **options), "otel_sealed.facts": [f"x={leak}"]}

    patch.setattr(attributes, "span_attributes", leaking)


def _in_a_log_line(patch: pytest.MonkeyPatch) -> None:
    def leaking(*_about: object) -> lines.Sentence:
        return lines.Sentence("lost %s", (WORDS["question"][:12],))

    patch.setattr(lines, "violation", leaking)


def _in_a_repr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Exchange, "__repr__", lambda self: f"Exchange({self.request!r})")


def _in_a_command(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(verify, "said", lambda *_: encodings(WORDS["answer"])["hex"])


def _in_an_error(patch: pytest.MonkeyPatch) -> None:
    def leaking(text: str, where: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise SealedError(f"cannot be read: {text}", where=where) from None

    patch.setattr(transcript, "_parsed", leaking)


@pytest.mark.parametrize(
    ("plant", "where"),
    [
        (_in_a_span, "spans"),
        (_in_a_log_line, "logging"),
        (_in_a_log_line, "events"),
        (_in_a_repr, "records"),
        (_in_a_command, "verify"),
        (_in_an_error, "verify"),
    ],
)
def test_a_planted_leak_is_found(
    plant: Plant, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    harvest = harvested(tmp_path, ONE)
    hits = harvest.sweeper().sweep(harvest.outputs)
    assert where in {hit.where.split()[0] for hit in hits}


@pytest.mark.parametrize("message", [WORDS["question"], WORDS["own seal"]])
def test_a_fault_of_ours_that_quotes_content_does_not_tell_it(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of tests the guard swallows it: type and place are logged, and never the message."""

    def fails(_self: Tracker, _exchange: Exchange) -> Report:
        raise ValueError(message)

    spans = InMemorySpanExporter()
    tracer = TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(guard, "STRICT", False)
    monkeypatch.setattr(Tracker, "observe", fails)
    with logged() as lines:
        list(play([h for h in hosts() if h.name == "anthropic"], tracer_provider=tracer))
    written = "\n".join(span.to_json() for span in spans.get_finished_spans())
    assert any("ValueError" in line for line in lines)
    assert Sweeper(WORDS).sweep({"log": "\n".join(lines), "spans": written}) == []
