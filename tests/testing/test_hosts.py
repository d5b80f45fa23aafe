"""Host by host: the right fate on the right artifact at the right turn, and what is answered."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from otel_sealed.instrument import guard, uninstrument
from otel_sealed.model import Fate, ProviderVerdict, Verdict
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.hosts import Host, Played, Scene, hosts, on_chat, play
from otel_sealed.testing.hosts.player import a_provider_for

HOSTS = (*hosts(), *on_chat.HOSTS)
FAITHFUL = [host.name for host in HOSTS if host.faithful]
UNFAITHFUL = [host.name for host in HOSTS if not host.faithful]


@dataclass
class Season:
    """Every host played once, and the provider each was played against."""

    played: dict[str, Played]
    providers: dict[str, StrictProvider]


@pytest.fixture(scope="module", name="season")
def _season() -> Iterator[Season]:
    providers: dict[str, StrictProvider] = {}

    def provider_for(host: Host) -> StrictProvider:
        return providers.setdefault(host.name, a_provider_for(host))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "STRICT", True)
        played = {p.host.name: p for p in play(HOSTS, provider_for=provider_for)}
        yield Season(played, providers)
    uninstrument()


@pytest.mark.parametrize("name", [host.name for host in HOSTS])
def test_a_host_shows_what_it_is_known_for(season: Season, name: str) -> None:
    """Artifact, fate, verdict and turn of everything that is not intact, and nothing else."""
    played = season.played[name]
    assert played.host.losses == played.losses


@pytest.mark.parametrize("name", [host.name for host in HOSTS])
def test_the_refusal_of_the_provider_is_its_verdict(season: Season, name: str) -> None:
    played = season.played[name]
    last = played.reports[-1]
    assert played.host.rejection == last.rejection
    refused = played.host.rejection is not None
    expected = ProviderVerdict.REJECTED if refused else ProviderVerdict.ACCEPTED
    assert expected is last.provider_verdict
    assert {expected} == {finding.provider_verdict for finding in last.findings}
    answered = [exchange.status == 200 for exchange in season.providers[name].exchanges]
    assert [True] * (len(answered) - 1) + [not refused] == answered
    assert played.refused is refused


@pytest.mark.parametrize("name", UNFAITHFUL)
def test_a_refusal_ends_the_conversation_at_the_first_break(season: Season, name: str) -> None:
    """What the provider refuses was called `breaks` by us at that very turn, never later."""
    played = season.played[name]
    breaks = [row.turn for row in played.rows if row.finding.verdict is Verdict.BREAKS]
    assert played.refused == bool(breaks)
    if breaks:
        assert len(played.reports) == min(breaks) == max(breaks)


@pytest.mark.parametrize("name", FAITHFUL)
def test_a_faithful_host_loses_nothing(season: Season, name: str) -> None:
    played = season.played[name]
    assert len(played.reports) == 4
    assert len(played.rows) > 0
    assert {Fate.INTACT} == {row.finding.fate for row in played.rows}
    assert {Verdict.OK} == {row.finding.verdict for row in played.rows}


@pytest.mark.parametrize("name", FAITHFUL)
def test_what_a_faithful_host_sends_is_what_the_server_minted(season: Season, name: str) -> None:
    """Asserted on the bytes the server received, not on digests of ours."""
    provider = season.providers[name]
    last = provider.exchanges[-1]
    sent, answered = last.request_body.decode(), last.response_body.decode()
    # google-genai spells signatures in the URL-safe alphabet
    spelled = sent.replace("-", "+").replace("_", "/")
    due = [minted for minted in provider.minted if minted.value not in answered]
    assert len(due) >= 3
    assert [minted.kind for minted in due if minted.value not in sent + spelled] == []


@pytest.mark.parametrize("name", FAITHFUL)
def test_the_number_of_seals_received_is_the_number_minted(season: Season, name: str) -> None:
    received = sum(len(report.received) for report in season.played[name].reports)
    assert len(season.providers[name].minted) == received


def test_sizes_are_those_of_the_minted_values(season: Season) -> None:
    """Text as it is for Anthropic and OpenAI, decoded bytes for Gemini."""
    for name in FAITHFUL:
        minted = [m.value for m in season.providers[name].minted]
        sizes = [len(base64.b64decode(m)) if "gemini" in name else len(m) for m in minted]
        received = [r.size for report in season.played[name].reports for r in report.received]
        assert sizes == received


SPOKEN = ("anthropic", "openai", "gemini", "chat")


def test_every_sdk_has_a_faithful_host_streaming_and_not() -> None:
    expected = {(dialect, how) for dialect in SPOKEN for how in (0, 1)}
    found = {(host.dialect, int("streaming" in host.name)) for host in HOSTS if host.faithful}
    assert expected == found


def test_every_kind_of_loss_that_real_stacks_show_has_a_host() -> None:
    """The kinds that public reports name, by fate and artifact."""
    expected = {
        ("dropped", "anthropic.redacted_thinking.data"),
        ("dropped", "anthropic.thinking.signature"),
        ("dropped", "openai.reasoning.encrypted_content"),
        ("substituted", "openai.reasoning.encrypted_content"),
        ("split", "gemini.part.thought_signature"),
        ("fabricated", "gemini.part.thought_signature"),
        ("dropped", "gemini.part.thought_signature"),
        ("foreign", "anthropic.thinking.signature"),
        ("modified", "anthropic.thinking.text"),
        ("retyped", "anthropic.thinking.signature"),
    }
    found = {(loss.fate.value, loss.artifact) for host in HOSTS for loss in host.losses}
    assert expected <= found
    assert len(UNFAITHFUL) >= 8


def test_hosts_have_names_of_their_own_and_one_sentence_each() -> None:
    assert len({host.name for host in HOSTS}) == len(HOSTS)
    assert all(host.says.endswith(".") and "\n" not in host.says for host in HOSTS)


def test_an_error_that_is_no_refusal_is_raised() -> None:
    """A host that dies of a fault of its own must not look like one that was refused."""

    def dies(_scene: Scene) -> None:
        raise LookupError("a bug")

    broken = Host("broken", "anthropic", dies, "Dies.")
    with pytest.raises(LookupError, match="a bug"):
        list(play([broken]))


def test_playing_leaves_the_sdks_as_they_were() -> None:
    import anthropic

    before = anthropic.Anthropic.request
    list(play([host for host in HOSTS if host.name == "anthropic"]))
    assert before is anthropic.Anthropic.request


def test_signed_text_that_was_edited_is_refused_where_the_provider_verifies_it() -> None:
    """Sources disagree on whether it is: the strict provider has a switch."""
    (host,) = (host for host in HOSTS if host.name == "anthropic-sanitiser")
    (played,) = play([host], provider_for=lambda _host: StrictProvider(verify_signed_text=True))
    assert played.refused
    assert len(played.reports) == 2
    assert played.reports[-1].findings[-1].fate is Fate.MODIFIED
