"""Hosts of Anthropic's Messages API and what they do to thinking blocks."""

from __future__ import annotations

import random

from otel_sealed.model import Fate, Verdict
from otel_sealed.testing.mutations.records import (
    Body,
    Change,
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

_SIGNATURE = "anthropic.thinking.signature"
_TEXT = "anthropic.thinking.text"
_REDACTED = "anthropic.redacted_thinking.data"
_COMPACTION = "anthropic.compaction.encrypted_content"
_REASONING = ("thinking", "redacted_thinking")
_WHO = ("anthropic",)


def _turns(body: Body) -> list[Body]:
    """The assistant messages whose content is a list."""
    return [
        message
        for message in objects(body.get("messages"))
        if message.get("role") == "assistant" and isinstance(message.get("content"), list)
    ]


def _blocks(body: Body, *types: str) -> list[Body]:
    return [b for turn in _turns(body) for b in objects(turn["content"]) if b.get("type") in types]


@pure
def filters_on_type_thinking(body: Body) -> None:
    """Only `type == "thinking"` counts as reasoning."""
    for turn in _turns(body):
        turn["content"] = [b for b in turn["content"] if b.get("type") != "redacted_thinking"]


@pure
def drops_reasoning_of_tool_turns(body: Body) -> None:
    """An assistant turn with tool calls is rebuilt from its calls."""
    for turn in _turns(body):
        if any(b.get("type") == "tool_use" for b in turn["content"]):
            turn["content"] = [b for b in turn["content"] if b.get("type") not in _REASONING]


@pure
def drops_all_reasoning(body: Body) -> None:
    """The neutral format between two wires has no slot for a signature."""
    for turn in _turns(body):
        turn["content"] = [b for b in turn["content"] if b.get("type") not in _REASONING]


def manually(change: Change) -> Change:
    """The same host where thinking has a budget: each turn of a loop begins with thinking (A1)."""

    def changed(body: Body) -> Body:
        return change(body) | {"thinking": {"type": "enabled", "budget_tokens": 2048}}

    return changed


@pure
def assigns_signature_deltas(body: Body) -> None:
    """`=` where `+=` belongs: only the last piece of the signature is kept."""
    for block in _blocks(body, "thinking"):
        block["signature"] = block["signature"][-len(block["signature"]) // 4 :]


@pure
def ignores_signature_delta(body: Body) -> None:
    """The accumulator knows text deltas only; the signature stays as it was opened."""
    for block in _blocks(body, "thinking"):
        block["signature"] = ""


@pure
def drops_empty_thinking(body: Body) -> None:
    """A block with empty text looks empty, although it holds the seal."""
    for turn in _turns(body):
        turn["content"] = [
            b for b in turn["content"] if b.get("type") != "thinking" or b.get("thinking")
        ]


@pure
def marks_thinking_for_cache(body: Body) -> None:
    """The cache breakpoint lands on whatever block is first."""
    for turn in _turns(body):
        turn["content"][0]["cache_control"] = {"type": "ephemeral"}


@pure
def loses_the_text_key(body: Body) -> None:
    """Chunks are merged without the key that is empty."""
    for block in _blocks(body, "thinking"):
        del block["thinking"]


@pure
def keeps_the_summary_only(body: Body) -> None:
    """The compaction block is stored as the text it shows."""
    for turn in _turns(body):
        turn["content"] = [
            {"type": "text", "text": b["content"]} if b.get("type") == "compaction" else b
            for b in turn["content"]
        ]


@pure
def dates_the_system_prompt(body: Body) -> None:
    """The system prompt says what time it is."""
    body["system"] = f"You are a clerk. Tick {len(body['messages'])}."


@pure
def trims_old_tool_results(body: Body) -> None:
    """All tool results but the newest are cut to save tokens."""
    for message in objects(body["messages"])[:-1]:
        for block in objects(message.get("content")):
            if block.get("type") == "tool_result":
                block["content"] = "[trimmed]"


@pure
def masks_ciphertext(body: Body) -> None:
    """A secret redactor takes ciphertext for a key."""
    for block in _blocks(body, *_REASONING):
        key = "signature" if "signature" in block else "data"
        block[key] = masked(block[key])


@pure
def signs_with_a_dummy(body: Body) -> None:
    """A documented dummy of another vendor stands where the signature was."""
    for block in _blocks(body, "thinking"):
        block["signature"] = "skip_thought_signature_validator"


@pure
def sanitises_text(body: Body) -> None:
    """Signed text goes through the same clean-up as ordinary text."""
    for block in _blocks(body, "thinking"):
        block["thinking"] = block["thinking"].replace(" the ", " ").rstrip(".")


@pure
def moves_thinking_to_the_end(body: Body) -> None:
    """Blocks are grouped by type: text, calls, then thinking."""
    for turn in _turns(body):
        turn["content"].sort(key=lambda b: b.get("type") in _REASONING)


@pure
def joins_neighbouring_thinking(body: Body) -> None:
    """Two thinking blocks in a row become one, texts and signatures set end to end."""
    for turn in _turns(body):
        for one, two in pairwise([b for b in turn["content"] if b.get("type") == "thinking"]):
            one["thinking"] += two["thinking"]
            one["signature"] += two["signature"]
            turn["content"].remove(two)


@pure
def tags_thinking_as_text(body: Body) -> None:
    """Reasoning goes back as ordinary text inside a tag."""
    for block in _blocks(body, "thinking"):
        if text := block.pop("thinking"):
            block.pop("signature")
            block.update(type="text", text=f"<thinking>{text}</thinking>")
        else:
            block.update(thinking=text)


@pure
def retypes_empty_thinking(body: Body) -> None:
    """Signed thinking without text is taken for a redacted block."""
    for block in _blocks(body, "thinking"):
        if not block["thinking"]:
            seal = block["signature"]
            block.clear()
            block.update(type="redacted_thinking", data=seal)


@pure
def cuts_signatures_for_the_database(body: Body) -> None:
    """The session store has a column of 24 characters for the signature."""
    for block in _blocks(body, "thinking"):
        block["signature"] = block["signature"][:24]


@pure
def forgets_signatures(body: Body) -> None:
    """The signature is not written to the session file."""
    for block in _blocks(body, "thinking"):
        del block["signature"]


@pure
def sends_thinking_twice(body: Body) -> None:
    """Both the stored turn and the running one hold the first block."""
    for turn in _turns(body):
        if turn["content"] and turn["content"][0].get("type") == "thinking":
            turn["content"].insert(0, dict(turn["content"][0]))


@pure
def exchanges_signatures(body: Body) -> None:
    """Signatures are put back by position, and the positions are off by one."""
    for turn in _turns(body):
        for one, two in pairwise([b for b in turn["content"] if b.get("type") == "thinking"]):
            one["signature"], two["signature"] = two["signature"], one["signature"]


@pure
def splits_thinking(body: Body) -> None:
    """Long blocks are cut in two, signature and all."""
    for turn in _turns(body):
        content = []
        for block in turn["content"]:
            if block.get("type") == "thinking" and block["thinking"]:
                half, mark = len(block["thinking"]) // 2, len(block["signature"]) // 8 * 4
                for text, seal in (
                    (block["thinking"][:half], block["signature"][:mark]),
                    (block["thinking"][half:], block["signature"][mark:]),
                ):
                    content.append({"type": "thinking", "thinking": text, "signature": seal})
            else:
                content.append(block)
        turn["content"] = content


@pure
def switches_model(body: Body) -> None:
    """A router picks a model that cannot read what the first one minted."""
    if _turns(body):
        body["model"] = "claude-haiku-5-5"


@pure
def turns_thinking_off(body: Body) -> None:
    """A scheduled job turns thinking off while the history holds blocks."""
    if _turns(body):
        body["thinking"] = {"type": "disabled"}


@pure
def cuts_the_first_turns(body: Body) -> None:
    """The window slides over whole turns of the model, and forgets where calls belong."""
    turns = _turns(body)
    if len(turns) > 1:
        body["messages"].remove(turns[0])


@pure
def stores_a_cut_stream(body: Body) -> None:
    """The stream ended inside the last block, which never got its signature."""
    for block in objects(body.get("content")):
        if block.get("type") == "thinking":
            block["signature"] = ""
    body["stop_reason"] = "max_tokens"


@pure
def leaves_as_is(body: Body) -> None:
    """The body is right; what surrounds the call is not."""


_DROPPED = (_SIGNATURE, Fate.DROPPED)
_REDACTED_DROPPED = (_REDACTED, Fate.DROPPED)

MUTATIONS = (
    Mutation(
        name="filters_on_type_thinking",
        mechanism="dropped_block",
        dialects=_WHO,
        says='keeps blocks of type "thinking" and loses the redacted ones',
        change=filters_on_type_thinking,
        expected=(_REDACTED_DROPPED,),
    ),
    *(
        Mutation(
            name=name + mode,
            mechanism=mechanism,
            dialects=_WHO,
            says=says + how,
            change=manually(change) if mode else change,
            expected=(_DROPPED, _REDACTED_DROPPED),
            worst=worst,
        )
        for name, mechanism, says, change in (
            (
                "drops_reasoning_of_tool_turns",
                "dropped_block",
                "rebuilds turns that call tools from their calls",
                drops_reasoning_of_tool_turns,
            ),
            (
                "drops_all_reasoning",
                "bridge",
                "translates the history through a format without a slot for seals",
                drops_all_reasoning,
            ),
        )
        for mode, how, worst in (
            ("", ", where thinking is adaptive", Verdict.DEGRADES),
            ("_manual", ", where thinking has a budget", Verdict.BREAKS),
        )
    ),
    Mutation(
        name="assigns_signature_deltas",
        mechanism="stream",
        dialects=_WHO,
        says="assigns signature deltas instead of appending them",
        change=assigns_signature_deltas,
        expected=((_SIGNATURE, Fate.MODIFIED),),
    ),
    Mutation(
        name="ignores_signature_delta",
        mechanism="stream",
        dialects=_WHO,
        says="ignores the event that brings the signature",
        change=ignores_signature_delta,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="drops_empty_thinking",
        mechanism="empty_seal",
        dialects=_WHO,
        says="drops thinking blocks whose text is empty",
        change=drops_empty_thinking,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="marks_thinking_for_cache",
        mechanism="envelope",
        dialects=_WHO,
        says="puts a cache marker on a thinking block",
        change=marks_thinking_for_cache,
        expected=(
            ("anthropic.thinking.envelope", Fate.ENVELOPE_MODIFIED),
            ("anthropic.redacted_thinking.envelope", Fate.ENVELOPE_MODIFIED),
        ),
    ),
    Mutation(
        name="loses_the_text_key",
        mechanism="envelope",
        dialects=_WHO,
        says="leaves the text key out of merged stream chunks",
        change=loses_the_text_key,
        expected=((_TEXT, Fate.DROPPED),),
    ),
    Mutation(
        name="keeps_the_summary_only",
        mechanism="compaction",
        dialects=_WHO,
        says="stores a compaction block as the text it shows",
        change=keeps_the_summary_only,
        expected=((_COMPACTION, Fate.SUBSTITUTED),),
        conversation="compaction",
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
        name="trims_old_tool_results",
        mechanism="prefix",
        dialects=_WHO,
        says="cuts old tool results",
        change=trims_old_tool_results,
        expected=(("request.prefix", Fate.PREFIX_CHANGED),),
    ),
    Mutation(
        name="masks_ciphertext",
        mechanism="redactor",
        dialects=_WHO,
        says="masks ciphertext as if it were a secret",
        change=masks_ciphertext,
        expected=((_SIGNATURE, Fate.MODIFIED), (_REDACTED, Fate.MODIFIED)),
    ),
    Mutation(
        name="signs_with_a_dummy",
        mechanism="fabricated",
        dialects=_WHO,
        says="puts another vendor's documented dummy in the place of the signature",
        change=signs_with_a_dummy,
        expected=((_SIGNATURE, Fate.FABRICATED),),
    ),
    Mutation(
        name="sanitises_text",
        mechanism="text_sanitised",
        dialects=_WHO,
        says="cleans up the text of signed blocks",
        change=sanitises_text,
        expected=((_TEXT, Fate.MODIFIED),),
    ),
    Mutation(
        name="ships_to_another_vendor",
        mechanism="wrong_vendor",
        dialects=_WHO,
        says="sends the history to another vendor that speaks the same wire",
        change=leaves_as_is,
        expected=((_SIGNATURE, Fate.FOREIGN),),
        around={"provider": "zhipu", "host": "api.z.ai"},
    ),
    Mutation(
        name="moves_thinking_to_the_end",
        mechanism="order",
        dialects=_WHO,
        says="groups the blocks of a turn by type",
        change=moves_thinking_to_the_end,
        expected=((_SIGNATURE, Fate.REORDERED), (_REDACTED, Fate.REORDERED)),
    ),
    Mutation(
        name="joins_neighbouring_thinking",
        mechanism="merged",
        dialects=_WHO,
        says="joins two thinking blocks and their signatures",
        change=joins_neighbouring_thinking,
        expected=((_SIGNATURE, Fate.MERGED), (_TEXT, Fate.MERGED)),
    ),
    Mutation(
        name="splits_thinking",
        mechanism="merged",
        dialects=_WHO,
        says="cuts long thinking blocks in two",
        change=splits_thinking,
        expected=((_SIGNATURE, Fate.SPLIT), (_TEXT, Fate.MODIFIED)),
    ),
    Mutation(
        name="tags_thinking_as_text",
        mechanism="substituted",
        dialects=_WHO,
        says="sends reasoning back as ordinary text inside a tag",
        change=tags_thinking_as_text,
        expected=((_SIGNATURE, Fate.SUBSTITUTED),),
    ),
    Mutation(
        name="retypes_empty_thinking",
        mechanism="misplaced",
        dialects=_WHO,
        says="takes signed thinking without text for a redacted block",
        change=retypes_empty_thinking,
        expected=((_SIGNATURE, Fate.RETYPED),),
    ),
    Mutation(
        name="exchanges_signatures",
        mechanism="misplaced",
        dialects=_WHO,
        says="puts signatures back by position, off by one",
        change=exchanges_signatures,
        expected=((_SIGNATURE, Fate.MISPLACED),),
    ),
    Mutation(
        name="cuts_signatures_for_the_database",
        mechanism="persistence",
        dialects=_WHO,
        says="stores the first 24 characters of a signature",
        change=cuts_signatures_for_the_database,
        expected=((_SIGNATURE, Fate.MODIFIED),),
    ),
    Mutation(
        name="forgets_signatures",
        mechanism="persistence",
        dialects=_WHO,
        says="does not write the signature to the session file",
        change=forgets_signatures,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="sends_thinking_twice",
        mechanism="duplicated",
        dialects=_WHO,
        says="sends the first block of a turn twice",
        change=sends_thinking_twice,
        expected=((_SIGNATURE, Fate.DUPLICATED),),
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
        name="switches_model",
        mechanism="model_switch",
        dialects=_WHO,
        says="goes on with a model that does not read the blocks of the first",
        change=switches_model,
        expected=((_SIGNATURE, Fate.INTACT), (_REDACTED, Fate.INTACT)),
    ),
    Mutation(
        name="turns_thinking_off",
        mechanism="config_mismatch",
        dialects=_WHO,
        says="turns thinking off while the history holds blocks",
        change=turns_thinking_off,
        expected=((_SIGNATURE, Fate.INTACT), (_REDACTED, Fate.INTACT)),
    ),
    Mutation(
        name="cuts_the_first_turns",
        mechanism="trim_pair",
        dialects=_WHO,
        says="lets the first turn of the model slide out of the window, and keeps its result",
        change=cuts_the_first_turns,
        expected=(_DROPPED,),
    ),
    Mutation(
        name="stores_a_cut_stream",
        mechanism="interrupted",
        dialects=_WHO,
        says="stores a block whose stream was cut before the signature",
        change=stores_a_cut_stream,
        expected=((_SIGNATURE, Fate.UNSEALED),),
        side=Side.RESPONSE,
    ),
)


# ------------------------------------------------------------------------------------ freedoms


def _nulls(body: Body, chance: random.Random) -> None:
    for block in _blocks(body, "text", "tool_use"):
        keys = ("caller", "toolset_name") if block["type"] == "tool_use" else ("citations",)
        for key in keys:
            if chance.random() < 0.5:  # noqa: PLR2004 - an even chance
                block.setdefault(key, None)


def _key_order(body: Body, _chance: random.Random) -> None:
    turned = reversed_keys(body)
    body.clear()
    body.update(turned)


def _cache_markers(body: Body, chance: random.Random) -> None:
    blocks = [
        block
        for message in objects(body["messages"])
        for block in objects(message.get("content"))
        if block.get("type") not in _REASONING
    ]
    for block in chance.sample(blocks, min(2, len(blocks))):
        block["cache_control"] = {"type": "ephemeral"}
    if isinstance(body.get("system"), str):
        marker = {"type": "ephemeral"}
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": marker}]


def _string_content(body: Body, chance: random.Random) -> None:
    for message in objects(body["messages"]):
        content = message.get("content")
        if (
            isinstance(content, list)
            and len(content) == 1
            and content[0].get("type") == "text"
            and chance.random() < 0.5  # noqa: PLR2004 - an even chance
        ):
            message["content"] = content[0]["text"]


FREEDOMS = (
    Freedom(
        name="nulls",
        dialect="anthropic",
        says="nulls that model_dump() adds",
        change=free(_nulls),
    ),
    Freedom(
        name="key_order",
        dialect="anthropic",
        says="another order of keys",
        change=free(_key_order),
    ),
    Freedom(
        name="cache_markers",
        dialect="anthropic",
        says="cache markers on blocks that are no thinking, system prompt as a list",
        change=free(_cache_markers),
    ),
    Freedom(
        name="string_content",
        dialect="anthropic",
        says="a single text as a string instead of a list",
        change=free(_string_content),
    ),
)
