"""Names: every attribute, metric, event, unit and wire word that may leave the process.

The tables are data: the registry, the attribute page and the golden file are rendered from them.
Nothing else in the package spells a telemetry name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from otel_sealed import declared
from otel_sealed.model import (
    Carry,
    Cause,
    Confidence,
    Fate,
    Locus,
    ProviderVerdict,
    Rejection,
    Verdict,
)

if TYPE_CHECKING:
    from enum import StrEnum

# -------------------------------------------------------------------------- words of the wire

_WORD = re.compile(r"[a-z0-9_.]{1,40}\Z")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,159}\Z")
_MODEL_CUT = re.compile("[-:/@]")
_MODEL_PART = re.compile(r"[A-Za-z0-9._+]{0,32}\Z")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\Z")
_LONGEST_NAME = 160
_LONGEST_HOST = 600
_PHRASE = re.compile(r"[A-Za-z0-9 .,:;()+%\u2013-]{1,160}\Z")
_RULE = re.compile(r"[A-Za-z0-9._-]{1,40}\Z")
_CAMEL = declared.SPELLED | frozenset(
    {
        "codeExecutionResult",
        "executableCode",
        "fileData",
        "functionCall",
        "functionResponse",
        "inlineData",
        "reasoningContent",
        "reasoningText",
        "redactedContent",
        "systemInstruction",
        "toolCall",
        "toolResponse",
        "toolResult",
        "toolUse",
    }
)

OTHER: Final = "other"
_MAX_HARMLESS: Final = 4096
_harmless: set[str] = set()  # words met before, all of them matches of `_WORD`


def word(text: object, known: frozenset[str] = frozenset()) -> str:
    """`text` if it is vocabulary or harmless (`[a-z0-9_.]{1,40}`), else `other`.

    Wire strings are content too: a type or key made up by an attacker, or a blob in its place,
    must not reach telemetry (design, principle 8).
    """
    if not isinstance(text, str):
        return OTHER
    if text in _harmless or text in known or text in ARTIFACTS:
        return text
    if _WORD.match(text):
        if len(_harmless) < _MAX_HARMLESS:
            _harmless.add(text)
        return text
    return OTHER


def path(text: str | None) -> str:
    """A dotted position with every part that is no word replaced; empty for None."""
    return _path(text[:200]) if text else ""


@lru_cache(maxsize=4096)
def _path(text: str) -> str:
    return ".".join(word(part, _CAMEL) for part in text.split(".")[:16])


def model_name(text: object) -> str:
    """A model name as it may be shown: known shape and no part long enough to be a blob."""
    if not isinstance(text, str) or not text:
        return ""
    return text if len(text) <= _LONGEST_NAME and _is_model(text) else OTHER


@lru_cache(maxsize=1024)
def names_model(pattern: re.Pattern[str], model: str) -> bool:
    """Whether a pattern finds a model, as it is written or without what platforms add to it."""
    return any(pattern.search(name) for name in (model, bare_model(model), plain_model(model)))


_OWNER = re.compile(r"\A(?:[a-z]{2,6}\.)?(?:anthropic|openai|google)\.")
# Dates, versions and what follows an `@`, at the end of a name. It is read from the end, and what
# was read is not read again: one that begins at every `-` has 2^n ways through `@a-v1@a-v1…`.
_ADDED = re.compile(
    r"\A(?>(?:\d{8}|\d\d-\d\d-\d{4}|tsetal|(?:\d++:)*+\d++v)-@?+|[\w-]++@)++", re.ASCII
)


@lru_cache(maxsize=1024)
def bare_model(model: str) -> str:
    """A model without the date of its snapshot, its region prefix and its version suffix."""
    if len(model) > _LONGEST_NAME:
        return model
    name = _OWNER.sub("", model.rsplit("/", 1)[-1])
    return _ADDED.sub("", name[::-1])[::-1]


@lru_cache(maxsize=1024)
def plain_model(model: str) -> str:
    """A bare model as all who route to it may be compared: `claude-opus-4-5`.

    Relays write its version with a dot, and add a variant after a colon (`claude-opus-4.5:beta`).
    """
    return bare_model(model).partition(":")[0].replace(".", "-")


@lru_cache(maxsize=1024)
def _is_model(text: str) -> bool:
    return _MODEL.match(text) is not None and all(
        _MODEL_PART.match(part) for part in _MODEL_CUT.split(text)
    )


def host_name(text: object) -> str:
    """A host without port, lower case; empty if it has not the shape of one."""
    if not isinstance(text, str) or not text:
        return ""
    if len(text) > _LONGEST_HOST:
        return ""
    return _host(text)


@lru_cache(maxsize=1024)
def _host(text: str) -> str:
    name = text.lower().rpartition("@")[2].partition(":")[0]
    return name if _HOST.match(name) else ""


def phrase(text: object) -> str:
    """A few plain words of our own making; empty for anything that could be something else."""
    if not isinstance(text, str) or not _PHRASE.match(text):
        return ""
    return text if all(len(part) <= 20 for part in text.split()) else ""  # noqa: PLR2004


def rule_id(text: str) -> str:
    """A rule id, which is ours: letters, digits, dots and dashes; empty for anything else."""
    return text if _RULE.match(text) else ""


# ------------------------------------------------------------------------------------- tables

Type = Literal["string", "string[]", "int", "int[]", "boolean", "double"]
Instrument = Literal["counter", "histogram", "updowncounter"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. `members` lists the values of an enum (of each element, for arrays)."""

    name: str
    type: Type
    brief: str
    members: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """False for keys of the OpenTelemetry conventions, which we only use."""
        return self.name.startswith("otel_sealed.")


