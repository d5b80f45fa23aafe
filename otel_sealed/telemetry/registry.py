"""The vocabulary as an OpenTelemetry semantic-convention registry, and as a page for people.

`python -m otel_sealed.telemetry.registry` writes `registry.yaml` beside this file and, in a source
tree, `docs/attributes.md`. Both are rendered from `vocab`, and a test keeps them up to date.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from otel_sealed import vocab

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

YAML: Final = Path(__file__).with_name("registry.yaml")
PAGE: Final = Path(__file__).parents[2] / "docs" / "attributes.md"
STABILITY: Final = "development"
_SAMPLED: Final = (
    vocab.OPERATION,
    vocab.PROVIDER,
    vocab.REQUEST_MODEL,
    vocab.SERVER_ADDRESS,
    vocab.SERVER_PORT,
)
_HEADER: Final = """\
# The telemetry of otel_sealed, in the registry format of OpenTelemetry's weaver.
# Rendered from otel_sealed/vocab.py: python -m otel_sealed.telemetry.registry
# gen_ai.*, server.*, error.type and event.name are OpenTelemetry's own and only referred to.
"""


def registry() -> dict[str, Any]:
    """The registry as plain data."""
    return {
        "file_format": "definition/2",
        "attributes": [_attribute(a) for a in vocab.ATTRIBUTES if a.ours],
        "spans": [_span()],
        "events": [
            {
                "name": event.name,
                "brief": event.brief,
                "stability": STABILITY,
                "attributes": [{"ref": name} for name in event.attributes],
            }
            for event in vocab.EVENTS
        ],
        "metrics": [_metric(metric) for metric in vocab.METRICS],
    }


def _attribute(attribute: vocab.Attribute) -> dict[str, Any]:
    entry: dict[str, Any] = {"key": attribute.name}
    if attribute.members and not attribute.type.endswith("[]"):
        entry["type"] = {
            "members": [
                {"id": member, "value": member, "stability": STABILITY}
                for member in attribute.members
            ]
        }
    else:
        entry["type"] = attribute.type
    entry["brief"] = attribute.brief
    if attribute.members and attribute.type.endswith("[]"):
        entry["note"] = f"Each element is empty or one of: {', '.join(attribute.members)}."
    if attribute.type in {"string", "string[]"} and not attribute.members:
        example = _EXAMPLES.get(attribute.name, "openai.reasoning.id")
        entry["examples"] = [[example]] if attribute.type == "string[]" else [example]
    return {**entry, "stability": STABILITY}


def _span() -> dict[str, Any]:
    used = [a.name for a in vocab.ATTRIBUTES if not a.ours and a.name.startswith(_FOREIGN)]
    used.remove(vocab.CONVERSATION_ID)
    refs: list[dict[str, Any]] = [
        {"ref": name, "sampling_relevant": True} if name in _SAMPLED else {"ref": name}
        for name in (*used, *vocab.SPAN_ATTRIBUTES)
    ]
    return {
        "type": "otel_sealed.call",
        "kind": "client",
        "name": {"note": f"{{{vocab.OPERATION}}} {{{vocab.REQUEST_MODEL}}}"},
        "brief": "One call of a model.",
        "note": "On a span of another instrumentation only otel_sealed.* is added.",
        "stability": STABILITY,
        "attributes": refs,
    }


_FOREIGN: Final = ("gen_ai.", "server.", "error.")
_EXAMPLES: Final = {
    vocab.FINDINGS: "dropped anthropic.redacted_thinking.data A2 breaks",
    vocab.FACTS: "thinking=true",
    vocab.CONVERSATION_KEY: "9f86d081884c7d659a2feaa0c55ad015",
    vocab.REST_DIGEST: "9f86d081884c7d659a2feaa0c55ad015",
    vocab.RECEIVED_DIGESTS: "9f86d081884c7d659a2feaa0c55ad015",
    vocab.RETURNED_DIGESTS: "9f86d081884c7d659a2feaa0c55ad015",
    vocab.HASH_ALGORITHM_KEY: vocab.HASH_ALGORITHM,
    vocab.HASH_KEY_ID: "5f2c01aa",
    vocab.RULES_VERSION: "2026.11",
    vocab.RECEIVED_BLOCK_TYPES: "redacted_thinking",
    vocab.RETURNED_BLOCK_TYPES: "redacted_thinking",
    vocab.RECEIVED_POSITIONS: "content.0",
    vocab.RECEIVED_POSITION: "content.0",
    vocab.RETURNED_POSITIONS: "messages.1.content.0",
    vocab.RETURNED_POSITION: "messages.1.content.0",
    vocab.RETURNED_RULES: "A2",
    vocab.RULE: "A2",
    vocab.DIAGNOSIS: "masked within 2048-2560 of 4096",
    vocab.ORIGIN_TRACE: "0af7651916cd43dd8448eb211c80319c",
    vocab.ORIGIN_SPAN: "b7ad6b7169203331",
    vocab.FINGERPRINT: "3b1f0c9d2e4a5867",
    vocab.SDK_VERSIONS: "anthropic=2.14.0",
    vocab.PLACE: "exchange.observe",
}


def _metric(metric: vocab.Metric) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": metric.name,
        "instrument": metric.instrument,
        "unit": metric.unit,
        "brief": metric.brief,
        "stability": STABILITY,
        "attributes": [{"ref": name} for name in metric.attributes],
    }
    if metric.boundaries:
        entry["note"] = f"Advised bucket boundaries: {', '.join(map(_number, metric.boundaries))}."
    return entry


def _number(value: float) -> str:
    return f"{value:g}" if value < 1 else str(int(value))


def render() -> str:
    """`registry.yaml` as text."""
    return _HEADER + "\n".join(_lines(registry(), "")) + "\n"


def _lines(value: dict[str, Any], indent: str) -> Iterator[str]:
    """YAML of nested mappings and lists; scalars are spelt as JSON, which is YAML too."""
    for key, item in value.items():
        if isinstance(item, dict):
            yield f"{indent}{key}:"
            yield from _lines(item, indent + "  ")
        elif isinstance(item, list) and any(isinstance(each, dict) for each in item):
            yield f"{indent}{key}:"
            for each in item:
                first, *rest = _lines(each, indent + "    ")
                yield f"{indent}  - {first.strip()}"
                yield from rest
        else:
            yield f"{indent}{key}: {json.dumps(item, ensure_ascii=False)}"


def page() -> str:
    """`docs/attributes.md` as text."""
    ours = [a for a in vocab.ATTRIBUTES if a.ours]
    on_spans = [a for a in ours if a.name in vocab.SPAN_ATTRIBUTES]
    others = [a for a in ours if a.name not in vocab.SPAN_ATTRIBUTES]
    used = [a for a in vocab.ATTRIBUTES if not a.ours]
    return "\n".join(
        [
            "# What goes out",
            "",
            "Rendered from `otel_sealed/vocab.py` by `python -m otel_sealed.telemetry.registry`.",
            "The same as a semantic-convention registry: `otel_sealed/telemetry/registry.yaml`.",
            "",
            "## On spans",
            "",
            *_table(("Attribute", "Type", "Meaning", "Values"), map(_row, on_spans)),
            "",
            "Arrays of one direction are aligned by index. An array that would hold defaults only,",
            "and an attribute with nothing to say, is left out.",
            "",
            "Fates, verdicts and causes are defined in the [glossary](glossary.md). The id of a",
            "rule, such as `A2`, is an anchor on [the page of rules](rules.md#a2), in lower case.",
            "",
            "## Only on metrics and log events",
            "",
            *_table(("Attribute", "Type", "Meaning", "Values"), map(_row, others)),
            "",
            "## OpenTelemetry's own",
            "",
            "Set on a span of our own only; on metrics and log events where listed.",
            "",
            *_table(("Attribute", "Type", "Meaning", "Values"), map(_row, used)),
            "",
            "## Metrics",
            "",
            *_table(
                ("Metric", "Instrument", "Unit", "Meaning", "Attributes"),
                (
                    (f"`{m.name}`", m.instrument, f"`{m.unit}`", m.brief, _list(m.attributes))
                    for m in vocab.METRICS
                ),
            ),
            "",
            "## Log events",
            "",
            *_table(
                ("Event", "Meaning", "Attributes"),
                ((f"`{e.name}`", e.brief, _list(e.attributes)) for e in vocab.EVENTS),
            ),
            "",
        ]
    )


def _row(attribute: vocab.Attribute) -> tuple[str, ...]:
    return (f"`{attribute.name}`", attribute.type, attribute.brief, _list(attribute.members))


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def main() -> None:
    """Write both files."""
    YAML.write_text(render(), encoding="utf-8")
    if PAGE.parent.is_dir():
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
