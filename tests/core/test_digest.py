"""Keyed digests: what is the same, what is not, and what they give away."""

from __future__ import annotations

import base64
import hmac
import json
import os
import random
import subprocess
import sys
from collections import OrderedDict
from typing import Any

import pytest

from otel_sealed import digest as d
from otel_sealed.digest import Digest, sub_key
from otel_sealed.tracker import Tracker

KEY = b"k" * 32
BLOB = bytes(range(200, 256)) * 3
STANDARD = base64.b64encode(BLOB).decode()
URL_SAFE = base64.urlsafe_b64encode(BLOB).decode()


def test_a_digest_is_sixteen_bytes_and_depends_on_the_key() -> None:
    """The same text under two keys gives two digests of the same size."""
    one, two = Digest(KEY), Digest(b"x" * 32)
    assert len(one.text("a")) == 16
    assert one.text("a") == Digest(KEY).text("a")
    assert one.text("a") != two.text("a")
    assert one.text("a") != one.text("b")


def test_digests_of_different_things_never_meet() -> None:
    """Text, blob, id, JSON value and account have domains of their own."""
    digest = Digest(KEY)
    found = {
        digest.text("same"),
        digest.blob(b"same"),
        digest.name("same"),
        digest.value("same"),
        digest.account("same").encode(),
        digest.chain(b"", b"same"),
        sub_key(KEY, b"same"),
    }
    assert len(found) == 7


def test_a_short_key_is_refused() -> None:
    """A key of fifteen bytes is an error that says how long it must be."""
    with pytest.raises(ValueError, match="at least 16 bytes, got 15"):
        Digest(b"k" * 15)
    assert len(Digest(b"k" * 16).text("a")) == 16


def test_the_account_stand_in_is_hex_and_does_not_hold_the_credential() -> None:
    """What stands for a credential is 32 hex characters."""
    stand_in = Digest(KEY).account("sk-very-secret")
    assert len(bytes.fromhex(stand_in)) == 16
    assert "secret" not in stand_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", b"abc"),
        ("é", b"\xc3\xa9"),
        ("\ud83d\ude00", "\U0001f600".encode()),
        ("\ud83d", b"\xed\xa0\xbd"),
        ("a\ude00b", b"a\xed\xb8\x80b"),
    ],
)
def test_utf8_joins_surrogate_pairs_and_keeps_lone_ones(text: str, expected: bytes) -> None:
    """A pair of surrogates is the character it means; a lone one survives."""
    assert expected == d.utf8(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STANDARD, BLOB),
        (URL_SAFE, BLOB),
        (STANDARD.rstrip("="), BLOB),
        (URL_SAFE.rstrip("="), BLOB),
        ("", b""),
        ("é" * 16, None),
        ("a" * 17, None),
        ("not base64 at all!", None),
    ],
)
def test_a_blob_decodes_in_every_spelling_and_nothing_else_does(
    text: str, expected: bytes | None
) -> None:
    """Both alphabets, padded or not, are the same bytes."""
    assert expected == d.decode_blob(text)


def test_a_canonical_form_is_the_same_for_all_spellings() -> None:
    """Whatever the spelling of a blob, its canon is one."""
    digest = Digest(KEY)
    assert digest.canon(STANDARD) == digest.canon(URL_SAFE.rstrip("="))
    assert digest.canon(STANDARD) == digest.blob(BLOB)
    assert d.canonical("short") == b"short"
    assert d.canonical("prose of more than sixteen characters") == (
        b"prose of more than sixteen characters"
    )


def test_only_what_may_be_an_encoding_of_text_has_layers() -> None:
    """The beginning of a value says so, whatever it is."""
    chance = random.Random(3)
    seals = [base64.b64encode(chance.randbytes(n)).decode() for n in range(1, 200, 7)]
    texts = [
        *seals,
        URL_SAFE,
        "plain words, no blob at all",
        "a" * 15,
        "a" * 64 + "=" * 3,
        "\u00e9" * 30,
    ]
    texts += [base64.b64encode(text.encode()).decode() for text in list(texts)]
    texts += [base64.b64encode(text.encode()).decode() for text in list(texts)]
    texts += [text[:at] for text in list(texts) for at in (1, 3, 63, 64, 65)]
    wrapped = [text for text in texts if len(d.layers(text)) > 1]
    assert len(wrapped) > 50
    assert [text for text in wrapped if not d.may_wrap(text)] == []
    assert [text for text in seals[3:] if d.may_wrap(text)] == []


