"""A report as span attributes: pure, bounded, scalars and homogeneous arrays only.

The attributes are listed in docs/attributes.md#on-spans. Where nothing was sent, a row of
`otel_sealed.returned.*` keeps the digest that was expected and has an empty position, so that a
dropped artifact can still be told from any other. Arrays that would hold defaults only (`rules`,
`causes`) are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from otel_sealed import vocab
from otel_sealed.digest import keyed, sub_key
from otel_sealed.model import Cause, Fate, Finding, Report, Verdict
from otel_sealed.model.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Value: TypeAlias = "str | bool | int | float | Sequence[str] | Sequence[int]"
Rekey: TypeAlias = Callable[[bytes, bytes], bytes]
"""(conversation, digest) to the digest under that conversation's sub-key."""

QUIET_TYPES: Final = 8
"""Block types of the request that are listed while nothing is wrong."""
MAX_FACTS: Final = 32
MAX_CARRIED: Final = 16
"""Rows of what another carries in its place, the server or a compaction, that are listed again."""
_EMPTY: Final[tuple[Value, ...]] = ("", [])
_ELSEWHERE: Final = frozenset(
    {Fate.MISPLACED, Fate.FOREIGN, Fate.MERGED, Fate.SUBSTITUTED, Fate.MODIFIED, Fate.FABRICATED}
)
"""Fates of a value that is out of its slot: `returned` is where it, or what replaced it, is."""
_WHOLE: Final = frozenset({Fate.MISPLACED, Fate.FOREIGN})
"""Of these, the ones whose bytes are those that came."""
_TEXTUAL: Final = frozenset({Cause.READABLE_TEXT, Cause.IN_TEXT, Cause.PLACEHOLDER})
_BETA = re.compile(r"\A[a-z0-9]+(?:-[a-z][a-z0-9]*){0,6}-\d{4}-\d{2}-\d{2}\Z")


def rekey_with(key: bytes) -> Rekey:
    """The re-keying of readable values: `hmac(hmac(key, "conversation" + id), digest)`."""

    @lru_cache(maxsize=256)
    def under(conversation: bytes) -> Callable[[bytes], bytes]:
        return keyed(sub_key(key, conversation))

    def rekey(conversation: bytes, digest: bytes) -> bytes:
        return under(conversation)(digest)

    return rekey


@record(frozen=True, slots=True)
class Row:
    """One finding as it leaves the process. An empty `position` means: not in the request."""

    artifact: str
    digest: str
    size: int
    position: str
    fate: Fate
    verdict: Verdict
    rule: str
    cause: str
    first: bool

    @property
    def listed(self) -> bool:
        """Whether it has a row of its own: not ok, or out for the first time."""
        return self.first or self.verdict is not Verdict.OK

    @property
    def carried(self) -> bool:
        """Whether it was told before, and is not in the request because another carries it."""
        absent = self.fate in (Fate.SERVER_HELD, Fate.SUPERSEDED)
        return absent and not self.first and self.verdict is Verdict.ALLOWED


def public_digest(
    artifact: str, digest: bytes, conversation: bytes, rekey: Rekey, *, readable: bool = False
) -> str:
    """Hex of a digest as it may leave: readable values only under the conversation's sub-key."""
    if not digest or (vocab.is_seal(artifact) and not readable):
        return digest.hex()
    return rekey(conversation, digest).hex() if conversation else ""


def row_of(finding: Finding, conversation: bytes, rekey: Rekey) -> Row:
    """The row of one finding."""
    # A carrier may stand there without its seal: what was sent is told by the digest alone.
    sent = bool(finding.digest_out) or (finding.returned is not None and not finding.digest_in)
    digest = finding.digest_out if sent else finding.digest_in
    # What stands in a seal's place may be text, whose digest says more than a seal's does.
    readable = sent and (finding.fate is Fate.SUBSTITUTED or finding.cause in _TEXTUAL)
    return Row(
        artifact=vocab.word(finding.artifact),
        digest=public_digest(finding.artifact, digest, conversation, rekey, readable=readable),
        size=_size(finding, sent=sent),
        # a carrier that lost its seal is where the seal is not
        position=vocab.path(finding.returned) if sent or finding.fate in _ELSEWHERE else "",
        fate=finding.fate,
        verdict=finding.verdict,
        rule=vocab.rule_id(finding.rule),
        cause=finding.cause.value if finding.cause else "",
        first=finding.first,
    )


def _size(finding: Finding, *, sent: bool) -> int:
    """Bytes as sent, -1 where nothing of the value was."""
    if not sent and finding.fate in _WHOLE and finding.returned is not None:
        return -1 if finding.size_in is None else finding.size_in
    return finding.size_out if sent and finding.size_out is not None else -1


def rows_of(report: Report, rekey: Rekey) -> tuple[Row, ...]:
    """One row for each finding, in its order."""
    return tuple(row_of(finding, report.conversation, rekey) for finding in report.findings)


