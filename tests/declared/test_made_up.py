"""A made-up sealed field, declared in one provider's file and nowhere else; and a made-up dialect.

A copy of the tree gets one more carrier in `sealed.py` of Anthropic, and the generators run. Then
the guards that ask for a rule, a mutation and a strict check fail, and they alone; whatever else
has to know a sealed field knows it. The same holds of one more dialect, a folder of one file: what
its rules and samples have to say is asked for, and it is known wherever a wire has to be.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_architecture import TREE

FIELD = "anthropic.memory_result.encrypted_memory"
AFTER = '    Carrier("fallback", Kind.MARKER),\n'
CARRIER = f"""    Carrier(
        "memory_result",
        Kind.RESULT,
        nested=True,
        fields=(Field("encrypted_memory", "{FIELD}"),),
    ),
"""
COPIED = ("otel_sealed", "docs", "tests", "pyproject.toml", "CONTRIBUTING.md", "README.md")
GENERATORS = (["-m", "docs.generate"], ["tests/golden/vocabulary.py"])
GUARDS = [
    "tests/declared/test_guards.py",
    "tests/declared/test_names.py",
    "tests/declared/test_shapes.py",
    "tests/declared/test_ways.py",
    "tests/telemetry/test_words.py",
    "tests/telemetry/test_registry.py",
    "tests/triage/test_remedies.py",
    "tests/test_inspection.py",
    "tests/docs/test_pages.py::test_a_page_is_what_the_code_says",
]
"""Every test that compares a table with the declarations."""
UNGUARDED = {
    "test_every_sealed_field_has_a_rule_for_its_loss",
    "test_every_sealed_field_has_a_rule_for_another_value_in_its_place",
    "test_every_sealed_field_has_a_mutation_that_spoils_it",
    "test_every_sealed_field_is_verified_by_the_strict_provider",
}
"""What fails for a sealed field without rules, mutation and strict check."""


def copied(copy: Path) -> Path:
    """A copy of the tree."""
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    return copy


def generated(copy: Path) -> Path:
    """The same, with what is written from the declarations."""
    for command in GENERATORS:
        assert 0 == python(copy, *command).returncode
    return copy


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree in which the field is declared."""
    copy = copied(tmp_path_factory.mktemp("tree"))
    path = copy / "otel_sealed" / "providers" / "anthropic" / "sealed.py"
    text = path.read_text("utf-8")
    assert 1 == text.count(AFTER)
    path.write_text(text.replace(AFTER, CARRIER + AFTER), "utf-8")
    return generated(copy)


@pytest.fixture(scope="module")
def with_dialect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with a folder more."""
    copy = copied(tmp_path_factory.mktemp("tree"))
    folder = copy / "otel_sealed" / "providers" / "realtime"
    folder.mkdir()
    shutil.copy(TREE / "tests" / "declared" / "made_up_dialect.py", folder / "__init__.py")
    return generated(copy)


def failures(tree: Path, *tests: str) -> set[str]:
    """The names of the tests that fail."""
    ran = python(tree, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests)
    assert 1 == ran.returncode, ran.stdout[-2000:]
    return set(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", ran.stdout, re.MULTILINE))


def python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    around = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=tree, env=around, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(400)
def test_the_guards_that_ask_for_a_rule_a_mutation_and_a_strict_check_fail_and_no_others(
    tree: Path,
) -> None:
    assert UNGUARDED == failures(tree, *GUARDS)


def test_whatever_else_has_to_know_a_sealed_field_knows_it(tree: Path) -> None:
    ran = python(tree, "tests/declared/look.py")
    assert "" == ran.stderr
    known: dict[str, Any] = json.loads(ran.stdout)
    assert {
        "vocabulary": True,
        "redaction": True,
        "redaction of an attribute": True,
        "inspection": [FIELD],
        "evidence": [FIELD],
        "route": True,
        "comparison": [[FIELD, "dropped", "unverifiable", "X1"]],
        "unknown blocks": "encrypted_memory",
        "groups": True,
        "ways out": True,
    } == known


@pytest.mark.parametrize(
    "page",
    ["docs/contract/anthropic.md", "tests/golden/vocabulary.json", "otel_sealed/declared.py"],
)
def test_what_is_generated_names_it(tree: Path, page: str) -> None:
    assert FIELD in (tree / page).read_text("utf-8")
    assert FIELD not in (TREE / page).read_text("utf-8")


# --------------------------------------------------------------------------------- a whole dialect


@pytest.mark.timeout(400)
def test_a_dialect_is_asked_for_its_rules_its_fates_and_a_sample(with_dialect: Path) -> None:
    failed = failures(with_dialect, *GUARDS)
    assert {
        *UNGUARDED,
        "test_every_fate_is_met_by_a_rule_or_impossible_for_a_reason",
        "test_every_dialect_has_a_sample",
        "test_a_recording_of_every_path_is_read_as_its_api",
        "test_an_operation_that_only_counts_is_no_turn",
    } == failed


def test_a_dialect_is_known_wherever_a_wire_has_to_be(with_dialect: Path) -> None:
    ran = python(with_dialect, "tests/declared/look_dialect.py")
    assert "" == ran.stderr
    field = "realtime.hidden.state"
    known: dict[str, Any] = json.loads(ran.stdout)
    assert {
        "vocabulary": True,
        "redaction": True,
        "inspection": [[field]],
        "evidence": ["realtime", "realtime"],
        "route": True,
        "received": [field],
        "comparison": [[field, "dropped", "unverifiable", "X1"]],
        "ways out": True,
    } == known
