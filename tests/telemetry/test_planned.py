"""A planned call is written and counted as it would be without a plan."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest

from otel_sealed import vocab
from otel_sealed.model import (
    Carry,
    Check,
    Facts,
    Fate,
    ProviderVerdict,
    Receipt,
    Rejection,
    Removal,
    Report,
    State,
    ToolReceipt,
    Usage,
    Verdict,
)
from otel_sealed.telemetry.planned import MAX_PLANS
from tests.telemetry.builders import SEAL, Bench, digest, finding

_FACTS = Facts("anthropic", "anthropic", model="claude-opus-5", host="api.anthropic.com")
_VARIED_FACTS: dict[str, tuple[Any, ...]] = {
    "dialect": ("anthropic", "gemini"),
    "vendor": ("anthropic", "google"),
    "platform": ("", "vertex"),
    "host": ("api.anthropic.com", "gateway.example"),
    "account": (b"", digest(1)),
    "model": ("claude-opus-5", "gpt-5", ""),
    "thinking": (None, True, False),
    "store": (None, False),
    "reference": ("", "conversation"),
    "reference_key": (b"", digest(2)),
    "context": ("", "all_turns"),
    "betas": ((), ("context-1m-2025-08-07",)),
    "operation": ("", "compact"),
    "transport": ("", "websocket"),
    "background": (False, True),
    "flags": ((), ("drop_block",)),
}
_RECEIVED = Receipt(SEAL, digest(1), 100, "content.0")
_VARIED_RECEIVED: tuple[tuple[Receipt, ...], ...] = (
    (),
    (_RECEIVED,),
    (dataclasses.replace(_RECEIVED, digest=digest(2), size=7),),
    (dataclasses.replace(_RECEIVED, artifact="openai.reasoning.encrypted_content"),),
    (dataclasses.replace(_RECEIVED, artifact="anthropic.other.data"),),
    (dataclasses.replace(_RECEIVED, path="content.3"),),
    (dataclasses.replace(_RECEIVED, id=digest(3)),),
    (dataclasses.replace(_RECEIVED, id=digest(4)),),
    (dataclasses.replace(_RECEIVED, state=State.EMPTY),),
    (_RECEIVED, dataclasses.replace(_RECEIVED, digest=digest(5), path="content.1")),
    (_RECEIVED,) * (vocab.MAX_ROWS + 1),
)
_VARIED_USAGE = {f.name: (None, 0, 12) for f in dataclasses.fields(Usage)}
_TOOL = ToolReceipt("look_up", digest(6), 2, 3)
VARIED: dict[str, tuple[Any, ...]] = {
    "facts": (_FACTS,),
    "exchange": (0, 1),
    "received": _VARIED_RECEIVED,
    "findings": ((), (finding(),), (finding(Fate.DROPPED, Verdict.BREAKS),)),
    "verdict": (None, Verdict.OK),
    "provider_verdict": tuple(ProviderVerdict),
    "rejection": (None, Rejection.OTHER, Rejection.SIGNATURE_INVALID),
    "carry": tuple(Carry),
    "expected": (0, 2),
    "excused": (0, 1),
    "returned": (0, 1),
    "received_types": ((), ("text",), ("thinking", "text")),
    "returned_types": ((), ("text",)),
    "conversation": (b"", digest(7), digest(8)),
    "response_model": ("", "claude-opus-5"),
    "stop": ("", "end_turn", "tool_use"),
    "complete": (True, False),
    "usage": (Usage(), Usage(1, 2)),
    "removals": ((), (Removal("prefix_mismatch"),)),
    "unread": ((), ("request.json",)),
    "drift": ((), (("new_signature", 80),)),
    "receipts": ((), (_TOOL,)),
    "settled": ((), (Check(SEAL, Fate.INTACT, Verdict.OK, "", 3),)),
    "rest_count": (0, 2),
    "rest_digest": (b"", digest(9)),
    "summary_size": (0, 10, 12),
    "prefix": (b"", digest(10), digest(11)),
    "lookups_hit": (0, 2),
    "lookups_missed": (0, 1),
}
SUMS = [m.name for m in vocab.METRICS if m.instrument == "counter" and m is not vocab.EVICTIONS]


def varied(chance: random.Random, share: float) -> Report:
    """A report some of whose fields, and of those within, are not the usual ones."""

    def some(values: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
        return {n: chance.choice(v) if chance.random() < share else v[0] for n, v in values.items()}

    given = some(VARIED)
    given["facts"] = dataclasses.replace(_FACTS, **some(_VARIED_FACTS))
    given["usage"] = Usage(**some(_VARIED_USAGE))
    if chance.random() < 0.7:
        given |= {"findings": (), "verdict": None, "settled": (), "rest_count": 0}
    return Report(**given)


def unplanned() -> Bench:
    """A bench that writes every call by itself."""
    bench = Bench()
    plans: Any = bench.emitter._plans
    plans.plan = lambda _report, _present: None
    return bench


def test_every_field_of_a_report_is_varied() -> None:
    """A field that is new is varied here, and so part of the shape or filled in."""
    assert VARIED.keys() == {f.name for f in dataclasses.fields(Report)}
    assert _VARIED_FACTS.keys() == {f.name for f in dataclasses.fields(Facts)}


@pytest.mark.parametrize("owned", [True, False], ids=["own", "enriching"])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
def test_a_planned_call_is_written_as_any_other(owned: bool, share: float) -> None:  # noqa: FBT001
    """Attributes, in their order, and whether the span has an error."""
    chance = random.Random(f"{owned} {share}")
    planned, alone = Bench(), unplanned()
    for _ in range(300):
        given = varied(chance, share)
        error = chance.choice([None, None, None, "500"])
        found = planned.call(given, owned=owned, error_type=error)
        assert list(found.items()) == list(alone.call(given, owned=owned, error_type=error).items())
        assert planned.last.status.status_code == alone.last.status.status_code
    assert len(planned.emitter._plans._plans) > 5


def test_planned_calls_are_counted_as_any_others() -> None:
    """Every counter, the sizes, and how often a check was timed."""
    chance = random.Random(1)
    planned, alone = Bench(), unplanned()
    for _ in range(400):
        given = varied(chance, 0.1)
        planned.call(given)
        alone.call(given)
    assert {name: planned.sums(name) for name in SUMS} == {name: alone.sums(name) for name in SUMS}
    for name in (vocab.SIZE.name, vocab.DURATION.name):
        found = [
            {tuple(p.attributes.items()): (p.count, p.sum) for p in bench.points(name)}
            for bench in (planned, alone)
        ]
        assert found[0] == found[1]


def test_a_call_of_a_shape_that_was_seen_before_is_planned() -> None:
    """Digests, sizes, tokens and conversations differ, and it is one plan."""
    bench = Bench()
    for number in range(1, 5):
        row = Receipt(SEAL, digest(number), number, "content.0", id=digest(number + 9))
        bench.call(
            Report(
                _FACTS,
                number,
                received=(row,),
                conversation=digest(number),
                prefix=digest(number + 20),
                usage=Usage(number, number),
                summary_size=number,
            )
        )
    assert len(bench.emitter._plans._plans) == 1


def test_the_plans_of_a_process_are_bounded() -> None:
    """A model of a name of its own for each call."""
    bench = Bench()
    for number in range(MAX_PLANS + 10):
        bench.call(Report(dataclasses.replace(_FACTS, model=f"model-{number}")))
    assert len(bench.emitter._plans._plans) == 10
