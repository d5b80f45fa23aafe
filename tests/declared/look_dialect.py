"""What the library makes of a dialect that was made up (`test_made_up.py`), as a JSON object."""

from __future__ import annotations

import base64
import json
from typing import Any

import otel_sealed
from otel_sealed import vocab
from otel_sealed.http.adapter import Reading
from otel_sealed.http.records import Capture, Passed
from otel_sealed.instrument.routes import sends_turn
from otel_sealed.model import Locus
from otel_sealed.telemetry.scrub import Wire, scrubbed
from otel_sealed.tracker import Tracker
from otel_sealed.triage.remedies import remedies

FIELD, PATH = "realtime.hidden.state", "/voice/amazon.nova/talk"
URL = f"https://bedrock-runtime.eu-west-1.amazonaws.com{PATH}"
SEAL = base64.b64encode(bytes(range(256))).decode()
held = [{"type": "hidden", "hidden_state": SEAL}, {"type": "words", "words": "The ledger is blue."}]
answer: dict[str, Any] = {"said": {"role": "assistant", "content": held}}
asks = [{"role": "user", "content": [{"type": "words", "words": "Which?"}]}]
told = [*asks, {"role": "assistant", "content": held[1:]}, *asks]

tracker, reading = Tracker(b"k" * 32), Reading(Passed())
captures = [
    Capture("POST", URL, {}, {"turns": asks}, 200, {}, answer),
    Capture("POST", URL, {}, {"turns": told}),
]
read = [reading.exchange(one, number) for number, one in enumerate(captures)]
reports = [tracker.observe(one) for one in read if one is not None]
blind = Wire(lambda _: False, lambda _: "")
found = {
    "vocabulary": vocab.is_seal(FIELD) and FIELD in vocab.ARTIFACTS,
    "redaction": SEAL not in scrubbed(json.dumps(held), blind),
    "inspection": [[s.artifact for s in otel_sealed.inspect(answer).seals]],
    "evidence": [one.api for one in read if one is not None],
    "route": sends_turn("gateway.example", PATH, None),
    "received": [came.artifact for came in reports[0].received],
    "comparison": [[f.artifact, f.fate, f.verdict, f.rule] for f in reports[1].findings],
    "ways out": len(remedies(FIELD, "dropped", Locus.PROCESS)) > 1,
}
print(json.dumps(found))  # noqa: T201 - the test reads it
