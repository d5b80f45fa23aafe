"""Where did a lost value go? Answered in digests, paths and lengths, in bounded work."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from otel_sealed.contract import Api
from otel_sealed.digest import Digest
from otel_sealed.model import Shadow
from otel_sealed.providers import dialects
from otel_sealed.steps import OutOfSteps, bounded
from otel_sealed.wire.search import Search, Shadows, Spot, Stray, Wanted
from tests.core.conversations import KEY, Mint

MINT = Mint("search")
SEAL = MINT.seal()
OTHER = MINT.seal()
DIGEST = Digest(KEY)
SIGNATURE = "anthropic.thinking.signature"


def wanted(*seals: str) -> tuple[Wanted, ...]:
    return tuple(Wanted(DIGEST.canon(seal), len(seal)) for seal in seals)


def search(body: Any, api: Api = Api.MESSAGES) -> Search:
    return Search(body, dialects()[api], DIGEST)


def find(body: Any, seal: str = SEAL, api: Api = Api.MESSAGES) -> Stray | None:
    return search(body, api).find(wanted(seal)).get(DIGEST.canon(seal))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"messages": [{"content": [{"type": "thinking", "signature": SEAL}]}]},
            Stray("messages.0.content.0.signature", Spot.SLOT, 0),
        ),
        ({"a": {"id": SEAL}}, Stray("a.id", Spot.ID, 0)),
        ({"id": f"call_1__thought__{SEAL}"}, Stray("id", Spot.ID, 0, part=True)),
        ({"text": SEAL}, Stray("text", Spot.TEXT, 0)),
        ({"text": f"see ({SEAL}) there"}, Stray("text", Spot.TEXT, 0, part=True)),
        ({"thinking": "x", "type": "thinking", "note": SEAL}, Stray("note", Spot.SIGNED, 0)),
        ({"metadata": {"k": SEAL}}, Stray("metadata.k", Spot.FIELD, 0)),
        ({"signature": encoded(SEAL)}, Stray("signature", Spot.SLOT, 1)),
        ({"signature": encoded(encoded(SEAL))}, Stray("signature", Spot.SLOT, 2)),
        ({"signature": f"{SEAL}{OTHER}"}, Stray("signature", Spot.SLOT, 0, part=True)),
        ({"signature": f"{OTHER}{SEAL}"}, Stray("signature", Spot.SLOT, 0, part=True)),
        ({"text": "nothing"}, None),
        ({"text": SEAL[:-20]}, None),
        ({}, None),
        ([], None),
        ("text", None),
    ],
)
def test_a_seal_is_found_wherever_it_stands(body: Any, expected: Stray | None) -> None:
    """In a slot, an id, a text, a field; whole, glued or encoded over."""
    assert expected == find(body)


def test_the_spelling_of_a_blob_makes_no_difference() -> None:
    """URL-safe and unpadded is the same value."""
    spelled = SEAL.replace("+", "-").replace("/", "_").rstrip("=")
    assert find({"note": spelled}) == Stray("note", Spot.FIELD, 0)


def test_all_lost_seals_are_found_in_one_walk() -> None:
    """Each has the first place it stands in."""
    body = {"a": SEAL, "b": OTHER, "c": SEAL}
    found = search(body).find(wanted(SEAL, OTHER))
    assert [found[w.canon].path for w in wanted(SEAL, OTHER)] == ["a", "b"]
    assert search(body).find(()) == {}


def test_what_is_nested_deeper_than_any_provider_nests_is_not_searched() -> None:
    deep: Any = SEAL
    for _ in range(60):
        deep = {"a": deep}
    assert find(deep) is None


@pytest.mark.parametrize(
    "body",
    [
        [["x"] * 30_000, SEAL],
        {"text": " ".join("A" * 30 + str(n) for n in range(30_000)), "z": SEAL},
    ],
    ids=["strings", "runs"],
)
def test_a_search_that_costs_more_than_its_budget_is_given_up(body: Any) -> None:
    """Many strings, many runs: no answer is better than a late one, or than half of one."""
    assert find(body) is not None
    with bounded(10_000), pytest.raises(OutOfSteps):
        find(body)


def shadow(text: str) -> Shadow:
    return Shadow(DIGEST.text(text), len(text))


WORDS = "what was weighed before the answer"


@pytest.mark.parametrize(
    "text",
    [
        WORDS,
        f"  {WORDS}\n",
        f"<think>{WORDS}</think>",
        f"<thinking>\n{WORDS}\n</thinking> and an answer",
        f"```reasoning\n{WORDS}\n```",
    ],
)
def test_a_readable_stand_in_is_found_as_text_of_its_own(text: str) -> None:
    """Plain, in tags or in fences, in any message."""
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}
    assert search(body).readable((shadow(WORDS),)) == "messages.0.content.0.text"


@pytest.mark.parametrize("text", [f"Thought: {WORDS}", f"> {WORDS} and more", f"so\n{WORDS}"])
def test_a_stand_in_inside_a_text_counts_near_its_turn_only(text: str) -> None:
    """Words of a turn quoted elsewhere are a quote."""
    body = {"messages": [{"content": "x"}, {"content": text}]}
    assert search(body).readable((shadow(WORDS),)) is None
    assert search(body).holds(text, Shadows((shadow(WORDS),))) == (shadow(WORDS),)


def test_signed_text_is_no_stand_in() -> None:
    """The block's own text is where it belongs."""
    body = {"messages": [{"content": [{"type": "thinking", "thinking": WORDS}]}]}
    assert search(body).readable((shadow(WORDS),)) is None
    assert search(body).readable(()) is None


