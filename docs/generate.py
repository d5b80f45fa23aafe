"""Writes what the pages take from the code: `python -m docs.generate`.

`docs/rules.md` is written as a whole. On every other page a marker such as `<!-- rows A5 -->` is
followed by a table, up to the next empty line, and that table is written anew: the fact is in the
code, the page shows it. `tests/docs` fails where a page is not what would be written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from docs import declared
from otel_sealed import rulebook
from otel_sealed.align.table import FATES
from otel_sealed.contract import Carrier, Dialect, Rule
from otel_sealed.model import Role
from otel_sealed.providers import dialects, families, refusals
from otel_sealed.triage.meaning import meaning
from tests.test_architecture import ROOMS

TREE: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = TREE / "otel_sealed"
RULES: Final = "docs/rules.md"
OWN: Final = "otel_sealed"
"""The chapter of our own rules in `rulebook`."""
COMMON: Final = "common"
"""The contract page of our own rules, and of what holds for every provider."""

_LETTERS: Final = {"A": "anthropic", "O": "openai", "G": "gemini", "R": "chat", "X": COMMON}
_SOURCES: Final = (("M", "measured"), ("SD", "read"), ("I", "reported"), ("C", "seen in code"))
_MARKER: Final = re.compile(r"^<!-- ([a-z]+)(?: ([\w.]+))? -->\n(?:\|.*\n)*", re.MULTILINE)
_WORDS: Final = PACKAGE / "model" / "words.py"


def pages() -> list[Path]:
    """Every page a person wrote that may have markers."""
    return [TREE / "README.md", *sorted((TREE / "docs").rglob("*.md"))]


def rendered(path: Path) -> str:
    """A page as it should be."""
    if path == TREE / RULES:
        return rules_page()
    return _MARKER.sub(_filled, path.read_text("utf-8"))


def _filled(found: re.Match[str]) -> str:
    name, argument = found.group(1), found.group(2) or ""
    if name not in TABLES:
        return found.group()
    marker = found.group().partition("\n")[0]
    return "\n".join([marker, *TABLES[name](argument)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of Markdown, line by line."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


# ------------------------------------------------------------------------------------ enumerations


@cache
def definitions(name: str, path: Path = _WORDS) -> dict[str, str]:
    """The members of an enumeration, each with the text below it."""
    tree = ast.parse(path.read_text("utf-8"))
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    known: dict[str, str] = {}
    value = ""
    for node in found.body:
        match node:
            case ast.Assign(value=ast.Constant(value=str(value))):
                known[value] = ""
            case ast.Expr(value=ast.Constant(value=str(text))) if value:
                known[value] = text
            case _:
                pass
    return known


def _enumeration(name: str, *head: str) -> Callable[[str], Iterator[str]]:
    def lines(_: str) -> Iterator[str]:
        return table(head, ((f"`{value}`", text) for value, text in definitions(name).items()))

    return lines


# ------------------------------------------------------------------------------------------- rules


def home(rule_id: str) -> str:
    """The contract page of a rule: of the one dialect that has it, else that of its letter."""
    owners = [name for name, rules in rulebook.chapters() if any(r.id == rule_id for r in rules)]
    page = owners[0] if len(owners) == 1 else _LETTERS[rule_id[0]]
    return COMMON if page == OWN else page


def cases(rule_id: str) -> list[tuple[str, Rule]]:
    """(dialect, row) of every row of an id, those of its own page first."""
    found = [(n, r) for n, rules in rulebook.chapters() for r in rules if r.id == rule_id]
    return sorted(found, key=lambda case: case[0] != home(rule_id))


def confidence(rule: Rule) -> str:
    """How sure a row is, from the letters of its sources."""
    if rule.disputed:
        return "disputed"
    tags = {part.strip()[:1] for part in rule.source.split(";") if part.strip()[1:2] in {"", " "}}
    return next((word for letters, word in _SOURCES if tags & {*letters}), _untagged(tags))


def _untagged(tags: set[str]) -> str:
    return "unconfirmed" if "U" in tags else "ours"


def verdict(rule: Rule) -> str:
    """What a row says of what it fits."""
    if rule.undecidable:
        return f"not decided from history: {rule.undecidable}"
    marks = [m for m, on in (("disputed", rule.disputed), ("preview", rule.preview)) if on]
    return " ".join([f"`{rule.verdict}`", *(f"*{mark}*" for mark in marks)])


def linked(source: str, depth: int) -> str:
    """A source whose paths into `docs/` are links, on a page so many folders below the root."""
    up = "../" * (depth - 1)
    return re.sub(r"\bdocs/(\S+?\.md#[\w-]+)", rf"[docs/\1]({up}\1)", source)


def _rows(rule_id: str) -> Iterator[str]:
    head = ("What has to hold", "Otherwise", "Sources", "Checked", "Confidence")
    rows = (
        (rule.says, verdict(rule), linked(rule.source, 2), rule.checked, confidence(rule))
        for _, rule in cases(rule_id)
    )
    return table(head, dict.fromkeys(rows))


def _contents(page: str) -> Iterator[str]:
    ids = dict.fromkeys(rule.id for _, rules in rulebook.chapters() for rule in rules)
    listed = sorted((i for i in ids if home(i) == page), key=lambda i: (i[0], int(i[1:])))
    says = ((f"[{i}](#{i.lower()})", cases(i)[0][1].says) for i in listed)
    return table(("Rule", "What has to hold"), says)


def code_of(dialect: str, rule_id: str) -> str:
    """The file that has the rows of an id in a dialect, by its path in the tree."""
    found = [p for p in _sources() if f'"{rule_id}"' in _text(p) and "ule(" in _text(p)]
    own = [path for path in found if dialect in path.relative_to(PACKAGE).as_posix()]
    return (own or found)[0].relative_to(TREE).as_posix()


def tests_of(rule_id: str) -> list[str]:
    """The files with a case in which it fires and one in which it does not."""
    case = re.compile(rf'^ +"{rule_id}": ', re.MULTILINE)
    tests = sorted((TREE / "tests").rglob("*.py"))
    return [p.relative_to(TREE).as_posix() for p in tests if case.search(_text(p))]


@cache
def _sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


def rules_page() -> str:
    """All rules in the order they are tried."""
    lines = [
        "# Rules",
        "",
        "Written by `python -m docs.generate` from the files of the providers.",
        f"Version `{rulebook.version()}`. The first row that fits a finding gives its verdict; the",
        "rows of a dialect are tried from top to bottom. An id leads to the section of",
        "[the contract](contract/README.md) that says why the rule is there; the words are in the",
        "[glossary](glossary.md). Sources: S docstring or type of an SDK, D provider",
        "documentation, I public issue, C code of a third party, M measured, U unconfirmed.",
        "What the circumstances under *when* mean: [glossary](glossary.md#circumstances).",
        "*disputed*: sources disagree. *preview*: shown, never alerting. What the SDK lost",
        "(`sdk_lossy`) is judged as the `dropped` or `modified` that the provider sees.",
        "",
    ]
    placed: set[str] = set()
    for name, rules in rulebook.chapters():
        lines += [f"## {name}", ""]
        head = ("id", "rule", "fates", "when", "verdict", "source", "checked", "see")
        lines += table(head, [_line(name, rule, placed) for rule in rules])
        lines.append("")
    return "\n".join(lines)


def _line(dialect: str, rule: Rule, placed: set[str]) -> tuple[str, ...]:
    page = home(rule.id)
    chapter = cases(rule.id)[0][0]
    anchor = ""
    if rule.id not in placed and dialect == chapter:
        placed.add(rule.id)
        anchor = f'<a id="{rule.id.lower()}"></a>'
    when = [f"`{t}`" for t in sorted(rule.when)] + [f"not `{t}`" for t in sorted(rule.unless)]
    only = [f"`{a}…`" for a in rule.artifacts]
    see = [f"[code](../{code_of(dialect, rule.id)})"]
    see += [f"[tests](../{path})" for path in tests_of(rule.id)]
    return (
        f"{anchor}[{rule.id}](contract/{page}.md#{rule.id.lower()})",
        rule.says,
        " ".join(f"`{fate}`" for fate in sorted(rule.fates)),
        ", ".join([*only, *when]),
        verdict(rule),
        linked(rule.source, 1),
        rule.checked,
        " ".join(see),
    )


# -------------------------------------------------------------------------------------- the others

_ROLES: Final = {
    Role.SEAL: "sealed",
    Role.SIGNED: "readable text that a seal vouches for",
    Role.ID: "an id that a seal is bound to",
    Role.ECHO: "readable state to be sent back",
}


def _named(name: str) -> Dialect:
    (dialect,) = (dialect for dialect in dialects().values() if dialect.name == name)
    return dialect


def _gaps(name: str) -> Iterator[str]:
    guards = definitions("Guard", PACKAGE / "contract.py")
    rows = (
        (f"`{field.artifact}`", guards[gap.guard], gap.why)
        for carrier in _named(name).carriers.values()
        for field in carrier.fields
        for gap in field.gaps
    )
    return table(("Artifact", "Has not", "Because"), dict.fromkeys(rows))


def _impossible(name: str) -> Iterator[str]:
    rows = ((f"`{fate}`", why) for fate, why in _named(name).impossible.items())
    return table(("Fate", "Cannot occur here, because"), rows)


def _fields(name: str) -> Iterator[str]:
    rows: dict[tuple[str, ...], list[str]] = {}
    for carrier in _named(name).carriers.values():
        for cells in _of_carrier(carrier):
            rows.setdefault(cells, []).append(f"`{carrier.type}`")
    head = ("Artifact", "Key", "What it is", "Compared as", "In blocks of type")
    return table(head, ((*cells, ", ".join(types)) for cells, types in rows.items()))


def _of_carrier(carrier: Carrier) -> Iterator[tuple[str, ...]]:
    for field in carrier.fields:
        keys = [f"`{key}`" for key in (field.key, *field.aliases)]
        if field.hidden is not None:
            keys.append(f"`{field.hidden[0]}`, after `{field.hidden[1]}`")
        spelling = "decoded bytes" if field.binary else "exact text"
        yield f"`{field.artifact}`", ", ".join(keys), _ROLES[field.role], spelling


def _families(_: str) -> Iterator[str]:
    head = ("Vendor", "Platform", "Sealed by", "Sent to", "Is", "Source")
    rows = (
        (p.vendor, p.platform or "any", _model(p.producer), _model(p.reader), p.reads, p.source)
        for p in families.PAIRS
    )
    return table(head, rows)


def _model(pattern: str) -> str:
    return f"`{pattern}`" if pattern else "any other"


def _refusals(_: str) -> Iterator[str]:
    rows = (
        (f"`{rejection}`", _meaning(rejection), ", ".join(f"`{part}`" for part in parts))
        for rejection, parts in refusals.FRAGMENTS
    )
    return table(("Class", "What it means", "Words"), rows)


def _meaning(rejection: str) -> str:
    known = meaning(rejection)
    if known is None:
        return ""
    rule = known.rule
    see = f" ([{rule}]({home(rule)}.md#{rule.lower()}))" if rule else ""
    return known.says.removesuffix(f" ({rule})") + see


def _layers(_: str) -> Iterator[str]:
    head = (
        "Layer",
        "Package",
        "What it is",
        "May also import",
        "May not import",
        "And from outside",
    )
    rows = (
        (
            str(room.floor),
            f"`{name or OWN}`",
            _summary(name),
            "nothing of this package" if room.alone else _names(room.siblings),
            _names(room.never),
            _names(room.outside | room.impure),
        )
        for name, room in sorted(ROOMS.items(), key=lambda item: (item[1].floor, item[0]))
    )
    return table(head, rows)


def _precedence(_: str) -> Iterator[str]:
    head = ("What the request has of the seal", "Fate", "Cause", "Holds where")
    rows = (
        (
            group.value,
            f"`{row.fate}`",
            "as compared" if callable(row.cause) else f"`{row.cause}`" if row.cause else "",
            _sentence(row.when.__doc__),
        )
        for group, rows in FATES.items()
        for row in rows
    )
    return table(head, rows)


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split()).removesuffix(".")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _summary(name: str) -> str:
    path = PACKAGE.joinpath(*name.split(".")) if name else PACKAGE
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    says = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return says.partition("\n\n")[0].replace("\n", " ")


TABLES: Final[dict[str, Callable[[str], Iterator[str]]]] = {
    "fates": _enumeration("Fate", "Fate", "What was seen"),
    "verdicts": _enumeration("Verdict", "Verdict", "What it means"),
    "answers": _enumeration("ProviderVerdict", "Provider verdict", "What the provider said"),
    "causes": _enumeration("Cause", "Cause", "How the value changed"),
    "traits": _enumeration("Trait", "Circumstance", "When it holds"),
    "loci": _enumeration("Locus", "Locus", "Where it changed"),
    "precedence": _precedence,
    "rows": _rows,
    "contents": _contents,
    "fields": _fields,
    "gaps": _gaps,
    "impossible": _impossible,
    "families": _families,
    "refusals": _refusals,
    "layers": _layers,
}


def main() -> None:
    """Write every page, and the module of what the dialects declare."""
    (TREE / declared.MODULE).write_text(declared.module(), "utf-8")
    for path in [TREE / RULES, *pages()]:
        path.write_text(rendered(path), "utf-8")


if __name__ == "__main__":
    main()
