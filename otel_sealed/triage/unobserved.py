"""What passed unobserved, from the metrics on record: requests with turns of a model, by client.

Model. The counters of a process only grow, so that the highest value since one start is its last. A
point says when its process, or its interval, began to count; where it does not, the files of one
name, numbered from the second on, are those of a process.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from otel_sealed import vocab
from otel_sealed.triage.sources import otlp
from otel_sealed.triage.sources.signal import nanoseconds, objects, whole
from otel_sealed.wire import intake
from otel_sealed.wire.parse import as_text

if TYPE_CHECKING:
    from pathlib import Path

Point: TypeAlias = tuple[str, str, int, int]
"""HTTP client, host, start of counting in ns since the epoch (0 where it is not said), requests."""
Passed: TypeAlias = Counter[tuple[str, str]]
"""Requests by HTTP client and host."""

MOST_ROWS: Final = 5
"""A program has few HTTP clients and few gateways: more rows would push the summary away."""
_MOST: Final = 1 << 53


def count(files: Iterable[Path]) -> Passed:
    """Requests that nobody observed, of a few files of one run."""
    return passed((str(path), point) for path in files for point in _of_file(path))


def passed(found: Iterable[tuple[str, Point]]) -> Passed:
    """Requests that nobody observed, from points and the files they are in."""
    highest: dict[tuple[str, str, int | str], int] = {}
    for path, (client, host, start, value) in found:
        process = start or PurePath(path).name.partition(".")[0]
        key = client, host, process
        highest[key] = max(value, highest.get(key, 0))
    total: Passed = Counter()
    for (client, host, _), value in highest.items():
        if value > 0:
            total[vocab.word(client), vocab.host_name(host) or vocab.FOLDED] += value
    return total


def points(value: Any) -> Iterator[Point]:
    """The points of the counter in one parsed line; nothing for what is no OTLP."""
    if not isinstance(value, dict) or "resourceMetrics" not in value:
        return
    for resource in objects(value["resourceMetrics"]):
        for scope in objects(resource.get("scopeMetrics")):
            for metric in objects(scope.get("metrics")):
                total = metric.get("sum")
                if metric.get("name") != vocab.UNOBSERVED.name or not isinstance(total, dict):
                    continue
                for point in objects(total.get("dataPoints")):
                    a = otlp.attributes(point)
                    client, host = a.get(vocab.HTTP_CLIENT), a.get(vocab.SERVER_ADDRESS)
                    start = nanoseconds(point.get("startTimeUnixNano"))
                    requests = min(whole(point.get("asInt")), _MOST)
                    yield as_text(client), as_text(host), max(start, 0), requests


def lines(found: Passed) -> Iterator[str]:
    """What a screen says of them; nothing where there are none."""
    if not found:
        return
    yield f"{_headed(found)} (`otel-sealed doctor` says why):"
    for row in _rows(found):
        yield f"  {row}"


def sentence(found: Passed) -> Iterator[str]:
    """The same in one sentence."""
    if found:
        yield f"{_headed(found)}: {', '.join(_rows(found))}; otel-sealed doctor says why"


def _headed(found: Passed) -> str:
    total = found.total()
    requests = f"{total:,} request{'' if total == 1 else 's'}"
    return f"{requests} with turns of a model passed unobserved, so nothing can be said of them"


def _rows(found: Passed) -> Iterator[str]:
    for (client, host), times in found.most_common(MOST_ROWS):
        yield f"{times:,} to {'other hosts' if host == vocab.FOLDED else host} by {client}"
    if len(found) > MOST_ROWS:
        yield f"and {len(found) - MOST_ROWS} more"


def _of_file(path: Path) -> Iterator[Point]:
    name = vocab.UNOBSERVED.name.encode()
    with path.open("rb") as file:
        for line in intake.lines(file, intake.MAX_LINE):
            if name in (line or b""):
                with suppress(ValueError, RecursionError):
                    yield from points(json.loads(line or b""))