def test_short_words_have_to_stand_alone() -> None:
    """A few characters are found in any text."""
    assert search({}).holds("yes, indeed", Shadows((shadow("yes"),))) == ()
    assert search({}).holds(" yes ", Shadows((shadow("yes"),))) == (shadow("yes"),)


@pytest.mark.parametrize(
    ("body", "path", "artifact", "expected"),
    [
        ({"a": {"type": "thinking", "signature": SEAL}}, "a", SIGNATURE, SEAL),
        ({"a": {"type": "thinking", "signature": 7}}, "a", SIGNATURE, None),
        ({"a": {"type": "thinking"}}, "a", SIGNATURE, None),
        ({"a": {"type": "text"}}, "a", SIGNATURE, None),
        ({"a": {"type": "novel"}}, "a", SIGNATURE, None),
        ({"a": [{"type": "thinking", "signature": SEAL}]}, "a.0", SIGNATURE, SEAL),
        ({"a": []}, "a.0", SIGNATURE, None),
        ({"a": "text"}, "a.b", SIGNATURE, None),
        ({"type": "thinking", "signature": SEAL}, "", SIGNATURE, SEAL),
    ],
)
def test_the_value_of_a_slot(body: Any, path: str, artifact: str, expected: str | None) -> None:
    """The raw string of an artifact's slot, if there is one."""
    assert expected == search(body).slot(path, artifact)


def test_the_alias_of_a_slot() -> None:
    """Gemini takes snake_case as well."""
    body = {"text": "x", "thought_signature": SEAL}
    found = search(body, Api.GENERATE_CONTENT).slot("", "gemini.part.thought_signature")
    assert found == SEAL


def test_a_sample_says_what_stands_in_a_slot() -> None:
    """Windows, size, layers and alphabet; nothing where there is no value."""
    body = {"type": "thinking", "signature": f"{SEAL[:40]} {SEAL[40:]}"}
    sample = search(body).sample("", SIGNATURE, len(SEAL), binary=False)
    assert sample is not None
    assert (sample.size, sample.foreign_alphabet) == (len(SEAL) + 1, True)
    assert sample.stripped == DIGEST.text(SEAL)
    assert search({}).sample("", SIGNATURE, 10, binary=False) is None
    binary = search({"text": "", "thoughtSignature": SEAL}, Api.GENERATE_CONTENT)
    sample = binary.sample("", "gemini.part.thought_signature", 10, binary=True)
    assert sample is not None
    assert sample.size == len(base64.b64decode(SEAL))


