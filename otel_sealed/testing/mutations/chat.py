"""Hosts of Chat Completions and what they do to the sealed values that ride along.

Two conversations: `chat` is Gemini on Google's compatible endpoint, `openrouter` Claude behind
OpenRouter. The SDK knows none of these fields, so most hosts lose them by copying what it knows.
"""

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

_ON_CALL = "gemini.tool_call.thought_signature"
_ON_TEXT = "gemini.message.thought_signature"
_SIGNATURE = "openrouter.reasoning_details.signature"
_DATA = "openrouter.reasoning_details.data"
_TEXT = "openrouter.reasoning_details.text"
_GOOGLE = ("chat",)
_ROUTER = ("openrouter",)
_BOTH = ("chat", "openrouter")
_DUMMY = "skip_thought_signature_validator"


def _turns(body: Body) -> list[Body]:
    """The messages of the model."""
    return [m for m in objects(body.get("messages")) if m.get("role") == "assistant"]


def _calls(body: Body) -> list[Body]:
    return [call for turn in _turns(body) for call in objects(turn.get("tool_calls"))]


def _signed(body: Body) -> list[Body]:
    """What Google's extra content stands on: calls and messages."""
    return [one for one in (*_turns(body), *_calls(body)) if one.get("extra_content")]


def _details(body: Body) -> list[Body]:
    return [one for turn in _turns(body) for one in objects(turn.get("reasoning_details"))]


@pure
def keeps_what_the_sdk_types(body: Body) -> None:
    """A message is built anew from the fields that the SDK's types have."""
    for one in _signed(body):
        del one["extra_content"]
    for turn in _turns(body):
        turn.pop("reasoning_details", None)


@pure
def keeps_signatures_of_messages(body: Body) -> None:
    """The host's own type of a call has no field for what is beside it."""
    for call in _calls(body):
        call.pop("extra_content", None)


@pure
def accumulates_text_only(body: Body) -> None:
    """The stream accumulator drops a piece that has a signature and no text."""
    for one in _details(body):
        if one["type"] == "reasoning.text":
            one["signature"] = None


@pure
def drops_empty_text(body: Body) -> None:
    """Details are filtered on truthy text."""
    for turn in _turns(body):
        kept = [x for x in objects(turn.get("reasoning_details")) if x.get("text") != ""]
        if "reasoning_details" in turn:
            turn["reasoning_details"] = kept


@pure
def drops_encrypted_details(body: Body) -> None:
    """A list of known types that has readable ones only."""
    for turn in _turns(body):
        found = objects(turn.get("reasoning_details"))
        turn["reasoning_details"] = [x for x in found if x["type"] != "reasoning.encrypted"]


@pure
def masks_ciphertext(body: Body) -> None:
    """A secret redactor takes ciphertext for a key."""
    for one in _signed(body):
        held = one["extra_content"]["google"]
        held["thought_signature"] = masked(held["thought_signature"])
    for one in _details(body):
        key = "data" if "data" in one else "signature"
        one[key] = masked(one[key])


@pure
def cuts_signatures_for_the_database(body: Body) -> None:
    """The session store cuts long strings."""
    for one in _signed(body):
        held = one["extra_content"]["google"]
        held["thought_signature"] = held["thought_signature"][:64]


@pure
def signs_with_the_dummy(body: Body) -> None:
    """The documented dummy stands where a signature was held."""
    for one in _signed(body):
        one["extra_content"]["google"]["thought_signature"] = _DUMMY


@pure
def copies_the_signature_to_every_call(body: Body) -> None:
    """Each of several parallel calls gets the signature of the first."""
    for turn in _turns(body):
        calls = objects(turn.get("tool_calls"))
        for call in calls[1:]:
            call["extra_content"] = calls[0]["extra_content"]


@pure
def sends_details_twice(body: Body) -> None:
    """Details are prepended to a message that has them already."""
    for turn in _turns(body):
        turn["reasoning_details"] = turn["reasoning_details"] * 2


@pure
def puts_signatures_on_the_last_call(body: Body) -> None:
    """The slot is overwritten call by call, so that the last one keeps it."""
    for turn in _turns(body):
        calls = objects(turn.get("tool_calls"))
        if len(calls) > 1:
            calls[-1]["extra_content"] = calls[0].pop("extra_content")


