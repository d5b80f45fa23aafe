"""A report as one page: no network, no script from elsewhere, no content.

The first screen answers in order what broke, whose it is, since when and at which release, how many
calls and conversations, and what to do now. Then come the other problems, each with its strips and
a bug report to copy, the timeline, the conversations, and the rules. The page forbids itself, by a
content security policy with the digests of its own style and script, to load or send anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from otel_sealed.model import Verdict
from otel_sealed.rulebook import link
from otel_sealed.triage import fragments as html
from otel_sealed.triage.bug import bug_report
from otel_sealed.triage.model import Evidence, Incident, Remedy, Turn
from otel_sealed.triage.report import MAX_INCIDENTS, Conversation, Problem, Report
from otel_sealed.triage.sums import scope, sentences
from otel_sealed.triage.words import OUTCOMES, answer, count, explained, moment, owner, what_broke

TITLE: Final = "Sealed state: what broke"
_KEEPS: Final = (
    "This page holds no prompt, answer, tool argument, id of a provider or sealed value: keyed "
    "names, block types, sizes, positions and counts alone. It loads and sends nothing."
)


def page(report: Report, *, made: str) -> str:
    """The page of a report; `made` says by what and when it was made."""
    style, script = _file("page.css"), _file("page.js")
    body = "\n".join(_body(report))
    record = f"From {count(report.calls, 'call')} on record"
    flaws = f"; {count(report.broken, 'line')} could not be read" if report.broken else ""
    return Template(_file("page.html")).substitute(
        title=TITLE,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        body=_printable(body),
        footer=_printable(
            f"<p>{escape(record + flaws)}. {escape(made)}</p><p>{escape(_KEEPS)}</p>"
        ),
    )


def _printable(text: str) -> str:
    """`text` without what a reader cannot see: controls, escapes, marks of direction."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _body(report: Report) -> Iterator[str]:
    if not report.problems:
        what = "Not everything could be judged." if report.sums else "Nothing is broken."
        yield f'<p class="broke">{what}</p>'
        calls = count(report.calls, "call")
        judged = scope(report.calls, report.sums)
        among = (
            f"; {judged}, and no incident is among them"
            if judged
            else ", and no incident among them"
        )
        yield f"<p>{escape(calls)} on record{escape(among)}.</p>"
        yield from _not_judged(report)
        return
    first, *others = report.problems
    yield f'<p class="broke">{escape(what_broke(first.shown))}</p>'
    yield _answers(first)
    yield _contents(others)
    yield from _not_judged(report)
    yield from _problem(first, 1, "How it broke")
    yield from _timeline(report)
    yield from _conversations(report)
    yield from _rules(report)
    if others:
        yield _others(others)
    for number, problem in enumerate(others, 2):
        yield from _problem(problem, number, what_broke(problem.shown))


def _not_judged(report: Report) -> Iterator[str]:
    """What a page must not be silent of: calls that failed, and values nobody could judge."""
    items = "".join(f"<li>{escape(_capital(line))}.</li>" for line in sentences(report.sums))
    if items:
        yield '<section aria-labelledby="unjudged"><h2 id="unjudged">What could not be judged</h2>'
        yield f"<ul>{items}</ul></section>"


# --------------------------------------------------------------------------------- first screen


def _contents(others: Sequence[Problem]) -> str:
    places = [
        ("problem-1", "How it broke"),
        ("timeline", "Timeline"),
        ("silent", "Silent loss"),
        ("rules", "Rules"),
    ]
    if others:
        places.append(("others", f"{count(len(others), 'more problem')} on record"))
    links = "".join(f'<li><a href="#{at}">{escape(name)}</a></li>' for at, name in places)
    return f'<nav aria-label="On this page" class="contents"><ul>{links}</ul></nav>'


def _others(others: Sequence[Problem]) -> str:
    shown = "".join(
        f"<li>{html.mark(x.shown.lead.verdict, x.shown.lead.rule)}"
        f' <a href="#problem-{number}">{escape(what_broke(x.shown))}</a></li>'
        for number, x in enumerate(others, 2)
    )
    return (
        '<nav aria-labelledby="others"><h2 id="others" tabindex="-1">Other problems</h2>'
        f"<ul>{shown}</ul></nav>"
    )


