"""The strip says per request what came in and what went back, block beside block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from otel_sealed.cli.strips import drawn
from otel_sealed.triage.incidents import incidents, ordered
from otel_sealed.triage.model import Call
from otel_sealed.triage.strip import MAX_COLUMNS, of_incident, strips
from tests.report.records import DATA, FIRST, REFUSED, SECOND_CALL, STORY, call, minted, row


def pairs(calls: Sequence[Call], turn: int) -> list[tuple[int, str, str, str]]:
    """(from turn, came, went back, fate) of each column."""
    (strip,) = strips(ordered(calls), [turn])
    return [(c.turn, c.came, c.back, c.fate) for c in strip.columns]


def test_a_block_that_is_gone_stands_beside_nothing() -> None:
    """The request has two turns in it; which blocks are whose shows in the values they carry."""
    assert pairs(STORY, 3) == [
        (1, "thinking", "thinking", "intact"),
        (1, "tool_use", "tool_use", ""),
        (2, "thinking", "thinking", "intact"),
        (2, "redacted_thinking", "", "dropped"),
        (2, "text", "text", ""),
        (2, "tool_use", "tool_use", ""),
    ]


def test_the_verdict_the_rule_and_the_tool_stand_with_the_block() -> None:
    (strip,) = strips(STORY, [3])
    lost, tool = strip.columns[3], strip.columns[5]
    assert (True, "breaks", "A2") == (lost.sealed, lost.verdict, lost.rule)
    assert ("look", "look_again") == (strip.columns[1].tool, tool.tool)
    assert (3, "rejected", "thinking_modified") == (strip.turn, strip.said, strip.rejection)


def test_the_sequences_are_those_people_write_by_hand() -> None:
    (strip,) = strips(STORY, [2])
    assert ("thinking, tool_use", "thinking, tool_use") == (
        strip.sequence("came"),
        strip.sequence("back"),
    )


def test_what_stands_in_the_place_of_a_block_stands_beside_it() -> None:
    retyped = call(
        2,
        returned=(row("1", "messages.1.content.0", "retyped"),),
        returned_types=("redacted_thinking", "tool_use"),
    )
    assert pairs((FIRST, retyped), 2)[0] == (1, "thinking", "redacted_thinking", "retyped")


def test_a_call_of_a_tool_is_nobodys_stand_in() -> None:
    gone = call(2, returned=(row("1", "", "dropped"),), returned_types=("tool_use",))
    assert pairs((FIRST, gone), 2) == [
        (1, "thinking", "", "dropped"),
        (1, "tool_use", "tool_use", ""),
    ]


def test_a_seal_that_rides_on_a_call_may_be_gone_alone() -> None:
    name = "gemini.part.thought_signature"
    first = call(
        1,
        received=(minted("5", "candidates.0.content.parts.0", name),),
        received_types=("function_call",),
    )
    bare = call(
        2, returned=(row("5", "", "dropped", artifact=name),), returned_types=("function_call",)
    )
    (strip,) = strips((first, bare), [2])
    assert ("function_call", "function_call", True) == (
        strip.columns[0].came,
        strip.columns[0].back,
        strip.columns[0].bare,
    )


def test_a_block_that_was_never_received_stands_alone() -> None:
    more = replace(REFUSED, returned=SECOND_CALL.returned, returned_types=("text", "thinking"))
    columns = pairs((FIRST, more), 2)
    assert (0, "", "text", "") in columns
    assert (1, "thinking", "thinking", "intact") in columns


def test_a_whole_turn_that_is_gone_is_all_nothing() -> None:
    gone = call(2, returned=(row("1", "", "dropped"),))
    assert [(1, "thinking", "", "dropped"), (1, "tool_use", "", "")] == pairs((FIRST, gone), 2)


def test_a_request_without_anything_to_say_has_no_strip() -> None:
    assert strips((FIRST,)) == []


def test_a_long_request_shows_its_newest_blocks() -> None:
    many = call(
        1,
        received=tuple(minted("7", f"content.{n}") for n in range(90)),
        received_types=("thinking",) * 90,
    )
    back = call(2, returned=(row("7", "messages.1.content.0"),), returned_types=("thinking",) * 90)
    (strip,) = strips((many, back))
    assert len(strip.columns) == MAX_COLUMNS


def test_an_incident_shows_the_last_good_request_and_the_bad_ones() -> None:
    (incident,) = incidents(STORY)
    assert [2, 3] == [strip.turn for strip in of_incident(ordered(STORY), incident)]


@pytest.mark.parametrize(("width", "bands"), [(200, 1), (60, 2)])
def test_a_terminal_folds_a_strip_into_bands(width: int, bands: int) -> None:
    (strip,) = strips(STORY, [3])
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(drawn(strip, width))
    lines = captured.get().splitlines()
    assert lines[0] == "turn 3: refused (thinking_modified)"
    assert bands == sum(line.startswith("went back") for line in lines)
    assert "nothing" in captured.get()
    assert "dropped A2" in captured.get()
    assert all(len(line) <= width for line in lines)


def test_the_data_of_a_lost_value_are_those_of_its_own_response() -> None:
    """Three values lost in one call: an event names the origin of one, their digests all three."""
    first = call(1, received=(minted("1", "content.0"),), received_types=("thinking",))
    second = call(2, received=(minted("2", "content.0"),), received_types=("thinking",))
    lost = call(
        3,
        returned=tuple(
            row(d, "", "dropped", origin_trace=first.trace, origin_span=first.span)
            for d in ("1", "2")
        ),
    )
    assert [(1, "dropped"), (2, "dropped")] == [
        (turn, fate) for turn, _, _, fate in pairs((first, second, lost), 3)
    ]


def test_a_value_of_another_carrier_in_the_same_response_is_its_own_block() -> None:
    (strip,) = strips(STORY, [3])
    assert [c.came for c in strip.columns if c.sealed] == [
        "thinking",
        "thinking",
        "redacted_thinking",
    ]
    assert DATA not in repr(strip)