@pure
def hides_signatures_in_ids(body: Body) -> None:
    """A gateway carries the signature in the id of the call."""
    for call in _calls(body):
        if "extra_content" in call:
            held = call.pop("extra_content")["google"]["thought_signature"]
            call["id"] += f"__thought__{held}"


@pure
def splits_parallel_calls(body: Body) -> None:
    """The calls of one step become steps of their own, each with its result."""
    results = {m["tool_call_id"]: m for m in body["messages"] if m["role"] == "tool"}
    messages: list[Any] = []
    for message in body["messages"]:
        calls = objects(message.get("tool_calls"))
        if message["role"] == "tool":
            continue
        for number, call in enumerate(calls):
            kept = message if not number else {"role": "assistant", "content": None}
            messages += [{**kept, "tool_calls": [call]}, results[call["id"]]]
        if not calls:
            messages.append(message)
    body["messages"] = messages


@pure
def sorts_details_by_type(body: Body) -> None:
    """Readable details first, then what is encrypted."""
    for turn in _turns(body):
        turn["reasoning_details"].sort(key=lambda one: one["type"], reverse=True)


@pure
def joins_details(body: Body) -> None:
    """Neighbouring texts become one, the last signature stays with it."""
    for turn in _turns(body):
        texts = [x for x in turn["reasoning_details"] if x["type"] == "reasoning.text"]
        for one, two in pairwise(texts):
            one["text"] += two["text"]
            one["signature"] = two["signature"]
            turn["reasoning_details"].remove(two)


@pure
def sanitises_text(body: Body) -> None:
    """Signed text goes through the same clean-up as ordinary text."""
    for one in _details(body):
        if one.get("text"):
            one["text"] = one["text"].rstrip(".")


@pure
def sends_thoughts_as_text(body: Body) -> None:
    """The readable thought goes back inside tags of the text, and the details are gone."""
    for turn in _turns(body):
        texts = [x["text"] for x in turn.pop("reasoning_details") if x.get("text")]
        if texts:
            turn["content"] = f"<think>{''.join(texts)}</think>{turn['content'] or ''}"


@pure
def writes_data_into_the_text(body: Body) -> None:
    """What is encrypted stands inside tags of the text."""
    for turn in _turns(body):
        for one in turn["reasoning_details"]:
            if one["type"] == "reasoning.encrypted":
                turn["content"] = f"<redacted>{one['data']}</redacted>{turn['content'] or ''}"
        kept = [x for x in turn["reasoning_details"] if x["type"] != "reasoning.encrypted"]
        turn["reasoning_details"] = kept


@pure
def dates_the_system_prompt(body: Body) -> None:
    """The system prompt says what time it is."""
    body["messages"][0]["content"] = f"You are a clerk. Tick {len(body['messages'])}."


@pure
def asks_for_a_gemini(body: Body) -> None:
    """The user picks another model in the middle of a conversation."""
    if _turns(body):
        body["model"] = "google/gemini-3-pro-preview"


@pure
def leaves_as_is(body: Body) -> None:
    """The body is right; what surrounds the call is not."""


