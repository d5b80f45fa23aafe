"""What passes the gate is not read, and nobody can tell from the verdicts.

Every test observes the same exchanges twice: by a tracker with the gate, and by one that reads
everything. Bodies are bytes, as they cross the wire, unless a test says otherwise.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from otel_sealed.contract import Exchange
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.model import STATE, Report
from otel_sealed.providers import dialects
from otel_sealed.testing.mutations import FREEDOMS, Freedom, Mutation
from otel_sealed.tracker import Tracker
from otel_sealed.tracker.gate import UNREAD
from otel_sealed.transcript import read
from otel_sealed.wire.keys import SealedKeys
from tests.core.builders import (
    candidate,
    message,
    part,
    reasoning,
    response,
    said,
    text,
    thinking,
)
from tests.core.conversations import (
    APIS,
    KEY,
    MATRIX,
    STREAM,
    WHOLE,
    Body,
    Change,
    Delivery,
    ask,
    base,
    conversation,
    exchange,
    history,
    observe,
    request,
    responses,
    same,
)
from tests.core.test_mutations import CELLS, hosted
from tests.linear import hurt

CASES = Path(__file__).parent.parent / "cases"
PLAIN_MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4.1",
    "gemini": "gemini-2.0-flash",
    "chat": "gpt-4.1",
    "openrouter": "gpt-4.1",
}
BY_API = {dialect.api: dialect for dialect in dialects().values()}
KEYS = SealedKeys(dialects().values())


# ------------------------------------------------------------------------------------ generators


def wire(one: Exchange) -> Exchange:
    """An exchange with its bodies as bytes."""
    changed: dict[str, Any] = {
        name: json.dumps(body).encode()
        for name in ("request", "response")
        if isinstance(body := getattr(one, name), (dict, list))
    }
    if isinstance(one.events, list):
        changed["events"] = b"".join(b"data: %b\n\n" % json.dumps(e).encode() for e in one.events)
    return dataclasses.replace(one, **changed)


def without_state(dialect: str, value: Any) -> Any:
    """A body without any block that is the model's state, and without any sealed key."""
    if isinstance(value, list):
        return [without_state(dialect, item) for item in value if not _state(dialect, item)]
    if isinstance(value, dict):
        kept = {k: without_state(dialect, v) for k, v in value.items() if k not in KEYS.keys}
        return {k: v for k, v in kept.items() if k not in ("thinking_blocks", "reasoning_details")}
    return value.replace("__thought__", "_") if isinstance(value, str) else value


def _state(dialect: str, item: Any) -> bool:
    if not isinstance(item, dict) or ("role" in item and "content" not in item):
        return False
    known = BY_API[APIS[dialect]]
    carrier = known.carriers.get(known.type_of(item))
    return carrier is not None and carrier.kind in STATE


def unasked(dialect: str, body: Body) -> Body:
    """A request that asks for no state, of a model that has none."""
    asks = ("thinking", "include", "reasoning", "generationConfig", "context_management")
    kept = {key: value for key, value in body.items() if key not in asks}
    return kept if dialect == "gemini" else {**kept, "model": PLAIN_MODELS[dialect]}


def plain(dialect: str, seed: object, delivery: Delivery = WHOLE) -> list[Exchange]:
    """A conversation with a model that seals nothing."""
    answers = [without_state(dialect, answer) for answer in responses(dialect, f"plain {seed}")]
    return [
        exchange(
            dialect,
            unasked(dialect, request(dialect, answers[:number], f"plain {seed}")),
            answer,
            delivery,
            model=PLAIN_MODELS[dialect],
            **({"provider": "openai", "host": "api.openai.com"} if "chat" in APIS[dialect] else {}),
        )
        for number, answer in enumerate(answers)
    ]


def drops_all(dialect: str, body: Body) -> Body:
    """A host that loses every trace of state, and asks for none any more."""
    return unasked(dialect, without_state(dialect, body))


def drops_blocks(dialect: str, body: Body) -> Body:
    """A host that loses every trace of state, and asks for it all the same."""
    found: Body = without_state(dialect, body)
    return found


def drops_answers(_dialect: str, body: Body) -> Body:
    """A host that sends what the user said, and the results of calls, alone."""
    return _with(body, [item for item in history(body) if not _answers(item)])


def in_words(dialect: str, body: Body) -> Body:
    """A host that tells the whole history in the words of the user."""
    told = "\n".join(map(json.dumps, map(_texts, history(body))))
    return unasked(dialect, _with(body, ask(dialect, f"So far: {told}. Go on.")))


def summed_up(dialect: str, body: Body) -> Body:
    """A host that begins anew with the longest text of the history, in tags."""
    longest = max(_texts(history(body)), key=len, default="")
    told = f"<summary>\n{longest}\n</summary>\nGo on from there."
    return unasked(dialect, _with(body, ask(dialect, told)))


