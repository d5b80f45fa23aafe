"""Hosts of Gemini's generateContent and what they do to thought signatures."""

from __future__ import annotations

import base64
import random
from typing import Any

from otel_sealed.model import Fate
from otel_sealed.testing.mutations.records import (
    Body,
    Freedom,
    Mutation,
    free,
    masked,
    objects,
    pairwise,
    pure,
    reversed_keys,
)

_SEAL = "gemini.part.thought_signature"
_TEXT = "gemini.part.text"
_WHO = ("gemini",)
_KEY = "thoughtSignature"
_DUMMY = "skip_thought_signature_validator"
_DROPPED = (_SEAL, Fate.DROPPED)


def _turns(body: Body) -> list[Body]:
    """The contents of the model."""
    return [content for content in objects(body.get("contents")) if content.get("role") == "model"]


def _signed(body: Body) -> list[Body]:
    return [part for turn in _turns(body) for part in objects(turn["parts"]) if part.get(_KEY)]


@pure
def drops_signatures_of_calls(body: Body) -> None:
    """The host's own type of a call has no field for the signature."""
    for part in _signed(body):
        if "functionCall" in part:
            del part[_KEY]


@pure
def drops_empty_text(body: Body) -> None:
    """Parts are filtered on truthy text."""
    for turn in _turns(body):
        turn["parts"] = [p for p in turn["parts"] if p.get("text") != ""]


@pure
def accumulates_text_only(body: Body) -> None:
    """The stream accumulator keeps the text of text parts and nothing else of them."""
    for part in _signed(body):
        if part.get("text"):
            del part[_KEY]


@pure
def has_no_slot(body: Body) -> None:
    """The wire in between has no slot for a signature."""
    for part in _signed(body):
        del part[_KEY]


@pure
def hides_signatures_in_ids(body: Body) -> None:
    """A gateway carries the signature in the id of the call."""
    for part in _signed(body):
        if "functionCall" in part:
            part["functionCall"]["id"] += f"__thought__{part.pop(_KEY)}"


@pure
def dates_the_system_prompt(body: Body) -> None:
    """The system prompt says what time it is."""
    told = {"text": f"You are a clerk. Tick {len(body['contents'])}."}
    body["systemInstruction"] = {"parts": [told]}


@pure
def masks_ciphertext(body: Body) -> None:
    """A secret redactor takes ciphertext for a key."""
    for part in _signed(body):
        part[_KEY] = masked(part[_KEY])


@pure
def signs_with_the_dummy(body: Body) -> None:
    """The documented dummy stands where a signature was held."""
    for part in _signed(body):
        part[_KEY] = _DUMMY


@pure
def sanitises_text(body: Body) -> None:
    """Signed text goes through the same clean-up as ordinary text."""
    for part in _signed(body):
        if part.get("text"):
            part["text"] = part["text"].rstrip(".")


@pure
def moves_calls_to_the_front(body: Body) -> None:
    """Parts are put back in the opposite order."""
    for turn in _turns(body):
        turn["parts"].reverse()


@pure
def joins_text_parts(body: Body) -> None:
    """Neighbouring text parts become one, the signature stays with it."""
    for turn in _turns(body):
        texts = [p for p in turn["parts"] if "text" in p and not p.get("thought")]
        for one, two in pairwise(texts):
            one["text"] += two["text"]
            one.update({k: v for k, v in two.items() if k != "text"})
            turn["parts"].remove(two)


@pure
def splits_parallel_calls(body: Body) -> None:
    """The calls of one step become steps of their own, each with its result."""
    contents: list[Any] = []
    for content in body["contents"]:
        calls = [p for p in content["parts"] if "functionCall" in p]
        answers = [p for p in content["parts"] if "functionResponse" in p]
        if len(calls) > 1:
            contents.extend({"role": "model", "parts": [call]} for call in calls)
        elif len(answers) > 1:
            first = len(contents) - len(answers)
            for number, answer in enumerate(answers):
                contents.insert(first + 2 * number + 1, {"role": "user", "parts": [answer]})
        else:
            contents.append(content)
    body["contents"] = contents


@pure
def sends_thoughts_as_text(body: Body) -> None:
    """The readable thought goes back as ordinary text and the signature is gone."""
    for turn in _turns(body):
        if any(p.get("thought") for p in turn["parts"]):
            for part in turn["parts"]:
                part.pop("thought", None)
                part.pop(_KEY, None)


@pure
def cuts_signatures_for_the_database(body: Body) -> None:
    """The session store cuts long strings."""
    for part in _signed(body):
        part[_KEY] = part[_KEY][:64]


@pure
def copies_the_signature_to_every_call(body: Body) -> None:
    """Each of several parallel calls gets the signature of the first."""
    for turn in _turns(body):
        calls = [p for p in turn["parts"] if "functionCall" in p]
        for call in calls[1:]:
            call[_KEY] = calls[0][_KEY]


