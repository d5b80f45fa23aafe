"""Calls of two processes that share a ledger: what one receives, another one sends back.

`faithful` sends everything back, `lossy` leaves the signature out. Whatever happens to the ledger
between the two calls, the faithful one is never accused.
"""

from __future__ import annotations

import json
from typing import Any

from otel_sealed.contract import Api, Exchange
from otel_sealed.ledger.shared import SharedLedger
from otel_sealed.tracker import Tracker
from tests.ledger.shared import KEY

MAY = {"faithful": {"ok", "unverifiable"}, "lossy": {"degrades", "unverifiable", "None"}}
"""What may be said of a second call, whatever became of the ledger; nothing of one with no seal."""
KNOWN = {"faithful": "ok", "lossy": "degrades"}
"""What is said of it where the first call is remembered."""


def tracker(ledger: SharedLedger) -> Tracker:
    """Of a process that has the key in its environment."""
    return Tracker(KEY, ledger=ledger)


def begin(process: Tracker, name: str) -> None:
    """The first call of a conversation: a thought with its signature, and a call of a tool."""
    _call(process, [_asked(name)], _answer(name), "tool_use")


def go_on(process: Tracker, name: str, kind: str) -> str:
    """The second call of it; its verdict."""
    sent = _answer(name) if kind == "faithful" else _answer(name)[1:]
    result = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": "found"}
    history = [
        _asked(name),
        {"role": "assistant", "content": sent},
        {"role": "user", "content": [result]},
    ]
    return _call(process, history, [{"type": "text", "text": f"done with {name}"}], "end_turn")


def _asked(name: str) -> dict[str, Any]:
    return {"role": "user", "content": f"look for {name}"}


def _answer(name: str) -> list[dict[str, Any]]:
    signature = (f"c2ln{name}" + "A" * (-len(name) % 4)) * 12
    return [
        {"type": "thinking", "thinking": f"where may {name} be", "signature": signature},
        {"type": "tool_use", "id": f"toolu_{name}", "name": "look", "input": {"for": name}},
    ]


def _call(process: Tracker, messages: list[Any], content: list[Any], stop: str) -> str:
    request = {
        "model": "claude-opus-5",
        "max_tokens": 4096,
        "thinking": {"type": "adaptive"},
        "messages": messages,
    }
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    exchange = Exchange(
        api=Api.MESSAGES,
        provider="anthropic",
        request=json.dumps(request).encode(),
        response=json.dumps(reply).encode(),
        status=200,
        complete=True,
    )
    return str(process.observe(exchange).verdict)