def test_seals_end_to_end_are_counted() -> None:
    """One slot may hold several."""
    body = {"type": "thinking", "signature": f"{SEAL}{OTHER}"}
    assert search(body).joined_seals("", SIGNATURE, wanted(SEAL, OTHER)) == 2
    assert search(body).joined_seals("", SIGNATURE, wanted(SEAL)) == 1
    assert search(body).joined_seals("", SIGNATURE, ()) == 0
    assert search({}).joined_seals("", SIGNATURE, wanted(SEAL)) == 0


def test_pieces_in_several_slots_make_one_value() -> None:
    """Set end to end they are the value that was cut."""
    body = [
        {"type": "thinking", "signature": SEAL[:100]},
        {"type": "thinking", "signature": SEAL[100:]},
    ]
    places = (("0", SIGNATURE), ("1", SIGNATURE))
    assert search(body).joined_slots(places) == DIGEST.canon(SEAL)
    assert search(body).joined_slots((*places, ("9", SIGNATURE))) == DIGEST.canon(SEAL)


@pytest.mark.parametrize(
    ("body", "path", "expected"),
    [
        ({"a": "plain"}, "a", "plain"),
        ({"a": {"thinking": "t"}}, "a", "t"),
        ({"a": {"text": "t"}}, "a", "t"),
        ({"a": {"content": "t"}}, "a", "t"),
        ({"a": {"content": ["t"]}}, "a", ""),
        ({"a": 7}, "a", ""),
        ({}, "a", ""),
    ],
)
def test_the_readable_text_of_a_block(body: Any, path: str, expected: str) -> None:
    """A string, or what stands under its text key."""
    assert expected == search(body).text(path)


def test_a_text_made_of_several_ends_to_end() -> None:
    """Which of consecutive texts a block is made of, white space aside."""
    one, two, three = "First of all.", "Second of all.", "Third of all."
    pieces = (shadow(one), shadow(two), shadow(three))
    assert search({"a": f"{one}\n\n{two}"}).composed("a", pieces) == (0, 1)
    assert search({"a": f"{two}{three}"}).composed("a", pieces) == (1, 2)
    assert search({"a": one}).composed("a", pieces) == (0,)
    assert search({"a": f"{one} and more"}).composed("a", pieces) == ()
    assert search({"a": ""}).composed("a", pieces) == ()


def test_what_a_request_tells_of_an_earlier_answer() -> None:
    """Digests of the first long texts, with the words around them taken off."""
    answer = "A summary of all that was said in this session so far, in one long paragraph of text."
    body = {"messages": [{"content": f"We go on.\n\n{answer}\n\nContinue."}]}
    assert DIGEST.text(answer) in set(search(body).told())
    tagged = {"messages": [{"content": f"<summary>{answer}</summary>"}]}
    assert DIGEST.text(answer) in set(search(tagged).told())
    assert list(search({"messages": [{"content": "short"}]}).told()) == []


def test_short_endings_of_ids_are_no_seals() -> None:
    """Behind a double underscore something of a seal's length has to stand."""
    assert find({"id": f"call__x__{'A' * 30}__short"}) is None


def test_a_run_of_several_values_is_taken_apart() -> None:
    """However many were set end to end, up to a bound."""
    seals = [MINT.seal() for _ in range(4)]
    body = {"signature": "".join(seals)}
    found = search(body).find(wanted(*seals))
    assert len(found) == 4
    assert search({"signature": "A" * 4000}).find(wanted(*seals)) == {}