def stopped(dialect: str, body: Body) -> Body:
    """A host that asks for state no more, and loses none."""
    return unasked(dialect, body)


def begun_anew(dialect: str, body: Body) -> Body:
    """A host that keeps nothing but the last of what the user said."""
    return unasked(dialect, _with(body, history(body)[-1:]))


HOSTS = [drops_all, drops_blocks, drops_answers, in_words, summed_up, stopped, begun_anew]


def _with(body: Body, told: list[Any]) -> Body:
    key = next(key for key in ("messages", "input", "contents") if key in body)
    return {**body, key: told}


def _answers(item: Any) -> bool:
    return item.get("role") in ("assistant", "model") or item.get("type") in (
        "reasoning",
        "function_call",
        "message",
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in inner for text in _texts(part)]


# ----------------------------------------------------------------------------------- comparisons


def known(report: Report) -> dict[str, Any]:
    """All of a report but what the gate leaves unread."""
    found = {f.name: getattr(report, f.name) for f in dataclasses.fields(report)}
    turns = [dataclasses.replace(receipt, turn=-1) for receipt in report.receipts]
    return {**{name: found[name] for name in found if name not in UNREAD}, "receipts": turns}


def compared(exchanges: Iterable[Exchange], **options: Any) -> int:
    """Holds the reports of both trackers against each other; how many exchanges passed the gate."""
    gated, reads = Tracker(KEY, **options), Tracker(KEY, gate=False, **options)
    passed = 0
    for one in exchanges:
        turns = len(gated.ledger), len(reads.ledger)
        found, whole = gated.observe(one), reads.observe(one)
        assert known(found) == known(whole)
        came = len(reads.ledger) > turns[1]
        if came and len(gated.ledger) == turns[0]:
            passed += 1
            assert (whole.findings, whole.verdict, whole.received) == ((), None, ())
    return passed


# ----------------------------------------------------------------------------------------- tests


@pytest.mark.parametrize(("dialect", "mutation"), CELLS)
@pytest.mark.parametrize("delivery", [WHOLE, STREAM], ids=["whole", "stream"])
def test_no_mutation_of_the_catalogue_is_passed_over(
    dialect: str, mutation: Mutation, delivery: Delivery
) -> None:
    """The whole catalogue runs through the gate."""
    compared(map(wire, hosted(dialect, mutation, delivery)))


@pytest.mark.parametrize("freedom", FREEDOMS, ids=lambda f: f"{f.dialect}-{f.name}")
def test_no_freedom_is_told_otherwise(freedom: Freedom) -> None:
    """What the contract permits has the same rows, too."""
    chance = random.Random(7)
    plan = conversation(freedom.dialect, host=lambda body: freedom.change(body, chance))
    compared(map(wire, plan))


@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.jsonl")))
def test_no_field_case_is_told_otherwise(case: str) -> None:
    """Transcripts of the field, as they would have crossed the wire."""
    compared(map(wire, read(CASES / f"{case}.jsonl")))


@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("delivery", [WHOLE, STREAM], ids=["whole", "stream"])
def test_every_exchange_of_a_model_that_seals_nothing_passes(
    dialect: str, delivery: Delivery
) -> None:
    """While no turn with state is remembered, the whole conversation is passed."""
    plan = plain(dialect, 1, delivery)
    assert compared(map(wire, plan)) == len(plan)


@pytest.mark.parametrize("dialect", MATRIX)
def test_bodies_that_are_parsed_pass_as_bytes_do(dialect: str) -> None:
    """Google's SDK shows parsed bodies."""
    plan = plain(dialect, 2)
    assert compared(plan) == len(plan)


@pytest.mark.parametrize("dialect", MATRIX)
def test_beside_turns_with_state_only_openings_pass(dialect: str) -> None:
    """A request with answers in it may lose what is remembered, whosever it is."""
    plan = [*conversation(dialect, 3), *plain(dialect, 3)]
    assert compared(map(wire, plan)) == 1


@pytest.mark.parametrize("dialect", MATRIX)
def test_a_ledger_of_others_may_hold_turns_with_state(dialect: str) -> None:
    """One that does not say whether it does counts as one that does: only openings pass."""
    ledger = Unsaid()
    tracker = Tracker(KEY, ledger=ledger)
    plan = plain(dialect, 4)
    for one in map(wire, plan):
        tracker.observe(one)
    assert len(ledger) == len(plan) - 1


