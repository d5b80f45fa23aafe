"""What the library makes of a field that was made up (`test_made_up.py`), as one JSON object."""

from __future__ import annotations

import base64
import json
from typing import Any

import otel_sealed
from otel_sealed import vocab
from otel_sealed.contract import Api
from otel_sealed.http.adapter import Reading
from otel_sealed.http.records import Capture, Passed
from otel_sealed.instrument.routes import sends_turn
from otel_sealed.model import Kind, Locus, Role
from otel_sealed.providers import dialects
from otel_sealed.telemetry.scrub import Wire, scrubbed, sealed_key
from otel_sealed.tracker import Tracker
from otel_sealed.triage.concerns import values
from otel_sealed.triage.remedies import remedies

FIELD, URL = "anthropic.memory_result.encrypted_memory", "https://api.anthropic.com/v1/messages"
SEAL = base64.b64encode(bytes(range(256))).decode()
BLIND = Wire(lambda _: False, lambda _: "")
held = {"type": "memory_result", "encrypted_memory": SEAL}
results = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [held]}
use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "recall", "input": {}}
asks = [{"role": "user", "content": "What was it?"}]
answer: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5",
    "content": [use, results],
    "stop_reason": "end_turn",
}
body = {"model": "claude-opus-5", "max_tokens": 9, "messages": asks}
lost = results | {"content": [{"type": "memory_result"}]}
told = [*asks, {"role": "assistant", "content": [use, lost]}, {"role": "user", "content": "And?"}]

tracker, reading = Tracker(b"k" * 32), Reading(Passed())
captures = [
    Capture("POST", URL, {}, body, 200, {}, answer),
    Capture("POST", URL, {}, body | {"messages": told}, None),
]
read = (reading.exchange(one, number) for number, one in enumerate(captures))
reports = [tracker.observe(one) for one in read if one is not None]
anthropic = dialects()[Api.MESSAGES]
found = {
    "vocabulary": vocab.is_seal(FIELD) and FIELD in vocab.ARTIFACTS,
    "redaction": SEAL not in scrubbed(json.dumps(held), BLIND),
    "redaction of an attribute": sealed_key("llm.output.encryptedMemory", SEAL),
    "inspection": [seal.artifact for seal in otel_sealed.inspect(answer).seals],
    "evidence": [came.artifact for came in reports[0].received],
    "route": sends_turn("api.anthropic.com", "/v1/messages", body),
    "comparison": [[f.artifact, f.fate, f.verdict, f.rule] for f in reports[1].findings],
    "unknown blocks": anthropic.sealed_keys.get("encrypted_memory"),
    "groups": FIELD in values(Role.SEAL, "anthropic", {Kind.RESULT}),
    "ways out": len(remedies(FIELD, "dropped", Locus.PROCESS)) > 1,
}
print(json.dumps(found))  # noqa: T201 - the test reads it
