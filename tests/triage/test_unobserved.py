"""The summary of a run names what passed unobserved, from the metrics it left."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from otel_sealed.triage.unobserved import count, lines


def point(client: Any, host: Any, value: Any) -> dict[str, Any]:
    named = {"otel_sealed.http.client": client, "server.address": host}
    return {
        "asInt": value,
        "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in named.items()],
    }


def export(*points: dict[str, Any], name: str = "otel_sealed.unobserved") -> str:
    metric = {"name": name, "sum": {"dataPoints": list(points)}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


def test_the_last_value_of_each_process_counts(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"metrics-1-{name}.jsonl" for name in ("7", "7.2", "8"))
    here = ("httpx", "127.0.0.1")
    first.write_text(export(point(*here, "1")) + export(point(*here, "3"), point("lm15", "a", 0)))
    second.write_text(export(point(*here, "4")))
    third.write_text(export(point(*here, 2)) + export(point("aiohttp", "_OTHER", "1")))
    assert count([first, second, third]) == {here: 6, ("aiohttp", "_OTHER"): 1}


def test_counts_since_other_starts_add_up_wherever_they_lie(tmp_path: Path) -> None:
    """A counter that begins anew in each interval, and the same record copied, too."""

    def since(start: int, value: int) -> str:
        begun = {**point("httpx", "h", value), "startTimeUnixNano": str(start * 10**18)}
        return export(begun)

    (tmp_path / "a.jsonl").write_text(since(1, 2) + since(2, 3) + since(2, 4))
    (tmp_path / "b.jsonl").write_text(since(1, 2))
    assert count(sorted(tmp_path.iterdir())) == {("httpx", "h"): 6}


def test_files_that_hold_something_else_count_nothing(tmp_path: Path) -> None:
    path = tmp_path / "metrics-1-7.jsonl"
    strange = (
        '{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "otel_sealed.unobserved"'
    )
    path.write_text(
        f'{strange}\n{strange}, "sum": []}}]}}]}}]}}\n'
        + export(point("httpx", "h", "x"), point("httpx", "h", None))
        + export(point("httpx", "h", 5), name="otel_sealed.calls")
    )
    assert count([path]) == {}


def test_a_name_from_a_file_is_cleaned_before_it_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "metrics-1-7.jsonl"
    path.write_text(export(point("\x1b[2J", "evil\nhost", "1"), point(None, 7, "2")))
    assert count([path]) == {("other", "_OTHER"): 3}


def test_without_any_nothing_is_said() -> None:
    assert list(lines(Counter())) == []


def test_they_are_named_the_most_first_and_bounded() -> None:
    found = Counter({("httpx", f"h{number}"): number + 1 for number in range(7)})
    shown = list(lines(found))
    assert shown[0].startswith("28 requests with turns of a model passed unobserved")
    assert shown[1:3] == ["  7 to h6 by httpx", "  6 to h5 by httpx"]
    assert shown[-1] == "  and 2 more"
    assert list(lines(Counter({("lm15", "_OTHER"): 1})))[1] == "  1 to other hosts by lm15"
