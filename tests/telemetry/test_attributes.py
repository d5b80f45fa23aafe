from __future__ import annotations

import gzip
import json
from hashlib import sha256
from typing import Any

import pytest

from otel_sealed import vocab
from otel_sealed.model import (
    Cause,
    Facts,
    Fate,
    Finding,
    ProviderVerdict,
    Receipt,
    Rejection,
    Report,
    ToolReceipt,
    Verdict,
)
from otel_sealed.telemetry.attributes import rekey_with, rows_of, span_attributes
from tests.telemetry.builders import (
    CONVERSATION,
    KEY,
    SEAL,
    TEXT,
    Bench,
    digest,
    finding,
    received,
    report,
)

REKEY = rekey_with(KEY)
TYPES = {attribute.name: attribute.type for attribute in vocab.ATTRIBUTES}
PYTHON = {"string": str, "int": int, "boolean": bool}


def attributes(given: Report) -> dict[str, Any]:
    return span_attributes(
        given, rows_of(given, REKEY), rekey=REKEY, key_id="k1", rules_version="2026.11"
    )


def test_every_value_has_the_type_the_vocabulary_says() -> None:
    rich = report(
        finding(Fate.DROPPED, Verdict.BREAKS, rule="A2", artifact="x.y.signature"),
        finding(Fate.MODIFIED, Verdict.BREAKS, rule="A1", cause=Cause.MASKED),
        finding(),
        received=(Receipt(SEAL, digest(9), 10, "content.0", id=digest(8)),),
        rejection=Rejection.SIGNATURE_INVALID,
        received_types=("thinking",),
        returned_types=("text", "thinking"),
        summary_size=12,
        receipts=(
            ToolReceipt("look", digest(3), 11, 22, failed=True, effect=digest(4), effect_size=5),
        ),
    )
    values = attributes(rich)
    for name, value in values.items():
        kind = TYPES[name]
        if kind.endswith("[]"):
            assert type(value) is list
            assert {type(item) for item in value} == {PYTHON[kind[:-2]]}
        else:
            assert type(value) is PYTHON[kind]
    # `known` needs an owner's list of known losses
    assert set(values) == set(vocab.SPAN_ATTRIBUTES) - {"otel_sealed.known"}


def test_a_dropped_seal_reads_in_any_backend() -> None:
    values = attributes(
        report(
            finding(
                Fate.DROPPED,
                Verdict.BREAKS,
                rule="A2",
                artifact="anthropic.redacted_thinking.data",
            )
        )
    )
    assert values["otel_sealed.findings"] == ["dropped anthropic.redacted_thinking.data A2 breaks"]
    assert values["otel_sealed.verdict"] == "breaks"
    assert values["otel_sealed.violations.count"] == 1


def test_a_carrier_without_its_seal_counts_as_not_sent() -> None:
    lost = finding(Fate.DROPPED, Verdict.BREAKS, returned="contents.1.parts.0")
    values = attributes(report(lost))
    assert values["otel_sealed.returned.digests"] == [digest(1).hex()]
    assert values["otel_sealed.returned.positions"] == [""]


def test_what_was_not_sent_keeps_the_expected_digest_and_an_empty_position() -> None:
    values = attributes(report(finding(Fate.DROPPED, Verdict.BREAKS)))
    assert values["otel_sealed.returned.digests"] == [digest(1).hex()]
    assert values["otel_sealed.returned.positions"] == [""]
    assert values["otel_sealed.returned.sizes"] == [-1]


def test_what_was_sent_shows_the_digest_that_went_out() -> None:
    values = attributes(report(finding(Fate.MODIFIED, Verdict.BREAKS)))
    assert values["otel_sealed.returned.digests"] == [digest(2).hex()]
    assert values["otel_sealed.returned.positions"] == ["messages.1.content.0"]
    assert values["otel_sealed.returned.sizes"] == [100]


def test_what_is_ok_and_went_out_before_is_only_counted() -> None:
    values = attributes(report(finding(), finding(first=True), finding(Fate.DROPPED)))
    assert values["otel_sealed.returned.fates"] == ["intact"]
    assert values["otel_sealed.returned.rest.count"] == 2
    assert len(values["otel_sealed.returned.rest.digest"]) == 32


def held(count: int, fate: Fate) -> list[Finding]:
    """What came in earlier turns and is carried elsewhere, and last what came just before."""
    rows = [finding(fate, Verdict.ALLOWED, digest_out=b"", returned=None) for _ in range(count)]
    return [*rows, finding(fate, Verdict.ALLOWED, digest_out=b"", returned=None, first=True)]


@pytest.mark.parametrize("fate", [Fate.SERVER_HELD, Fate.SUPERSEDED])
def test_what_another_carries_is_listed_while_it_is_little(fate: Fate) -> None:
    values = attributes(report(*held(16, fate)))
    assert values["otel_sealed.returned.fates"] == [fate.value] * 17
    assert "otel_sealed.returned.rest.count" not in values


