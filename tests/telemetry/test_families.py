"""The file of models that read what others sealed: what is used, and what is said of the rest."""

from __future__ import annotations

import logging
import random
import re
from pathlib import Path

import pytest

from otel_sealed.contract import Pair, Reads
from otel_sealed.instrument import build
from otel_sealed.providers.families import Families, bounded
from otel_sealed.telemetry.entries import MAX_ENTRIES
from otel_sealed.telemetry.families import FORM, pair, read
from otel_sealed.telemetry.settings import Settings, page
from tests.core.builders import chat, message, text, thinking
from tests.core.conversations import row_of
from tests.linear import Matcher

ENTRY = """\
[[family]]
vendor = "anthropic"
producer = "claude-sonnet-5*"
reader = "claude-opus-5"
reads = "dropped"
source = "measured"
checked = 2026-11-29
"""


def rows(text: str) -> tuple[Pair, ...]:
    return tuple(pair(entry) for entry in FORM.parse(text)[0])


@pytest.mark.parametrize(
    ("producer", "reader", "found"),
    [
        ("claude-sonnet-5", "claude-opus-5", Reads.DROPPED),
        ("claude-sonnet-5-20260801", "claude-opus-5", Reads.DROPPED),
        ("claude-sonnet-5", "claude-opus-5-5", Reads.UNKNOWN),
        ("us.claude-sonnet-5", "claude-opus-5", Reads.UNKNOWN),
        ("claude-sonnet_5", "claude-opus-5", Reads.UNKNOWN),
        ("claude-sonnet.5", "claude-opus-5", Reads.DROPPED),  # the spelling of a relay
    ],
)
def test_a_name_with_a_star_is_the_whole_name(producer: str, reader: str, found: Reads) -> None:
    assert Families(rows(ENTRY)).reads("anthropic", "", producer, reader) is found


def test_a_platform_may_be_left_out_or_narrows_the_row() -> None:
    (anywhere,) = rows(ENTRY)
    (there,) = rows(ENTRY + 'platform = "aws.bedrock"\n')
    assert (anywhere.platform, there.platform) == ("", "aws.bedrock")


@pytest.mark.parametrize(
    ("found", "put", "complaint"),
    [
        ('reads = "dropped"', 'reads = "unknown"', "reads cannot be used; give one of read, "),
        ('reads = "dropped"', "", "reads is missing; give one of read, dropped, refused"),
        ('source = "measured"', "", "source is missing; say where this comes from"),
        (
            'producer = "claude-sonnet-5*"',
            "producer = 5",
            "producer cannot be used; give the model",
        ),
        ("checked = 2026-11-29", 'checked = "lately"', "checked cannot be used; give the day"),
        ('vendor = "anthropic"', 'vendor = "Not A Name"', "vendor cannot be used; name who makes"),
        ("[[family]]", '[[family]]\nplatfrom = "x"', "platfrom is no key of an entry; take it out"),
    ],
)
def test_of_a_broken_entry_one_line_says_which_and_what_to_do(
    found: str, put: str, complaint: str
) -> None:
    """And the other entries are used."""
    entries, complaints = FORM.parse(f"{ENTRY}\n{ENTRY.replace(found, put)}")
    assert len(entries) == 1
    assert [line[: len(complaint) + 9] for line in complaints] == [f"entry 2: {complaint}"]


def test_a_file_that_is_not_there_costs_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "families.toml"
    caplog.set_level(logging.WARNING, "otel_sealed")
    assert read(path) == ()
    (record,) = caplog.records
    said = f"model families, {path}: No such file or directory; check OTEL_SEALED_FAMILIES"
    assert record.getMessage() == said


def test_the_entry_shown_on_the_page_is_one() -> None:
    (entry,) = re.findall(r"```toml\n(\[\[family.*?)```", page(), re.DOTALL)
    (row,) = rows(entry)
    assert (row.reads, row.platform, FORM.parse(entry)[1]) == (Reads.READ, "azure.openai", ())


def test_the_settings_name_the_file_and_its_rows_reach_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "families.toml"
    path.write_text(ENTRY, "utf-8")
    made = build.mute(Settings(families=str(path)), None)
    answer = message(thinking(), text(), model="claude-sonnet-5")
    report = chat(
        "anthropic",
        answer,
        change=lambda body: body | {"model": "claude-opus-5"},
        ends="And now?",
        tracker=made.tracker,  # type: ignore[arg-type]
    )[0]
    assert row_of(report, "anthropic.thinking.signature") == ("intact", "degrades", "A15")


def test_every_name_with_stars_is_a_bounded_pattern() -> None:
    source = random.Random(7)
    for _ in range(3_000):
        glob = "".join(source.choices("ab*?[]!-^.\\(){}|+$1 ", k=source.randrange(1, 40)))
        entry = {"vendor": "v", "reads": "read", "source": "s", "reader": "r", "producer": glob}
        assert bounded(pair(entry).producer), glob


@pytest.mark.parametrize("glob", ["*a" * 250, "a*" * 250, "*?" * 250, "*[ab]" * 100, "*ab" * 160])
def test_a_name_with_hundreds_of_stars_takes_few_steps(glob: str) -> None:
    entry = {"vendor": "v", "reads": "read", "source": "s", "reader": "r", "producer": glob}
    matcher = Matcher(re.compile(pair(entry).producer))
    assert max(matcher.count(text * 80 + "!") for text in ("ab", "aa", "ba")) < 10**5


def test_of_very_many_entries_the_first_thousand_are_used() -> None:
    entries, complaints = FORM.parse(ENTRY * (MAX_ENTRIES + 5))
    assert len(entries) == MAX_ENTRIES == 1000
    assert complaints == ("only the first 1,000 entries are used; take some out",)
