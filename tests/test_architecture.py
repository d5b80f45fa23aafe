"""The house has floors, and a file imports only from floors below its own.

Theory of operation: every file of `otel_sealed` belongs to one *room* of the table below, the one
with the longest matching name. The file is parsed, never imported. Each import in it, wherever it
stands (also under `TYPE_CHECKING`, inside a function, or as `import_module("otel_sealed.x")`), is
either inside the package, where the room it leads to must be allowed, or outside of it, where only
the standard library and what the room's row names is allowed. A room that does not exist yet has no
files and nothing to check; a file without a room is a violation.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "otel_sealed"
TREE = Path(__file__).resolve().parents[1]

SDKS = frozenset({"anthropic", "openai", "google"})
# Told and tell: the pure floors own no clock, randomness, thread, file or log of their own.
IMPURE = frozenset(
    {
        "asyncio",
        "concurrent",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "random",
        "secrets",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
    }
)
HIGHEST_PURE_FLOOR = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the files of one room may import.

    Attributes:
        floor: Every room of a lower floor may be imported, but for `never`.
        siblings: Rooms of the same floor that may be imported all the same.
        never: Rooms of lower floors that may not.
        outside: Top-level packages allowed beside the standard library.
        impure: Standard modules a pure room may use although the others may not.
        mutual: Whether files of the room may import each other.
        alone: Whether nothing of the package outside the room may be imported.
    """

    floor: int
    siblings: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()
    impure: frozenset[str] = frozenset()
    mutual: bool = True
    alone: bool = False


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ROOMS = {
    # 0 ground
    "model": Room(floor=0, siblings=names("steps")),
    # the names in the declarations of the dialects, as literals that are generated
    "declared": Room(floor=0),
    "vocab": Room(floor=0, siblings=names("model declared")),
    "steps": Room(floor=0),
    "digest": Room(floor=0, siblings=names("model steps")),
    "errors": Room(floor=0),
    "living": Room(floor=0),
    # 1 language
    "contract": Room(floor=1),
    "wire": Room(floor=1, siblings=names("contract"), outside=names("pydantic_core")),
    # 2 facts and memory, blind to each other; a dialect is blind to every other dialect too
    "providers": Room(floor=2, siblings=names("providers.claude"), mutual=False),
    # what two wires of one vendor's models have in common
    "providers.claude": Room(floor=2),
    "ledger": Room(floor=2, impure=names("threading")),
    # which recorded turns a request replays: of a ledger it knows the protocol alone
    "matching": Room(floor=2, siblings=names("ledger.protocol diagnose")),
    "ledger.protocol": Room(floor=2),
    # `diagnose` is the part of `align` that says how a value changed
    "align": Room(floor=2, siblings=names("diagnose")),
    "diagnose": Room(floor=2),
    # 3 judgement
    "judge": Room(floor=3),
    "overlay": Room(floor=3),
    "rulebook": Room(floor=3, siblings=names("judge")),
    "tracker": Room(
        floor=3,
        siblings=names(
            "judge overlay tracker.disputes tracker.effects tracker.cache tracker.memo"
            " tracker.position tracker.prefix"
        ),
    ),
    # the rows a stand keeps
    "tracker.prefix": Room(floor=3),
    "tracker.position": Room(floor=3, siblings=names("tracker.prefix")),
    # the state of a tracker beside its ledger, each with a lock of its own
    "tracker.disputes": Room(floor=3, impure=names("threading")),
    "tracker.effects": Room(floor=3, impure=names("threading")),
    "tracker.memo": Room(floor=3, impure=names("threading")),
    "tracker.cache": Room(floor=3, siblings=names("tracker.prefix"), impure=names("threading")),
    # 4 emission
    "telemetry": Room(
        floor=4,
        never=names("providers tracker"),
        outside=names("opentelemetry pydantic pydantic_settings"),
    ),
    # what the ledgers that processes share have in common: a thread, a clock, and memory in front
    "ledger.shared": Room(floor=4, never=names("providers align diagnose judge tracker")),
    "ledger.sqlite": Room(
        floor=4,
        siblings=names("ledger.shared"),
        never=names("providers align diagnose judge tracker"),
    ),
    "ledger.redis": Room(
        floor=4,
        siblings=names("ledger.shared"),
        never=names("providers align diagnose judge tracker"),
        outside=names("redis"),
    ),
    # 5 patching: an SDK is a string here, never an import
    "instrument": Room(floor=5, outside=names("wrapt opentelemetry")),
    # an HTTP exchange that is over, as one of a model
    "http": Room(floor=5, siblings=names("instrument"), outside=names("opentelemetry")),
    # 6 doors
    # the offline form of an exchange, read from files
    "transcript": Room(floor=6, outside=names("pydantic")),
    # what people have instead: cassettes, HAR files, flows, and what agents leave behind
    "evidence": Room(floor=6, siblings=names("transcript")),
    # a server beside an agent
    "proxy": Room(floor=6, outside=names("aiohttp yarl")),
    # a processor at a gateway
    "extproc": Room(floor=6, outside=names("google grpc grpc_health")),
    # what a launcher finds by entry point: it imports the house only inside, and lets nothing out
    "zerocode": Room(floor=6),
    # one response, without a history
    "inspection": Room(floor=6),
    "triage": Room(floor=6, outside=names("pydantic rich")),
    "testing": Room(
        floor=6,
        siblings=names("testing.strict"),
        outside=names("pytest pydantic opentelemetry"),
    ),
    # The hosts of the demo drive the real SDKs through the real instrumentation.
    "testing.hosts": Room(
        floor=6, siblings=names("testing.strict testing"), outside=names("opentelemetry") | SDKS
    ),
    # The strict provider judges raw bytes on its own: what it shared with us it could not catch.
    "testing.strict": Room(floor=6, outside=names("websockets"), alone=True),
    "cli": Room(
        floor=6,
        siblings=names(
            "triage testing testing.strict testing.hosts transcript evidence inspection zerocode"
            " proxy extproc"
        ),
        outside=names("typer rich pydantic opentelemetry prometheus_client") | SDKS,
    ),
    # the public names: above all, so that no floor imports it
    "": Room(floor=7),
}