class Unsaid:
    """A ledger that does not say whether a turn of it has state."""

    def __init__(self) -> None:
        inner = MemoryLedger()
        self.lookup, self.get, self.last = inner.lookup, inner.get, inner.last
        self.record, self._inner = inner.record, inner

    def __len__(self) -> int:
        return len(self._inner)


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
@pytest.mark.parametrize("dialect", MATRIX)
@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_loses_everything_is_seen(
    dialect: str, host: Callable[[str, Body], Body], seed: int
) -> None:
    """From any call on, among conversations of a model that seals nothing."""
    for since in range(1, 6):
        change: Change = same
        sealed = conversation(dialect, seed, host=change)
        for number in range(since, len(sealed)):
            body = host(dialect, copy.deepcopy(sealed[number].request))
            sealed[number] = dataclasses.replace(sealed[number], request=body)
        others = plain(dialect, seed)
        mixed = [one for pair in zip(sealed, others, strict=False) for one in pair]
        compared(map(wire, mixed))
        compared(map(wire, [*others, *sealed]))


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__)
@pytest.mark.parametrize("dialect", MATRIX)
def test_it_is_seen_in_a_conversation_that_the_caller_names(
    dialect: str, host: Callable[[str, Body], Body]
) -> None:
    """A transcript in which each exchange continues the one before."""
    named: dict[str, Any] = {"conversation": "one", "continues": True}
    sealed = conversation(dialect, 6)
    for number in range(1, len(sealed)):
        body = host(dialect, copy.deepcopy(sealed[number].request))
        sealed[number] = dataclasses.replace(sealed[number], request=body)
    compared([dataclasses.replace(wire(one), **named) for one in sealed])


def without_seals(value: Any) -> Any:
    """An answer whose blocks of state have come without their seals."""
    if isinstance(value, list):
        return [without_seals(item) for item in value]
    if isinstance(value, dict):
        return {k: without_seals(v) for k, v in value.items() if k not in KEYS.keys}
    return value


@pytest.mark.parametrize("dialect", MATRIX)
def test_state_that_came_without_its_seal_is_seen(dialect: str) -> None:
    """What was not asked for, or not given, is reported at the request that replays it."""
    plan = conversation(dialect, 7, source=without_seals, host=lambda b: unasked(dialect, b))
    compared(map(wire, plan))


@pytest.mark.parametrize(
    "flag", [{"budget_tokens": 100, "type": "enabled"}, {"type": "disabled"}, {"type": "adaptive"}]
)
def test_thinking_that_was_asked_for_and_did_not_come_is_seen(flag: Body) -> None:
    """`absent_at_source`: a budget that is too small to think."""
    body = {**unasked("anthropic", request("anthropic", [])), "thinking": flag}
    answer = without_state("anthropic", responses("anthropic", 8)[0])
    passed = compared([wire(exchange("anthropic", body, answer, model=None))])
    assert passed == (flag["type"] == "disabled")


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-fable-5", "an-alias", ""])
def test_a_model_that_thinks_unasked_is_read(model: str) -> None:
    """A9: what thinks by default may have sealed, and so may a model of an unknown name."""
    body = {**unasked("anthropic", request("anthropic", [])), "model": model}
    answer = {**without_state("anthropic", responses("anthropic", 9)[0]), "model": model}
    assert compared([wire(exchange("anthropic", body, answer, model=None))]) == 0


def _later(dialect: str, answer: Body, *told: Body, **more: Any) -> Exchange:
    """A second request to a model that seals nothing, `told` after the question, as bytes."""
    body = {**unasked(dialect, request(dialect, [])), **more}
    history(body).extend(told)
    return wire(exchange(dialect, body, answer, model=PLAIN_MODELS[dialect]))


def _opening(dialect: str, *answer: Body, **more: Any) -> list[Exchange]:
    """A first call, and its answer with state."""
    body = {**request(dialect, []), **more}
    made = message(*answer) if dialect == "anthropic" else response(*answer)
    return [wire(exchange(dialect, body, made))]


SPOKEN = message(text(), model="claude-sonnet-4-5")
SAID = response(said(), model="gpt-4.1")
MADE_UP: dict[str, list[Body]] = {
    "anthropic": [{"role": "assistant", "content": [thinking(), text()]}],
    "openai": [reasoning(), said()],
    "gemini": [{"role": "model", "parts": [part("call")]}],
}


@pytest.mark.parametrize("dialect", MADE_UP)
def test_a_seal_that_nobody_issued_is_seen(dialect: str) -> None:
    """The first request of a process brings a history of somebody else's."""
    answers = {"anthropic": SPOKEN, "openai": SAID, "gemini": candidate(part("text", signed=False))}
    one = _later(dialect, answers[dialect], *MADE_UP[dialect])
    assert compared([one]) == 0
    assert len(Tracker(KEY).observe(one).findings) == 1


