"""What is declared once is guarded: each test names the declared things that lack something.

A sealed field needs a rule for its loss and for a change, a mutation and a check of the strict
provider, or says in its declaration why it has none (`contract.Guard`). A general row counts as a
rule of a field where it holds in every circumstance; one that asks for a circumstance does not.
"""

from __future__ import annotations

import ast
import copy
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider

import otel_sealed
from otel_sealed import vocab
from otel_sealed.contract import Dialect, Guard, Rule
from otel_sealed.judge import OWN_RULES
from otel_sealed.model import Fate
from otel_sealed.providers import dialects
from otel_sealed.telemetry.metrics import Gauges, Metrics
from otel_sealed.telemetry.settings import Settings
from otel_sealed.testing import StrictProvider
from otel_sealed.testing.mutations import MUTATIONS
from tests.core.chat_wire import CHATS
from tests.core.conversations import (
    MATRIX,
    MODELS,
    Body,
    ask,
    base,
    conversation,
    observe,
    request,
    rows,
)
from tests.declared.fields import faults, sealed

DIALECTS = sorted(dialects().values(), key=lambda dialect: dialect.name)
PACKAGE = Path(otel_sealed.__file__).parent

# ------------------------------------------------------------------------------- sealed fields


def speaks_of(rule: Rule, artifact: str, fate: Fate) -> bool:
    """Whether a row is about a fate of an artifact: it names it, or holds whatever else is so."""
    if fate not in rule.fates:
        return False
    return artifact.startswith(rule.artifacts) if rule.artifacts else not rule.when | rule.unless


def ruled(fate: Fate) -> set[tuple[str, str]]:
    return {
        (one.dialect.name, one.artifact)
        for one in sealed()
        if any(speaks_of(rule, one.artifact, fate) for rule in one.dialect.rules)
    }


def test_every_sealed_field_has_a_rule_for_its_loss() -> None:
    assert {} == faults(Guard.DROPPED, ruled(Fate.DROPPED))


def test_every_sealed_field_has_a_rule_for_another_value_in_its_place() -> None:
    assert {} == faults(Guard.MODIFIED, ruled(Fate.MODIFIED))


def test_every_sealed_field_has_a_mutation_that_spoils_it() -> None:
    spoiled = {artifact for mutation in MUTATIONS for artifact, _ in mutation.expected}
    known = {(one.dialect.name, one.artifact) for one in sealed() if one.artifact in spoiled}
    assert {} == faults(Guard.MUTATION, known)


def test_every_sealed_field_is_verified_by_the_strict_provider() -> None:
    verified = {artifact for name in MATRIX for artifact in refused(name)}
    known = {(one.dialect.name, one.artifact) for one in sealed() if one.artifact in verified}
    assert {} == faults(Guard.STRICT, known)


PATHS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "gemini": f"/v1beta/models/{MODELS['gemini']}:generateContent",
    **dict.fromkeys(CHATS, "/v1/chat/completions"),
}
TURNS = 4


def refused(name: str) -> set[str]:
    """The artifacts of which the strict provider refuses another value in their place."""
    found: set[str] = set()
    with StrictProvider() as provider:
        for body in faithful(name, provider):
            for minted in provider.minted:
                if minted.kind not in found and (changed := altered(body, minted.value)):
                    status, _ = post(provider, PATHS[name], changed)
                    found |= {minted.kind} if status != 200 else set()
    return found


def faithful(name: str, provider: StrictProvider) -> Iterator[Body]:
    """The requests of a faithful host, each of them answered."""
    answers: list[Body] = []
    for _ in range(TURNS):
        body = copy.deepcopy(request(name, answers))
        answers.append(answered(provider, PATHS[name], body))
        yield body
    if name == "openai":
        compacted = answered(provider, f"{PATHS[name]}/compact", request(name, answers))
        body = base(name) | {"input": [*compacted["output"], *ask(name, "And then?")]}
        answered(provider, PATHS[name], body)
        yield body


def answered(provider: StrictProvider, path: str, body: Body) -> Body:
    status, answer = post(provider, path, body)
    assert 200 == status, answer
    found: Body = answer
    return found