@dataclass(frozen=True, slots=True)
class Import:
    """One imported thing: its full dotted name and the line it stands on."""

    target: str
    line: int


def room_of(target: str) -> str:
    """The room of a dotted name, package included; "" if no other fits."""
    inner = target.removeprefix(PACKAGE).removeprefix(".")
    parts = inner.split(".")
    for end in range(len(parts), 0, -1):
        if (name := ".".join(parts[:end])) in ROOMS:
            return name
    return ""


def imports_of(source: str, module: str, *, is_package: bool) -> Iterator[Import]:
    """Every import of a source text, relative ones made absolute."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield Import(alias.name, node.lineno)
            case ast.ImportFrom():
                up = package[: len(package) - node.level + 1] if node.level else []
                base = ".".join([*up, *([node.module] if node.module else [])])
                for alias in node.names:
                    name = base if alias.name == "*" else f"{base}.{alias.name}"
                    yield Import(name, node.lineno)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if (
                ast.unparse(node.func).rpartition(".")[2] in {"import_module", "__import__"}
                and name.split(".")[0] == PACKAGE
            ):
                yield Import(name, node.lineno)
            case _:
                pass


def refusal(module: str, target: str) -> str | None:
    """Why `module` may not import `target`; None if it may."""
    home = room_of(module)
    room = ROOMS[home]
    top = target.split(".", maxsplit=1)[0]
    if top != PACKAGE:
        if top not in sys.stdlib_module_names | room.outside:
            return "is outside of what this room may use"
        if room.floor <= HIGHEST_PURE_FLOOR and top in IMPURE - room.impure:
            return "is no business of the pure floors: they are told and they tell"
        return None
    there = room_of(target)
    if there == home:
        # A dialect is a folder, or a file: its own files know each other.
        folder = ".".join(module.split(".")[:3])
        own = folder != f"{PACKAGE}.{home}" and target.startswith(f"{folder}.")
        return None if room.mutual or own else "is a neighbour, and in this room they are blind"
    if room.alone:
        return "is of this package, and this room stands alone"
    if there in room.siblings:
        return None
    if ROOMS[there].floor >= room.floor:
        return f"is on floor {ROOMS[there].floor}, this file on {room.floor}"
    if there in room.never:
        return "is a room this one may never know"
    # Fate first, verdict second: the language of providers is open to `align`, its rules are not.
    inner = target.removeprefix(f"{PACKAGE}.contract").removeprefix(".")
    if home == "align" and there == "contract" and (not inner or "rule" in inner.lower()):
        return "would let `align` see a rule: import the other names of `contract` one by one"
    return None


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Every forbidden import of a source text, as readable lines."""
    if room_of(module) == "" and module != PACKAGE:
        return [f"{module}: no room of the house has this file"]
    return [
        f"{module}:{found.line}: {found.target} {why}"
        for found in imports_of(source, module, is_package=is_package)
        if (why := refusal(module, found.target))
    ]


