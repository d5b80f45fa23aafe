"""Hosts of OpenAI's Responses API and what they do to reasoning items."""

from __future__ import annotations

import random

from otel_sealed.model import Fate
from otel_sealed.testing.mutations.records import (
    Body,
    Freedom,
    Mutation,
    Side,
    free,
    masked,
    objects,
    pairwise,
    pure,
    reversed_keys,
)

_SEAL = "openai.reasoning.encrypted_content"
_ID = "openai.reasoning.id"
_COMPACTION = "openai.compaction.encrypted_content"
_WHO = ("openai",)
_DROPPED = (_SEAL, Fate.DROPPED)
_ORPHANED_CALL = ("openai.function_call", Fate.ORPHANED)
_ORPHANED_MESSAGE = ("openai.message", Fate.ORPHANED)


def _items(body: Body, *types: str) -> list[Body]:
    """The input items of those types; a message of the model is one with an id."""
    return [item for item in objects(body.get("input")) if item.get("type") in types]


def _without(body: Body, *lost: Body) -> None:
    body["input"] = [item for item in body["input"] if not any(item is one for one in lost)]


@pure
def drops_reasoning(body: Body) -> None:
    """Only messages and calls are known item types."""
    _without(body, *_items(body, "reasoning"))


@pure
def drops_summaryless_reasoning(body: Body) -> None:
    """An item without a summary looks empty, although it holds the seal."""
    _without(body, *(item for item in _items(body, "reasoning") if not item.get("summary")))


@pure
def keeps_the_added_blob(body: Body) -> None:
    """The blob of `output_item.added` is kept, that of `output_item.done` is not."""
    for item in _items(body, "reasoning"):
        item["encrypted_content"] = item["encrypted_content"][:40]


@pure
def loses_the_blob(body: Body) -> None:
    """The stored item keeps id and summary only."""
    for item in _items(body, "reasoning"):
        del item["encrypted_content"]


@pure
def rewrites_ids(body: Body) -> None:
    """Ids are replaced by shorter ones of the host's own making."""
    for number, item in enumerate(_items(body, "reasoning")):
        item["id"] = f"rs_local_{number}"


@pure
def adds_provider_metadata(body: Body) -> None:
    """The host's own notes travel along in the item."""
    for item in _items(body, "reasoning"):
        item["provider_metadata"] = {"step": 1}


@pure
def translates_through_chat(body: Body) -> None:
    """Chat Completions in between: no reasoning items, and no ids of the server's."""
    _without(body, *_items(body, "reasoning"))
    for item in _items(body, "message", "function_call"):
        item.pop("id", None)


@pure
def forgets_the_compaction(body: Body) -> None:
    """The compaction item is of a type the host does not know."""
    _without(body, *_items(body, "compaction"))


@pure
def renames_the_compaction(body: Body) -> None:
    """A proxy gives the compaction item an id of its own."""
    for item in _items(body, "compaction"):
        item["id"] = "cmp_proxy"


@pure
def trims_old_outputs(body: Body) -> None:
    """All tool outputs but the newest are cut to save tokens."""
    for item in _items(body, "function_call_output")[:-1]:
        item["output"] = "[trimmed]"


@pure
def masks_ciphertext(body: Body) -> None:
    """A secret redactor takes ciphertext for a key."""
    for item in _items(body, "reasoning"):
        item["encrypted_content"] = masked(item["encrypted_content"])


@pure
def puts_the_summary_in_the_slot(body: Body) -> None:
    """The field is filled with what can be read."""
    for item in _items(body, "reasoning"):
        if item["summary"]:
            item["encrypted_content"] = item["summary"][0]["text"]


@pure
def seals_with_a_dummy(body: Body) -> None:
    """A documented dummy of another vendor stands where the blob was."""
    for item in _items(body, "reasoning"):
        item["encrypted_content"] = "skip_thought_signature_validator"


@pure
def moves_reasoning_behind_its_call(body: Body) -> None:
    """Items are put back by type: the call first, then the reasoning."""
    items = body["input"]
    for at in range(len(items) - 1):
        if items[at].get("type") == "reasoning" and items[at + 1].get("type") == "function_call":
            items[at], items[at + 1] = items[at + 1], items[at]