MUTATIONS = (
    Mutation(
        name="keeps_what_the_sdk_types",
        mechanism="dropped_block",
        dialects=_GOOGLE,
        says="builds messages anew from role, content and tool calls",
        change=keeps_what_the_sdk_types,
        expected=((_ON_CALL, Fate.DROPPED), (_ON_TEXT, Fate.DROPPED)),
    ),
    Mutation(
        name="keeps_what_the_sdk_types",
        mechanism="dropped_block",
        dialects=_ROUTER,
        says="builds messages anew from role, content and tool calls",
        change=keeps_what_the_sdk_types,
        expected=((_SIGNATURE, Fate.DROPPED), (_DATA, Fate.DROPPED)),
    ),
    Mutation(
        name="keeps_signatures_of_messages",
        mechanism="bridge",
        dialects=_GOOGLE,
        says="has no field for what stands beside a call",
        change=keeps_signatures_of_messages,
        expected=((_ON_CALL, Fate.DROPPED),),
    ),
    Mutation(
        name="accumulates_text_only",
        mechanism="stream",
        dialects=_ROUTER,
        says="loses the piece that has a signature and no text, and sends null",
        change=accumulates_text_only,
        expected=((_SIGNATURE, Fate.DROPPED),),
    ),
    Mutation(
        name="drops_empty_text",
        mechanism="empty_seal",
        dialects=_ROUTER,
        says="drops details whose text is empty",
        change=drops_empty_text,
        expected=((_SIGNATURE, Fate.DROPPED),),
    ),
    Mutation(
        name="drops_encrypted_details",
        mechanism="dropped_block",
        dialects=_ROUTER,
        says="keeps the types of details that can be read",
        change=drops_encrypted_details,
        expected=((_DATA, Fate.DROPPED),),
    ),
    Mutation(
        name="masks_ciphertext",
        mechanism="redactor",
        dialects=_GOOGLE,
        says="masks ciphertext as if it were a secret",
        change=masks_ciphertext,
        expected=((_ON_CALL, Fate.MODIFIED), (_ON_TEXT, Fate.MODIFIED)),
    ),
    Mutation(
        name="masks_ciphertext",
        mechanism="redactor",
        dialects=_ROUTER,
        says="masks ciphertext as if it were a secret",
        change=masks_ciphertext,
        expected=((_SIGNATURE, Fate.MODIFIED), (_DATA, Fate.MODIFIED)),
    ),
    Mutation(
        name="cuts_signatures_for_the_database",
        mechanism="persistence",
        dialects=_GOOGLE,
        says="stores the first 64 characters of a signature",
        change=cuts_signatures_for_the_database,
        expected=((_ON_CALL, Fate.MODIFIED), (_ON_TEXT, Fate.MODIFIED)),
    ),
    Mutation(
        name="signs_with_the_dummy",
        mechanism="fabricated",
        dialects=_GOOGLE,
        says="puts the documented dummy where it held a signature",
        change=signs_with_the_dummy,
        expected=((_ON_CALL, Fate.FABRICATED), (_ON_TEXT, Fate.FABRICATED)),
    ),
    Mutation(
        name="copies_the_signature_to_every_call",
        mechanism="duplicated",
        dialects=_GOOGLE,
        says="copies the signature of the first parallel call to the others",
        change=copies_the_signature_to_every_call,
        expected=((_ON_CALL, Fate.DUPLICATED),),
    ),
    Mutation(
        name="sends_details_twice",
        mechanism="duplicated",
        dialects=_ROUTER,
        says="prepends the details to a message that has them already",
        change=sends_details_twice,
        expected=((_SIGNATURE, Fate.DUPLICATED), (_DATA, Fate.DUPLICATED)),
    ),
    Mutation(
        name="puts_signatures_on_the_last_call",
        mechanism="misplaced",
        dialects=_GOOGLE,
        says="overwrites one slot call by call, so that the last one keeps the signature",
        change=puts_signatures_on_the_last_call,
        expected=((_ON_CALL, Fate.MISPLACED),),
    ),
    Mutation(
        name="hides_signatures_in_ids",
        mechanism="bridge",
        dialects=_GOOGLE,
        says="carries the signature in the id of the call and leaves it there",
        change=hides_signatures_in_ids,
        expected=((_ON_CALL, Fate.RETYPED),),
    ),
    Mutation(
        name="splits_parallel_calls",
        mechanism="merged",
        dialects=_GOOGLE,
        says="sends the parallel calls of one step as several steps",
        change=splits_parallel_calls,
        expected=((_ON_CALL, Fate.SPLIT),),
    ),
    Mutation(
        name="splits_parallel_calls",
        mechanism="merged",
        dialects=_ROUTER,
        says="sends the parallel calls of one step as several steps",
        change=splits_parallel_calls,
        expected=((_SIGNATURE, Fate.SPLIT), (_DATA, Fate.SPLIT)),
    ),
    Mutation(
        name="sorts_details_by_type",
        mechanism="order",
        dialects=_ROUTER,
        says="puts readable details before encrypted ones",
        change=sorts_details_by_type,
        expected=((_SIGNATURE, Fate.REORDERED), (_DATA, Fate.REORDERED)),
    ),
    Mutation(
        name="joins_details",
        mechanism="merged",
        dialects=_ROUTER,
        says="joins the texts of several details under the last signature",
        change=joins_details,
        expected=((_SIGNATURE, Fate.MERGED), (_TEXT, Fate.MERGED)),
    ),
    Mutation(
        name="sanitises_text",
        mechanism="text_sanitised",
        dialects=_ROUTER,
        says="cleans up the text of signed details",
        change=sanitises_text,
        expected=((_TEXT, Fate.MODIFIED),),
    ),
    Mutation(
        name="sends_thoughts_as_text",
        mechanism="substituted",
        dialects=_ROUTER,
        says="sends the readable thought in the place of the details",
        change=sends_thoughts_as_text,
        expected=(
            (_SIGNATURE, Fate.SUBSTITUTED),
            (_SIGNATURE, Fate.DROPPED),
            (_DATA, Fate.DROPPED),
        ),
    ),
    Mutation(
        name="writes_data_into_the_text",
        mechanism="misplaced",
        dialects=_ROUTER,
        says="writes what is encrypted into the text",
        change=writes_data_into_the_text,
        expected=((_DATA, Fate.MISPLACED),),
    ),
    Mutation(
        name="dates_the_system_prompt",
        mechanism="prefix",
        dialects=_BOTH,
        says="writes the time into the system prompt",
        change=dates_the_system_prompt,
        expected=(("request.prefix", Fate.PREFIX_CHANGED),),
    ),
    Mutation(
        name="ships_to_another_vendor",
        mechanism="wrong_vendor",
        dialects=_GOOGLE,
        says="sends the history to another vendor that speaks the same wire",
        change=leaves_as_is,
        expected=((_ON_CALL, Fate.FOREIGN),),
        around={"provider": "xai", "host": "api.x.ai"},
    ),
    Mutation(
        name="routes_to_another_vendor",
        mechanism="wrong_vendor",
        dialects=_ROUTER,
        says="goes on with the model of another vendor behind the same relay",
        change=asks_for_a_gemini,
        expected=((_SIGNATURE, Fate.FOREIGN),),
    ),
    Mutation(
        name="fails_over_to_vertex",
        mechanism="issuer_changed",
        dialects=_GOOGLE,
        says="goes on at another platform of the same vendor",
        change=leaves_as_is,
        expected=(("request.issuer", Fate.ISSUER_CHANGED),),
        around={"provider": "vertex", "host": "aiplatform.googleapis.com"},
    ),
)