def module_of(path: Path) -> tuple[str, bool]:
    parts = list(path.relative_to(TREE).with_suffix("").parts)
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


FILES = sorted((TREE / PACKAGE).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: module_of(path)[0])
def test_a_file_imports_only_from_the_floors_below_its_own(path: Path) -> None:
    module, is_package = module_of(path)
    assert violations(path.read_text("utf-8"), module, is_package=is_package) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        # floor 0
        ("model", "import otel_sealed.vocab"),
        ("errors", "from otel_sealed.model import Fate"),
        ("vocab", "from . import digest"),
        ("digest", "import pydantic"),
        # floor 1
        ("contract", "from .wire import turns"),
        ("wire", "from otel_sealed import align"),
        # floor 2
        ("providers.openai.wire", "from ..anthropic import PROVIDER"),
        ("providers.openai.wire", "from otel_sealed.providers import anthropic"),
        ("providers.openai.wire", "from otel_sealed.providers.openai_too import PROVIDER"),
        ("providers.openai.rules", "from ..gemini.rules import RULES"),
        ("providers.openai.wire", "import openai"),
        ("providers.gemini.wire", "from ...ledger.memory import Ledger"),
        ("align", "from otel_sealed.providers import anthropic"),
        ("align", "from otel_sealed.contract import Rule"),
        ("align", "from otel_sealed import contract"),
        ("align", "from otel_sealed.contract import *"),
        ("diagnose", "from otel_sealed.providers.gemini import PROVIDER"),
        ("ledger.memory", "from otel_sealed.ledger import sqlite"),
        ("ledger.memory", "import time"),
        # floor 3
        ("judge", "from otel_sealed.tracker import Tracker"),
        ("tracker", "from opentelemetry import trace"),
        ("tracker", "from time import time_ns"),
        ("tracker", "def f():\n    import threading"),
        # floor 4
        ("telemetry.emit", "from ..providers import anthropic"),
        ("telemetry.emit", "from otel_sealed.tracker import Tracker"),
        ("telemetry.processor", "import otel_sealed.instrument.guard"),
        ("telemetry.settings", "import wrapt"),
        ("ledger.sqlite", "import redis"),
        ("ledger.sqlite", "from .redis import RedisLedger"),
        ("ledger.redis", "from otel_sealed.telemetry import settings"),
        # floor 5
        ("instrument.stainless", "import anthropic"),
        ("instrument.stainless", "from google import genai"),
        ("instrument.genai", "from otel_sealed.testing import mutations"),
        # floor 6
        ("testing.strict.anthropic", "from otel_sealed.model import Fate"),
        ("testing.strict", "from .. import mutations"),
        ("testing.strict.base", "import httpx"),
        ("triage.report", "from otel_sealed.cli import main"),
        ("cli", "from otel_sealed import Verdict"),
        # ways of importing
        ("model", "from __future__ import annotations\nif TYPE_CHECKING:\n    from . import wire"),
        ("model", "import importlib\nimportlib.import_module('otel_sealed.wire')"),
        ("model", "__import__('otel_sealed.wire')"),
        # a file nobody has a room for
        ("helpers", ""),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    is_package = module == "testing.strict"
    assert len(violations(source, f"{PACKAGE}.{module}", is_package=is_package)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("digest", "import hmac\nfrom .model import Digest"),
        ("wire", "import json\nfrom otel_sealed.contract import Provider, Rule"),
        ("providers.vendors", "from ..contract import Provider\nfrom ..model import Fate"),
        ("providers.openai", "from otel_sealed.providers.openai.wire import DIALECT"),
        ("providers.openai.wire", "from otel_sealed.providers.openai.rules import RULES"),
        ("providers.openai.wire", "from .rules import RULES"),
        ("ledger.memory", "import threading\nfrom otel_sealed.digest import Keyring"),
        ("ledger", "from .memory import MemoryLedger"),
        ("align", "from otel_sealed.contract import Anchor\nfrom otel_sealed.wire import Turn"),
        ("tracker", "from otel_sealed import align, judge, providers"),
        ("telemetry.emit", "from opentelemetry import trace\nfrom . import settings"),
        ("ledger.sqlite", "import sqlite3, time\nfrom .memory import Entry"),
        ("ledger.redis", "import redis"),
        ("instrument.stainless", "import wrapt, importlib\nimportlib.import_module('anthropic')"),
        ("instrument", "from otel_sealed.telemetry import emit\nfrom .. import tracker"),
        ("testing.strict.anthropic", "from .base import Refusal\nfrom . import base"),
        ("testing.plugin", "import pytest\nfrom .strict import StrictProvider"),
        ("cli", "import typer\nfrom otel_sealed import triage, testing, telemetry"),
        ("", "from otel_sealed.model import Fate"),
    ],
)
def test_an_allowed_import_is_left_alone(module: str, source: str) -> None:
    is_package = module in {"", "ledger", "instrument"}
    assert violations(source, f"{PACKAGE}.{module}".rstrip("."), is_package=is_package) == []