@pure
def puts_reasoning_before_the_question(body: Body) -> None:
    """What the model thought goes in front of what was asked, away from what it did."""
    items = body["input"]
    for at in range(1, len(items)):
        asked = items[at - 1].get("role") == "user"
        if asked and items[at].get("type") == "reasoning":
            items[at - 1], items[at] = items[at], items[at - 1]


@pure
def joins_blobs(body: Body) -> None:
    """The blobs of two reasoning items become one."""
    for one, two in pairwise(_items(body, "reasoning")):
        one["encrypted_content"] += two["encrypted_content"]
        _without(body, two)


@pure
def sends_the_summary_as_message(body: Body) -> None:
    """The readable summary goes back as a message of the model's."""
    items = []
    for item in body["input"]:
        if item.get("type") == "reasoning" and item["summary"]:
            text = {"type": "output_text", "text": item["summary"][0]["text"]}
            items.append({"type": "message", "role": "assistant", "content": [text]})
        elif item.get("type") == "reasoning":
            items.append(item)
        else:
            items.append({k: v for k, v in item.items() if k != "id"})
    body["input"] = items


@pure
def prunes_calls(body: Body) -> None:
    """Old calls and their outputs are pruned, the reasoning before them is left."""
    calls = _items(body, "function_call")[:1]
    outputs = [
        item
        for item in _items(body, "function_call_output")
        if any(item["call_id"] == call["call_id"] for call in calls)
    ]
    if len(_items(body, "function_call")) > 1:
        _without(body, *calls, *outputs)


@pure
def sends_reasoning_twice(body: Body) -> None:
    """The item is taken from the stored turn and from the running one."""
    items = []
    for item in body["input"]:
        items.extend([item, dict(item)] if item.get("type") == "reasoning" else [item])
    body["input"] = items


@pure
def exchanges_blobs(body: Body) -> None:
    """Blobs are put back by position, and the positions are off by one."""
    run: list[Body] = []
    for item in objects(body["input"]):
        if item.get("type") == "reasoning":
            run.append(item)
        elif item.get("type") == "function_call_output" or item.get("role") == "user":
            run = []
        for one, two in pairwise(run) if len(run) > 1 else ():
            one["encrypted_content"], two["encrypted_content"] = (
                two["encrypted_content"],
                one["encrypted_content"],
            )
            run = []


@pure
def resends_what_the_server_holds(body: Body) -> None:
    """The whole history goes along although the server was told where to find it."""
    if _items(body, "reasoning"):
        body["conversation"] = "conv_1"


@pure
def loses_the_phase(body: Body) -> None:
    """Messages are rebuilt from role and content."""
    for item in _items(body, "message"):
        item.pop("phase", None)


@pure
def never_asks_for_the_seal(body: Body) -> None:
    """`include` is not set, store is off: the items come without their blobs."""
    for item in objects(body.get("output")):
        if item.get("type") == "reasoning":
            item["encrypted_content"] = None


@pure
def hands_out_temporary_items(body: Body) -> None:
    """The reasoning items are temporary ones."""
    for item in objects(body.get("output")):
        if item.get("type") == "reasoning":
            item["id"] = f"rs_tmp_{item['id'][3:]}"


@pure
def switches_model(body: Body) -> None:
    """A router goes on with a sister model."""
    if _items(body, "reasoning"):
        body["model"] = "gpt-5.6-luna"


@pure
def leaves_as_is(body: Body) -> None:
    """The body is right; what surrounds the call is not."""


