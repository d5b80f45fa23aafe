"""L9. Live equals offline.

Whatever way an exchange is observed, whole or streamed, parsed or as bytes, in the calls of an SDK
or as a line of a transcript, its report has the same rows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_sealed import transcript
from otel_sealed.contract import Api
from otel_sealed.instrument import guard, uninstrument
from otel_sealed.model import Report
from otel_sealed.telemetry.settings import load
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.hosts import Host, hosts, on_chat, play
from otel_sealed.testing.hosts.player import a_provider_for
from otel_sealed.testing.strict.records import Exchange as Recorded
from otel_sealed.tracker import Tracker
from otel_sealed.wire import as_payloads
from tests.core.conversations import KEY, STREAM, Body
from tests.laws.generate import Talk, talks
from tests.laws.hosts import Change, changed, changes
from tests.laws.judging import after, counted, profile, rows


@profile()
@given(talks(compacts=True), st.lists(changes(), min_size=1, max_size=4))
def test_a_stream_has_the_rows_of_a_whole_body(talk: Talk, hosts: list[tuple[Change, ...]]) -> None:
    whole, stream = after([]), after([])
    for number in range(len(talk.answers)):
        sent = changed(talk, talk.told(number), hosts[number % len(hosts)])
        found = [
            [
                (r.artifact, r.fate, r.verdict, r.rule, r.cause, r.turn, r.returned)
                for r in rows(report)
            ]
            for report in (
                whole.observe(talk.exchange(number, sent)),
                stream.observe(talk.exchange(number, sent, delivery=STREAM)),
            )
        ]
        assert found[0] == found[1]


APIS = {
    "/v1/messages": ("anthropic", Api.MESSAGES),
    "/v1/responses": ("openai", Api.RESPONSES),
    "/v1/chat/completions": ("google", Api.CHAT_COMPLETIONS),
}
GEMINI = re.compile(r"/(?:v1beta|v1)/models/(?P<model>[^:]+):(?:generateContent|stream.*)")


def line(exchange: Recorded) -> Body:
    """The line of a transcript that one exchange of a server is."""
    path = urlsplit(exchange.path).path
    gemini = GEMINI.fullmatch(path)
    provider, api = ("google", Api.GENERATE_CONTENT) if gemini else APIS[path]
    told: Body = {"provider": provider, "api": api.value, "status": exchange.status}
    told |= {"model": gemini["model"] if gemini else None, "complete": exchange.complete}
    told["request"] = json.loads(exchange.request_body)
    if exchange.stream:
        told["events"], _ = as_payloads(exchange.response_body)
    else:
        told["response"] = json.loads(exchange.response_body)
    return told


def shown(report: Report, before: int) -> Shown:
    """The rows of a report: how many of each kind, and those that are not well as they are.

    Exchanges are counted from `before`; what a checkpoint has of a conversation are counts.
    """
    loud = [
        (row.artifact, row.fate, row.cause, row.turn - before, row.returned, row.sizes)
        for row in rows(report)
        if row.verdict != "ok"
    ]
    return counted(report), loud


Shown = tuple[Counter[tuple[Any, ...]], list[tuple[Any, ...]]]
Played = tuple[list[Shown], list[Body]]
UNFAITHFUL = (
    "anthropic-type-filter",
    "openai-no-ids",
    "openai-after-anthropic",
    "gemini-step-splitter",
)
HOSTS = [h for h in (*hosts(), *on_chat.HOSTS) if h.faithful or h.name in UNFAITHFUL]
"""The hosts of `tests/testing/test_hosts.py` that do not lose anything, and one of each wire."""


@pytest.fixture(scope="module", name="live")
def _live() -> dict[str, Played]:
    """Each host played once on the real SDKs: its rows by request, and what its server saw."""
    found: dict[str, Played] = {}
    servers: dict[str, StrictProvider] = {}

    def provider_for(host: Host) -> StrictProvider:
        return servers.setdefault(host.name, a_provider_for(host))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "STRICT", True)
        for one in play(HOSTS, provider_for=provider_for, settings=load()):
            first = min((report.exchange for report in one.reports), default=0)
            told = [line(seen) for seen in servers[one.host.name].exchanges]
            found[one.host.name] = [shown(r, first) for r in one.reports], told
    uninstrument()
    return found


@pytest.mark.parametrize("name", [host.name for host in HOSTS])
def test_a_transcript_of_what_a_server_saw_has_the_rows_of_the_live_calls(
    live: dict[str, Played], name: str, tmp_path: Path
) -> None:
    """The real SDKs on loopback, whole and streamed, by hosts that are faithful and not."""
    rows_live, lines = live[name]
    file = tmp_path / "transcript.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    tracker = Tracker(KEY)
    assert rows_live == [shown(tracker.observe(one), 0) for one in transcript.read(file)]
