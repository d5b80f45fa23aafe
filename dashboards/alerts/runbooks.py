"""What each alert means, what to look at and what to do. Rendered into the rules and a page.

The queries stand in the language of the store they are for; the tests check every name in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dashboards.alerts import rules
from dashboards.alerts.promql import label, name
from otel_sealed import vocab

PROMQL: Final = "promql"
TRACEQL: Final = "traceql"
LOGQL: Final = "logql"

_FP: Final = ", ".join(label(part) for part in rules.FINGERPRINT)


@dataclass(frozen=True, slots=True)
class Look:
    """One query to run, and what it shows."""

    says: str
    language: str
    query: str


@dataclass(frozen=True, slots=True)
class Runbook:
    """The page of one alert. `SERVICE` in a query stands for that of the alert."""

    alert: str
    means: str
    look: tuple[Look, ...]
    do: tuple[str, ...]


def _rate(metric: vocab.Metric, by: str, matchers: str = "") -> str:
    return f"sum by ({by}) (increase({name(metric)}{matchers}[1h]))"


def _events(event: vocab.Event) -> str:
    return f'{{service_name="SERVICE"}} | {label(vocab.EVENT_NAME)}="{event.name}"'


def _calls(attribute: str, operator: str, value: str) -> str:
    asked = f'resource.service.name = "SERVICE" && span.{attribute} {operator} "{value}"'
    return f"{{ {asked} }}"


_REFUSED: Final = f'{{{label(vocab.PROVIDER_VERDICT)}="rejected"}}'
_CLASSES: Final = Look(
    "the classes of the refusals: what the provider minds",
    PROMQL,
    _rate(vocab.REJECTIONS, f"job, {label(vocab.REJECTION_CLASS)}, {label(vocab.REQUEST_MODEL)}"),
)
_OUR_VIEW: Final = Look(
    "our verdict on the refused calls: `breaks` or `degrades` is a loss in the service itself, `ok`"
    " and `allowed` came back whole and were refused beyond it",
    PROMQL,
    _rate(
        vocab.OBJECTIONS, f"job, {label(vocab.VERDICT)}, {label(vocab.SERVER_ADDRESS)}", _REFUSED
    ),
)
_WHAT: Final = Look(
    "what is lost, how it changed and where",
    PROMQL,
    _rate(vocab.CAUSES, f"job, {_FP}, {label(vocab.CAUSE)}, {label(vocab.LOCUS)}"),
)
_FIRST_CALLS: Final = Look(
    "the calls themselves; `otel_sealed.findings` says what is wrong with each",
    TRACEQL,
    _calls(vocab.VERDICT, "=~", "degrades|breaks"),
)
_LOG: Final = Look(
    "the log events: each stands alone, with position, cause, and the trace that brought the value",
    LOGQL,
    _events(vocab.VIOLATION),
)

RUNBOOKS: Final = (
    Runbook(
        rules.REFUSALS,
        "For ten minutes a provider has refused more than 1 % of what this service sends it, at"
        " least five calls, because of sealed state. Those calls fail. Most conversations"
        " it strikes"
        " cannot go on, since each request repeats the history that is refused.",
        (_OUR_VIEW, _CLASSES, _WHAT, _FIRST_CALLS, _LOG),
        (
            (
                "Our verdict is `breaks` or `degrades`: the service loses or changes"
                " sealed values. Look"
                " for a deploy or a new version of a framework at the first refused call,"
                " and take it"
                " back."
            ),
            "Our verdict is `ok` or `allowed`, at one host: see OtelSealedOneHostRefuses.",
            (
                "Our verdict is `ok` or `allowed`, at all hosts: the account, the model or"
                " the provider"
                " changed. Ask whether other services see it too; open a case with the"
                " provider, with"
                " the class and the times."
            ),
            (
                "To bring single conversations back, start their turn anew without the"
                " refused blocks;"
                " the model loses the reasoning in them."
            ),
        ),
    ),
    Runbook(
        rules.INCIDENT,
        "Three services or more send sealed state back whole, and the provider refuses it."
        " No change"
        " of one service explains that. While it lasts, alerts of single services about this"
        " provider are held back.",
        (
            Look(
                "how many services it strikes, and since when",
                PROMQL,
                f"count by ({label(vocab.PROVIDER)}) (sum by (job, {label(vocab.PROVIDER)})"
                f" (increase({name(vocab.OBJECTIONS)}{_REFUSED}[10m])) > 0)",
            ),
            Look(
                "one region or gateway, or all of them",
                PROMQL,
                _rate(vocab.OBJECTIONS, label(vocab.SERVER_ADDRESS), _REFUSED),
            ),
            _CLASSES,
        ),
        (
            "Read the provider's status page, and say there what the classes are and since when.",
            (
                "If all of it goes through one gateway of yours, look there first: a new"
                " key, account,"
                " region or backend behind it reads no seal of the old one."
            ),
            (
                "Do not switch running conversations to another vendor with their sealed"
                " state: it is"
                " foreign there. Start turns anew, or wait."
            ),
            "Do not take back deploys because of it.",
        ),
    ),
    Runbook(
        rules.FIRST,
        "A kind of loss (artifact, fate, rule, provider) shows in this service for the"
        " first time in"
        " seven days. One event is enough. It is the cheapest moment to mend it.",
        (_WHAT, _LOG, _FIRST_CALLS),
        (
            (
                "Find what changed: compare the first call with the last deploy and with"
                " the versions in"
                f" `{vocab.SDK_VERSIONS}` of the event."
            ),
            "The rule in docs/rules.md says what the contract is and where it is documented.",
            (
                "Loss and rule understood, and not to be mended now: list it in"
                " `OTEL_SEALED_KNOWN` with"
                " a reason and a last day. Known losses raise no alert."
            ),
        ),
    ),
    Runbook(
        rules.SILENT,
        "The provider answers with 200, and the model goes on without reasoning it had: answers get"
        " worse and nothing fails. More than one loss in a hundred calls, and at least five within"
        " the hour.",
        (
            Look(
                "what came back of what had to",
                PROMQL,
                f"sum by (job, {label(vocab.PROVIDER)}) (increase({name(vocab.RETURNED)}[1h]))"
                f" / sum by (job, {label(vocab.PROVIDER)}) (increase({name(vocab.EXPECTED)}[1h]))",
            ),
            _WHAT,
            _LOG,
        ),
        (
            (
                "Mend the code that rebuilds messages; the fate says what it does, and"
                f" `{vocab.RETURNED_POSITION}` where."
            ),
            (
                "Where the framework does it, keep it from filtering block types, or pin a"
                " version that"
                " does not."
            ),
            (
                "An event that says `otel_sealed.disputed` rests on a rule that sources"
                " disagree about."
                " If quality does not suffer, list it in `OTEL_SEALED_KNOWN`."
            ),
        ),
    ),
    Runbook(
        rules.REMOVALS,
        "The provider said that it removed sealed state from requests of this service. It"
        " is not one"
        " of the removals it makes by design, and nobody asked for it. The model went on without.",
        (
            Look(
                "our verdict on those calls",
                PROMQL,
                _rate(
                    vocab.OBJECTIONS,
                    f"job, {label(vocab.VERDICT)}, {label(vocab.SERVER_ADDRESS)}",
                    f'{{{label(vocab.PROVIDER_VERDICT)}="removed"}}',
                ),
            ),
            Look(
                "where provider and we disagree",
                LOGQL,
                _events(vocab.DISAGREEMENT),
            ),
            Look(
                "the calls",
                TRACEQL,
                _calls(vocab.PROVIDER_VERDICT, "=", "removed"),
            ),
        ),
        (
            (
                "Our verdict is a violation: mend what OtelSealedFirstViolation or"
                " OtelSealedSilentLoss"
                " of this service name."
            ),
            (
                "Our verdict is `ok`: the seal came back whole and was no longer good"
                " there. Look for a"
                " changed model, account or region in the middle of conversations."
            ),
        ),
    ),
    Runbook(
        rules.ONE_HOST,
        "The service reaches the provider through several hosts, and only one of them refuses. A"
        " seal of one account, platform or region is not good in another: this is routing, not the"
        " service's code.",
        (
            Look(
                "refusals beside calls, by host",
                PROMQL,
                _rate(vocab.OBJECTIONS, f"job, {label(vocab.SERVER_ADDRESS)}", _REFUSED),
            ),
            Look(
                "the same for all calls",
                PROMQL,
                _rate(vocab.OUTCOMES, f"job, {label(vocab.SERVER_ADDRESS)}"),
            ),
            _CLASSES,
        ),
        (
            "Keep a conversation on the host that began it: sticky routing by conversation.",
            (
                "Or take the host out of the pool, until it uses the same account and keys as"
                " the rest."
            ),
        ),
    ),
    Runbook(
        rules.BLIND,
        "What otel_sealed says of this service cannot be trusted, and silence proves nothing. The"
        " label `reason` says why: `unknown` (most of what goes out was never seen coming in),"
        " `state` (calls pass unobserved), `seams` (methods of an SDK were not found), `errors`"
        " (faults of its own), `gone` (it stopped reporting). Silent loss is held back meanwhile.",
        (
            Look(
                "the share that was never seen coming in",
                PROMQL,
                _rate(vocab.CHECKS, "job", f'{{{label(vocab.FATE)}="unknown"}}')
                + " / "
                + _rate(vocab.CHECKS, "job"),
            ),
            Look(
                "turns forgotten because the ledger is full",
                PROMQL,
                _rate(vocab.EVICTIONS, "job"),
            ),
            Look(
                "faults of its own, by place",
                PROMQL,
                _rate(
                    vocab.INTERNAL_ERRORS, f"job, {label(vocab.PLACE)}, {label(vocab.ERROR_TYPE)}"
                ),
            ),
        ),
        (
            (
                "`unknown`: several workers or replicas share conversations. Have them share a"
                " ledger (`OTEL_SEALED_LEDGER`), or route each conversation to one process."
                " Evictions: raise `OTEL_SEALED_MAX_TURNS`, `OTEL_SEALED_LEDGER_MAX_MB`."
            ),
            (
                "`state`: `killed` is the kill file; remove it once its reason is gone."
                " `resting` follows"
                " many faults: see `errors`."
            ),
            (
                "`seams`: an SDK version that otel_sealed does not know. `otel-sealed"
                " doctor` in that"
                " environment names the seams; pin the SDK or update otel-sealed."
            ),
            (
                "`errors`: report the place and the class with the SDK versions; nothing"
                " of content is"
                " in either."
            ),
            "`gone`: a deploy no longer calls `instrument()`, or another meter provider took over.",
        ),
    ),
    Runbook(
        rules.LEAK,
        "An attribute of somebody's spans (`span`) or log records (`log`) holds a sealed"
        " value in the"
        " clear. Values are told once for each attribute of a process, so one is as bad as many.",
        (
            Look(
                "which attribute, of which instrumentation",
                LOGQL,
                _events(vocab.LEAK),
            ),
            Look("how many attributes", PROMQL, _rate(vocab.LEAKS, f"job, {label(vocab.PLACE)}")),
        ),
        (
            "Wrap the exporter in `RedactingSpanExporter`, or switch that capture off.",
            "Delete what is stored already, as your rules for it say.",
            (
                "The alert ends an hour after the last process found it; a process that starts anew"
                " tells again while the attribute is written."
            ),
        ),
    ),
)


def short(runbook: Runbook) -> str:
    """The text that travels with the alert."""
    look = "\n".join(f"- {item.says}: {item.query}" for item in runbook.look)
    do = "\n".join(f"- {step}" for step in runbook.do)
    return f"{runbook.means}\n\nLook at\n{look}\n- what a rule says: docs/rules.md\n\nDo\n{do}\n"


_HEAD: Final = """\
# Runbooks