# ------------------------------------------------------------------------------------ freedoms


def _nulls(body: Body, chance: random.Random) -> None:
    for turn in _turns(body):
        for key in ("refusal", "audio", "parsed", "annotations", "function_call", "tool_calls"):
            if chance.random() < 0.5:  # noqa: PLR2004 - an even chance
                turn.setdefault(key, None)
    for index, call in enumerate(_calls(body)):
        call.setdefault("index", index)
        call["function"].setdefault("parsed_arguments", None)


def _key_order(body: Body, _chance: random.Random) -> None:
    turned = reversed_keys(body)
    body.clear()
    body.update(turned)


def _url_safe(body: Body, chance: random.Random) -> None:
    for one in _signed(body):
        held = one["extra_content"]["google"]
        spelled = base64.urlsafe_b64encode(base64.b64decode(held["thought_signature"])).decode()
        bare = chance.random() < 0.5  # noqa: PLR2004 - an even chance
        held["thought_signature"] = spelled.rstrip("=") if bare else spelled


def _text_parts(body: Body, _chance: random.Random) -> None:
    for turn in _turns(body):
        if isinstance(turn.get("content"), str):
            turn["content"] = [{"type": "text", "text": turn["content"]}]


def _no_indices(body: Body, _chance: random.Random) -> None:
    for one in _details(body):
        one.pop("index", None)


def _message_per_part(body: Body, _chance: random.Random) -> None:
    messages: list[Any] = []
    for message in body["messages"]:
        calls = message.get("tool_calls")
        if calls and message.get("content"):
            messages.append({k: v for k, v in message.items() if k != "tool_calls"})
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        else:
            messages.append(message)
    body["messages"] = messages


FREEDOMS = (
    *(
        Freedom(name=name, dialect=dialect, says=says, change=free(change))
        for dialect in _BOTH
        for name, says, change in (
            ("nulls", "nulls and numbers that model_dump() adds", _nulls),
            ("key_order", "another order of keys", _key_order),
            ("text_parts", "a text as a list of one part", _text_parts),
            ("message_per_part", "text and calls of one step as two messages", _message_per_part),
        )
    ),
    Freedom(
        name="url_safe",
        dialect="chat",
        says="the URL-safe alphabet, padded or not",
        change=free(_url_safe),
    ),
    Freedom(
        name="no_indices",
        dialect="openrouter",
        says="details without their numbers",
        change=free(_no_indices),
    ),
)
