"""What the canary sweep sweeps: canaries, hosts that carry them, and every output gathered."""

from __future__ import annotations

import gc
import io
import json
import logging
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from otel_sealed.cli import main
from otel_sealed.contract import Exchange
from otel_sealed.instrument import exchange as calls
from otel_sealed.instrument import guard, uninstrument
from otel_sealed.ledger.sqlite import look
from otel_sealed.model import Report
from otel_sealed.telemetry import alerts
from otel_sealed.telemetry.settings import load
from otel_sealed.testing import StrictProvider
from otel_sealed.testing import hosts as hosts_module
from otel_sealed.testing.hosts import Host, Scene, on_anthropic, on_gemini, on_openai, play
from otel_sealed.testing.sweep import Sweeper, reprs
from otel_sealed.tracker import Tracker

WORDS = {
    "answer": "KnrA-4f71c09be2d6",
    "question": "Frage \N{LATIN SMALL LETTER U WITH DIAERESIS}ber 8c2e55d1b90a?",
    "tool": "Werkzeug-E41B.90cc7d/x",
    "result": 'Ergebnis\t"5be1\\02d7fa93" \N{SNOWMAN}',
    "follow up": "Nachfrage\N{PILE OF POO}a6d8e0b71c42",
    "type": "Blockart_3C9F-d20b81",
    "key": "Schluessel-18be-77f0a3",
    "value": "Wert-90aa41cd0e5b66",
    "ident": "Kennung.b1c5d8f2e7a0",
    "stop": "Haltegrund 5d5d-c0ffee-1",
    "error": "Fehlertext 0e9f8d7c6b5a",
    "own seal": "U2llZ2VsLzEyMzQ1Njc4OTArYWJjZGVm" * 9 + "QUI=",
}
PLAIN_TOOL = "werkzeug_77d0c1f3a25b"
"""Of the shape that may go out, and so no canary: the run with it proves that all else stays in."""
HTTP_ERROR = 400
API = {
    "anthropic": "messages",
    "openai": "responses",
    "gemini": "generateContent",
    "chat": "chat.completions",
}


# ------------------------------------------------------------------------- hosts of this test


def _odd_block() -> dict[str, Any]:
    return {"type": WORDS["type"], WORDS["key"]: WORDS["value"], "signature": WORDS["own seal"]}


def strange_anthropic(scene: Scene) -> None:
    """A block of an unknown type, a key, a stop reason and ids nobody knows."""
    thinking = {"type": "thinking", "thinking": WORDS["value"], "signature": WORDS["own seal"]}
    message = {
        "id": WORDS["ident"],
        "type": "message",
        "role": "assistant",
        "model": on_anthropic.MODEL,
        "content": [{**thinking, WORDS["key"]: 1}, _odd_block(), {"type": "text", "text": "x"}],
        "stop_reason": WORDS["stop"],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    scene.provider.malform_next(json.dumps(message).encode())
    on_anthropic.converse(scene, on_anthropic.faithful)


def strange_openai(scene: Scene) -> None:
    """An item of an unknown type with a seal in it, and ids nobody knows."""
    reasoning = {"type": "reasoning", "id": WORDS["ident"], "summary": [], WORDS["key"]: "x"}
    response = {
        "id": WORDS["ident"],
        "object": "response",
        "status": "completed",
        "model": on_openai.MODEL,
        "output": [{**reasoning, "encrypted_content": WORDS["own seal"]}, _odd_block()],
    }
    scene.provider.malform_next(json.dumps(response).encode())
    on_openai.converse(scene, on_openai.faithful)


def strange_gemini(scene: Scene) -> None:
    """A part nobody knows beside a signed one, and an id in a call."""
    call = {"name": scene.tool, "args": {WORDS["key"]: WORDS["value"]}, "id": WORDS["ident"]}
    parts = [
        {"functionCall": call, "thoughtSignature": WORDS["own seal"]},
        {"text": WORDS["value"]},
    ]
    reply = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "modelVersion": on_gemini.MODEL,
        "responseId": WORDS["ident"],
    }
    scene.provider.malform_next(json.dumps(reply).encode())
    on_gemini.converse(scene, on_gemini.faithful)


def refused(scene: Scene) -> None:
    """An error whose every string is a canary, but for the words that class it."""
    said = f"{WORDS['error']}: messages.0.content.0: Invalid `signature` in `thinking` block"
    error = {"type": WORDS["type"], "message": said, WORDS["key"]: WORDS["value"]}
    scene.provider.fail_next(400, {"type": "error", "error": error})
    on_anthropic.converse(scene, on_anthropic.faithful)