@pure
def puts_signatures_on_the_last_call(body: Body) -> None:
    """The slot is overwritten call by call, so that the last one keeps it."""
    for turn in _turns(body):
        calls = [p for p in turn["parts"] if "functionCall" in p]
        if len(calls) > 1:
            calls[-1][_KEY] = calls[0].pop(_KEY)


@pure
def puts_signatures_inside_the_call(body: Body) -> None:
    """The signature is put inside the function call object."""
    for part in _signed(body):
        if "functionCall" in part:
            part["functionCall"][_KEY] = part.pop(_KEY)


@pure
def cuts_the_first_turns(body: Body) -> None:
    """The window slides over whole turns of the model, and forgets where calls belong."""
    turns = _turns(body)
    if len(turns) > 1:
        body["contents"].remove(turns[0])


@pure
def leaves_as_is(body: Body) -> None:
    """The body is right; what surrounds the call is not."""


MUTATIONS = (
    Mutation(
        name="drops_signatures_of_calls",
        mechanism="dropped_block",
        dialects=_WHO,
        says="has no field for the signature of a call",
        change=drops_signatures_of_calls,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="drops_empty_text",
        mechanism="empty_seal",
        dialects=_WHO,
        says="drops text parts whose text is empty",
        change=drops_empty_text,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="accumulates_text_only",
        mechanism="stream",
        dialects=_WHO,
        says="keeps the text of streamed parts and nothing else of them",
        change=accumulates_text_only,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="has_no_slot",
        mechanism="bridge",
        dialects=_WHO,
        says="translates the history through a wire without a slot for signatures",
        change=has_no_slot,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="hides_signatures_in_ids",
        mechanism="bridge",
        dialects=_WHO,
        says="carries the signature in the id of the call and leaves it there",
        change=hides_signatures_in_ids,
        expected=((_SEAL, Fate.MISPLACED),),
    ),
    Mutation(
        name="dates_the_system_prompt",
        mechanism="prefix",
        dialects=_WHO,
        says="writes the time into the system prompt",
        change=dates_the_system_prompt,
        expected=(("request.prefix", Fate.PREFIX_CHANGED),),
    ),
    Mutation(
        name="masks_ciphertext",
        mechanism="redactor",
        dialects=_WHO,
        says="masks ciphertext as if it were a secret",
        change=masks_ciphertext,
        expected=((_SEAL, Fate.MODIFIED),),
    ),
    Mutation(
        name="signs_with_the_dummy",
        mechanism="fabricated",
        dialects=_WHO,
        says="puts the documented dummy where it held a signature",
        change=signs_with_the_dummy,
        expected=((_SEAL, Fate.FABRICATED),),
    ),
    Mutation(
        name="sanitises_text",
        mechanism="text_sanitised",
        dialects=_WHO,
        says="cleans up the text of signed parts",
        change=sanitises_text,
        expected=((_TEXT, Fate.MODIFIED),),
    ),
    Mutation(
        name="ships_to_another_vendor",
        mechanism="wrong_vendor",
        dialects=_WHO,
        says="sends the history to another vendor that speaks the same wire",
        change=leaves_as_is,
        expected=((_SEAL, Fate.FOREIGN),),
        around={"provider": "xai", "host": "api.x.ai"},
    ),
    Mutation(
        name="moves_calls_to_the_front",
        mechanism="order",
        dialects=_WHO,
        says="puts the parts of a turn back in the opposite order",
        change=moves_calls_to_the_front,
        expected=((_SEAL, Fate.REORDERED),),
    ),
    Mutation(
        name="joins_text_parts",
        mechanism="merged",
        dialects=_WHO,
        says="joins a signed text part with the text before it",
        change=joins_text_parts,
        expected=((_SEAL, Fate.MERGED),),
    ),
    Mutation(
        name="splits_parallel_calls",
        mechanism="merged",
        dialects=_WHO,
        says="sends the parallel calls of one step as several steps",
        change=splits_parallel_calls,
        expected=((_SEAL, Fate.SPLIT),),
    ),
    Mutation(
        name="sends_thoughts_as_text",
        mechanism="substituted",
        dialects=_WHO,
        says="sends the readable thought in the place of the signature",
        change=sends_thoughts_as_text,
        expected=((_SEAL, Fate.SUBSTITUTED),),
    ),
    Mutation(
        name="cuts_signatures_for_the_database",
        mechanism="persistence",
        dialects=_WHO,
        says="stores the first 64 characters of a signature",
        change=cuts_signatures_for_the_database,
        expected=((_SEAL, Fate.MODIFIED),),
    ),
    Mutation(
        name="copies_the_signature_to_every_call",
        mechanism="duplicated",
        dialects=_WHO,
        says="copies the signature of the first parallel call to the others",
        change=copies_the_signature_to_every_call,
        expected=((_SEAL, Fate.DUPLICATED),),
    ),
    Mutation(
        name="puts_signatures_on_the_last_call",
        mechanism="misplaced",
        dialects=_WHO,
        says="overwrites one slot call by call, so that the last one keeps the signature",
        change=puts_signatures_on_the_last_call,
        expected=((_SEAL, Fate.MISPLACED),),
    ),
    Mutation(
        name="puts_signatures_inside_the_call",
        mechanism="misplaced",
        dialects=_WHO,
        says="puts the signature inside the function call object",
        change=puts_signatures_inside_the_call,
        expected=((_SEAL, Fate.MISPLACED),),
    ),
    Mutation(
        name="fails_over_to_vertex",
        mechanism="issuer_changed",
        dialects=_WHO,
        says="goes on at another platform of the same vendor",
        change=leaves_as_is,
        expected=(("request.issuer", Fate.ISSUER_CHANGED),),
        around={"provider": "vertex", "host": "aiplatform.googleapis.com"},
    ),
    Mutation(
        name="switches_model",
        mechanism="model_switch",
        dialects=_WHO,
        says="goes on with a sister model, which reads the same signatures",
        change=leaves_as_is,
        expected=((_SEAL, Fate.INTACT),),
        around={"model": "gemini-3-flash-preview"},
    ),
    Mutation(
        name="cuts_the_first_turns",
        mechanism="trim_pair",
        dialects=_WHO,
        says="lets the first turn of the model slide out of the window, and keeps its result",
        change=cuts_the_first_turns,
        expected=(_DROPPED,),
    ),
)


