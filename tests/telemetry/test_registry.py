from __future__ import annotations

import copy
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from otel_sealed import vocab
from otel_sealed.telemetry import registry

TESTS = Path(__file__).resolve().parents[1]
SCHEMA = json.loads((TESTS / "data" / "semconv.schema.v2.json").read_text(encoding="utf-8"))
UPDATE = "run: python -m otel_sealed.telemetry.registry"


def _golden() -> Any:
    spec = importlib.util.spec_from_file_location("golden", TESTS / "golden" / "vocabulary.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GOLDEN = _golden()
PROMISED = json.loads((TESTS / "golden" / "vocabulary.json").read_text(encoding="utf-8"))


def test_the_registry_is_up_to_date() -> None:
    assert registry.YAML.read_text(encoding="utf-8") == registry.render(), UPDATE


def test_the_attribute_page_is_up_to_date() -> None:
    assert registry.PAGE.read_text(encoding="utf-8") == registry.page(), UPDATE


def test_the_registry_reads_as_the_data_it_was_rendered_from() -> None:
    assert yaml.safe_load(registry.render()) == registry.registry()


def test_the_registry_is_valid_for_weaver() -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(yaml.safe_load(registry.render()))


def test_weavers_schema_does_refuse_nonsense() -> None:
    bad = copy.deepcopy(registry.registry())
    bad["metrics"][0]["instrument"] = "bogus"
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(bad)


def test_every_reference_is_defined_here_or_is_opentelemetrys() -> None:
    data = registry.registry()
    ours = {attribute["key"] for attribute in data["attributes"]}
    for group in ("spans", "events", "metrics"):
        for signal in data[group]:
            for attribute in signal["attributes"]:
                name = attribute["ref"]
                assert name in ours or not name.startswith("otel_sealed.")


def test_names_follow_the_naming_rules() -> None:
    names = [a.name for a in vocab.ATTRIBUTES]
    names += [m.name for m in vocab.METRICS] + [e.name for e in vocab.EVENTS]
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9]*(?:[._][a-z0-9]+)*", name)
    assert len({a.name for a in vocab.ATTRIBUTES}) == len(vocab.ATTRIBUTES)


def test_what_was_promised_is_still_there() -> None:
    assert GOLDEN.broken(PROMISED, GOLDEN.current()) == []


def test_what_is_new_is_promised() -> None:
    now = json.loads(json.dumps(GOLDEN.current()))
    assert now == PROMISED, "run: python tests/golden/vocabulary.py"


@pytest.mark.parametrize(
    ("group", "name", "key", "value"),
    [
        ("attributes", "otel_sealed.known", "type", "string"),
        ("attributes", "otel_sealed.fate", "members", ["intact"]),
        ("metrics", "otel_sealed.artifact.size", "unit", "kBy"),
        ("metrics", "otel_sealed.calls", "attributes", []),
        ("artifacts", "anthropic.thinking.text", "seal", True),
    ],
)
def test_a_changed_promise_is_noticed(group: str, name: str, key: str, value: Any) -> None:
    now = copy.deepcopy(PROMISED)
    now[group][name][key] = value
    assert [name in fault for fault in GOLDEN.broken(PROMISED, now)] == [True]


def test_a_missing_promise_is_noticed() -> None:
    now = copy.deepcopy(PROMISED)
    del now["events"]["otel_sealed.violation"]
    assert GOLDEN.broken(PROMISED, now) == ["events: otel_sealed.violation is gone"]