MUTATIONS = (
    Mutation(
        name="drops_reasoning",
        mechanism="dropped_block",
        dialects=_WHO,
        says="knows messages and calls only",
        change=drops_reasoning,
        expected=(_DROPPED, _ORPHANED_CALL, _ORPHANED_MESSAGE),
    ),
    Mutation(
        name="drops_summaryless_reasoning",
        mechanism="empty_seal",
        dialects=_WHO,
        says="drops reasoning items whose summary is empty",
        change=drops_summaryless_reasoning,
        expected=(_DROPPED, _ORPHANED_CALL),
    ),
    Mutation(
        name="keeps_the_added_blob",
        mechanism="stream",
        dialects=_WHO,
        says="keeps the incomplete blob of output_item.added",
        change=keeps_the_added_blob,
        expected=((_SEAL, Fate.MODIFIED),),
    ),
    Mutation(
        name="loses_the_blob",
        mechanism="persistence",
        dialects=_WHO,
        says="stores id and summary of a reasoning item, not its blob",
        change=loses_the_blob,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="rewrites_ids",
        mechanism="id_mismatch",
        dialects=_WHO,
        says="gives reasoning items ids of its own",
        change=rewrites_ids,
        expected=((_ID, Fate.MODIFIED),),
    ),
    Mutation(
        name="adds_provider_metadata",
        mechanism="envelope",
        dialects=_WHO,
        says="leaves its own notes in the reasoning item",
        change=adds_provider_metadata,
        expected=(("openai.reasoning.envelope", Fate.ENVELOPE_MODIFIED),),
    ),
    Mutation(
        name="translates_through_chat",
        mechanism="bridge",
        dialects=_WHO,
        says="translates the history through Chat Completions",
        change=translates_through_chat,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="forgets_the_compaction",
        mechanism="compaction",
        dialects=_WHO,
        says="does not know the compaction item and leaves it out",
        change=forgets_the_compaction,
        expected=((_COMPACTION, Fate.DROPPED),),
        conversation="compaction",
    ),
    Mutation(
        name="renames_the_compaction",
        mechanism="compaction",
        dialects=_WHO,
        says="gives the compaction item another id",
        change=renames_the_compaction,
        expected=(("openai.compaction.id", Fate.MODIFIED),),
        conversation="compaction",
    ),
    Mutation(
        name="trims_old_outputs",
        mechanism="prefix",
        dialects=_WHO,
        says="cuts old tool outputs",
        change=trims_old_outputs,
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
        name="puts_the_summary_in_the_slot",
        mechanism="substituted",
        dialects=_WHO,
        says="fills the sealed field with the summary",
        change=puts_the_summary_in_the_slot,
        expected=((_SEAL, Fate.SUBSTITUTED),),
    ),
    Mutation(
        name="sends_the_summary_as_message",
        mechanism="substituted",
        dialects=_WHO,
        says="sends the summary as a message in the place of the item",
        change=sends_the_summary_as_message,
        expected=((_SEAL, Fate.SUBSTITUTED),),
    ),
    Mutation(
        name="seals_with_a_dummy",
        mechanism="fabricated",
        dialects=_WHO,
        says="puts another vendor's documented dummy in the place of the blob",
        change=seals_with_a_dummy,
        expected=((_SEAL, Fate.FABRICATED),),
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
        name="moves_reasoning_behind_its_call",
        mechanism="order",
        dialects=_WHO,
        says="puts the call before the reasoning that led to it",
        change=moves_reasoning_behind_its_call,
        expected=((_SEAL, Fate.REORDERED),),
    ),
    Mutation(
        name="puts_reasoning_before_the_question",
        mechanism="order",
        dialects=_WHO,
        says="puts reasoning in front of the question it came after",
        change=puts_reasoning_before_the_question,
        expected=(("openai.reasoning", Fate.ORPHANED),),
    ),
    Mutation(
        name="joins_blobs",
        mechanism="merged",
        dialects=_WHO,
        says="joins the blobs of two reasoning items",
        change=joins_blobs,
        expected=((_SEAL, Fate.MERGED), _ORPHANED_CALL, _ORPHANED_MESSAGE),
    ),
    Mutation(
        name="prunes_calls",
        mechanism="trim_pair",
        dialects=_WHO,
        says="prunes an old call and leaves its reasoning",
        change=prunes_calls,
        expected=(("openai.reasoning", Fate.ORPHANED), ("request.prefix", Fate.PREFIX_CHANGED)),
    ),
    Mutation(
        name="sends_reasoning_twice",
        mechanism="duplicated",
        dialects=_WHO,
        says="sends reasoning items twice",
        change=sends_reasoning_twice,
        expected=((_SEAL, Fate.DUPLICATED),),
    ),
    Mutation(
        name="rotates_accounts",
        mechanism="issuer_changed",
        dialects=_WHO,
        says="takes the next account of a pool for every call",
        change=leaves_as_is,
        expected=(("request.issuer", Fate.ISSUER_CHANGED),),
        around={"account": "account-two"},
    ),
    Mutation(
        name="fails_over_to_azure",
        mechanism="issuer_changed",
        dialects=_WHO,
        says="goes on at another platform of the same vendor",
        change=leaves_as_is,
        expected=(("request.issuer", Fate.ISSUER_CHANGED),),
        around={"provider": "azure", "host": "one.openai.azure.com"},
    ),
    Mutation(
        name="exchanges_blobs",
        mechanism="misplaced",
        dialects=_WHO,
        says="puts blobs back by position, off by one",
        change=exchanges_blobs,
        expected=((_SEAL, Fate.MISPLACED),),
    ),
    Mutation(
        name="loses_the_phase",
        mechanism="envelope",
        dialects=_WHO,
        says="rebuilds messages from role and content",
        change=loses_the_phase,
        expected=(("openai.message.phase", Fate.DROPPED),),
    ),
    Mutation(
        name="never_asks_for_the_seal",
        mechanism="missing_include",
        dialects=_WHO,
        says="keeps store off and never asks for encrypted content",
        change=never_asks_for_the_seal,
        expected=((_SEAL, Fate.NOT_REQUESTED),),
        side=Side.RESPONSE,
    ),
    Mutation(
        name="replays_temporary_items",
        mechanism="transient",
        dialects=_WHO,
        says="saves and replays temporary items",
        change=hands_out_temporary_items,
        expected=((_SEAL, Fate.INTACT),),
        side=Side.RESPONSE,
    ),
    Mutation(
        name="switches_model",
        mechanism="model_switch",
        dialects=_WHO,
        says="goes on with a sister model, which reads the same seals",
        change=switches_model,
        expected=((_SEAL, Fate.INTACT),),
    ),
)