# ------------------------------------------------------------------------------------ freedoms


def _nulls(body: Body, chance: random.Random) -> None:
    for turn in _turns(body):
        for part in objects(turn["parts"]):
            for key in ("inlineData", "fileData", "videoMetadata"):
                if chance.random() < 0.5:  # noqa: PLR2004 - an even chance
                    part.setdefault(key, None)


def _key_order(body: Body, _chance: random.Random) -> None:
    turned = reversed_keys(body)
    body.clear()
    body.update(turned)


def _url_safe(body: Body, chance: random.Random) -> None:
    for part in _signed(body):
        spelled = base64.urlsafe_b64encode(base64.b64decode(part[_KEY])).decode()
        part[_KEY] = spelled.rstrip("=") if chance.random() < 0.5 else spelled  # noqa: PLR2004


def _snake_case(body: Body, _chance: random.Random) -> None:
    for turn in _turns(body):
        for part in objects(turn["parts"]):
            for camel, snake in ((_KEY, "thought_signature"), ("functionCall", "function_call")):
                if camel in part:
                    part[snake] = part.pop(camel)


def _content_per_part(body: Body, _chance: random.Random) -> None:
    contents: list[Any] = []
    for content in body["contents"]:
        several = len(content["parts"]) > 1
        calls = sum("functionCall" in p or "function_call" in p for p in content["parts"])
        if content.get("role") == "model" and several and calls <= 1:
            contents.extend({"role": "model", "parts": [part]} for part in content["parts"])
        else:
            contents.append(content)
    body["contents"] = contents


def _text_deltas(body: Body, _chance: random.Random) -> None:
    for turn in _turns(body):
        parts = []
        for part in turn["parts"]:
            text = part.get("text")
            if text and part.keys() <= {"text", "thought"}:
                half = len(text) // 2
                parts += [part | {"text": text[:half]}, part | {"text": text[half:]}]
            else:
                parts.append(part)
        turn["parts"] = parts


def _no_thoughts(body: Body, _chance: random.Random) -> None:
    for turn in _turns(body):
        turn["parts"] = [p for p in turn["parts"] if not p.get("thought")]


FREEDOMS = (
    Freedom(
        name="nulls", dialect="gemini", says="nulls that model_dump() adds", change=free(_nulls)
    ),
    Freedom(
        name="key_order", dialect="gemini", says="another order of keys", change=free(_key_order)
    ),
    Freedom(
        name="url_safe",
        dialect="gemini",
        says="the URL-safe alphabet, padded or not",
        change=free(_url_safe),
    ),
    Freedom(
        name="snake_case",
        dialect="gemini",
        says="snake_case keys, which the API takes as well",
        change=free(_snake_case),
    ),
    Freedom(
        name="content_per_part",
        dialect="gemini",
        says="one content for every chunk of a stream, as chats of the SDK keep them",
        change=free(_content_per_part),
    ),
    Freedom(
        name="text_deltas",
        dialect="gemini",
        says="unsigned texts in the pieces a stream brought",
        change=free(_text_deltas),
    ),
    Freedom(
        name="no_thoughts",
        dialect="gemini",
        says="thought summaries left out",
        change=free(_no_thoughts),
    ),
)