def test_layers_are_what_a_value_decodes_to() -> None:
    """A value encoded once more shows the value below."""
    double = base64.b64encode(STANDARD.encode()).decode()
    assert d.layers(double)[:2] == (STANDARD.encode(), BLOB)
    assert d.layers(STANDARD) == (BLOB,)
    assert d.layers("plain words, no blob at all") == (b"plain words, no blob at all",)
    assert len(d.layers(base64.b64encode(double.encode()).decode(), depth=2)) == 2


def test_runs_are_the_long_base64_like_stretches() -> None:
    """Only runs of 24 characters and more are looked at."""
    assert d.runs(f"call_1: {STANDARD}, {'a' * 23}") == [STANDARD]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1, "b": None}, {"a": 1}),
        ({"a": 1, "cache_control": {"type": "ephemeral"}}, {"a": 1}),
        ([{"cachePoint": {}}], [{}]),
        ({"a": 1.0}, {"a": 1}),
        ({1: "x"}, {"1": "x"}),
    ],
)
def test_a_json_value_is_compared_by_what_it_means(one: Any, two: Any) -> None:
    """Key order, nulls, cache markers and 1.0 for 1 make no difference."""
    assert Digest(KEY).value(one) == Digest(KEY).value(two)


@pytest.mark.parametrize(
    ("one", "two"), [([1, 2], [2, 1]), ({"a": ""}, {}), ([None], []), ("1", 1), (1.5, 1)]
)
def test_a_json_value_is_told_from_another(one: Any, two: Any) -> None:
    """Order of lists, empty strings, nulls in lists and types count."""
    assert Digest(KEY).value(one) != Digest(KEY).value(two)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        1e300,
        10**5000,
        b"\x00\xff",
        {"k": b"bytes"},
        "\ud83d",
        {"\ud83d": 1},
        {1, 2},
        object(),
    ],
    ids=lambda v: type(v).__name__,
)
def test_any_value_a_client_can_hand_over_has_a_digest(value: Any) -> None:
    """Not-a-number, giant integers, bytes and lone surrogates do not raise."""
    assert len(Digest(KEY).value(value)) == 16


def test_bytes_are_told_from_other_bytes() -> None:
    """Parsed bodies of old SDKs hold bytes, and they count."""
    assert Digest(KEY).value([b"one"]) != Digest(KEY).value([b"two"])


def test_deep_nesting_ends_in_a_constant() -> None:
    """Below 64 levels everything looks alike, and nothing raises."""
    value: Any = "bottom"
    for _ in range(10_000):
        value = [value]
    assert json.dumps(d.plain(value)).count("[") == 64


@pytest.mark.parametrize("shared", [True, False])
def test_windows_are_taken_from_both_ends(shared: bool) -> None:  # noqa: FBT001 - both kinds
    """Up to eight windows of four bytes from each end and both edges; none for a short value."""
    digest = Digest(KEY, shared=shared)
    data = bytes(range(256)) * 4
    prints = digest.windows(data)
    assert len(prints) == 4 * 18
    assert digest.windows(b"x" * 31) == b""
    assert prints[:4] == digest.windows(data + b"tail", len(data))[:4]
    assert prints[32:36] == digest.windows(b"head" + data, len(data))[32:36]
    assert digest.windows(b"", len(data)) != b""


def test_windows_of_a_shared_ledger_are_the_same_in_every_process() -> None:
    """Another process compares them, so they follow from the key and the value alone."""
    script = "from otel_sealed.digest import Digest; import sys;"
    script += "sys.stdout.write(Digest(b'k' * 32).windows(bytes(range(100))).hex())"
    env = {**os.environ, "PYTHONHASHSEED": "1"}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, env=env, check=True)
    assert run.stdout.decode() == Digest(b"k" * 32).windows(bytes(range(100))).hex()