STRANGE = (
    Host("strange-anthropic", "anthropic", strange_anthropic, "Strange."),
    Host("strange-openai", "openai", strange_openai, "Strange."),
    Host("strange-gemini", "gemini", strange_gemini, "Strange."),
    Host("refused", "anthropic", refused, "Refused."),
)


def scene_of(provider: StrictProvider, tool: str = WORDS["tool"]) -> Scene:
    return Scene(
        provider,
        question=WORDS["question"],
        tool=tool,
        result=WORDS["result"],
        follow_up=WORDS["follow up"],
    )


# --------------------------------------------------------------------------------- harvesting


@dataclass
class Harvest:
    """Every output by name, and the providers that know what was minted."""

    outputs: dict[str, str | bytes] = field(default_factory=dict)
    providers: list[StrictProvider] = field(default_factory=list)

    def provider_for(self, host: Host) -> StrictProvider:
        """The same seals in every run of a host, so that one index serves all."""
        seed = zlib.crc32(host.name.encode())
        self.providers.append(StrictProvider(seed=seed, canary=WORDS["answer"]))
        return self.providers[-1]

    def sweeper(self) -> Sweeper:
        """Knows every canary, every sealed value and every id that was on the wire."""
        secrets = dict(WORDS)
        for provider in self.providers:
            for minted in provider.minted:
                secrets[f"{minted.kind} {minted.value[:3]}"] = minted.value
            for exchange in provider.exchanges:
                for text in _ids(body_of(exchange.response_body)):
                    secrets[f"id {text[:4]}"] = text
        return Sweeper(secrets)