def test_state_without_a_seal_that_was_put_into_an_answer_is_seen() -> None:
    """A thought with no signature, amid an answer that brought none."""
    came = text()
    plan = _opening("anthropic", came, text())
    amid = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, came]}
    plan.append(_later("anthropic", SPOKEN, amid, *ask("anthropic", "Go on.")))
    assert compared(plan) == 0


def test_a_compaction_that_did_not_come_is_seen() -> None:
    """The provider stopped for one, and gave none."""
    one = _later("anthropic", {**SPOKEN, "stop_reason": "compaction"})
    assert [f.fate.value for f in Tracker(KEY).observe(one).findings] == ["absent_at_source"]
    compared([one])


def test_a_reference_to_state_that_the_server_keeps_is_read() -> None:
    """It is told on the span how the request carries its history."""
    one = _later("openai", SAID, previous_response_id="resp_0")
    assert Tracker(KEY).observe(one).carry.value == "by_reference"
    compared([one])


def test_a_summary_that_the_client_had_made_is_seen() -> None:
    """The words of an answer that is remembered begin a conversation."""
    summary = {"type": "text", "text": "We weighed the river against a plan. " * 8}
    plan = _opening("anthropic", thinking(), summary)
    told = ask("anthropic", f"<summary>\n{summary['text'].strip()}\n</summary>\nGo on.")
    later = {**unasked("anthropic", base("anthropic")), "messages": told}
    plan.append(wire(exchange("anthropic", later, SPOKEN, model=None)))
    assert len(observe(plan)[1].findings) == 1
    compared(plan)


def test_a_request_that_asks_again_in_the_same_conversation_is_seen() -> None:
    """A transcript goes on: what its last answer brought is lost."""
    first = request("anthropic", [])
    plan = [wire(exchange("anthropic", first, message(thinking(), text())))]
    history(first).extend(ask("anthropic", "And then?"))
    plan.append(wire(exchange("anthropic", unasked("anthropic", first), SPOKEN, model=None)))
    named = [dataclasses.replace(one, conversation="one", continues=True) for one in plan]
    assert len(observe(named)[1].findings) == 1
    compared(named)


def test_an_answer_that_is_sent_as_the_users_is_seen_by_its_id() -> None:
    """Its reasoning is gone, and nobody but the user speaks."""
    answer = {**said(), "content": [{"type": "output_text", "text": "Yes."}]}
    plan = _opening("openai", reasoning(), answer)
    plan.append(_later("openai", SAID, {**answer, "role": "user"}))
    assert len(observe(plan)[1].findings) == 1
    compared(plan)


SPELLED = [
    '"thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="',
    '"thought_signature"  :\n"skip_thought_signature_validator"',
    '"sign\\u0061ture": "a"',
    '"\\u0073ignature": "a"',
    '"encrypted_content": null',
    '"phase": "commentary"',
    '"id": "call_1__thought__abcdefgh"',
    '"extra": {"deep": [{"data": 1}]}',
]


@pytest.mark.parametrize("text", SPELLED)
def test_a_sealed_key_is_found_however_it_is_spelled(text: str) -> None:
    """White space, escapes, depth and marks in ids."""
    body = f'{{"messages": [{{"role": "user", "content": [{{{text}}}]}}]}}'
    assert (KEYS.inside(body), KEYS.inside(body.encode()), KEYS.inside(json.loads(body))) == (
        True,
        True,
        True,
    )


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "a signature, some data: \u00e9"}]},
        {"messages": [{"role": "user", "content": '"signature": "in quotes of a text"'}]},
        {"role": "data", "content": [{"type": "signature"}]},
    ],
)
def test_words_that_are_no_keys_are_not(body: Body) -> None:
    """A text that speaks of signatures has none."""
    assert (KEYS.inside(json.dumps(body).encode()), KEYS.inside(body)) == (False, False)


def test_the_sealed_keys_are_found_in_linear_time() -> None:
    """Whatever a body looks like (tests/test_patterns.py)."""
    assert hurt(KEYS._pattern) is None


def test_every_seal_that_a_dialect_declares_is_a_sealed_key() -> None:
    """A seal is read only under keys that the gate knows."""
    declared = {
        name
        for dialect in dialects().values()
        for carrier in dialect.carriers.values()
        for field in carrier.fields
        if field.role.value == "seal"
        for name in field.names()
    }
    assert declared - KEYS.keys == set()


def test_a_request_that_is_no_json_is_named() -> None:
    """What cannot be parsed passes nowhere."""
    answer = without_state("anthropic", responses("anthropic", 10)[0])
    one = dataclasses.replace(wire(exchange("anthropic", base("anthropic"), answer)), request=b"{")
    assert Tracker(KEY).observe(one).unread == ("request.json",)
