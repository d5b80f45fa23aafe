"""Bodies whose size can be chosen: each shape was once slow, or is the neighbour of one that was.

A shape is a function of `n` that returns the exchanges of one conversation. What grows with `n` is
in its name.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import random
from collections.abc import Callable
from typing import Any

from otel_sealed.contract import Api, Exchange

Body = dict[str, Any]
Shape = Callable[[int], list[Exchange]]

TEXTS: dict[str, Shape] = {}
"""Shapes in which a text grows: `n` characters or bytes."""
LISTS: dict[str, Shape] = {}
"""Shapes in which a list grows: `n` items."""

USER: Body = {"role": "user", "content": "Which ledger is right?"}


def text(shape: Shape) -> Shape:
    TEXTS[shape.__name__] = shape
    return shape


def items(shape: Shape) -> Shape:
    LISTS[shape.__name__] = shape
    return shape


def seal(i: int) -> str:
    return base64.b64encode(f"seal {i} ".encode() * 30).decode()


def think(i: int, thought: str | None = None, sealed: str | None = None) -> Body:
    words = f"thought number {i} about the ledgers" if thought is None else thought
    return {"type": "thinking", "thinking": words, "signature": sealed or seal(i)}


def said(words: str) -> Body:
    return {"type": "text", "text": words}


def use(i: int, name: str | None = None) -> Body:
    return {"type": "tool_use", "id": name or f"toolu_{i:06d}", "name": "look", "input": {"q": i}}


def result(i: int, name: str | None = None) -> Body:
    return {"type": "tool_result", "tool_use_id": name or f"toolu_{i:06d}", "content": f"found {i}"}


def asked(messages: list[Body], content: list[Body] | None, **more: Any) -> Exchange:
    request = {
        "model": "claude-opus-5",
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "messages": messages,
    }
    answer: Body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5"}
    answer |= {"content": content, "stop_reason": "end_turn", "usage": {}}
    return Exchange(
        Api.MESSAGES,
        "anthropic",
        request=json.dumps(request).encode(),
        response=None if content is None else json.dumps(answer).encode(),
        status=200,
        **more,
    )


def back(came: list[Body], sent: list[Body], results: list[Body] | None = None) -> list[Exchange]:
    """An answer, the request that sends something for it, and one more turn."""
    first = [USER]
    second = [*first, {"role": "assistant", "content": sent}]
    second.append({"role": "user", "content": results or "Go on."})
    third = [*second, {"role": "assistant", "content": [said("yes")]}, USER]
    return [asked(first, came), asked(second, [said("yes")]), asked(third, [said("so")])]


def unsealed(blocks: list[Body]) -> list[Body]:
    return [b for b in blocks if b["type"] != "thinking"]


# ------------------------------------------------------------------------------- texts that grow


@text
def id_of_underscores(n: int) -> list[Exchange]:
    blocks = [think(1), use(1, "_" * n)]
    return back(blocks, blocks, [result(1, "_" * n)])


@text
def text_of_underscores_and_a_lost_seal(n: int) -> list[Exchange]:
    blocks = [think(1), said("_" * n)]
    return back(blocks, blocks[1:])


def _image(n: int, encode: Callable[[bytes], bytes]) -> list[Exchange]:
    data = encode(random.Random(1).randbytes(n)).decode()
    blocks = [think(1), use(1)]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    found = {**result(1), "content": [{"type": "image", "source": source}]}
    return back(blocks, blocks[1:], [found])


@text
def url_safe_image_and_a_lost_seal(n: int) -> list[Exchange]:
    return _image(n, base64.urlsafe_b64encode)


@text
def image_and_a_lost_seal(n: int) -> list[Exchange]:
    return _image(n, base64.b64encode)


@text
def image_of_underscores_and_a_lost_seal(n: int) -> list[Exchange]:
    return _image(n, lambda data: b"A__B" * (len(data) // 4))


@text
def open_tags(n: int) -> list[Exchange]:
    blocks = [think(1), said("<a>" * (n // 3))]
    return back(blocks, blocks[1:])


@text
def closed_tags(n: int) -> list[Exchange]:
    blocks = [think(1), said("<a>x</a>" * (n // 8))]
    return back(blocks, blocks[1:])


@text
def fences(n: int) -> list[Exchange]:
    blocks = [think(1), said("```\nx\n```\n" * (n // 10))]
    return back(blocks, blocks[1:])


@text
def quoted_lines(n: int) -> list[Exchange]:
    blocks = [think(1), said("> a line\n " * (n // 10))]
    return back(blocks, blocks[1:])


@text
def long_thought_in_a_long_text(n: int) -> list[Exchange]:
    blocks = [think(1, "word " * (n // 10)), said("other " * (n // 12))]
    return back(blocks, blocks[1:])


@text
def arguments_of_a_call(n: int) -> list[Exchange]:
    blocks = [think(1), {**use(1), "input": {"x": "y" * n}}]
    return back(blocks, blocks, [result(1)])


@text
def another_long_seal(n: int) -> list[Exchange]:
    return back([think(1)], [think(1, sealed="A" * n)])


@text
def another_long_seal_of_words(n: int) -> list[Exchange]:
    return back([think(1)], [think(1, sealed="A." * (n // 2))])


@text
def seal_with_spaces(n: int) -> list[Exchange]:
    pieces = ["QUJD"] * (n // 4)
    return back([think(1, sealed="".join(pieces))], [think(1, sealed=" ".join(pieces))])


@text
def long_key(n: int) -> list[Exchange]:
    inside = {f"k{i}": "x" for i in range(50)}
    blocks = [think(1), use(1)]
    return back(blocks, blocks[1:], [{**result(1), "content": [{"k" * n: inside}]}])


@text
def deep_list(n: int) -> list[Exchange]:
    nested = b"[" * n + b"]" * n
    body = b'{"model":"claude-opus-5","messages":[{"role":"user","content":' + nested + b"}]}"
    return [dataclasses.replace(asked([USER], [think(1)]), request=body)]


def _streamed(events: bytes) -> list[Exchange]:
    begin = b'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}\n\n'
    return [asked([USER], None, events=begin + events)]


_OPENED = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"thinking","thinking":"","signature":""}}\n\n'
)


# ------------------------------------------------------------------------------- lists that grow


@items
def comments_in_a_stream(n: int) -> list[Exchange]:
    return _streamed(b": ping\n\n" * n)


@items
def empty_lines_of_data(n: int) -> list[Exchange]:
    return _streamed(b"data: \n" * n + b"\n\n")


@items
def deltas_of_a_thought(n: int) -> list[Exchange]:
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta",'
    return _streamed(_OPENED + (delta + b'"thinking":"x"}}\r\n\r\n') * n)


@items
def deltas_of_a_signature(n: int) -> list[Exchange]:
    delta = b'data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta",'
    return _streamed(_OPENED + (delta + b'"signature":"xxxx"}}\n\n') * n)


@items
def blocks_of_a_stream_that_do_not_end(n: int) -> list[Exchange]:
    block = b'"content_block":{"type":"thinking","thinking":"a","signature":"xxxx"}}\n\n'
    delta = b'"delta":{"type":"signature_delta","signature":"yyyy"}}\n\n'
    return _streamed(
        b"".join(
            b'data: {"type":"content_block_start","index":%d,' % i
            + block
            + b'data: {"type":"content_block_delta","index":%d,' % i
            + delta
            for i in range(n)
        )
    )


@items
def usage_in_a_stream(n: int) -> list[Exchange]:
    usage = b'data: {"type":"message_delta","delta":{},"usage":{"k%d":1}}\n\n'
    return _streamed(b"".join(usage % i for i in range(n)))


def thoughts_and_calls(n: int) -> list[Body]:
    return [block for i in range(n) for block in (think(i), use(i))]


def results(n: int) -> list[Body]:
    return [result(i) for i in range(n)]


@items
def thoughts_kept(n: int) -> list[Exchange]:
    return back(thoughts_and_calls(n), thoughts_and_calls(n), results(n))


@items
def thoughts_lost(n: int) -> list[Exchange]:
    return back(thoughts_and_calls(n), unsealed(thoughts_and_calls(n)), results(n))


@items
def thoughts_without_their_seals(n: int) -> list[Exchange]:
    bare = [{k: v for k, v in b.items() if k != "signature"} for b in thoughts_and_calls(n)]
    return back(thoughts_and_calls(n), bare, results(n))


@items
def thoughts_modified(n: int) -> list[Exchange]:
    sent = [b for i in range(n) for b in (think(i, sealed=seal(-i - 1)), use(i))]
    return back(thoughts_and_calls(n), sent, results(n))


@items
def thoughts_grown(n: int) -> list[Exchange]:
    sent = [b for i in range(n) for b in (think(i, f"thought number {i} and more of it"), use(i))]
    return back(thoughts_and_calls(n), sent, results(n))


@items
def thoughts_reversed(n: int) -> list[Exchange]:
    return back(thoughts_and_calls(n), thoughts_and_calls(n)[::-1], results(n))


@items
def thoughts_shuffled(n: int) -> list[Exchange]:
    sent = thoughts_and_calls(n)
    random.Random(3).shuffle(sent)
    return back(thoughts_and_calls(n), sent, results(n))


@items
def thoughts_first_and_lost(n: int) -> list[Exchange]:
    came = [*(think(i) for i in range(n)), *(said(f"> text {i} of the answer") for i in range(n))]
    return back(came, unsealed(came))


@items
def thoughts_and_quotes_lost(n: int) -> list[Exchange]:
    came = [b for i in range(n) for b in (think(i), said(f"> line {i}\n " * 20))]
    return back(came, unsealed(came))


@items
def thoughts_of_all_lengths_lost(n: int) -> list[Exchange]:
    came = [b for i in range(n) for b in (think(i, "w " * (7 + i)), said(f"> line {i}\n " * 20))]
    return back(came, unsealed(came))


@items
def tiny_thoughts_lost(n: int) -> list[Exchange]:
    came = [b for i in range(n) for b in (think(i, f"ok{i}"), said("<a>x</a>" * 50))]
    return back(came, unsealed(came))


@items
def thoughts_become_text(n: int) -> list[Exchange]:
    came = thoughts_and_calls(n)
    sent = [said(f"Thought: {b['thinking']}") if b["type"] == "thinking" else b for b in came]
    return back(came, sent, results(n))


@items
def one_text_of_all_thoughts(n: int) -> list[Exchange]:
    came = [think(i) for i in range(n)]
    sent = [said("\n".join(f"> {b['thinking']}" for b in came))]
    return back(came, sent)


@items
def seals_joined_in_one(n: int) -> list[Exchange]:
    came = [think(i) for i in range(n)]
    return back(came, [{**came[0], "signature": "".join(b["signature"] for b in came)}])


@items
def redacted_lost(n: int) -> list[Exchange]:
    came = [b for i in range(n) for b in ({"type": "redacted_thinking", "data": seal(i)}, use(i))]
    return back(came, [b for b in came if b["type"] != "redacted_thinking"], results(n))


def same(n: int) -> list[Body]:
    return [b for _ in range(n) for b in (think(0), said("same"))]


@items
def same_seal_and_text(n: int) -> list[Exchange]:
    return back(same(n), same(n))


@items
def same_seal_one_lost(n: int) -> list[Exchange]:
    return back(same(n), same(n)[1:])


@items
def same_seal_all_lost(n: int) -> list[Exchange]:
    return back(same(n), unsealed(same(n)))


@items
def calls(n: int) -> list[Exchange]:
    came = [think(0), *(use(i) for i in range(n))]
    return back(came, came, results(n))


@items
def calls_of_one_id(n: int) -> list[Exchange]:
    came = [think(0), *(use(i, "toolu_same") for i in range(n))]
    return back(came, came, [result(i, "toolu_same") for i in range(n)])


@items
def equal_calls(n: int) -> list[Exchange]:
    came = [think(0), *({**use(i), "input": {}} for i in range(n))]
    sent = [think(0), *({**use(i), "id": f"other_{i}", "input": {}} for i in range(n))]
    return back(came, sent, results(n))


@items
def calls_with_shuffled_results(n: int) -> list[Exchange]:
    came = [think(0), *(use(i) for i in range(n))]
    sent = results(n)
    random.Random(2).shuffle(sent)
    return back(came, came[1:], sent)


@items
def calls_split_into_steps(n: int) -> list[Exchange]:
    came = [think(0), *(use(i) for i in range(n))]
    steps = [m for i in range(n) for m in _step([use(i)], result(i))]
    messages = [USER, *_step([think(0), use(0)], result(0)), *steps]
    return [asked([USER], came), asked(messages, [said("yes")])]


def _step(blocks: list[Body], answer: Body) -> list[Body]:
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": [answer]}]


@items
def texts(n: int) -> list[Exchange]:
    came = [think(0), *(said(f"t{i}") for i in range(n))]
    return back(came, came)


@items
def texts_and_a_lost_seal(n: int) -> list[Exchange]:
    came = [think(0), *(said(f"t{i}") for i in range(n))]
    return back(came, came[1:])


@items
def markers(n: int) -> list[Exchange]:
    came = [b for i in range(n) for b in (think(i), {"type": "fallback"})]
    return back(came, came)


@items
def unknown_keys(n: int) -> list[Exchange]:
    return back([think(1)], [{**think(1), **{f"k{i}": i for i in range(n)}}])


@items
def unknown_blocks(n: int) -> list[Exchange]:
    came = [{"type": "novel", "data": seal(i)} for i in range(n)]
    return back(came, came[::-1])


def turns(n: int) -> list[Body]:
    """Questions and answers of a conversation nobody here saw."""
    return [
        m
        for i in range(n)
        for m in (
            {"role": "user", "content": f"question {i}"},
            {"role": "assistant", "content": [think(i), said(f"answer {i}")]},
        )
    ]


@items
def unseen_history(n: int) -> list[Exchange]:
    return [asked([*turns(n), USER], [think(-1), said("x")])]


@items
def unseen_history_of_one_turn(n: int) -> list[Exchange]:
    pair = [USER, {"role": "assistant", "content": [think(0), said("a")]}]
    first = asked([USER], [think(0), said("a")])
    return [first, asked([*pair * n, USER], [think(0), said("a")])]


def _grown(n: int, last: list[Body]) -> list[Exchange]:
    """A conversation that grows by one turn a call, as far as it has to be seen, and its end."""
    told = turns(n)
    seen = [asked(told[: 2 * i + 1], told[2 * i + 1]["content"]) for i in range(n)]
    return [*seen[:-1], asked(last, [think(-1)])]


@items
def changed_questions(n: int) -> list[Exchange]:
    changed = [m | {"content": m["content"] + "!"} if m["role"] == "user" else m for m in turns(n)]
    return _grown(n, [*changed, USER])


@items
def all_seals_lost_of_a_history(n: int) -> list[Exchange]:
    bare = [
        m | {"content": unsealed(m["content"])} if m["role"] == "assistant" else m for m in turns(n)
    ]
    return _grown(n, [*bare, USER])


@items
def history_in_one_message(n: int) -> list[Exchange]:
    blocks = [b for m in turns(n) if m["role"] == "assistant" for b in m["content"]]
    return _grown(n, [USER, {"role": "assistant", "content": unsealed(blocks)}, USER])


@items
def history_without_its_questions(n: int) -> list[Exchange]:
    return _grown(n, [*(m for m in turns(n) if m["role"] == "assistant"), USER])