def test_no_room_may_be_both_a_sibling_and_unknown() -> None:
    for name, room in ROOMS.items():
        assert room.siblings | room.never <= ROOMS.keys(), name
        assert all(ROOMS[other].floor == room.floor for other in room.siblings), name
        assert all(ROOMS[other].floor < room.floor for other in room.never), name


def test_the_coverage_bound_stands_on_the_pure_floors_and_on_them_only() -> None:
    config = tomllib.loads((TREE / "pyproject.toml").read_text("utf-8"))
    left_out = config["tool"]["coverage"]["report"]["omit"]
    files = {path: path.relative_to(TREE).as_posix() for path in FILES}
    bound = {
        name for name in files.values() if not any(fnmatch(name, pattern) for pattern in left_out)
    }
    pure = {
        name
        for path, name in files.items()
        if ROOMS[room_of(module_of(path)[0])].floor <= HIGHEST_PURE_FLOOR
    }
    assert bound == pure


# ------------------------------------------------------------------------ words of one machine only

# Put together from pieces, so that this file does not hold what it looks for.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(?<![\w.~-])/(?:wo" + r"rk|far" + r"m|ro" + r"ot)/[\w.]",
            r"\.lib" + r"rary/",
            r"ind" + r"ex-url",
            r"py" + r"pi\.org",
            r"python" + r"hosted\.org",
            r"far" + r"m-(?:studio|bench)",
        ]
    )
)
CACHES = re.compile(r"__pycache__|build|dist|htmlcov|.*\.egg-info")


def files_of_the_tree(folder: Path) -> Iterator[Path]:
    """Every file somebody wrote: no repository data, virtual environment, cache or build."""
    for path in sorted(folder.iterdir()):
        if not path.is_dir():
            if path.name != ".git":  # a file in a linked worktree of git
                yield path
        elif not (
            CACHES.fullmatch(path.name)
            or (path.name.startswith(".") and path.name not in {".ci", ".github"})
            or (path / "pyvenv.cfg").exists()
        ):
            yield from files_of_the_tree(path)


def forbidden_words(text: str) -> list[str]:
    return [found.group() for found in FORBIDDEN.finditer(text)]


def test_no_file_names_a_path_of_one_machine_or_a_package_index() -> None:
    hits = {
        str(path.relative_to(TREE)): words
        for path in files_of_the_tree(TREE)
        if (words := forbidden_words(path.read_bytes().decode("utf-8", "replace")))
    }
    assert hits == {}


@pytest.mark.parametrize(
    "text",
    [
        "see /wo" + "rk/x",
        '"/ro' + 'ot/.cache"',
        "--ind" + "ex-url x",
        "https://py" + "pi.org/simple",
    ],
)
def test_a_forbidden_word_is_found(text: str) -> None:
    assert len(forbidden_words(text)) == 1


@pytest.mark.parametrize("text", ["frame" + "work/x", "net" + "work/a", "/v1/messages", "./work"])
def test_an_innocent_word_is_left_alone(text: str) -> None:
    assert forbidden_words(text) == []
