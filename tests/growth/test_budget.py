"""The budget of an exchange admits what is large, and gives up at once on what is larger."""

from __future__ import annotations

import base64
import random

import pytest

from otel_sealed.contract import Exchange
from otel_sealed.model import Report
from otel_sealed.steps import MOST, bounded
from otel_sealed.tracker import Tracker
from tests.core.conversations import KEY
from tests.growth.shapes import LISTS, USER, Body, asked, said, think, turns

HALF = MOST // 2
WORDS = "The ledger, as it was kept by the clerk; " * 30


def observed(exchanges: list[Exchange]) -> tuple[list[Report], int]:
    """The reports, and the most steps that one of the exchanges cost."""
    tracker = Tracker(KEY)
    reports, most = [], 0
    for exchange in exchanges:
        with bounded(MOST) as budget:
            reports.append(tracker.observe(exchange))
        most = max(most, budget.spent)
    return reports, most


@pytest.mark.parametrize("name", ["calls", "texts", "thoughts_kept"])
def test_ten_thousand_blocks_are_judged_with_half_the_budget(name: str) -> None:
    count = 5_000 if name == "thoughts_kept" else 10_000  # of both kinds together
    reports, most = observed(LISTS[name](count))
    assert ([()] * 3, "ok", True) == ([r.unread for r in reports], reports[1].verdict, most < HALF)


def _history(size: int) -> list[Body]:
    """A conversation of long texts, `size` bytes."""
    found = []
    for number, message in enumerate(turns(size // (30 * len(WORDS)))):
        model = message["role"] == "assistant"
        content = [think(number), said(WORDS)] if model else WORDS * 29
        found.append({**message, "content": content})
    return found


def test_a_request_of_32_mb_is_judged_with_half_the_budget() -> None:
    told = _history(32_000_000)
    first = asked(told[:-1], told[-1]["content"])
    (_, report), most = observed([first, asked([*told, USER], [said("So.")])])
    assert ((), True) == (report.unread, most < HALF)


def test_a_lost_seal_next_to_an_image_of_20_mb_is_found_with_half_the_budget() -> None:
    data = base64.urlsafe_b64encode(random.Random(1).randbytes(20_000_000)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    shown = {"role": "user", "content": [{"type": "image", "source": source}]}
    came = [{"type": "redacted_thinking", "data": "A" * 400}, said("A ledger.")]
    sent = [shown, {"role": "assistant", "content": came[1:]}, USER]
    (_, report), most = observed([asked([shown], came), asked(sent, [said("So.")])])
    assert (["dropped"], True) == ([f.fate for f in report.findings], most < HALF)


@pytest.mark.parametrize(
    "content",
    [b"[" + b"[]," * 10_000_000 + b"[]]", b"[" + b"1," * 15_000_000 + b"1]"],
    ids=["lists", "numbers"],
)
def test_a_body_of_more_values_than_fit_is_not_even_parsed(content: bytes) -> None:
    body = b'{"model":"claude-opus-5","messages":[{"role":"user","content":' + content + b"}]}"
    exchange = asked([USER], [think(1)])
    exchange.request = body
    (report,), most = observed([exchange])
    assert (("size",), True) == (report.unread, most <= 2 * MOST)


def test_what_is_given_up_accuses_nobody_and_the_next_call_is_judged() -> None:
    tracker = Tracker(KEY, steps=6_000)
    first, second, third = LISTS["thoughts_lost"](200)
    small = [asked([USER], [think(7)])]
    small.append(asked([USER, {"role": "assistant", "content": [think(7)]}, USER], None))
    reports = [tracker.observe(one) for one in (first, second, third, *small)]
    assert [(), ("size",), ("size",), (), ()] == [r.unread for r in reports]
    assert [None, None, None, None, "ok"] == [r.verdict for r in reports]


def test_a_report_that_was_given_up_holds_no_word_of_the_body() -> None:
    tracker = Tracker(KEY, steps=1)
    secret = "Secret words of the user."
    exchange = asked([{"role": "user", "content": secret}], [said(secret)])
    exchange.model = secret
    report = tracker.observe(exchange)
    assert (("size",), "other") == (report.unread, report.facts.model)
    assert secret not in repr(report)
