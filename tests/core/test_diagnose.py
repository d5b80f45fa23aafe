"""How a value changed, from lengths and keyed windows alone."""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Callable
from typing import Literal

import pytest

from otel_sealed.diagnose import Change, diagnose
from otel_sealed.digest import Digest, canonical, utf8
from otel_sealed.model import Cause, Fate, Finding, Role, State, Value
from tests.core.builders import (
    MINT,
    blocks,
    call,
    candidate,
    chat,
    edit,
    message,
    part,
    parts_of,
    reasoning,
    response,
    sets,
    text,
    thinking,
    use,
)
from tests.core.conversations import Body, replay

SIGNATURE = "anthropic.thinking.signature"
SEAL = "openai.reasoning.encrypted_content"


def found(change: Callable[[str], str], seal: str | None = None) -> Finding:
    """The row of a signature that some host changed."""
    answer = message(thinking(), use())
    if seal is not None:
        answer["content"][0]["signature"] = seal

    def host(body: Body) -> None:
        block = blocks(body)[0]
        block["signature"] = change(block["signature"])

    report = replay("anthropic", answer, edit(host))
    return next(f for f in report.findings if f.artifact == SIGNATURE)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda s: s[: len(s) // 3] + "…" + s[-len(s) // 3 :], Cause.MASKED),
        (lambda s: s[: len(s) // 3] + "***" + s[-len(s) // 3 :], Cause.MASKED),
        (lambda s: s[: len(s) // 2] + "*" + s[len(s) // 2 + 1 :], Cause.MASKED),
        (lambda s: s[: len(s) // 2], Cause.CUT_END),
        (lambda s: s[len(s) // 2 :], Cause.CUT_START),
        (lambda s: s + MINT.seal(), Cause.GROWN),
        (lambda s: MINT.seal() + s, Cause.GROWN),
        (lambda s: s.replace("+", "-").replace("/", "_").rstrip("="), Cause.RE_ENCODED),
        (lambda s: base64.b64encode(s.encode()).decode(), Cause.DOUBLE_ENCODED),
        (lambda s: f"{s[:76]}\n{s[76:]}", Cause.WHITESPACE),
        (lambda s: f" {s} ", Cause.WHITESPACE),
        (lambda _: MINT.seal(), Cause.REPLACED),
        (lambda _: "x", Cause.REPLACED),
        (lambda _: "skip_thought_signature_validator", Cause.PLACEHOLDER),
    ],
    ids=[
        "dots",
        "stars",
        "one character",
        "end",
        "start",
        "grown behind",
        "grown before",
        "re-spelled",
        "encoded again",
        "wrapped",
        "padded",
        "other seal",
        "short",
        "dummy",
    ],
)
def test_the_cause_of_a_changed_seal(change: Callable[[str], str], cause: Cause) -> None:
    """Each way of changing a value has a name."""
    assert found(change).cause is cause


def test_details_are_numbers_only() -> None:
    """Where it struck is told in bytes."""
    seal = "A" * 10 + MINT.seal()
    size = len(seal)
    assert found(lambda s: s[:100], seal).detail == f"after 100 of {size}"
    assert found(lambda s: s[100:], seal).detail == f"first 100 of {size}"
    assert found(lambda s: s + "A" * 8, seal).detail == f"{size} to {size + 8}"
    middle = found(lambda s: s[:300] + "*" * 8 + s[308:], seal).detail
    assert middle.endswith(f" of {size}")
    start, end = middle.removeprefix("within ").split(" of ", maxsplit=1)[0].split("-")
    assert int(start) <= 300
    assert int(end) >= 308


def test_two_seals_end_to_end() -> None:
    """A merged value holds two seals of the conversation."""

    def host(body: Body) -> None:
        one, two = blocks(body)[:2]
        one["signature"] += two["signature"]
        blocks(body).remove(two)

    report = replay("anthropic", message(thinking(), thinking("two"), use()), edit(host))
    causes = [f.cause for f in report.findings if f.artifact == SIGNATURE]
    assert causes == [Cause.TWO_SEALS, Cause.TWO_SEALS]


def test_swapped_within_a_turn() -> None:
    """The value of another artifact of the conversation."""

    def host(body: Body) -> None:
        one, two = blocks(body)[:2]
        one["signature"] = two["signature"]

    report = replay("anthropic", message(thinking(), thinking("two"), use()), edit(host))
    assert [(f.fate.value, f.cause) for f in report.findings if f.artifact == SIGNATURE] == [
        ("modified", Cause.SWAPPED),
        ("duplicated", None),
    ]


@pytest.mark.parametrize("form", ["NFD", "NFKD"])
def test_unicode_normalised_text(form: Literal["NFD", "NFKD"]) -> None:
    """Signed text in another normal form."""
    value = "é" * 40
    answer = message(thinking(value), use())
    other = unicodedata.normalize(form, value)
    report = replay("anthropic", answer, sets("thinking", other, "thinking"))
    row = next(f for f in report.findings if f.artifact == "anthropic.thinking.text")
    assert row.cause is Cause.UNICODE_NORMALISED


def test_emptied_text() -> None:
    """Signed text that is an empty string now."""
    report = replay("anthropic", message(thinking(), use()), sets("thinking", "", "thinking"))
    row = next(f for f in report.findings if f.artifact == "anthropic.thinking.text")
    assert (row.fate.value, row.cause) == ("modified", Cause.EMPTIED)


def test_a_constant_of_other_conversations() -> None:
    """What stands there now was seen in other conversations too."""
    seal = MINT.seal()
    report = replay(
        "openai", response(reasoning(), call()), sets("encrypted_content", seal, "reasoning")
    )
    row = next(f for f in report.findings if f.artifact == SEAL)
    assert row.cause is Cause.REPLACED


@pytest.mark.parametrize("kind", ["call", "text"])
@pytest.mark.parametrize(("length", "left"), [(128, 96), (129, 96), (130, 97), (131, 98)], ids=str)
def test_a_gemini_value_is_compared_by_its_bytes(kind: str, length: int, left: int) -> None:
    """A cut in the text is a cut in the bytes, wherever it strikes."""

    def cut(body: Body) -> None:
        held = parts_of(body)[0]
        held["thoughtSignature"] = held["thoughtSignature"][:length]

    row = replay("gemini", candidate(part(kind)), edit(cut)).findings[0]
    assert (row.fate, row.cause) == (Fate.MODIFIED, Cause.CUT_END)
    assert row.detail == f"after {left} of {row.size_in}"


def test_nothing_to_look_at_is_emptied() -> None:
    """Without a sample there is no more to say."""
    value = Value("a.b.c", Role.SEAL, State.PRESENT, b"d" * 16, b"c" * 16, 100)
    assert diagnose(value, None) == Change(Cause.EMPTIED)


def test_short_values_have_no_windows() -> None:
    """Under 32 bytes a change is a replacement."""
    digest = Digest(b"k" * 32)
    seal = "c2hvcnQgc2VhbA=="
    data = utf8(seal)
    value = Value(
        "a.b.c",
        Role.SEAL,
        State.PRESENT,
        digest.text(seal),
        digest.blob(canonical(seal)),
        len(data),
        digest.windows(data),
    )
    assert value.prints == b""
    assert found(lambda s: s[:8], seal).cause is Cause.REPLACED


def test_an_unchanged_neighbour_has_no_cause() -> None:
    """Only what changed is explained."""
    report = chat("anthropic", message(thinking(), text()), message(thinking(), use()))[0]
    assert {f.cause for f in report.findings} == {None}