def span_attributes(
    report: Report, rows: Sequence[Row], *, rekey: Rekey, key_id: str, rules_version: str = ""
) -> dict[str, Value]:
    """All `otel_sealed.*` attributes of a call, the most important first."""
    news = _news(rows)
    listed, cut = _pick(news)
    findings = _readable(news)
    loud = sum(row.verdict is not Verdict.OK for row in news)
    cut = cut or len(report.received) > vocab.MAX_ROWS or loud > vocab.MAX_FINDINGS
    attributes = _scalars(report, rows, key_id=key_id, rules_version=rules_version)
    attributes[vocab.TRUNCATED] = cut
    if findings:
        attributes[vocab.FINDINGS] = findings
    if report.received:
        attributes |= _received(report, rekey)
    if listed:
        attributes |= _returned(listed)
    attributes |= _rest(report, rows, listed, rekey)
    attributes |= _types(report, quiet=not loud)
    if report.receipts:
        attributes |= _tools(report, rekey)
    attributes[vocab.FACTS] = facts_of(report, rekey)
    return {name: value for name, value in attributes.items() if value not in _EMPTY}


def _scalars(
    report: Report, rows: Sequence[Row], *, key_id: str, rules_version: str
) -> dict[str, Value]:
    scalars: dict[str, Value] = {}
    if report.verdict is not None:
        scalars[vocab.VERDICT] = report.verdict.value
    scalars[vocab.PROVIDER_VERDICT] = report.provider_verdict.value
    if report.rejection is not None:
        scalars[vocab.REJECTION_CLASS] = report.rejection.value
    scalars[vocab.VIOLATIONS_COUNT] = sum(row.verdict.violates for row in rows)
    scalars[vocab.CONVERSATION_KEY] = report.conversation.hex()
    scalars[vocab.CARRY] = report.carry.value
    scalars[vocab.RECEIVED_COUNT] = len(report.received)
    scalars[vocab.RETURNED_COUNT] = report.returned
    scalars[vocab.EXPECTED_COUNT] = report.expected
    if report.summary_size:
        scalars[vocab.SUMMARY] = True
        scalars[vocab.SUMMARY_SIZE] = report.summary_size
    scalars[vocab.RULES_VERSION] = rules_version
    scalars[vocab.HASH_ALGORITHM_KEY] = vocab.HASH_ALGORITHM
    scalars[vocab.HASH_KEY_ID] = key_id
    return scalars


def _news(rows: Sequence[Row]) -> list[Row]:
    """The rows with a place of their own. Of those carried elsewhere all or none: they only add up.

    A long conversation whose history the server keeps would else list most of it in every span.
    """
    listed = [row for row in rows if row.listed]
    if sum(row.carried for row in listed) <= MAX_CARRIED:
        return listed
    return [row for row in listed if not row.carried]


def _pick(rows: list[Row]) -> tuple[list[Row], bool]:
    """At most 64 rows, the worst first to stay, in their old order; and whether any was cut."""
    if len(rows) <= vocab.MAX_ROWS:
        return rows, False
    worst = sorted(range(len(rows)), key=lambda at: -rows[at].verdict.rank)[: vocab.MAX_ROWS]
    return [rows[at] for at in sorted(worst)], True


def _readable(rows: Iterable[Row]) -> list[str]:
    loud = [row for row in rows if row.verdict is not Verdict.OK]
    loud.sort(key=lambda row: -row.verdict.rank)
    return [
        " ".join(part for part in (row.fate, row.artifact, row.rule, row.verdict) if part)
        for row in loud[: vocab.MAX_FINDINGS]
    ]


def _received(report: Report, rekey: Rekey) -> dict[str, Value]:
    rows = report.received[: vocab.MAX_ROWS]
    return {
        vocab.RECEIVED_ARTIFACTS: [vocab.word(row.artifact) for row in rows],
        vocab.RECEIVED_POSITIONS: [vocab.path(row.path) for row in rows],
        **received_values(report, rekey),
    }


def received_values(report: Report, rekey: Rekey) -> dict[str, Value]:
    """What of the rows that came in differs between calls of one shape."""
    rows, key = report.received[: vocab.MAX_ROWS], report.conversation
    values: dict[str, Value] = {
        vocab.RECEIVED_DIGESTS: [public_digest(r.artifact, r.digest, key, rekey) for r in rows],
        vocab.RECEIVED_SIZES: [row.size for row in rows],
    }
    ids = [rekey(key, row.id).hex() if row.id and key else "" for row in rows]
    if any(ids):
        values[vocab.RECEIVED_IDS] = ids
    return values


def _returned(rows: Sequence[Row]) -> dict[str, Value]:
    columns: dict[str, Value] = {
        vocab.RETURNED_ARTIFACTS: [row.artifact for row in rows],
        vocab.RETURNED_DIGESTS: [row.digest for row in rows],
        vocab.RETURNED_SIZES: [row.size for row in rows],
        vocab.RETURNED_POSITIONS: [row.position for row in rows],
        vocab.RETURNED_FATES: [row.fate.value for row in rows],
        vocab.RETURNED_VERDICTS: [row.verdict.value for row in rows],
    }
    if any(row.rule for row in rows):
        columns[vocab.RETURNED_RULES] = [row.rule for row in rows]
    if any(row.cause for row in rows):
        columns[vocab.RETURNED_CAUSES] = [row.cause for row in rows]
    return columns