def altered(body: Body, value: str) -> Body | None:
    """The request with other bytes for one value; None where it is not in there."""
    text, old = json.dumps(body), json.dumps(value)[1:-1]
    middle = len(old) // 2
    other = "A" if old[middle] != "A" else "B"
    new = f"{old[:middle]}{other}{old[middle + 1 :]}"
    changed: Body | None = json.loads(text.replace(old, new)) if old in text else None
    return changed


def post(provider: StrictProvider, path: str, body: Body) -> tuple[int, Any]:
    client = http.client.HTTPConnection(provider.base_url.removeprefix("http://"), timeout=10)
    try:
        client.request("POST", path, json.dumps(body))
        reply = client.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        client.close()


# --------------------------------------------------------------------------------------- fates

# What needs no row: `judge` says of all five what they are (`unknown` by X2, a loss in an SDK as
# the loss it is), and a changed prefix or issuer is no matter where no rule minds it.
JUDGED_WITHOUT_A_ROW = {
    Fate.INTACT,
    Fate.UNKNOWN,
    Fate.SDK_LOSSY,
    Fate.PREFIX_CHANGED,
    Fate.ISSUER_CHANGED,
}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_fate_is_met_by_a_rule_or_impossible_for_a_reason(dialect: Dialect) -> None:
    met = {fate for rule in dialect.rules for fate in rule.fates}
    assert {*Fate} == met | JUDGED_WITHOUT_A_ROW | dialect.impossible.keys()
    assert set() == met & dialect.impossible.keys()
    assert all(dialect.impossible.values())


@pytest.mark.parametrize("name", MATRIX)
def test_a_fate_that_is_impossible_is_seen_in_no_conversation_however_it_is_spoiled(
    name: str,
) -> None:
    api = conversation(name)[0].api
    seen: set[Fate] = set()
    for mutation in MUTATIONS:
        if name in mutation.dialects:
            kind, around = mutation.conversation, mutation.around
            told = conversation(name, kind=kind, host=mutation.change, around=around)
            seen |= {finding.fate for finding in rows(observe(told))}
    assert set() == seen & dialects()[api].impossible.keys()


# ------------------------------------------------------------------------- metrics and settings


class Meters(MeterProvider):
    """Notes the names of the instruments that are made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: set[str] = set()

    def get_meter(self, *args: Any, **more: Any) -> Any:
        meter = super().get_meter(*args, **more)
        for kind in ("counter", "histogram", "observable_up_down_counter", "observable_counter"):
            self._note(meter, f"create_{kind}")
        return meter

    def _note(self, meter: Any, method: str) -> None:
        make = getattr(meter, method)

        def create(name: str, *args: Any, **more: Any) -> Any:
            self.made.add(name)
            return make(name, *args, **more)

        setattr(meter, method, create)


def test_every_metric_of_the_vocabulary_is_created() -> None:
    meters = Meters()
    Metrics(meters, gauges=Gauges(entries=lambda: 0))
    declared = {thing.name for thing in vars(vocab).values() if isinstance(thing, vocab.Metric)}
    assert declared == meters.made
    meters.shutdown()


def test_every_setting_is_read() -> None:
    read = {name for path in PACKAGE.rglob("*.py") for name in settings_read(path)}
    assert set() == Settings.model_fields.keys() - read


def settings_read(path: Path) -> Iterator[str]:
    """The attributes a file reads of what it calls settings or has annotated as such."""
    tree = ast.parse(path.read_text("utf-8"))
    known = {"self"} if path.name == "settings.py" else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            known |= {node.arg} if "Settings" in ast.unparse(node.annotation) else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            name = ast.unparse(node.value).rpartition(".")[2]
            if name in known or name.strip("_") == "settings":
                yield node.attr


def test_our_own_rules_are_no_rules_of_a_field() -> None:
    """They speak of circumstances, so that they excuse no field from a rule of its provider's."""
    assert all(rule.artifacts or rule.when or not rule.fates for rule in OWN_RULES[2:])
