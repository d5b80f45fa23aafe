"""The page is one file that loads nothing, escapes everything, and can be found one's way in."""

from __future__ import annotations

import base64
import hashlib
import re
import stat
from collections import Counter
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from otel_sealed.cli import main
from otel_sealed.triage.incidents import incidents
from otel_sealed.triage.model import About, Call, Evidence
from otel_sealed.triage.page import page
from otel_sealed.triage.report import Report, report
from tests.report.records import DATA, KEY, REFUSED, STORY, call, row

NASTY = '<script src="//evil.example/x.js">&"\'</script>'
VOID = {"meta", "br", "rect", "line", "link", "img"}


def made(story: list[Call] | tuple[Call, ...] = STORY) -> Report:
    return report(incidents(story), lambda _key: list(story), calls=len(story), broken=2)


def html(found: Report | None = None) -> str:
    return page(found or made(), made="Made by a test.")


class Reader(HTMLParser):
    """Elements, ids and texts; a tag that is not closed as it was opened is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.tags if attribute in attrs]


# ------------------------------------------------------------------------------- what it says


def test_the_first_screen_answers_in_order() -> None:
    text = html()
    places = [
        text.index(part)
        for part in (
            f"{DATA} did not go back: the provider refuses the call (thinking_modified).",
            "<dt>Whose it is</dt>",
            "<dt>Since</dt>",
            "<dt>How many</dt>",
            "<dt>What to do now</dt>",
            '<table class="strip">',
            '<h2 id="timeline">',
            '<h2 id="silent">',
            '<h2 id="rules">',
        )
    ]
    assert sorted(places) == places


def test_the_answers_are_those_of_the_incident() -> None:
    text = html()
    for part in (
        "<strong>Application or framework.</strong>",
        "<strong>2026-11-18 11:09:40 UTC</strong> at release <code>shop 4.2.0</code>",
        "last good call 2026-11-18 11:08:40 UTC",
        "<strong>1 call</strong> in 1 conversation of <code>shop</code>",
        "Send the turn as it was received",
        '<span class="mark degrades">33%</span>',
        "2 of 3",
        "From 3 calls on record; 2 lines could not be read.",
        "Made by a test.",
    ):
        assert part in text


def test_a_release_that_is_not_on_record_is_said_to_be_missing() -> None:
    story = [replace(one, about=About(framework="langchain 1.0")) for one in STORY]
    text = html(made(story))
    assert "a release that is not on record (set <code>service.version</code>)" in text
    assert "Framework or application (langchain 1.0)" in text


def test_a_record_without_incidents_says_so() -> None:
    text = html(made(STORY[:2]))
    assert "Nothing is broken." in text
    assert "2 calls on record, and no incident among them." in text


def test_events_alone_make_a_page() -> None:
    event = replace(
        REFUSED, evidence=Evidence.EVENTS, conversation="", usage=STORY[0].usage, occurrences=10
    )
    text = html(made([replace(event, returned=event.returned[1:], returned_types=())]))
    assert "violation events alone" in text
    assert "<strong>10 calls</strong>" in text
    assert "its block types cannot be shown" in text


def test_other_problems_are_listed_and_told() -> None:
    other = call(
        4,
        conversation="bb" * 16,
        returned=(row("9", "messages.1.content.0", "fabricated", verdict="degrades", rule="A6"),),
        returned_types=("thinking",),
    )
    found = [*incidents(STORY), *incidents([other])]
    stories = {KEY: list(STORY), "bb" * 16: [other]}
    text = html(report(found, stories.__getitem__, calls=4))
    assert '<a href="#problem-2">anthropic.thinking.signature was replaced by a made-up' in text
    assert '<section id="problem-2" aria-labelledby="title-2">' in text
    assert "1 more problem on record" in text


# ------------------------------------------------------------------------------- how it is made


def test_nothing_is_loaded_and_nothing_is_sent() -> None:
    read = Reader(html())
    tags = {tag for tag, _ in read.tags}
    assert tags & {"link", "img", "iframe", "form", "object", "embed", "base"} == set()
    assert read.all("src") == []
    assert all(target.startswith("#") for target in read.all("href"))
    assert "http" not in html().replace('http-equiv="Content-Security-Policy"', "")
    assert "@import" not in html()
    assert "url(" not in html()
    assert [name for _, attrs in read.tags for name in attrs if name.startswith("on")] == []
    assert read.all("style") == []


def test_the_policy_allows_this_style_and_this_script_and_nothing_else() -> None:
    text = html()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert {"default-src", "style-src", "script-src", "base-uri", "form-action"} == set(rules)
    assert rules["default-src"] == "'none'"
    for name in ("style", "script"):
        (source,) = re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"


def test_everything_from_the_record_is_escaped() -> None:
    """Reading lets plain words through only; the page does not rely on it."""
    about = About(NASTY, NASTY, NASTY, (NASTY,), NASTY)
    story = [
        replace(
            one,
            about=about,
            model=NASTY,
            host=NASTY,
            provider=NASTY,
            rejection=one.rejection and NASTY,
            returned_types=(NASTY,) * len(one.returned_types),
            tools=((NASTY, NASTY),),
            returned=tuple(replace(r, rule=NASTY, cause=NASTY) for r in one.returned),
        )
        for one in STORY
    ]
    text = html(made(story))
    assert NASTY not in text
    assert escape(NASTY) in text
    assert len(re.findall("<script", text)) == 1


def test_a_rule_leads_to_its_row_which_names_the_place_where_it_is_explained() -> None:
    read = Reader(html())
    assert "#rule-a2" in read.all("href")
    assert "docs/rules.md#a2" in read.texts


def test_a_report_links_to_the_pages_where_their_place_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SEALED_DOCS", "https://docs.example/sealed/")
    assert "https://docs.example/sealed/rules.md#a2" in Reader(html()).all("href")


def test_the_page_is_well_formed_and_its_parts_are_named() -> None:
    read = Reader(html())
    ids = read.all("id")
    assert [name for name, times in Counter(ids).items() if times > 1] == []
    named = [*read.all("aria-labelledby"), *read.all("data-copies"), *read.all("data-tells")]
    named += [target[1:] for target in read.all("href")]
    assert set(named) <= set(ids)
    tags = Counter(tag for tag, _ in read.tags)
    assert (1, 1, 1, 1) == (tags["h1"], tags["main"], tags["header"], tags["footer"])
    assert tags["caption"] == tags["table"]
    for tag, attrs in read.tags:
        assert tag != "svg" or (attrs["role"] == "img" and attrs["aria-label"])
        assert attrs.get("role") != "group" or (attrs["tabindex"] == "0" and attrs["aria-label"])


def test_the_button_copies_the_report_that_is_shown() -> None:
    read = Reader(html())
    (target,) = read.all("data-copies")
    text = "".join(read.texts)
    assert target == "bug-1"
    assert "No prompt, answer, id or sealed value is in this report." in text


# --------------------------------------------------------------------------------- the command


def test_the_command_writes_a_page_that_only_its_owner_reads(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.html"
    target.write_text("older")
    target.chmod(0o644)
    assert main(["report", str(record), "--html", str(target)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(rf"otel-sealed: \d+ problems, \d+ incidents in {target}\n", err)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert Reader(target.read_text("utf-8")).all("data-copies") != []
    assert [target.name] == [path.name for path in tmp_path.iterdir()]


def test_the_page_goes_to_standard_output_on_demand(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(record), "--html", "-", "--fate", "retyped"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("<!DOCTYPE html>")
    assert ["bug-1"] == Reader(out).all("data-copies")


def test_a_filter_that_fits_nothing_makes_a_page_that_says_so(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(record), "--html", "-", "--provider", "nobody"]) == 0
    assert "Nothing is broken." in capsys.readouterr().out


def test_a_place_without_a_record_is_unusable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path), "--html", str(tmp_path / "x.html")]) == 2
    assert "otel-sealed: " in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_a_page_that_cannot_be_written_is_named(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no" / "x.html"
    assert main(["report", str(record), "--html", str(target)]) == 2
    assert capsys.readouterr().err == f"otel-sealed: {target}: No such file or directory\n"