def _rest(
    report: Report, rows: Sequence[Row], listed: Sequence[Row], rekey: Rekey
) -> dict[str, Value]:
    """What has no row of its own: what is well and went out before, and what had no room."""
    shown = {id(row) for row in listed}
    cut = [row for row in rows if row.listed and id(row) not in shown]
    count = report.rest_count + len(cut)
    if not count:
        return {}
    rolling = hashlib.sha256(report.rest_digest)
    for row in cut:
        rolling.update(f"{row.artifact}={row.digest};".encode())
    return {
        vocab.REST_COUNT: count,
        vocab.REST_DIGEST: rekey(report.conversation, rolling.digest()).hex(),
    }


def _types(report: Report, *, quiet: bool) -> dict[str, Value]:
    newest = QUIET_TYPES if quiet else vocab.MAX_TYPES
    return {
        vocab.RECEIVED_BLOCK_TYPES: [
            vocab.word(name) for name in report.received_types[: vocab.MAX_TYPES]
        ],
        vocab.RETURNED_BLOCK_TYPES: [vocab.word(name) for name in report.returned_types[-newest:]],
    }


def _tools(report: Report, rekey: Rekey) -> dict[str, Value]:
    """The receipts of the tool results that go out; ids and effects under the sub-key only."""
    receipts = report.receipts[: vocab.MAX_ROWS]
    key = report.conversation

    def hidden(digest: bytes) -> str:
        return rekey(key, digest).hex() if digest and key else ""

    columns: dict[str, Value] = {
        vocab.TOOL_NAMES: [receipt.name for receipt in receipts],
        vocab.TOOL_CALLS: [hidden(receipt.call) for receipt in receipts],
        vocab.TOOL_ARGUMENT_SIZES: [_known(receipt.arguments_size) for receipt in receipts],
        vocab.TOOL_RESULT_SIZES: [receipt.result_size for receipt in receipts],
        vocab.TOOL_ERRORS: [_flag(receipt.failed) for receipt in receipts],
    }
    if any(receipt.effect for receipt in receipts):
        columns[vocab.TOOL_EFFECTS] = [hidden(receipt.effect) for receipt in receipts]
        columns[vocab.TOOL_EFFECT_SIZES] = [_known(receipt.effect_size) for receipt in receipts]
    return columns


def _known(size: int | None) -> int:
    return -1 if size is None else size


def _flag(flag: bool | None) -> str:  # noqa: FBT001 - three states, read off a record
    return "unknown" if flag is None else str(flag).lower()


def facts_of(report: Report, rekey: Rekey) -> list[str]:
    """What rules asked for, as `key=value`, so that the call can be judged again."""
    facts = report.facts
    pairs: list[tuple[str, str]] = []
    for name, flag in (("thinking", facts.thinking), ("store", facts.store)):
        if flag is not None:
            pairs.append((name, "true" if flag else "false"))
    for name, text in (
        ("stop", report.stop.lower()),
        ("platform", facts.platform),
        ("reference", facts.reference),
        ("context", facts.context),
        ("operation", facts.operation),
        ("transport", facts.transport),
    ):
        if text:
            pairs.append((name, vocab.word(text)))
    if facts.background:
        pairs.append(("background", "true"))
    if not report.complete:
        pairs.append(("complete", "false"))
    if report.conversation:
        issuer = issuer_of(report)
        pairs.append(("issuer", rekey(report.conversation, issuer).hex()))
        if report.prefix:
            pairs.append(("prefix", rekey(report.conversation, report.prefix).hex()))
    # before lists of any length: what was not read is never cut off
    pairs += [("unread", vocab.word(part)) for part in report.unread[:4]]
    betas = [beta if _BETA.match(beta) and len(beta) <= 64 else vocab.OTHER for beta in facts.betas]  # noqa: PLR2004
    pairs += [("beta", beta) for beta in betas[:8]]
    pairs += [("flag", vocab.word(flag)) for flag in facts.flags[:8]]
    pairs += [(f"drift.{vocab.word(name)}", str(count)) for name, count in report.drift[:8]]
    return [f"{name}={value}" for name, value in pairs[:MAX_FACTS]]


def issuer_of(report: Report) -> bytes:
    """One digest for platform, account and resource; the account itself never leaves."""
    facts = report.facts
    return _hashed(facts.vendor, facts.platform, facts.host, facts.account)


@lru_cache(maxsize=256)
def _hashed(vendor: str, platform: str, host: str, account: bytes) -> bytes:
    parts = (vendor.encode(), platform.encode(), host.encode(), account)
    return hashlib.sha256(b"\0".join(parts)).digest()