Rendered from `dashboards/alerts` by `python -m dashboards.alerts.render`.

The alerts of `dashboards/alerts/otel_sealed.rules.yml`. Two page, the others are tickets. They
stand on counters of each process, whether a call's trace is sampled or not, and leave out known
losses (`OTEL_SEALED_KNOWN`). In the queries `SERVICE` stands for the service of the alert; queries
over metrics group by `job`, use `service_name` where your store has it.

A finding, and the label `otel_sealed_rule`, has the id of a rule, such as `A2`: it is an anchor on
[the page of rules](rules.md#a2), in lower case. Fates, verdicts and causes are in the
[glossary](glossary.md), classes of refusals in [the contract](contract/common.md#refusals).

`dashboards/alerts/alertmanager.yml` groups, routes and inhibits: a provider incident holds back the
alerts of single services about that provider, a blind observer the silent loss of its service.

| Alert | | When |
| --- | --- | --- |
"""


def page(table: tuple[rules.Rule, ...]) -> str:
    """The whole page."""
    rows = "".join(
        f"| [{book.alert}](#{book.alert.lower()}) | {_severity(table, book.alert)} |"
        f" {book.means.partition('. ')[0].rstrip('.')} |\n"
        for book in RUNBOOKS
    )
    return _HEAD + rows + "".join(map(_section, RUNBOOKS))


def _severity(table: tuple[rules.Rule, ...], alert: str) -> str:
    return next(rule.severity for rule in table if rule.alert == alert)


def _section(book: Runbook) -> str:
    look = "\n\n".join(f"{_capital(x.says)}:\n\n```{x.language}\n{x.query}\n```" for x in book.look)
    do = "\n".join(f"- {step}" for step in book.do)
    return (
        f"\n## {book.alert}\n\n{book.means}\n\n### What to look at\n\n{look}\n\n"
        f"What a rule says: [rules](rules.md).\n\n### What to do\n\n{do}\n"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