@pytest.mark.parametrize("fate", [Fate.SERVER_HELD, Fate.SUPERSEDED])
def test_much_that_another_carries_is_counted_but_for_what_is_new_or_wrong(fate: Fate) -> None:
    wrong = finding(Fate.DROPPED, Verdict.DEGRADES)
    values = attributes(report(wrong, *held(17, fate)))
    assert values["otel_sealed.returned.fates"] == ["dropped", fate.value]
    assert values["otel_sealed.returned.rest.count"] == 17
    assert len(values["otel_sealed.findings"]) == 2
    assert values["otel_sealed.truncated"] is False


def test_the_rest_digest_depends_on_order() -> None:
    one, two = finding(digest_out=digest(5)), finding(digest_out=digest(6))
    first = attributes(report(one, two))["otel_sealed.returned.rest.digest"]
    second = attributes(report(two, one))["otel_sealed.returned.rest.digest"]
    assert first != second


def test_rows_are_cut_at_64_and_the_worst_stay() -> None:
    mild = [finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE) for _ in range(80)]
    bad = finding(Fate.DROPPED, Verdict.BREAKS, rule="A2")
    values = attributes(report(*mild, bad))
    assert len(values["otel_sealed.returned.fates"]) == 64
    assert values["otel_sealed.returned.fates"][-1] == "dropped"
    assert values["otel_sealed.truncated"] is True
    assert values["otel_sealed.returned.rest.count"] == 17
    assert len(values["otel_sealed.findings"]) == 16
    assert values["otel_sealed.findings"][0] == f"dropped {SEAL} A2 breaks"


def test_received_rows_are_cut_at_64_and_counted_in_full() -> None:
    values = attributes(received(*range(1, 100)))
    assert len(values["otel_sealed.received.digests"]) == 64
    assert values["otel_sealed.received.count"] == 99
    assert values["otel_sealed.truncated"] is True


def test_nothing_is_truncated_in_a_short_call() -> None:
    assert attributes(report(finding()))["otel_sealed.truncated"] is False


def test_block_types_are_bounded_and_the_newest_stay() -> None:
    types = tuple(f"t{n}" for n in range(100))
    values = attributes(
        report(finding(Fate.DROPPED, Verdict.BREAKS), received_types=types, returned_types=types)
    )
    assert values["otel_sealed.received.block_types"] == list(types[:64])
    assert values["otel_sealed.returned.block_types"] == list(types[-64:])


@pytest.mark.parametrize(
    "artifact", [TEXT, "request.prefix", "openai.reasoning.id", "some.unknown.thing"]
)
def test_readable_values_are_keyed_by_conversation(artifact: str) -> None:
    row = finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=artifact)
    one = attributes(report(row))["otel_sealed.returned.digests"]
    two = attributes(report(row, conversation=b"\x22" * 16))["otel_sealed.returned.digests"]
    assert one == [REKEY(CONVERSATION, digest(2)).hex()]
    assert one != two
    assert digest(2).hex() not in one + two


def test_a_readable_value_without_conversation_has_no_digest() -> None:
    row = finding(Fate.MODIFIED, Verdict.DEGRADES, artifact=TEXT)
    assert attributes(report(row, conversation=b""))["otel_sealed.returned.digests"] == [""]


def test_text_in_the_place_of_a_seal_is_keyed_like_text() -> None:
    row = finding(Fate.SUBSTITUTED, Verdict.DEGRADES, digest_out=digest(3))
    values = attributes(report(row))
    assert values["otel_sealed.returned.digests"] == [REKEY(CONVERSATION, digest(3)).hex()]


def test_a_seal_has_the_same_digest_in_every_conversation() -> None:
    row = finding(first=True)
    one = attributes(report(row))["otel_sealed.returned.digests"]
    two = attributes(report(row, conversation=b"\x22" * 16))["otel_sealed.returned.digests"]
    assert one == two == [digest(1).hex()]


def test_a_call_with_nothing_sealed_has_no_verdict() -> None:
    values = attributes(report())
    assert "otel_sealed.verdict" not in values
    assert "otel_sealed.known" not in values
    assert values["otel_sealed.carry"] == "none"


def test_a_receipt_says_sizes_and_error_and_keeps_ids_under_the_conversations_key() -> None:
    receipts = (
        ToolReceipt("look", digest(3), 11, 22, failed=False),
        ToolReceipt("find", b"", None, 4),
    )
    one = attributes(report(receipts=receipts))
    two = attributes(report(receipts=receipts, conversation=b"\x22" * 16))
    assert one["otel_sealed.tools.names"] == ["look", "find"]
    assert one["otel_sealed.tools.argument_sizes"] == [11, -1]
    assert one["otel_sealed.tools.result_sizes"] == [22, 4]
    assert one["otel_sealed.tools.errors"] == ["false", "unknown"]
    assert one["otel_sealed.tools.calls"][1] == ""
    assert one["otel_sealed.tools.calls"][0] not in ("", digest(3).hex())
    assert one["otel_sealed.tools.calls"] != two["otel_sealed.tools.calls"]
    assert "otel_sealed.tools.effects" not in one


