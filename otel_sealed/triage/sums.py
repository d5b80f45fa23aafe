"""What a record could not say well of: what was not judged, failed, or passed unobserved.

Model. A call is well only as far as it was judged. What was not is counted here and said wherever a
command says that nothing degrades or breaks (`run`, `triage`, `report`): values under an
`unverifiable` verdict, by the rule that says why, each value once however often it was sent; calls
that failed, by a word of a closed vocabulary; calls whose bodies were not read, by the reason;
requests that nobody observed, by client and host. A call is *judged in full* where none of this is
said of it, and where any is said, a statement that nothing broke names the number of those calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from otel_sealed import vocab
from otel_sealed.model import Fate, ProviderVerdict, Rejection, Verdict
from otel_sealed.triage.unobserved import Passed, lines, sentence

Json: TypeAlias = Mapping[str, Any]
Value: TypeAlias = tuple[bytes, str]
"""What a value is known by, and the rule under which it could not be judged."""

_BEFORE: Final = (
    "APIConnectionError APITimeoutError CancelledError ClientConnectorError ConnectError"
    " ConnectTimeout ConnectionError ConnectionRefusedError ConnectionResetError GeneratorExit"
    " KeyboardInterrupt NetworkError PoolTimeout ProxyError ReadError ReadTimeout"
    " RemoteProtocolError SSLError ServerDisconnectedError SystemExit TimeoutError"
    " TimeoutException TransportError WriteError WriteTimeout gaierror timeout"
)
UNANSWERED: Final = frozenset(_BEFORE.split())
"""Classes of exceptions that come before an answer. Nothing else of an exception is ever shown."""
_AFTER: Final = (
    "APIError APIResponseValidationError APIStatusError AuthenticationError BadRequestError"
    " ClientError ConflictError ContentTooLargeError GatewayTimeoutError HTTPStatusError"
    " InternalServerError NotFoundError OverloadedError PermissionDeniedError RateLimitError"
    " RequestTimeoutError ServerError ServiceUnavailableError UnprocessableEntityError"
)
ANSWERED: Final = frozenset(_AFTER.split())
"""Classes of exceptions that are an answer; an HTTP status from 400 on is one, too."""
_STATUS: Final = re.compile(r"[45]\d\d\Z")
_LONGEST: Final = 200
_UNREAD: Final = "unread="
_MOST: Final = 64
"""Values of one call, as many as a span lists."""
_OTHER_RULE: Final = "are under a rule that does not accuse"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why values could not be judged, and what there is to do."""

    says: str
    remedy: str


REASONS: Final = {
    "X1": Reason(
        "are of a model, a vendor or a block type that this version does not know",
        "update otel-sealed; otel-sealed doctor names the version of its rules",
    ),
    "X2": Reason(
        "came in another process, or before the ledger began",
        "let the processes of a conversation share a ledger: OTEL_SEALED_LEDGER",
    ),
    "X11": Reason("came in a stream that was cut, and may never have been whole", ""),
    "X12": Reason(
        "continue an answer that was not seen here",
        "let the processes of a conversation share a ledger: OTEL_SEALED_LEDGER",
    ),
}


@dataclass(slots=True)
class Sums:
    """What could not be judged of a record.

    Attributes:
        unjudged: Values by rule.
        failed: Calls by `failure`, refusals of sealed state left out.
        unread: Calls by the reason for which a body was not read.
        short: Observed calls that were not judged in full.
        unobserved: Requests with turns of a model that nobody observed.
    """

    unjudged: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    short: int = 0
    unobserved: Passed = field(default_factory=Counter)

    def __bool__(self) -> bool:
        """Whether there is anything to say."""
        found = self.unjudged or self.failed or self.unread or self.unobserved
        return bool(found or self.short)

    def judged(self, calls: int) -> tuple[int, int]:
        """Of the observed calls those judged in full, and of how many calls in all."""
        return max(0, calls - self.short), calls + self.unobserved.total()


# ------------------------------------------------------------------------------ what a span says


def failure(error: object) -> str:
    """The word for an `error.type`: a status, a class we know, `other`; empty for none."""
    if not isinstance(error, str) or not error:
        return ""
    name = error[:_LONGEST].rpartition(".")[2]
    known = name in UNANSWERED or name in ANSWERED or _STATUS.match(name)
    return name if known else vocab.OTHER


def failed(a: Json) -> str:
    """How the call of a span failed; empty where it did not, or was refused for sealed state."""
    rejection = a.get(vocab.REJECTION_CLASS)
    refused = a.get(vocab.PROVIDER_VERDICT) == ProviderVerdict.REJECTED
    if refused and rejection not in (None, "", Rejection.OTHER):
        return ""
    return failure(a.get(vocab.ERROR_TYPE))


