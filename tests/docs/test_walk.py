"""A newcomer goes by links alone: from a finding on a span to its rule, its source, code, tests."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest

from docs import generate
from otel_sealed import rulebook, vocab
from otel_sealed.telemetry.attributes import rekey_with, rows_of, span_attributes
from tests.core.builders import (
    call,
    candidate,
    message,
    part,
    reasoning,
    redacted,
    response,
    said,
    thinking,
    use,
    without,
)
from tests.core.chat_cases import called
from tests.core.chat_cases import without as chat_without
from tests.core.conversations import KEY, Body, Change, replay
from tests.docs.test_pages import anchors, text_of
from tests.test_architecture import TREE

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
MENTION = re.compile(r"\btests/[\w/]+\.py\b")


def unsigned(body: Body) -> Body:
    for one in body["contents"][1]["parts"]:
        one.pop("thoughtSignature", None)
    return body


class Loss(NamedTuple):
    """What a provider sent and a host loses, and the rule that a span then names."""

    dialect: str
    answer: Body
    change: Change
    rule: str


LOSSES = [
    Loss(
        "anthropic",
        message(thinking(), redacted(), use(), stop="tool_use"),
        without("redacted_thinking"),
        "A2",
    ),
    Loss("openai", response(reasoning(), said(), reasoning(), call()), without("reasoning"), "O4"),
    Loss("gemini", candidate(part("call")), unsigned, "G1"),
    Loss("chat", called(), chat_without("extra_content"), "G19"),
]


@pytest.fixture(name="row", params=LOSSES, ids=lambda loss: loss.rule)
def _row(request: pytest.FixtureRequest) -> tuple[str, list[tuple[str, str]]]:
    """The rule that a finding on a span names, and the links of its row on the page of rules."""
    loss: Loss = request.param
    report = replay(loss.dialect, loss.answer, loss.change)
    rekey = rekey_with(KEY)
    attributes = span_attributes(report, rows_of(report, rekey), rekey=rekey, key_id="key")
    findings: Any = attributes[vocab.FINDINGS]
    rule, verdict = findings[0].split()[-2:]
    assert (rule, verdict) == (loss.rule, "breaks")
    page, _, anchor = rulebook.link(rule).partition("#")
    lines = text_of(TREE / page).splitlines()
    (line,) = [one for one in lines if f'<a id="{anchor}"></a>' in one]
    return rule, LINK.findall(line)


def test_the_page_of_attributes_leads_from_a_finding_to_the_page_of_rules() -> None:
    page = text_of(TREE / "docs" / "attributes.md")
    assert vocab.FINDINGS in page
    assert "rules.md" in {target.partition("#")[0] for _, target in LINK.findall(page)}


def test_a_rule_leads_to_its_section_of_the_contract_which_has_its_sources(
    row: tuple[str, list[tuple[str, str]]],
) -> None:
    rule, links = row
    page, _, anchor = dict(links)[rule].partition("#")
    path = TREE / "docs" / page
    assert anchor in anchors(text_of(path))
    section = text_of(path).partition(f"### {rule}\n")[2].partition("\n### ")[0]
    sources = [known.source for _, known in generate.cases(rule)]
    assert [
        one for one in sources if generate.linked(one, 2).replace("|", "\\|") not in section
    ] == []


def test_a_rule_leads_to_its_code_and_that_to_its_tests(
    row: tuple[str, list[tuple[str, str]]],
) -> None:
    rule, links = row
    code = (TREE / "docs" / dict(links)["code"]).resolve()
    source = text_of(code)
    assert f'"{rule}"' in source
    tests = [TREE / named for named in MENTION.findall(source)]
    assert tests != []
    assert any(re.search(rf'"{rule}": ', text_of(path)) for path in tests)


def test_a_rule_leads_to_its_tests(row: tuple[str, list[tuple[str, str]]]) -> None:
    rule, links = row
    tests = [(TREE / "docs" / target).resolve() for name, target in links if name == "tests"]
    assert tests != []
    assert all(f'"{rule}": ' in text_of(path) for path in tests)


@pytest.mark.parametrize(
    "rule", sorted({r.id for _, rules in rulebook.chapters() for r in rules if not r.undecidable})
)
def test_the_code_of_every_rule_names_the_file_of_its_tests(rule: str) -> None:
    named = {
        test
        for dialect, _ in generate.cases(rule)
        for test in MENTION.findall(text_of(TREE / generate.code_of(dialect, rule)))
    }
    assert named & {*generate.tests_of(rule)} != set()