def test_an_effect_the_app_told_stands_beside_its_call() -> None:
    told = ToolReceipt("pay", digest(3), 11, 22, effect=digest(4), effect_size=9)
    values = attributes(report(receipts=(told, ToolReceipt("look", digest(5), 1, 2))))
    assert values["otel_sealed.tools.effect_sizes"] == [9, -1]
    assert values["otel_sealed.tools.effects"][1] == ""
    assert len(values["otel_sealed.tools.effects"][0]) == 32


def test_facts_are_key_value_pairs() -> None:
    values = attributes(
        report(
            facts=Facts(
                dialect="anthropic",
                vendor="anthropic",
                thinking=True,
                store=False,
                account=b"secret stand-in!",
                betas=("compact-2026-01-12", "Pr1vate Thing"),
                flags=("drop_block",),
            ),
            stop="tool_use",
            complete=False,
            prefix=digest(4),
            unread=("response",),
        )
    )["otel_sealed.facts"]
    issuer = next(fact for fact in values if fact.startswith("issuer="))
    assert [fact for fact in values if fact != issuer] == [
        "thinking=true",
        "store=false",
        "stop=tool_use",
        "complete=false",
        f"prefix={REKEY(CONVERSATION, digest(4)).hex()}",
        "unread=response",
        "beta=compact-2026-01-12",
        "beta=other",
        "flag=drop_block",
    ]
    assert b"secret stand-in!".hex() not in issuer


def test_wire_words_that_are_no_words_are_replaced() -> None:
    bad = "SecretCanary/With+Blob=="
    values = attributes(
        report(
            finding(Fate.UNKNOWN, Verdict.UNVERIFIABLE, returned=f"messages.0.{bad}", rule=bad),
            received=(Receipt(bad, digest(1), 1, f"content.0.{bad}"),),
            received_types=(bad,),
            returned_types=(bad,),
            stop=bad,
            facts=Facts(dialect="anthropic", vendor="anthropic", context=bad, flags=(bad,)),
            drift=((bad, 3),),
            unread=(bad,),
        )
    )
    assert "Canary" not in json.dumps(values)
    assert values["otel_sealed.returned.positions"] == ["messages.0.other"]


def test_the_first_key_is_what_matters_most() -> None:
    assert next(iter(attributes(report(finding())))) == "otel_sealed.verdict"


def test_digest_columns_hold_32_hex_characters() -> None:
    values = attributes(
        report(finding(first=True), received=(Receipt(SEAL, digest(3), 5, "content.0"),))
    )
    for name in ("otel_sealed.received.digests", "otel_sealed.returned.digests"):
        assert [len(value) for value in values[name]] == [32]


def test_ids_of_items_leave_under_the_key_of_their_conversation() -> None:
    named = Receipt("openai.reasoning.encrypted_content", digest(3), 5, "output.0", id=digest(4))
    given = report(received=(named, Receipt(SEAL, digest(5), 5, "output.1")))
    values = attributes(given)
    assert [REKEY(given.conversation, digest(4)).hex(), ""] == values["otel_sealed.received.ids"]


def test_where_no_item_has_an_id_there_is_no_column_of_ids() -> None:
    assert "otel_sealed.received.ids" not in attributes(received(1, 2))


def noise(number: int) -> bytes:
    """A digest that does not compress."""
    return sha256(b"%d" % number).digest()[:16]


def _healthy(turns: int) -> list[Report]:
    """A conversation with a signed thinking block in each turn, all of it sent back each time."""
    reports = []
    for turn in range(turns):
        rows = []
        for earlier in range(turn):
            for artifact, number in ((SEAL, 2 * earlier + 1), (TEXT, 2 * earlier + 2)):
                rows.append(
                    finding(
                        artifact=artifact,
                        digest_in=noise(number),
                        digest_out=noise(number),
                        returned=f"messages.{2 * earlier + 1}.content.0",
                        first=earlier == turn - 1,
                    )
                )
        reports.append(
            report(
                *rows,
                received=(Receipt(SEAL, noise(2 * turn + 1), 700, "content.0"),),
                received_types=("thinking", "text", "tool_use"),
                returned_types=("thinking", "text", "tool_use", "tool_result") * turn,
                stop="tool_use",
                prefix=digest(77),
                provider_verdict=ProviderVerdict.ACCEPTED,
            )
        )
    return reports


def test_a_healthy_conversation_of_100_turns_adds_at_most_64_kib() -> None:
    """Of values, and of what exporters send with gzip, ten spans at a time; no span grows."""
    spans = [attributes(given) for given in _healthy(100)]
    values = sum(
        len(str(item))
        for span in spans
        for value in span.values()
        for item in (value if isinstance(value, list) else [value])
    )
    assert values <= 64 * 1024
    batches = [json.dumps(spans[at : at + 10]).encode() for at in range(0, 100, 10)]
    assert sum(len(gzip.compress(batch)) for batch in batches) <= 64 * 1024
    assert len(json.dumps(spans[99])) <= len(json.dumps(spans[10])) + 100


def test_the_sdk_takes_every_value_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    seen = bench.call(report(finding(Fate.DROPPED, Verdict.BREAKS), finding(first=True)))
    assert seen["otel_sealed.returned.fates"] == ("dropped", "intact")
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