# ------------------------------------------------------------------------------------ freedoms


def _nulls(body: Body, chance: random.Random) -> None:
    added = {"reasoning": ("content", "status"), "function_call": ("caller", "namespace")}
    for item in objects(body["input"]):
        for key in added.get(item.get("type", ""), ()):
            if chance.random() < 0.5:  # noqa: PLR2004 - an even chance
                item.setdefault(key, None)


def _key_order(body: Body, _chance: random.Random) -> None:
    turned = reversed_keys(body)
    body.clear()
    body.update(turned)


def _no_ids(body: Body, _chance: random.Random) -> None:
    for item in _items(body, "reasoning", "message", "function_call", "compaction"):
        item.pop("id", None)


def _string_content(body: Body, chance: random.Random) -> None:
    for item in objects(body["input"]):
        content = item.get("content")
        if (
            item.get("role") == "user"
            and isinstance(content, list)
            and len(content) == 1
            and chance.random() < 0.5  # noqa: PLR2004 - an even chance
        ):
            item["content"] = content[0]["text"]


def _no_status(body: Body, _chance: random.Random) -> None:
    for item in _items(body, "message", "function_call"):
        item.pop("status", None)


def _no_summary(body: Body, _chance: random.Random) -> None:
    for item in _items(body, "reasoning"):
        item["summary"] = []


FREEDOMS = (
    Freedom(
        name="nulls", dialect="openai", says="nulls that model_dump() adds", change=free(_nulls)
    ),
    Freedom(
        name="key_order", dialect="openai", says="another order of keys", change=free(_key_order)
    ),
    Freedom(
        name="no_ids",
        dialect="openai",
        says="no id on any item, as clients do that keep store off",
        change=free(_no_ids),
    ),
    Freedom(
        name="string_content",
        dialect="openai",
        says="a single text as a string instead of a list",
        change=free(_string_content),
    ),
    Freedom(
        name="no_status",
        dialect="openai",
        says="no status on messages and calls",
        change=free(_no_status),
    ),
    Freedom(
        name="no_summary",
        dialect="openai",
        says="the summary left out",
        change=free(_no_summary),
    ),
)