def unread(a: Json) -> str:
    """The reason for which a body of the call was not read; empty where all were."""
    facts = a.get(vocab.FACTS)
    for fact in facts if isinstance(facts, (list, tuple)) else ():
        if isinstance(fact, str) and fact.startswith(_UNREAD):
            return vocab.word(fact.removeprefix(_UNREAD))
    return ""


def in_full(a: Json) -> bool:
    """Whether the call of a span was judged, and each of its values."""
    verdicts = a.get(vocab.RETURNED_VERDICTS)
    listed = verdicts if isinstance(verdicts, (list, tuple)) else ()
    unsure = a.get(vocab.VERDICT) == Verdict.UNVERIFIABLE or Verdict.UNVERIFIABLE in listed
    return not (unsure or failed(a) or unread(a))


def unjudged(a: Json, span: str) -> tuple[Value, ...]:
    """The values of a call that could not be judged."""
    rows = _rows(a)
    return tuple(
        (_known_by(digest, span, at), vocab.rule_id(rule))
        for at, (verdict, rule, digest, _, _) in enumerate(rows)
        if verdict == Verdict.UNVERIFIABLE
    )


def strangers(a: Json) -> int:
    """How many values went back that were never seen coming in."""
    return sum(fate == Fate.UNKNOWN and position != "" for _, _, _, fate, position in _rows(a))


_COLUMNS: Final = (
    vocab.RETURNED_VERDICTS,
    vocab.RETURNED_RULES,
    vocab.RETURNED_DIGESTS,
    vocab.RETURNED_FATES,
    vocab.RETURNED_POSITIONS,
)


def _rows(a: Json) -> list[tuple[str, ...]]:
    """Verdict, rule, digest, fate and place of each listed value, where any is not judged."""
    verdicts = a.get(vocab.RETURNED_VERDICTS)
    if not isinstance(verdicts, (list, tuple)) or Verdict.UNVERIFIABLE not in verdicts:
        return []
    columns = [_texts(a.get(name), len(verdicts)) for name in _COLUMNS]
    return list(zip(*columns, strict=True))[:_MOST]


def _texts(value: Any, length: int) -> list[str]:
    if not isinstance(value, (list, tuple)) or len(value) != length:
        return [""] * length
    return [item if isinstance(item, str) else "" for item in value]


def _known_by(digest: str, span: str, at: int) -> bytes:
    try:
        found = bytes.fromhex(digest)[:32]
    except ValueError:
        found = b""
    return found or f"{span[:32]} {at}".encode("ascii", "replace")


# -------------------------------------------------------------------------------- what is printed


def sentences(sums: Sums) -> list[str]:
    """All of it, a sentence each, with what there is to do."""
    said = ["; ".join(part for part in said if part) for said in _said(sums)]
    return [*said, *sentence(sums.unobserved)]


def scope(calls: int, sums: Sums) -> str:
    """How many calls were judged in full; empty where all were."""
    if not sums:
        return ""
    judged, total = sums.judged(calls)
    return f"{judged:,} of {total:,} calls {'was' if judged == 1 else 'were'} judged in full"


def screen(sums: Sums) -> list[str]:
    """The same for a terminal: what there is to do on a line of its own."""
    shown = [
        line
        for says, remedy in _said(sums)
        for line in (says, f"  {remedy}" * bool(remedy))
        if line
    ]
    return [*shown, *lines(sums.unobserved)]


def _said(sums: Sums) -> Iterator[tuple[str, str]]:
    for group, says in (
        (UNANSWERED, "failed before an answer"),
        (ANSWERED, "got an error for an answer"),
        (None, "failed"),
    ):
        found = Counter({k: n for k, n in sums.failed.items() if _group(k) is group})
        if found:
            yield f"{_plural(found.total(), 'call')} {says}: {_listed(found)}", ""
    if sums.unread:
        calls = _plural(sums.unread.total(), "call")
        yield f"{calls} could not be read, and not be judged: {_listed(sums.unread)}", ""
    for rule, count in sums.unjudged.most_common():
        why = reason(rule)
        values = _plural(count, "value")
        yield f"{values} could not be judged: they {why.says} [{rule or '?'}]", why.remedy


def reason(rule: str) -> Reason:
    """Why values under a rule could not be judged."""
    return REASONS.get(rule, Reason(_OTHER_RULE, ""))


def _group(word: str) -> frozenset[str] | None:
    if word in UNANSWERED:
        return UNANSWERED
    return ANSWERED if word in ANSWERED or _STATUS.match(word) else None


def _listed(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in found.most_common(8))


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
