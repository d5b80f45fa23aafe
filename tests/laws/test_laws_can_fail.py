"""Each law fails on a core that breaks it: what follows spoils the core in one place at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import Phase, settings

from otel_sealed.align import align
from otel_sealed.digest import Digest
from otel_sealed.ledger.memory import MemoryLedger
from otel_sealed.model import Fate, Lineage, Message, SlotAt, Speaker
from otel_sealed.model.record import replace
from otel_sealed.tracker import judging, observation
from otel_sealed.wire import as_payloads
from tests.laws import (
    test_l1_evidence,
    test_l2_more,
    test_l3_order,
    test_l4_ties,
    test_l5_suffix,
    test_l6_forks,
    test_l7_names,
    test_l8_together,
    test_l9_live,
)

Spoil = Callable[[pytest.MonkeyPatch], None]
_LOOKUP = MemoryLedger.lookup
_LOCATED = judging._located
Change = Callable[[Lineage, MemoryLedger, tuple[Message, ...], tuple[bytes, ...]], Lineage]


def relocate(patch: pytest.MonkeyPatch, change: Change) -> None:
    """Change what the matcher found: the turns of a request, and whose each of its blocks is.

    `change` is given that, the ledger, the messages, and the digests of what is before each.
    """

    def located(asked: Any, chains: tuple[bytes, ...], *more: Any) -> Lineage:
        found = _LOCATED(asked, chains, *more)
        return change(found, asked.core.ledger, asked.sent.messages, chains[:-1])

    patch.setattr(judging, "_located", located)


def given(lineage: Lineage, ledger: MemoryLedger, places: Mapping[SlotAt, int]) -> Lineage:
    """A lineage with blocks that nobody had given to other turns."""
    owner = {**places, **lineage.owner}
    numbers = {*owner.values(), *(turn.number for turn in lineage.turns)}
    turns = [turn for turn in map(ledger.get, sorted(numbers)) if turn is not None]
    return replace(lineage, owner=owner, turns=tuple(turns))


def believes_a_place(patch: pytest.MonkeyPatch) -> None:
    """A turn is taken for what is behind the messages it answered, whatever that is."""

    def change(found: Lineage, ledger: MemoryLedger, messages: Any, chains: Any) -> Lineage:
        places: dict[SlotAt, int] = {}
        for at, message in enumerate(messages):
            for number in ledger.lookup(chains[at]) if message.speaker is Speaker.MODEL else ():
                places |= {(at, index): number for index in range(len(message.blocks))}
        return given(found, ledger, places)

    relocate(patch, change)


def prefers_the_last(patch: pytest.MonkeyPatch) -> None:
    """Of turns that may be meant by a text, the one recorded last is."""

    def change(found: Lineage, ledger: MemoryLedger, messages: Any, _chains: Any) -> Lineage:
        places: dict[SlotAt, int] = {}
        for at, message in enumerate(messages):
            for index, block in enumerate(message.blocks):
                numbers = ledger.lookup(block.payload) if block.payload else ()
                if message.speaker is Speaker.MODEL and numbers:
                    places[(at, index)] = numbers[-1]
        return given(found, ledger, places)

    relocate(patch, change)


def forgets_on_more(patch: pytest.MonkeyPatch) -> None:
    """Where two keys are found, the oldest turn goes."""
    relocate(
        patch,
        lambda found, *_: replace(found, turns=found.turns[1:] if found.hits > 1 else found.turns),
    )


def counts_every_second_turn(patch: pytest.MonkeyPatch) -> None:
    """Whether a turn is expected depends on how many were recorded before it."""
    relocate(
        patch,
        lambda found, *_: replace(found, turns=tuple(t for t in found.turns if t.number % 2)),
    )


def expects_the_newest(patch: pytest.MonkeyPatch) -> None:
    """The turn that was recorded last is expected in every request."""

    def change(found: Lineage, ledger: MemoryLedger, *_: Any) -> Lineage:
        newest = ledger.get(len(ledger) - 1)
        known = newest is None or newest in found.turns
        return found if known else replace(found, turns=(newest, *found.turns))

    relocate(patch, change)


def judges_every_second(patch: pytest.MonkeyPatch) -> None:
    """Every second request is one in which nothing is found."""
    judged: list[int] = []

    def change(found: Lineage, *_: Any) -> Lineage:
        judged.append(1)
        return Lineage() if len(judged) % 2 else found

    relocate(patch, change)


def finds_the_newest_only(patch: pytest.MonkeyPatch) -> None:
    """Of turns that hold a key, the newest is found."""
    patch.setattr(MemoryLedger, "lookup", lambda ledger, key: _LOOKUP(ledger, key)[-1:])


def looks_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """Whether a seal is called intact depends on how long the request is."""

    def aligned(lineage: Lineage, messages: Any, *more: Any) -> Any:
        found = align(lineage, messages, *more)
        fate = Fate.MISPLACED if len(messages) % 3 == 0 else Fate.INTACT
        return [
            replace(one, finding=replace(one.finding, fate=fate))
            if one.finding.fate is Fate.INTACT
            else one
            for one in found
        ]

    patch.setattr(judging, "align", aligned)


def resumes_always(patch: pytest.MonkeyPatch) -> None:
    """A cached judgement is used whatever follows."""
    patch.setattr(judging, "touches", lambda *_: False)
    patch.setattr(judging, "follows", lambda *_: True)


def overlooks_half(patch: pytest.MonkeyPatch) -> None:
    """Half of all digests are not found."""

    def lookup(ledger: MemoryLedger, key: bytes) -> tuple[int, ...]:
        return () if key[:1] < b"\x80" else _LOOKUP(ledger, key)

    patch.setattr(MemoryLedger, "lookup", lookup)


def minds_the_order_of_keys(patch: pytest.MonkeyPatch) -> None:
    """A JSON value is digested as it is written."""

    def spelled(digest: Digest, value: Any) -> bytes:
        return digest.name(repr(value))

    patch.setattr(Digest, "value", spelled)


def loses_what_is_streamed(patch: pytest.MonkeyPatch) -> None:
    """The last event but two of a stream is not read."""

    def payloads(events: Any) -> tuple[list[Any], int]:
        found, lost = as_payloads(events)
        return [one for at, one in enumerate(found) if at != 1], lost

    patch.setattr(observation, "as_payloads", payloads)


CASES: list[tuple[Any, Spoil]] = [
    (
        test_l1_evidence.test_a_faithful_stranger_in_the_place_of_a_turn_is_accused_of_nothing,
        believes_a_place,
    ),
    (
        test_l1_evidence.test_an_unfaithful_stranger_with_words_of_its_own_is_accused_of_nothing,
        believes_a_place,
    ),
    (test_l2_more.test_a_seal_put_back_loses_no_turn_and_is_intact, forgets_on_more),
    (test_l3_order.test_requests_that_are_only_judged_may_come_in_any_order, judges_every_second),
    (
        test_l3_order.test_of_answers_to_one_request_the_first_recorded_is_like_the_last,
        counts_every_second_turn,
    ),
    (test_l4_ties.test_a_loss_that_may_be_of_two_turns_accuses_neither, prefers_the_last),
    (test_l4_ties.test_a_loss_that_may_be_of_two_turns_accuses_neither, finds_the_newest_only),
    (test_l5_suffix.test_what_follows_changes_no_fate_of_what_was_there, looks_at_the_end),
    (test_l5_suffix.test_a_judgement_from_the_cache_is_that_of_the_whole, resumes_always),
    (test_l6_forks.test_what_was_left_out_at_the_end_is_not_expected, expects_the_newest),
    (test_l7_names.test_other_ids_change_nothing, overlooks_half),
    (test_l7_names.test_another_order_of_keys_changes_nothing, minds_the_order_of_keys),
    (test_l8_together.test_conversations_in_turn_are_judged_as_each_alone, finds_the_newest_only),
    (
        test_l8_together.test_conversations_that_begin_alike_accuse_each_other_of_nothing,
        expects_the_newest,
    ),
    (test_l9_live.test_a_stream_has_the_rows_of_a_whole_body, loses_what_is_streamed),
]


@pytest.mark.parametrize(
    ("law", "spoil"), CASES, ids=[f"{law.__name__}-{spoil.__name__}" for law, spoil in CASES]
)
def test_a_law_fails_where_the_core_breaks_it(
    monkeypatch: pytest.MonkeyPatch, law: Any, spoil: Spoil
) -> None:
    found = law._hypothesis_internal_use_settings
    once = settings(found, phases=[Phase.generate], max_examples=200, report_multiple_bugs=False)
    monkeypatch.setattr(law, "_hypothesis_internal_use_settings", once)
    spoil(monkeypatch)
    with pytest.raises(AssertionError):
        law()