def test_windows_of_the_memory_of_a_process_are_kept_from_others() -> None:
    """They are shorter work, have the same places and sizes, and still depend on the key."""
    data = bytes(range(200))
    shared, own = Digest(b"k" * 32), Digest(b"k" * 32, shared=False)
    assert len(own.windows(data)) == len(shared.windows(data)) == 18 * 4
    assert own.windows(data) != shared.windows(data)
    assert own.windows(data) != Digest(b"l" * 32, shared=False).windows(data)


def test_only_a_tracker_with_a_memory_of_its_own_makes_windows_of_its_own() -> None:
    """What a ledger other than the memory keeps may be read by another process."""

    elsewhere: Any = object()
    data = bytes(range(100))
    shared = Digest(b"k" * 32).windows(data)
    assert Tracker(b"k" * 32).digest.windows(data) != shared
    assert Tracker(b"k" * 32, ledger=elsewhere).digest.windows(data) == shared


@pytest.mark.parametrize(
    ("length", "expected"),
    [(0, (0, 0)), (31, (0, 0)), (32, (16, 2)), (128, (16, 8)), (129, (17, 7)), (4096, (512, 8))],
)
def test_the_plan_of_windows_grows_with_the_value(length: int, expected: tuple[int, int]) -> None:
    """Windows are at least 16 bytes and at most eight from each end."""
    assert expected == d.window_plan(length)


def test_normal_forms_are_those_that_differ() -> None:
    """A text in NFC has a decomposed form; plain ASCII has none."""
    assert d.normal_forms("é") == ("e\u0301", "e\u0301")
    assert d.normal_forms("abc") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [(STANDARD, True), (URL_SAFE, True), ("", True), ("a b", False), ("…", False), ("a===", False)],
)
def test_the_alphabet_is_told(text: str, expected: bool) -> None:  # noqa: FBT001 - a table
    """Only characters of base64 and at most two paddings are in the alphabet."""
    assert d.base64_alphabet(text) is expected


class Named(str):
    """A text that is shown as something else."""

    __slots__ = ()

    def __str__(self) -> str:
        return "shown"


VALUES: tuple[Any, ...] = (
    None,
    True,
    3,
    -2.5,
    4.0,
    "a",
    "1:a",
    '"1:a',
    "\ud83d",
    "é\ud83d\ude00",
    Named("named"),
    b"bytes",
    object(),
    [],
    {},
    ["a", "b"],
    ["ab"],
    [["a"], "b"],
    [None],
    {"a": None, "cache_control": 1},
    {"a": 1, "b": [2, {"c": "\ud83d\ude00"}]},
    {"b": [2, {"c": "😀"}], "a": 1},
    {1: "a", "b": 2},
    {1: "a"},
    {"1": "a"},
    (1, 2),
    OrderedDict(a=OrderedDict(b=[1])),
)


@pytest.mark.parametrize("one", VALUES)
def test_values_that_are_spelled_alike_are_counted_alike_and_no_others(one: Any) -> None:
    spelled = [d.spelled(one) == d.spelled(two) for two in VALUES]
    assert spelled == [d.counted(one) == d.counted(two) for two in VALUES]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_counted_alike_is_spelled_alike_for_any_json(seed: int) -> None:
    chance = random.Random(seed)
    seen: dict[bytes, bytes] = {}
    for _ in range(300):
        value = _any(chance, 0)
        assert d.spelled(value) == seen.setdefault(d.counted(value), d.spelled(value))


def _any(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(8 if depth < 4 else 6)
    if kind == 6:
        return [_any(chance, depth + 1) for _ in range(chance.randrange(3))]
    if kind == 7:
        keys = chance.sample(("a", "b", "é", "cache_control"), chance.randrange(3))
        return {key: _any(chance, depth + 1) for key in keys}
    return (None, True, chance.randrange(3), 1.5, "a" * chance.randrange(3), "é\ud83d")[kind]


def test_a_value_without_end_is_counted_as_far_as_it_is_spelled() -> None:
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    assert d.counted(deep) == d.counted([deep])


@pytest.mark.parametrize("size", [16, 32, 64, 65, 200])
def test_a_digest_is_the_hmac_of_its_domain_and_the_text(size: int) -> None:
    key = bytes(range(256))[:size]
    expected = hmac.digest(key, b"tsome text", "sha256")[:16]
    assert expected == Digest(key).text("some text") == Digest(key).raw(b"t", b"some text")