@dataclass(frozen=True, slots=True)
class Metric:
    """One instrument; `boundaries` are the advised histogram buckets."""

    name: str
    instrument: Instrument
    unit: str
    brief: str
    attributes: tuple[str, ...]
    boundaries: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One log event."""

    name: str
    brief: str
    attributes: tuple[str, ...]


_attributes: list[Attribute] = []


def _define(
    name: str, kind: Type, brief: str, members: type[StrEnum] | tuple[str, ...] = ()
) -> str:
    _attributes.append(Attribute(name, kind, brief, tuple(str(member) for member in members)))
    return name


SCOPE: Final = "otel_sealed"
HASH_ALGORITHM: Final = "hmac-sha256-128"
MAX_FINDINGS: Final = 16
MAX_ROWS: Final = 64
MAX_TYPES: Final = 64
ATTRIBUTE_CEILING: Final = 96
MAX_SERIES: Final = 500
NOTHING_SEALED: Final = "none"
"""Value of `otel_sealed.verdict` on `otel_sealed.calls` alone: the call had nothing sealed."""
FOLDED: Final = "_OTHER"
UNSAID: Final = "none"
"""Value of a cause or locus on `otel_sealed.violations.causes` where nothing is known of it."""

ACTIVE: Final = "active"
KILLED: Final = "killed"
RESTING: Final = "resting"
STATES: Final = (ACTIVE, KILLED, RESTING)
"""Calls are observed; let through because of the kill file; because of too many faults of ours."""

ATTACHED: Final = "attached"
MISSING: Final = "missing"
SEAM_STATES: Final = (ATTACHED, MISSING)
"""Seams that are wrapped; seams that an imported SDK turned out not to have."""

HTTP_CLIENTS: Final = (
    *("aiohttp", "botocore", "http.client", "httpx", "httpx2", "lm15", "requests", "urllib3"),
    *("proxy", "extproc"),
)
"""The HTTP clients at which requests are noticed that pass outside of the SDKs, and our servers."""

UNREAD_REASONS: Final = (
    *("size", "api", "event.json"),
    *(
        f"{body}.{why}"
        for body in ("request", "response")
        for why in ("size", "encoding", "depth", "json", "shape")
    ),
)
"""What of an exchange was not read, and why; `size`: it needs more steps than an exchange may."""

_HITS: Final = ("hit", "miss")
_VERDICTS: Final = (*Verdict, NOTHING_SEALED)

# What goes on a span, one value each.
VERDICT = _define("otel_sealed.verdict", "string", "Worst verdict of the call.", _VERDICTS)
PROVIDER_VERDICT = _define(
    "otel_sealed.provider_verdict", "string", "What the provider itself said.", ProviderVerdict
)
REJECTION_CLASS = _define(
    "otel_sealed.rejection.class", "string", "Class of the provider's refusal.", Rejection
)
CARRY = _define("otel_sealed.carry", "string", "How the request brings earlier state.", Carry)
KNOWN = _define(
    "otel_sealed.known",
    "boolean",
    "Set where every violation of the call is on the owner's list of known losses.",
)
RULES_VERSION = _define("otel_sealed.rules.version", "string", "Version of the rules judged by.")
RECEIVED_COUNT = _define("otel_sealed.received.count", "int", "Artifacts in the response.")
RETURNED_COUNT = _define("otel_sealed.returned.count", "int", "Artifacts in the request.")
EXPECTED_COUNT = _define("otel_sealed.expected.count", "int", "Artifacts due in the request.")
VIOLATIONS_COUNT = _define(
    "otel_sealed.violations.count", "int", "Findings of the call that degrade or break."
)
TRUNCATED = _define("otel_sealed.truncated", "boolean", "Whether rows or findings were cut.")
CONVERSATION_KEY = _define(
    "otel_sealed.conversation.key", "string", "Keyed digest that joins a conversation's calls."
)
HASH_ALGORITHM_KEY = _define("otel_sealed.hash.algorithm", "string", "How digests were made.")
HASH_KEY_ID = _define("otel_sealed.hash.key_id", "string", "Which key made the digests.")
REST_COUNT = _define("otel_sealed.returned.rest.count", "int", "Returned findings not listed.")
REST_DIGEST = _define(
    "otel_sealed.returned.rest.digest", "string", "Rolling keyed digest of what is not listed."
)

# What goes on a span, many values each.
FINDINGS = _define(
    "otel_sealed.findings", "string[]", "Readable findings: `fate artifact rule verdict`."
)
FACTS = _define("otel_sealed.facts", "string[]", "What the call says about itself, as `key=value`.")
RECEIVED_BLOCK_TYPES = _define(
    "otel_sealed.received.block_types", "string[]", "Block types of the response, in order."
)
RETURNED_BLOCK_TYPES = _define(
    "otel_sealed.returned.block_types", "string[]", "Newest block types of the request, in order."
)
RECEIVED_ARTIFACTS = _define(
    "otel_sealed.received.artifacts", "string[]", "Artifacts received, by name."
)
RECEIVED_DIGESTS = _define(
    "otel_sealed.received.digests", "string[]", "Their keyed digests, 32 hex characters."
)
RECEIVED_SIZES = _define("otel_sealed.received.sizes", "int[]", "Their sizes in bytes.")
RECEIVED_POSITIONS = _define(
    "otel_sealed.received.positions", "string[]", "Their places in the response."
)
RECEIVED_IDS = _define(
    "otel_sealed.received.ids",
    "string[]",
    "Keyed digests of the ids of their items, by which a pasted id is found; left out if none.",
)
RETURNED_ARTIFACTS = _define(
    "otel_sealed.returned.artifacts", "string[]", "Artifacts sent for the first time or not ok."
)
RETURNED_DIGESTS = _define(
    "otel_sealed.returned.digests",
    "string[]",
    "Keyed digest of what was sent; where the position is empty, of what should have been.",
)
RETURNED_SIZES = _define(
    "otel_sealed.returned.sizes", "int[]", "Sizes in bytes as sent; -1 if absent."
)
RETURNED_POSITIONS = _define(
    "otel_sealed.returned.positions", "string[]", "Places in the request; empty if absent."
)
RETURNED_FATES = _define("otel_sealed.returned.fates", "string[]", "What happened to each.", Fate)
RETURNED_VERDICTS = _define(
    "otel_sealed.returned.verdicts", "string[]", "The verdict on each.", Verdict
)
RETURNED_RULES = _define(
    "otel_sealed.returned.rules", "string[]", "The rule behind each verdict; left out if none."
)
RETURNED_CAUSES = _define(
    "otel_sealed.returned.causes", "string[]", "How each changed; left out if none.", Cause
)
SUMMARY = _define(
    "otel_sealed.received.summary", "boolean", "Whether a readable stand-in came with the seals."
)
SUMMARY_SIZE = _define(
    "otel_sealed.received.summary_size", "int", "Characters of readable stand-ins that came."
)
TOOL_NAMES = _define(
    "otel_sealed.tools.names", "string[]", "Tools whose results go out for the first time."
)
TOOL_CALLS = _define(
    "otel_sealed.tools.calls", "string[]", "Keyed digests of the ids of their calls."
)
TOOL_ARGUMENT_SIZES = _define(
    "otel_sealed.tools.argument_sizes", "int[]", "Sizes of their arguments in bytes; -1 if unknown."
)
TOOL_RESULT_SIZES = _define(
    "otel_sealed.tools.result_sizes", "int[]", "Sizes of their results in bytes."
)
TOOL_ERRORS = _define(
    "otel_sealed.tools.errors",
    "string[]",
    "Whether each result is an error.",
    ("true", "false", "unknown"),
)
TOOL_EFFECTS = _define(
    "otel_sealed.tools.effects",
    "string[]",
    "Keyed digests of what the app said each did; left out if nothing was said.",
)
TOOL_EFFECT_SIZES = _define(
    "otel_sealed.tools.effect_sizes", "int[]", "Their sizes in bytes; -1 if nothing was said."
)

# What only metrics and events carry.
ARTIFACT = _define("otel_sealed.artifact", "string", "Artifact name: `dialect.carrier.field`.")
FATE = _define("otel_sealed.fate", "string", "What happened to the artifact.", Fate)
RULE = _define(
    "otel_sealed.rule", "string", "Id of the rule of the verdict, explained in docs/rules.md."
)
DISPUTED = _define("otel_sealed.disputed", "boolean", "Set if the rule's source is disputed.")
CAUSE = _define("otel_sealed.cause", "string", "How the value changed.", (*Cause, UNSAID))
DIAGNOSIS = _define(
    "otel_sealed.diagnosis", "string", "How it changed in words, from lengths and keyed windows."
)
LOCUS = _define("otel_sealed.locus", "string", "Where the change happened.", (*Locus, UNSAID))
CONFIDENCE = _define("otel_sealed.confidence", "string", "How sure that is.", Confidence)
RECEIVED_POSITION = _define(
    "otel_sealed.received.position", "string", "Place of the artifact where it came in."
)
RETURNED_POSITION = _define(
    "otel_sealed.returned.position", "string", "Place of the artifact in the request."
)
RECEIVED_SIZE = _define("otel_sealed.received.size", "int", "Its size in bytes as received.")
RETURNED_SIZE = _define("otel_sealed.returned.size", "int", "Its size in bytes as sent.")
ORIGIN_TRACE = _define("otel_sealed.origin.trace_id", "string", "Trace of the minting call, hex.")
ORIGIN_SPAN = _define("otel_sealed.origin.span_id", "string", "Span of the minting call, hex.")
FINGERPRINT = _define(
    "otel_sealed.fingerprint", "string", "Same for one artifact, fate, rule and provider."
)
OCCURRENCES = _define("otel_sealed.occurrences", "int", "How often it was seen so far.")
SUPPRESSED = _define(
    "otel_sealed.suppressed", "int", "Events held back by the hourly limit since the last one."
)
SDK_VERSIONS = _define(
    "otel_sealed.sdk.versions",
    "string[]",
    "SDKs and frameworks that are installed, as `name=version`.",
)
LOOKUP_RESULT = _define("otel_sealed.lookup.result", "string", "What the ledger said.", _HITS)
PLACE = _define("otel_sealed.place", "string", "Part of otel_sealed that reports.")
STATE = _define(
    "otel_sealed.state",
    "string",
    "Whether calls are observed, or let through by the kill file or after too many faults.",
    STATES,
)
SEAM_STATE = _define(
    "otel_sealed.seam.state",
    "string",
    "Whether a method of an SDK is wrapped, or was not found where it should be.",
    SEAM_STATES,
)
HTTP_CLIENT = _define(
    "otel_sealed.http.client",
    "string",
    "The HTTP client that sent a request no SDK hook of ours was on.",
    HTTP_CLIENTS,
)
UNREAD_REASON = _define(
    "otel_sealed.unread.reason",
    "string",
    "What of an exchange was not read, and why.",
    UNREAD_REASONS,
)
LEAK_SCOPE = _define(
    "otel_sealed.leak.scope", "string", "Instrumentation scope of the span that holds the value."
)
LEAK_KEY = _define(
    "otel_sealed.leak.key", "string", "Attribute that holds it, numbers in it replaced by `n`."
)
LEAK_SIZE = _define("otel_sealed.leak.size", "int", "Characters of the value.")
LEAK_DIGEST = _define("otel_sealed.leak.digest", "string", "Its keyed digest.")
EVENT_NAME = _define("event.name", "string", "Name of the event, for stores without the field.")

# What OpenTelemetry defines and we only use.
OPERATION = _define("gen_ai.operation.name", "string", "Operation.")
PROVIDER = _define("gen_ai.provider.name", "string", "Provider.")
REQUEST_MODEL = _define("gen_ai.request.model", "string", "Model asked for.")
RESPONSE_MODEL = _define("gen_ai.response.model", "string", "Model that answered.")
FINISH_REASONS = _define("gen_ai.response.finish_reasons", "string[]", "Why it stopped.")
INPUT_TOKENS = _define("gen_ai.usage.input_tokens", "int", "Input tokens, cached included.")
OUTPUT_TOKENS = _define("gen_ai.usage.output_tokens", "int", "Output tokens.")
REASONING_TOKENS = _define("gen_ai.usage.reasoning.output_tokens", "int", "Of them, reasoning.")
CACHE_READ_TOKENS = _define("gen_ai.usage.cache_read.input_tokens", "int", "Read from cache.")
CACHE_WRITE_TOKENS = _define("gen_ai.usage.cache_write.input_tokens", "int", "Written to cache.")
CONVERSATION_ID = _define("gen_ai.conversation.id", "string", "Read where present, never set.")
SERVER_ADDRESS = _define("server.address", "string", "Host.")
SERVER_PORT = _define("server.port", "int", "Port.")
ERROR_TYPE = _define("error.type", "string", "Class of the error.")

ATTRIBUTES: Final = tuple(_attributes)
_names = [attribute.name for attribute in ATTRIBUTES]
SPAN_ATTRIBUTES: Final = tuple(_names[: _names.index(ARTIFACT)])
"""What `otel_sealed` adds to a span, owned or not."""

# ------------------------------------------------------------------------------------ metrics

_SIZES: Final = (64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0)
_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0)
_WHO: Final = (PROVIDER, REQUEST_MODEL)

VIOLATIONS = Metric(
    "otel_sealed.violations",
    "counter",
    "{violation}",
    "Findings that degrade or break. Alerts stand on it; every series starts at 0.",
    (PROVIDER, VERDICT),
)
KNOWN_VIOLATIONS = Metric(
    "otel_sealed.violations.known",
    "counter",
    "{violation}",
    "Findings that degrade or break and are on the owner's list of known losses.",
    (PROVIDER, VERDICT),
)
CHECKS = Metric(
    "otel_sealed.artifact.checks",
    "counter",
    "{check}",
    "Artifacts checked.",
    (ARTIFACT, FATE, VERDICT, *_WHO),
)
CAUSES = Metric(
    "otel_sealed.violations.causes",
    "counter",
    "{violation}",
    "Findings that degrade or break and are no known losses, by what their fingerprint is made of, "
    "cause and locus.",
    (ARTIFACT, FATE, VERDICT, RULE, CAUSE, LOCUS, PROVIDER),
)
EXPECTED = Metric(
    "otel_sealed.artifact.expected",
    "counter",
    "{artifact}",
    "Sealed values that had to be in a request; those whose absence no rule minds are left out.",
    _WHO,
)
RETURNED = Metric(
    "otel_sealed.artifact.returned",
    "counter",
    "{artifact}",
    "Of those, the ones for which a value was in the request. Over expected: what came back.",
    _WHO,
)
SIZE = Metric(
    "otel_sealed.artifact.size",
    "histogram",
    "By",
    "Size of sealed values as received.",
    (ARTIFACT, *_WHO),
    _SIZES,
)
CALLS = Metric("otel_sealed.calls", "counter", "{call}", "Calls judged.", (VERDICT, *_WHO))
OUTCOMES = Metric(
    "otel_sealed.outcomes",
    "counter",
    "{call}",
    "Calls judged: our verdict beside the provider's, how earlier state was carried, and where to.",
    (VERDICT, PROVIDER_VERDICT, CARRY, PROVIDER, SERVER_ADDRESS),
)
OBJECTIONS = Metric(
    "otel_sealed.objections",
    "counter",
    "{call}",
    "Calls whose sealed state the provider refused or removed, beside our verdict. Left out: known "
    "losses, and removals by the provider's design or asked for.",
    (PROVIDER_VERDICT, VERDICT, PROVIDER, SERVER_ADDRESS),
)
REJECTIONS = Metric(
    "otel_sealed.rejections",
    "counter",
    "{rejection}",
    "Requests the provider refused.",
    (REJECTION_CLASS, *_WHO),
)
LOOKUPS = Metric(
    "otel_sealed.ledger.lookups",
    "counter",
    "{lookup}",
    "Ledger lookups.",
    (LOOKUP_RESULT, PROVIDER),
)
ENTRIES = Metric(
    "otel_sealed.ledger.entries", "updowncounter", "{entry}", "Turns the ledger remembers.", ()
)
EVICTIONS = Metric(
    "otel_sealed.ledger.evictions",
    "counter",
    "{turn}",
    "Turns the ledger forgot to stay within its bound.",
    (),
)
SEAMS = Metric(
    "otel_sealed.seams",
    "updowncounter",
    "{seam}",
    "Methods of SDKs and HTTP clients: those that are wrapped, and those that were not found.",
    (SEAM_STATE,),
)
UNOBSERVED = Metric(
    "otel_sealed.unobserved",
    "counter",
    "{request}",
    "Requests with turns of a model that passed outside of the SDKs we are on, or in a call that "
    "the application suppressed. Every client we are on starts at 0.",
    (HTTP_CLIENT, SERVER_ADDRESS),
)
UNREAD = Metric(
    "otel_sealed.unread",
    "counter",
    "{exchange}",
    "Exchanges of which something was not read, so that it is not judged. Size starts at 0.",
    (UNREAD_REASON, PROVIDER),
)
DURATION = Metric(
    "otel_sealed.check.duration",
    "histogram",
    "s",
    "Time otel_sealed took for one call.",
    (PROVIDER,),
    _SECONDS,
)
INTERNAL_ERRORS = Metric(
    "otel_sealed.internal.errors",
    "counter",
    "{error}",
    "Faults of otel_sealed itself, swallowed.",
    (PLACE, ERROR_TYPE),
)
LEAKS = Metric(
    "otel_sealed.leaks",
    "counter",
    "{leak}",
    "Attributes of other instrumentations that were found to hold sealed values.",
    (PLACE,),
)
PROCESS_STATE = Metric(
    "otel_sealed.state",
    "updowncounter",
    "{process}",
    "1 for the state the process is in, 0 for the others.",
    (STATE,),
)
_VIOLATION_METRICS = (VIOLATIONS, KNOWN_VIOLATIONS)
_CALL_METRICS = (CHECKS, SIZE, CALLS, REJECTIONS, LOOKUPS, ENTRIES, DURATION)
_ANSWER_METRICS = (CAUSES, EXPECTED, RETURNED, OUTCOMES, OBJECTIONS)
_HEALTH_METRICS = (INTERNAL_ERRORS, LEAKS, PROCESS_STATE, EVICTIONS, SEAMS, UNOBSERVED, UNREAD)
METRICS: Final = (*_VIOLATION_METRICS, *_CALL_METRICS, *_ANSWER_METRICS, *_HEALTH_METRICS)

# ------------------------------------------------------------------------------------- events

# fmt: off
VIOLATION = Event(
    "otel_sealed.violation",
    "An artifact came back in a way that degrades or breaks.",
    (
        ARTIFACT, FATE, VERDICT, RULE, DISPUTED, CAUSE, DIAGNOSIS, LOCUS, CONFIDENCE,
        PROVIDER_VERDICT, REJECTION_CLASS, RECEIVED_POSITION, RETURNED_POSITION, RECEIVED_SIZE,
        RETURNED_SIZE, ORIGIN_TRACE, ORIGIN_SPAN, CONVERSATION_KEY, PROVIDER, REQUEST_MODEL,
        SERVER_ADDRESS, SDK_VERSIONS, FINGERPRINT, OCCURRENCES, SUPPRESSED, EVENT_NAME,
    ),
)
DISAGREEMENT = Event(
    "otel_sealed.disagreement",
    "The provider's verdict and ours differ.",
    (
        VERDICT, PROVIDER_VERDICT, REJECTION_CLASS, CONVERSATION_KEY, PROVIDER, REQUEST_MODEL,
        SERVER_ADDRESS, SDK_VERSIONS, OCCURRENCES, SUPPRESSED, EVENT_NAME,
    ),
)
LEAK = Event(
    "otel_sealed.leak",
    "A sealed value stands in a span; told once for each scope and attribute of a process.",
    (LEAK_SCOPE, LEAK_KEY, LEAK_SIZE, LEAK_DIGEST, EVENT_NAME),
)
# fmt: on
EVENTS: Final = (VIOLATION, DISAGREEMENT, LEAK)

# ---------------------------------------------------------------------------------- artifacts

# promised before a dialect has them: a name is never taken back (tests/golden/vocabulary.json)
_PROMISED: Final = frozenset({"openrouter.reasoning_details"})
SEALS: Final = declared.SEALS | _PROMISED
"""Opaque values: their digests may leave under the process key."""
COMPANIONS: Final = declared.COMPANIONS
"""Readable values and ids that a seal vouches for."""
CIRCUMSTANCES: Final = declared.CIRCUMSTANCES | {"request.prefix", "request.issuer"}
"""What has a row of its own beside the seals."""
ARTIFACTS: Final = SEALS | COMPANIONS | CIRCUMSTANCES
_SEAL_FIELDS: Final = frozenset(name.rpartition(".")[2] for name in SEALS)


def is_seal(artifact: str) -> bool:
    """Whether an artifact is an opaque value, so that its digest says nothing guessable.

    A name this table does not know is one only by the name of its field; else it counts as
    readable, which costs no more than joins across conversations.
    """
    return artifact in SEALS or (
        artifact not in COMPANIONS | CIRCUMSTANCES and artifact.rpartition(".")[2] in _SEAL_FIELDS
    )