def _answers(problem: Problem) -> str:
    incident = problem.shown
    who, why = owner(incident)
    rows = (
        ("Whose it is", f"<strong>{escape(who)}.</strong> {escape(why)}"),
        ("Since", _since(problem)),
        ("How many", _how_many(problem)),
        ("What to do now", _remedies(incident.remedies)),
    )
    body = "".join(f"<dt>{escape(name)}</dt><dd>{text}</dd>" for name, text in rows)
    return f'<dl class="answers {html.tag(incident.lead.verdict)}">{body}</dl>'


def _since(problem: Problem) -> str:
    first = problem.first
    when = moment(first.first_bad.at) or "a time that is not on record"
    said = [f"<strong>{escape(when)}</strong>"]
    if problem.releases:
        said.append(f"at release {html.code(problem.releases[0])}")
    else:
        said.append("at a release that is not on record (set <code>service.version</code>)")
    good = max((i.last_good.at for i in problem.incidents if i.last_good), default=0)
    if good:
        said.append(f"; last good call {escape(moment(good))}")
    versions = ", ".join(
        html.code(sdk) for sdk in (first.about.framework, *first.about.sdks) if sdk
    )
    text = " ".join(said).replace(" ;", ";")
    return f"{text}.{f' With {versions}.' if versions else ''}"


def _how_many(problem: Problem) -> str:
    calls, conversations = (
        count(problem.calls, "call"),
        count(problem.conversations, "conversation"),
    )
    still = "and growing" if problem.growing else f"last {moment(problem.last_at)}"
    services = dict.fromkeys(i.about.service for i in problem.incidents if i.about.service)
    of = f" of {', '.join(map(html.code, services))}" if services else ""
    return f"<strong>{escape(calls)}</strong> in {escape(conversations)}{of}, {escape(still)}."


def _remedies(remedies: Sequence[Remedy]) -> str:
    if not remedies:
        return "No way out is known that the provider's rules allow."
    items = "".join(
        f'<li>{escape(_capital(x.does))}. <span class="soft">Loses {escape(x.loses)}.</span></li>'
        for x in remedies
    )
    return f"<ol>{items}</ol>"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ------------------------------------------------------------------------------------- problems


def _problem(problem: Problem, number: int, title: str) -> Iterator[str]:
    incident = problem.shown
    yield f'<section id="problem-{number}" aria-labelledby="title-{number}">'
    yield f'<h2 id="title-{number}">{escape(title)}</h2>'
    if number > 1:
        yield _answers(problem)
    yield "".join(map(html.strip, problem.strips)) or (
        "<p>No request of it is on record, so that its block types cannot be shown.</p>"
    )
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{text}</dd>" for name, text in _facts(incident))
    yield f'<dl class="facts">{facts}</dl>'
    yield _copy(problem, number)
    yield "</section>"


def _facts(incident: Incident) -> Iterator[tuple[str, str]]:
    lead = incident.lead
    yield "artifact", f"{html.code(lead.artifact)} {html.mark(lead.verdict, lead.rule)}"
    yield "fate", escape(" ".join(x for x in (lead.fate, lead.diagnosis or lead.cause) if x))
    if incident.says:
        disputed = "; sources disagree on it" if lead.disputed else ""
        yield "rule", html.to_rule(lead.rule) + escape(f": {incident.says}{disputed}")
    yield "the provider", escape(_capital(OUTCOMES[incident.outcome]))
    yield "came in", _place(incident.minted, lead.came_position, lead.came_size)
    yield "first bad", _place(incident.first_bad, lead.returned, lead.returned_size)
    if incident.last_good:
        yield "last good", _place(incident.last_good, "", -1)
    where = " ".join(x for x in (incident.provider, incident.model) if x)
    host = f" at {html.code(incident.host)}" if incident.host else ""
    yield "call", f"{escape(where)}{host}"
    for part in incident.parts[1:4]:
        yield "also", f"{html.code(part.artifact)} {escape(part.fate)} {html.mark(part.verdict)}"
    if incident.evidence is Evidence.EVENTS:
        yield "evidence", "violation events alone: the traces are not on record"


def _place(turn: Turn | None, position: str, size: int) -> str:
    if turn is None and not position:
        return "not on record"
    number = f"turn {turn.number}" if turn and turn.number else ""
    when = moment(turn.at) if turn else ""
    known = f"{size:,} bytes" if size >= 0 else ""
    said = [escape(x) for x in (number, when) if x]
    said += [html.code(position)] if position else []
    said += [known] if known else []
    said += [f"trace {html.code(turn.trace)}"] if turn and turn.trace else []
    return ", ".join(said)


