"""The sweeper finds a planted secret in every encoding, and finds nothing where nothing is."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field

import pytest

from otel_sealed.testing.sweep import RUN, Hit, Sweeper, encodings, reprs

SEAL = base64.b64encode(random.Random(7).randbytes(700)).decode()
CANARY = 'Kanarienvogel ünïq-7f3a\U0001f642 92b1"<c0ffee'
SECRETS = {"seal": SEAL, "canary": CANARY}
NOISE = (
    'line 1 {{"attributes":[{{"key":"otel_sealed.verdict","value":"{}"}}]}} +/ab12cd34ef56 \\u00fc'
)


@pytest.fixture(scope="module", name="sweeper")
def _sweeper() -> Sweeper:
    return Sweeper(SECRETS)


@pytest.mark.parametrize("encoding", encodings(SEAL))
@pytest.mark.parametrize("label", SECRETS)
def test_a_planted_secret_is_found(sweeper: Sweeper, label: str, encoding: str) -> None:
    planted = NOISE.format(encodings(SECRETS[label])[encoding])
    found = sweeper.hits("out", planted)
    assert {(hit.where, hit.secret) for hit in found} == {("out", label)}
    assert sweeper.hits("out", planted.encode("utf-8", "surrogateescape")) != []


def test_every_run_of_twelve_characters_is_found_and_none_of_eleven(sweeper: Sweeper) -> None:
    for at in range(len(SEAL) - RUN):
        assert sweeper.hits("out", f"<{SEAL[at : at + RUN]}>") != []
    assert sweeper.hits("out", f"<{SEAL[20 : 20 + RUN - 1]}>") == []


def test_the_bytes_a_seal_stands_for_are_found(sweeper: Sweeper) -> None:
    data = base64.b64decode(SEAL)
    for planted in (data.hex(), base64.urlsafe_b64encode(data[2:]).decode(), f"{data!r}"):
        assert sweeper.hits("out", NOISE.format(planted)) != []


def test_innocent_output_holds_nothing(sweeper: Sweeper) -> None:
    other = base64.b64encode(random.Random(8).randbytes(700)).decode()
    assert sweeper.sweep({"a": NOISE, "b": NOISE.format(other), "c": b"\xff\xfe\x00" * 9}) == []


def test_a_hit_names_the_secret_by_its_label_only(sweeper: Sweeper) -> None:
    (hit, *_) = sweeper.hits("out", SEAL)
    assert Hit("out", "seal", "plain") == hit
    assert sweeper.hits("repr", repr(hit)) == []


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="short one"):
        Sweeper({"short one": "x" * (RUN - 1)})


@dataclass
class Inner:
    """A record that shows what it holds."""

    text: str


@dataclass
class Outer:
    """A record that holds others, one of them out of its repr."""

    inner: list[Inner]
    hidden: Inner = field(repr=False)


def test_reprs_reach_records_inside_of_records() -> None:
    found = reprs([{"x": Outer([Inner("in a list")], Inner("kept out"))}])
    assert "Inner(text='in a list')" in found
    assert "kept out" not in found
