"""The pages say what the code says, and every reference to one leads somewhere.

A reference is a link of Markdown, or a path such as `docs/contract/anthropic.md#a5` in any text of
the tree: code, comments, tests, workflows. Anchors are made the way GitHub makes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from docs import generate
from otel_sealed import rulebook
from tests.test_architecture import TREE, files_of_the_tree

TEXTS = {".py", ".md", ".yaml", ".yml", ".toml", ".html", ".js", ".css", ""}
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)")
MENTION = re.compile(
    r"(?<![\w/.-])((?:docs/[\w./-]+|README|CONTRIBUTING|SECURITY|CHANGELOG)\.md(?:#[\w-]+)?)"
)
# Papers that are not in the repository; put together so that this file does not hold them.
OLD = re.compile(
    "|".join(
        [
            r"\b(?:contract|design|sdk-" + r"surface|otel|peers) §",
            r"§ ?\d",
            r"\bfacts: (?:otel|sdk|provider|peers|the heads)",
            r"\bfield (?:report|no" + r"te)s?\b",
            r"\bseed (?:\d{3}|articles?)\b",
        ]
    )
)
PAGES = sorted(path for path in files_of_the_tree(TREE) if path.suffix == ".md")
IDS = list(dict.fromkeys(rule.id for _, rules in rulebook.chapters() for rule in rules))


def name(path: Path) -> str:
    return path.relative_to(TREE).as_posix()


# ------------------------------------------------------------------------------------- the reading


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def prose(text: str) -> str:
    """A page without its code: fences, spans and comments hold no links."""
    text = re.sub(r"^(```+).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"<!--.*?-->", "", re.sub(r"`[^`\n]*`", "", text), flags=re.DOTALL)


def slug(heading: str) -> str:
    """The anchor GitHub makes of a heading: words in lower case, joined by hyphens."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Every anchor of a page: of its headings, repeated ones numbered, and those it names."""
    text = re.sub(r"^(```+).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r'<a id="([^"]+)">', text))
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#{1,6} +(.+?)(?: +#+)?$", text, flags=re.MULTILINE):
        anchor = slug(heading)
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


def broken(target: str, folder: Path) -> str | None:
    """Why a reference leads nowhere; None if it leads somewhere, or out of the tree."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    file = (folder / path).resolve() if path else folder
    if not file.exists():
        return f"{target}: no such file"
    if anchor and anchor not in anchors(text_of(file)):
        return f"{target}: no such heading"
    return None


def links(path: Path) -> Iterator[str]:
    """The targets of a page's links, those within the page with its own name."""
    for target in LINK.findall(prose(text_of(path))):
        yield f"{path.name}{target}" if target.startswith("#") else target


# --------------------------------------------------------------------------------------- the pages


@pytest.mark.parametrize("path", [generate.TREE / generate.RULES, *generate.pages()], ids=name)
def test_a_page_is_what_the_code_says(path: Path) -> None:
    assert path.read_text("utf-8") == generate.rendered(path), "run: python -m docs.generate"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_of_a_page_leads_somewhere(path: Path) -> None:
    assert [why for to in links(path) if (why := broken(to, path.parent))] == []


def test_every_mention_of_a_page_in_any_text_leads_somewhere() -> None:
    faults: dict[str, list[str]] = {}
    for path in files_of_the_tree(TREE):
        if path.suffix in TEXTS:
            found = [why for to in MENTION.findall(text_of(path)) if (why := broken(to, TREE))]
            faults |= {name(path): found} if found else {}
    assert faults == {}


def test_no_text_cites_a_paper_that_is_not_here() -> None:
    faults = {
        name(path): found
        for path in files_of_the_tree(TREE)
        if path.suffix in TEXTS and (found := OLD.findall(text_of(path)))
    }
    assert faults == {}


def test_every_page_is_reached_by_links_from_the_readme() -> None:
    reached = {TREE / "README.md"}
    todo = list(reached)
    while todo:
        page = todo.pop()
        targets = {(page.parent / to.partition("#")[0]).resolve() for to in links(page)}
        new = {path for path in targets if path.suffix == ".md" and path.exists()} - reached
        reached |= new
        todo += new
    ours = {page for page in PAGES if page.parent == TREE or TREE / "docs" in page.parents}
    assert {name(page) for page in ours - reached} == set()


# --------------------------------------------------------------------------------------- the rules


@pytest.mark.parametrize("rule_id", IDS)
def test_a_rule_has_a_section_of_the_contract_a_place_on_its_page_code_and_tests(
    rule_id: str,
) -> None:
    sections = [
        page.stem
        for page in (TREE / "docs" / "contract").glob("*.md")
        if rule_id.lower() in anchors(text_of(page))
    ]
    assert [generate.home(rule_id)] == sections
    assert broken(rulebook.link(rule_id), TREE) is None
    (dialect, rule), *_ = generate.cases(rule_id)
    assert f'"{rule_id}"' in (TREE / generate.code_of(dialect, rule_id)).read_text("utf-8")
    assert bool(generate.tests_of(rule_id)) is not bool(rule.undecidable)


def test_a_section_of_the_contract_has_its_rows_and_prose() -> None:
    bare = [
        section.partition("\n")[0]
        for page in (TREE / "docs" / "contract").glob("*.md")
        for section in re.split(r"^#+ ", text_of(page), flags=re.MULTILINE)
        if re.match(r"[A-Z]\d+\n", section)
        and not re.fullmatch(r"(\w+)\n\n<!-- rows \1 -->\n(?:\|.*\n)+\n.{20,}", section, re.DOTALL)
    ]
    assert bare == []


def test_every_rule_that_a_text_names_exists() -> None:
    """Names in brackets, as in `(A5)`."""
    named = re.compile(r"\(((?:[AOGRX]\d{1,2}(?:, | and )?)+)\)")
    unknown = {
        (name(path), rule)
        for path in files_of_the_tree(TREE)
        if path.suffix in {".py", ".md"}
        for found in named.findall(text_of(path))
        for rule in re.findall(r"[A-Z]\d+", found)
        if rule not in IDS
    }
    assert unknown == set()


@pytest.mark.parametrize("name_", ["Fate", "Verdict", "ProviderVerdict", "Cause", "Locus", "Trait"])
def test_every_member_of_an_enumeration_is_defined(name_: str) -> None:
    assert [member for member, text in generate.definitions(name_).items() if not text] == []


# --------------------------------------------------------------------------------------- the words


def retired() -> list[str]:
    """The left column of the glossary's last table."""
    section = text_of(TREE / "docs" / "glossary.md").partition("## Retired words")[2]
    rows = re.findall(r"^\| ([^|]+) \|", section, flags=re.MULTILINE)[2:]
    return [word.strip() for row in rows for word in row.split(",")]


@pytest.mark.parametrize(
    "path",
    [
        *sorted((TREE / "docs" / "contract").glob("*.md")),
        *(TREE / "docs" / f"{page}.md" for page in ("README", "architecture", "glossary")),
        *(TREE / "docs" / f"{page}.md" for page in ("sdk-surface", "opentelemetry")),
    ],
    ids=name,
)
def test_a_page_uses_no_retired_word(path: Path) -> None:
    """Neither code nor the tables that are written from code are looked at."""
    text = prose(text_of(path).partition("## Retired words")[0])
    text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    words = re.compile(rf"\b(?:{'|'.join(retired())})\b", re.IGNORECASE)
    assert words.findall(text) == []


def test_the_retired_words_are_read_from_the_glossary() -> None:
    assert {"told", "beyond", "mend"} <= set(retired())
    assert not {"Retired", "---"} & set(retired())


# ------------------------------------------------------------------------------------- the checker


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("A5", "a5"),
        ("State by reference", "state-by-reference"),
        ("The `when` of [a rule](x.md)", "the-when-of-a-rule"),
        ("anthropic & openai (new)", "anthropic--openai-new"),
        ("snake_case, kept-hyphens", "snake_case-kept-hyphens"),
    ],
)
def test_an_anchor_is_made_of_a_heading_as_github_does(heading: str, anchor: str) -> None:
    assert slug(heading) == anchor


def test_a_repeated_heading_is_numbered_and_a_fence_has_none() -> None:
    assert anchors("# A\n\n```bash\n# comment\n```\n\n## A\n") == {"a", "a-1"}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("docs/rules.md", None),
        ("docs/rules.md#a5", None),
        ("https://example.com/x.md#y", None),
        ("docs/rules" + ".md#a99", "docs/rules" + ".md#a99: no such heading"),
        ("docs/nothing" + ".md", "docs/nothing" + ".md: no such file"),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(target: str, why: str | None) -> None:
    assert broken(target, TREE) == why


@pytest.mark.parametrize(
    "text", ["contract {}3", "(design {}1)", "field no" + "te", "facts: o" + "tel", "{}4.3"]
)
def test_a_citation_of_an_absent_paper_is_found(text: str) -> None:
    assert OLD.search(text.format("§")) is not None