def _copy(problem: Problem, number: int) -> str:
    return (
        f'<button type="button" data-copies="bug-{number}" data-tells="told-{number}" hidden>'
        "Copy a bug report without content</button>"
        f'<span id="told-{number}" role="status" class="soft"></span>'
        "<details><summary>The bug report</summary>"
        f'<pre id="bug-{number}" tabindex="0">{escape(bug_report(problem))}</pre></details>'
    )


# ------------------------------------------------------------------------------------- the rest


def _timeline(report: Report) -> Iterator[str]:
    incidents = report.incidents
    moments = [
        (turn.at, i.lead.verdict)
        for i in incidents
        for turn in dict.fromkeys((i.first_bad, i.last_bad))
        if turn.at
    ]
    yield '<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2>'
    if moments:
        ends = (moment(min(at for at, _ in moments)), moment(max(at for at, _ in moments)))
        yield html.timeline("First and last bad calls of each incident", moments, ends)
    shown = incidents[-MAX_INCIDENTS:]
    columns = ("incident", "since (UTC)", "until", "artifact", "fate", "verdict", "answer", "calls")
    yield html.table("Incidents, oldest first", columns, map(_incident, shown), "calls")
    if len(shown) < len(incidents):
        yield f"<p>{count(len(incidents) - len(shown), 'older incident')} not shown.</p>"
    yield "</section>"


def _incident(incident: Incident) -> tuple[str, ...]:
    lead = incident.lead
    return (
        html.code(incident.id),
        _when(incident.first_bad.at),
        "growing" if incident.growing else _when(incident.last_bad.at),
        html.code(lead.artifact),
        escape(lead.fate),
        html.mark(lead.verdict, lead.rule),
        escape(f"{answer(incident.said, incident.rejection)} {incident.rejection}".strip()),
        f"{incident.affected:,}",
    )


def _when(at: int) -> str:
    return f'<span class="whole">{escape(moment(at).removesuffix(" UTC"))}</span>'


def _conversations(report: Report) -> Iterator[str]:
    yield '<section aria-labelledby="silent"><h2 id="silent">Silent loss by conversation</h2>'
    yield (
        "<p>Lost is the part of the sealed values due in a later request that did not come back as "
        "they were; what the rules allow to be absent is not counted as due. Reasoning that stays "
        "high and cache reads that stay low beside it are what a loss costs.</p>"
    )
    columns = (
        "conversation",
        "model",
        "calls",
        "lost",
        "came back",
        "removed there",
        "reasoning tokens a call",
        "cached tokens a call",
    )
    rows = map(_conversation, report.conversations)
    yield html.table("Conversations, the worst first", columns, rows, "calls,lost,came back")
    if report.hidden:
        yield f"<p>{count(report.hidden, 'further conversation')} not shown.</p>"
    yield "</section>"


def _conversation(one: Conversation) -> tuple[str, ...]:
    score = one.score
    verdict = Verdict.OK if not score else Verdict.DEGRADES
    lost = "none due" if score is None else f'<span class="mark {verdict}">{score:.0%}</span>'
    return (
        html.code(one.key[:12]),
        f'<span class="whole">{escape(one.model)}</span>',
        f"{one.calls:,}",
        lost,
        f"{one.back:,} of {one.due:,}",
        f"{one.removed:,}" if one.removed else "",
        html.bars("Reasoning tokens a call", [spent.reasoning for spent in one.spent]),
        html.bars("Cached tokens a call", [spent.cached for spent in one.spent]),
    )


def _rules(report: Report) -> Iterator[str]:
    cited = {i.lead.rule: i for p in report.problems for i in p.incidents if i.says}
    rows = [
        (
            html.rule_row(rule, i.lead.verdict),
            escape(i.says),
            escape(i.source),
            html.place(explained(rule), linked=explained(rule) != link(rule)),
        )
        for rule, i in sorted(cited.items())
    ]
    yield '<section aria-labelledby="rules"><h2 id="rules">Rules cited</h2>'
    if rows:
        yield html.table(
            "What the provider's contract says", ("rule", "says", "source", "more"), rows
        )
    else:
        yield "<p>No rule is on record.</p>"
    yield "</section>"