def body_of(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _ids(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _ids(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _ids(inner, key)
    elif isinstance(value, str) and key in ("id", "call_id", "responseId") and len(value) > 11:
        yield value


class Lines(logging.Handler):
    """Everything that is logged, with the arguments before they become a message."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()}\n{record.__dict__!r}")


@contextmanager
def logged() -> Iterator[list[str]]:
    """Our own loggers and OpenTelemetry's; the SDKs' debug logs are theirs, and tell everything."""
    handler = Lines()
    logs = [logging.getLogger(name) for name in ("otel_sealed", "opentelemetry")]
    levels = [log.level for log in logs]
    for log in logs:
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.removeHandler(handler)
            log.setLevel(level)


@contextmanager
def _watched() -> Iterator[list[str]]:
    """The repr of everything that passes the core, the calls and the alert room."""
    seen: list[str] = []
    observe, settle, tell = Tracker.observe, calls.Call._observe, alerts.AlertRoom.tell

    def observed(self: Tracker, exchange: Exchange) -> Report:
        report = observe(self, exchange)
        newest = self.ledger.get(len(self.ledger) - 1)
        seen.append(reprs([exchange, report, self, newest]))
        return report

    def settled(self: calls.Call) -> None:
        seen.append(reprs([self, self._sent, self._kept, self._kind, self._runtime]))
        settle(self)

    def told(self: alerts.AlertRoom, alert: alerts.Alert, **options: Any) -> bool:
        seen.append(reprs([alert, self]))
        return tell(self, alert, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tracker, "observe", observed)
        patch.setattr(calls.Call, "_observe", settled)
        patch.setattr(alerts.AlertRoom, "tell", told)
        yield seen


def in_memory(harvest: Harvest, chosen: tuple[Host, ...], tool: str) -> None:
    """Spans, metrics, log events, logging and reprs of a run in this process."""
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    events = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call] # the SDK's own
    tracer, logger = TracerProvider(), LoggerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    logger.add_log_record_processor(SimpleLogRecordProcessor(events))
    with logged() as lines, _watched() as seen:
        played = list(
            play(
                chosen,
                tracer_provider=tracer,
                meter_provider=MeterProvider([reader]),
                logger_provider=logger,
                provider_for=harvest.provider_for,
                scene_of=partial(scene_of, tool=tool),
            )
        )
    data = reader.get_metrics_data()
    assert data is not None
    out = harvest.outputs
    out[f"spans {tool}"] = "\n".join(span.to_json() for span in spans.get_finished_spans())
    out[f"metrics {tool}"] = data.to_json()
    out[f"events {tool}"] = "\n".join(repr(vars(x.log_record)) for x in events.get_finished_logs())
    out[f"logging {tool}"] = "\n".join(lines)
    out[f"records {tool}"] = "\n".join([*seen, reprs(p.reports for p in played)])


def shared_ledger(harvest: Harvest, path: Path, chosen: tuple[Host, ...]) -> None:
    """The file of a shared ledger and those beside it, and what `doctor` says of it."""
    settings = load().model_copy(update={"ledger": str(path)})
    with logged() as lines:
        list(
            play(
                chosen,
                settings=settings,
                provider_for=harvest.provider_for,
                scene_of=partial(scene_of, tool=WORDS["tool"]),
            )
        )
        uninstrument()
        gc.collect()  # the ledger goes, and writes what it has
    assert look(path).turns > 0
    assert [line for line in lines if "ledger" in line] == []  # no fault of it; losses are told
    for file in path.parent.glob(f"{path.name}*"):
        # no text: a character for each byte
        harvest.outputs[f"ledger {file.name}"] = file.read_bytes().decode("latin-1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_SEALED_LEDGER", str(path))
        command(harvest, "doctor", "doctor")


def command(harvest: Harvest, name: str, *arguments: str) -> int:
    """What a command prints, on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(arguments)
    harvest.outputs[f"{name} stdout"] = out.getvalue()
    harvest.outputs[f"{name} stderr"] = err.getvalue()
    return status


def demos(harvest: Harvest, folder: Path, chosen: tuple[Host, ...]) -> None:
    """The demo, for people and as JSON, with its files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(hosts_module, "hosts", lambda: chosen)
        playing = partial(play, provider_for=harvest.provider_for, scene_of=scene_of)
        patch.setattr(hosts_module, "play", playing)
        for arguments in (("demo",), ("demo", "--json")):
            assert command(harvest, " ".join(arguments), *arguments) == 0
    record = folder / ".otel-sealed"
    for path in record.iterdir():
        harvest.outputs[f"file {path.name}"] = path.read_bytes()
    told(harvest, folder, str(record))


def told(harvest: Harvest, folder: Path, record: str) -> None:
    """What triage makes of that record: in a terminal, for machines, and as a page."""
    assert command(harvest, "triage", "triage", record) == 1
    assert command(harvest, "triage --json", "triage", "--json", record) == 1
    assert command(harvest, "triage strips", "triage", "--limit", "3", record) == 1
    page = folder / "page.html"
    assert command(harvest, "report", "report", record, "--html", str(page)) == 1
    harvest.outputs["report page"] = page.read_bytes()
    refusals = [x for p in harvest.providers for x in p.exchanges if x.status >= HTTP_ERROR]
    bodies = {x.response_body.decode("utf-8", "replace") for x in refusals}
    for number, text in enumerate(sorted(bodies)[::4]):
        command(harvest, f"triage error {number}", "triage", record, "--error", text)
        command(harvest, f"triage --json {number}", "triage", record, "--json", "--error", text)
    index = (Path(record) / "triage.sqlite").read_bytes()
    harvest.outputs["triage index"] = index.decode("utf-8", "replace")


def files(harvest: Harvest, folder: Path) -> None:
    """`verify` and `inspect` on all that was on the wire, whole and broken."""
    paths = []
    for number, provider in enumerate(harvest.providers):
        lines = [json.dumps(_line(exchange)) for exchange in provider.exchanges]
        path = folder / f"{number}.jsonl"
        path.write_text("\n".join(lines), "utf-8")
        broken = folder / f"{number}-broken.jsonl"
        broken.write_text("\n".join([*lines, lines[0][: len(lines[0]) // 2]]), "utf-8")
        wrong = folder / f"{number}-wrong.jsonl"
        wrong.write_text(lines[0].replace('"status"', '"betas"'), "utf-8")
        paths += [str(path), str(broken), str(wrong)]
        if strange(provider):
            own = recordings(folder, number, provider)
            command(harvest, f"triage recordings {number}", "triage", *own)
            command(harvest, f"triage recordings --json {number}", "triage", "--json", *own)
            paths += own
    assert command(harvest, "verify", "verify", *paths) == 2
    assert command(harvest, "verify --json", "verify", "--json", *paths) == 2
    for number, exchange in enumerate(x for p in harvest.providers for x in p.exchanges):
        reply = folder / f"{number}.reply"
        reply.write_bytes(exchange.response_body)
        command(harvest, f"inspect {number}", "inspect", str(reply))
        command(harvest, f"inspect --json {number}", "inspect", "--json", str(reply))
        reply.write_bytes(exchange.response_body[:-9])
        command(harvest, f"inspect broken {number}", "inspect", str(reply))


def session_files(harvest: Harvest, folder: Path) -> None:
    """What agents leave behind, a canary wherever they have words of their own."""
    words = WORDS
    thinking = {"type": "thinking", "thinking": words["answer"], "signature": words["own seal"]}
    said = {"type": "text", "text": f'API Error: 400 {{"error": "{words["error"]}"}}'}
    record = {"type": "assistant", "sessionId": words["ident"], "version": words["value"]}
    lines: list[Any] = [
        {**record, words["key"]: 1, "message": {"id": words["ident"], "content": [thinking]}},
        {**record, "isApiErrorMessage": True, "message": {"content": [said]}},
        {**record, "subtype": words["type"]},
        {"type": "session_meta", "payload": {"id": words["ident"], "cli_version": words["value"]}},
        {"type": "response_item", "payload": {**thinking, "type": "reasoning"}},
    ]
    texts = [json.dumps(line) for line in lines]
    (folder / "claude.jsonl").write_text("\n".join([*texts, texts[0][:-20]]), "utf-8")
    (folder / "codex.jsonl").write_text("\n".join(texts[::-1]), "utf-8")
    (folder / "none.jsonl").write_text(json.dumps({words["key"]: words["value"]}), "utf-8")
    assert command(harvest, "sessions", "sessions", str(folder)) == 1
    assert command(harvest, "sessions --json", "sessions", "--json", str(folder)) == 1
    assert command(harvest, "sessions none", "sessions", str(folder / "none.jsonl")) == 2


def strange(provider: StrictProvider) -> bool:
    """Whether it answered with canaries where a vendor has words of its own."""
    words = (WORDS["own seal"].encode(), WORDS["error"].encode())
    return any(w in exchange.response_body for exchange in provider.exchanges for w in words)


def recordings(folder: Path, number: int, provider: StrictProvider) -> list[str]:
    """The same calls as a HAR and as a cassette; the second one in part, and broken."""
    entries, interactions = [], []
    for exchange in provider.exchanges:
        # a host is told; who asks it, and for what, is not
        user, query = quote(WORDS["ident"]), quote(WORDS["value"])
        url = f"https://{user}:{query}@llm.example{exchange.path.partition('?')[0]}?{query}"
        asked, answered = exchange.request_body.decode(), exchange.response_body.decode()
        headers = [{"name": WORDS["key"], "value": WORDS["value"]}]
        request = {"method": "POST", "url": url, "headers": headers, "postData": {"text": asked}}
        content = {"status": exchange.status, "headers": headers, "content": {"text": answered}}
        entries.append({"request": request, "response": content})
        sent = {"method": "POST", "uri": url, "headers": {}, "body": asked}
        came = {"status": {"code": exchange.status}, "headers": {}, "body": {"string": answered}}
        interactions.append({"request": sent, "response": came})
    har, cassette = folder / f"{number}.har", folder / f"{number}.yaml"
    other = {"request": {"method": "GET", "url": f"https://x/{WORDS['value']}"}}
    har.write_text(json.dumps({"log": {"entries": [*entries, other]}}), "utf-8")
    text = json.dumps({"interactions": interactions, "version": 1})
    cassette.write_text(text[: -len(text) // 4] if number % 2 else text, "utf-8")
    return [str(har), str(cassette)]


def _line(exchange: Any) -> dict[str, Any]:
    response, events = body_of(exchange.response_body), None
    if exchange.stream:
        data = [x[5:] for x in exchange.response_body.decode().splitlines() if x[:5] == "data:"]
        events = [json.loads(x) for x in data if x.strip() != "[DONE]"]
    return {
        "provider": {"gemini": "google"}.get(exchange.dialect, exchange.dialect),
        "api": API[exchange.dialect],
        "model": on_gemini.MODEL if exchange.dialect == "gemini" else None,
        "conversation": WORDS["ident"],
        "account": WORDS["value"],
        "operation": WORDS["key"],
        "transport": WORDS["type"],
        "request": body_of(exchange.request_body),
        "response": response,
        "events": events,
        "status": exchange.status,
    }


def harvested(folder: Path, chosen: tuple[Host, ...]) -> Harvest:
    harvest = Harvest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "STRICT", True)
        in_memory(harvest, (*chosen, *STRANGE), WORDS["tool"])
        in_memory(harvest, chosen[:7], PLAIN_TOOL)
        shared_ledger(harvest, folder / "ledger.db", (*chosen[:3], *STRANGE))
        files(harvest, folder)
        (folder / "sessions").mkdir()
        session_files(harvest, folder / "sessions")
        demos(harvest, folder, chosen)
    uninstrument()
    return harvest
