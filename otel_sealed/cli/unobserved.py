"""What passed unobserved in a run, from the metrics that it left."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.triage.sources import otlp
from otel_sealed.triage.sources.signal import objects, whole
from otel_sealed.wire.parse import as_text

MOST_ROWS: Final = 5
"""A program has few HTTP clients and few gateways: more rows would push the summary away."""


def count(files: Iterable[Path]) -> Counter[tuple[str, str]]:
    """Requests that nobody observed, by HTTP client and host.

    The counters of a process only grow, so that the highest value is its last. Its files are those
    of one name, numbered from the second on.
    """
    highest: dict[tuple[str, str, str], int] = {}
    for path in files:
        process = path.name.partition(".")[0]
        for key, value in _values(path):
            highest[process, *key] = max(value, highest.get((process, *key), 0))
    found: Counter[tuple[str, str]] = Counter()
    for (_, client, host), value in highest.items():
        if value:
            found[vocab.word(client), vocab.host_name(host) or vocab.FOLDED] += value
    return found


def lines(found: Counter[tuple[str, str]]) -> Iterator[str]:
    """What the summary says of them; nothing where there are none."""
    if not found:
        return
    total = found.total()
    yield (
        f"{total:,} request{'' if total == 1 else 's'} with turns of a model passed unobserved,"
        " so nothing can be said of them (`otel-sealed doctor` says why):"
    )
    for (client, host), times in found.most_common(MOST_ROWS):
        yield f"  {times:,} to {'other hosts' if host == vocab.FOLDED else host} by {client}"
    if len(found) > MOST_ROWS:
        yield f"  and {len(found) - MOST_ROWS} more"


def _values(path: Path) -> Iterator[tuple[tuple[str, str], int]]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if vocab.UNOBSERVED.name in line:
                with suppress(ValueError, RecursionError):
                    yield from _of_line(json.loads(line))


def _of_line(line: Any) -> Iterator[tuple[tuple[str, str], int]]:
    if not otlp.takes(line):
        return
    for resource in objects(line.get("resourceMetrics")):
        for scope in objects(resource.get("scopeMetrics")):
            for metric in objects(scope.get("metrics")):
                total = metric.get("sum")
                if metric.get("name") != vocab.UNOBSERVED.name or not isinstance(total, dict):
                    continue
                for point in objects(total.get("dataPoints")):
                    a = otlp.attributes(point)
                    who = as_text(a.get(vocab.HTTP_CLIENT)), as_text(a.get(vocab.SERVER_ADDRESS))
                    yield who, whole(point.get("asInt"))
