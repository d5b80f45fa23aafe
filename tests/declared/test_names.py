"""What the dialects declare is what telemetry knows: names of artifacts, and keys to scrub."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from docs import declared as written
from docs.generate import TREE
from otel_sealed import declared, vocab
from otel_sealed.contract import Named, snake
from otel_sealed.model import Role
from otel_sealed.providers import dialects
from otel_sealed.telemetry.redaction import redacted
from otel_sealed.telemetry.scrub import Wire, scrubbed
from tests.declared.fields import Sealed, sealed

SEAL = base64.b64encode(bytes(range(256))).decode()
BLIND = Wire(lambda _: False, lambda _: "")
SEEN = Wire(lambda value: value == SEAL, lambda _: "")

FIELDS = [
    pytest.param(one, key, id=f"{one.dialect.name}-{one.carrier.type}-{key}")
    for one in sealed()
    for key in dict.fromkeys(one.field.names())
    if snake(key) not in declared.LISTED
]


def test_the_module_of_names_is_what_the_dialects_declare() -> None:
    path = Path(TREE / written.MODULE)
    assert written.module() == path.read_text("utf-8"), "run: python -m docs.generate"


def test_the_vocabulary_has_every_artifact_of_every_dialect_in_its_role() -> None:
    for dialect in dialects().values():
        for carrier in dialect.carriers.values():
            for one in carrier.fields:
                assert vocab.is_seal(one.artifact) is (one.role is Role.SEAL), one.artifact
                assert one.artifact in vocab.ARTIFACTS
            assert {carrier.envelope, carrier.orphan} - {""} <= vocab.CIRCUMSTANCES


def test_a_seal_that_no_dialect_reads_is_one_of_those_promised() -> None:
    made = {one.artifact for one in sealed()}
    assert {"openrouter.reasoning_details"} == vocab.SEALS - made


def test_all_fields_with_a_key_agree_on_what_it_shows() -> None:
    found: dict[str, set[Named]] = {}
    for one in sealed():
        for key in one.field.names():
            found.setdefault(snake(key), set()).add(one.field.named)
    assert {} == {key: ways for key, ways in found.items() if len(ways) > 1}


def test_a_key_of_one_word_never_shows_a_sealed_value_by_itself() -> None:
    """Half the world has a `signature`; whoever declares such a key has to say what it shows."""
    words = {snake(key) for one in sealed() for key in one.field.names() if "_" not in snake(key)}
    assert set() == words & declared.ALWAYS


def test_words_are_given_where_one_has_to_be_near() -> None:
    assert all(bool(one.field.near) is (one.field.named is Named.NEAR) for one in sealed())


# ----------------------------------------------------------------------------------------- scrub


def texts(one: Sealed, key: str) -> dict[str, bool]:
    """What other tracers write about a field, and whether it is taken out though it never came."""
    shown = one.field.named in (Named.ALWAYS, Named.OPAQUE)
    near = one.field.near[0] if one.field.near else "x"
    certain = shown or one.field.named is Named.NEAR
    return {
        json.dumps({key: SEAL}): shown,
        f"Block({key}='{SEAL}')": shown,
        json.dumps(json.dumps({key: SEAL})): shown,
        json.dumps({"type": near, key: SEAL}): certain,
        json.dumps({key: "a plain word"}): False,
    }


@pytest.mark.parametrize(("one", "key"), FIELDS)
def test_a_value_under_a_declared_key_is_taken_out_as_far_as_the_key_shows_it(
    one: Sealed, key: str
) -> None:
    for text, taken in texts(one, key).items():
        assert (SEAL not in scrubbed(text, BLIND) and SEAL in text) is taken, text


@pytest.mark.parametrize(("one", "key"), FIELDS)
def test_a_value_that_came_is_taken_out_under_any_key(one: Sealed, key: str) -> None:
    assert one.field.role is Role.SEAL
    assert SEAL not in scrubbed(json.dumps({key: SEAL}), SEEN)


@pytest.mark.parametrize(("one", "key"), FIELDS)
def test_an_attribute_with_a_declared_key_is_taken_out_as_far_as_the_key_shows_it(
    one: Sealed, key: str
) -> None:
    near = f"{one.field.near[0]}." if one.field.near else ""
    clean = redacted(f"llm.output.{near}{key}", SEAL, BLIND, None)
    assert (clean != SEAL) is (one.field.named is not Named.NEVER)


@pytest.mark.parametrize("key", sorted(declared.LISTED))
def test_values_in_a_declared_list_are_taken_out(key: str) -> None:
    assert SEAL not in scrubbed(json.dumps({key: [SEAL, SEAL]}), BLIND)


@pytest.mark.parametrize("mark", sorted(declared.MARKS))
def test_a_value_hidden_in_an_id_is_taken_out(mark: str) -> None:
    assert SEAL not in scrubbed(json.dumps({"id": f"call_1{mark}{SEAL}"}), BLIND)
