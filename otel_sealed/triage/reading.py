"""Signals become entries of the index: all that they say of a call, cleaned and packed.

Everything that goes into a record passes the vocabulary here, once, on its way in: what a file
says is content until then, whoever wrote it. A span has up to 64 rows of a dozen columns, and a
record a million spans, so that columns are cleaned and kept as columns, each one text; rows of
them are made when a call is asked for (`call_of`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeAlias

from otel_sealed import vocab
from otel_sealed.model import ProviderVerdict, Rejection, Verdict
from otel_sealed.triage.model import About, Call, Evidence, Minted, Row, Usage
from otel_sealed.triage.sources.signal import SPAN, Json, Signal
from otel_sealed.triage.sums import Value, failed, in_full, unjudged, unread

Stored: TypeAlias = tuple[
    int,
    int,
    bytes,
    bytes,
    bytes,
    str,
    str,
    str,
    bool,
    str | None,
    str | None,
    str | None,
    bool,
    str,
]
"""Line, time, trace, span, conversation to join by, its key, provider, model, whether there is
trouble in it, the class of a refusal of sealed state, how the call failed, why it was not read,
whether it was not judged in full, and the rest as JSON text."""
Entry: TypeAlias = tuple[Stored, tuple[Value, ...]]
"""A call as it is stored, and the values of it that could not be judged."""

_HEX: Final = re.compile(r"(?:[0-9a-f]{2}){1,32}\Z")
_FACT: Final = re.compile(r"[a-z0-9_.]{1,60}=[A-Za-z0-9_.:-]{0,80}\Z")
_SDK: Final = re.compile(r"[A-Za-z0-9._-]{1,60}=[A-Za-z0-9._+!-]{1,40}\Z")
_MAX: Final = vocab.MAX_ROWS
_CACHED: Final = 16_384
_MOST: Final = 1 << 53
_DIGEST: Final = 16
"""Bytes of one."""
_NOTHING: Final = [None]
"""A column that says nothing of any row."""
_OURS: Final = (vocab.CARRY, vocab.CONVERSATION_KEY, vocab.VERDICT, vocab.PROVIDER_VERDICT)
_EVENTS: Final = {vocab.VIOLATION.name, vocab.DISAGREEMENT.name}


def entry_of(signal: Signal, line: int = 0) -> Entry | None:
    """What a span or an event tells of a call; None where it is not about one of ours."""
    if signal.kind == SPAN:
        if not any(name in signal.attributes for name in _OURS):
            return None
        return _of_span(signal, line)
    return _of_event(signal, line) if signal.name in _EVENTS else None


def call_of(signal: Signal, file: str = "", line: int = 0) -> Call | None:
    """The same as a call."""
    entry = entry_of(signal, line)
    return None if entry is None else unpacked(entry[0], file)


def _of_span(signal: Signal, line: int) -> Entry:
    a = signal.attributes
    received = _columns(a, _RECEIVED)
    returned = _columns(a, _RETURNED)
    lists = [_join(a.get(vocab.RECEIVED_BLOCK_TYPES)), _join(a.get(vocab.RETURNED_BLOCK_TYPES))]
    more = [*lists, *_tools(a), _matching(a.get(vocab.FACTS), _FACT)]
    counts = [_count(a.get(name)) for name in _COUNTS]
    usage = [_count(a.get(name), -1) for name in _USAGE]
    known, cut = a.get(vocab.KNOWN) is True, a.get(vocab.TRUNCATED) is True
    key_id = vocab.rule_id(_text(a.get(vocab.HASH_KEY_ID)))
    rest = [key_id, known, cut, 1, Evidence.SPANS]
    return _entry(signal, line, [received, returned, [], counts, more, usage, rest])


def _of_event(signal: Signal, line: int) -> Entry:
    a = signal.attributes
    rows = [_row(a)] if vocab.ARTIFACT in a else []
    rest = ["", False, False, max(1, _count(a.get(vocab.OCCURRENCES))), Evidence.EVENTS]
    return _entry(signal, line, [[], [], rows, [0, 0, 0, 0], [""] * 5, [-1] * 4, rest])


def _entry(signal: Signal, line: int, body: list[Any]) -> Entry:
    a = signal.attributes
    key = _hex(a.get(vocab.CONVERSATION_KEY))
    said, rejection = _word(a.get(vocab.PROVIDER_VERDICT)), _word(a.get(vocab.REJECTION_CLASS))
    place = [signal.parent, _count(signal.ended), _word(a.get(vocab.OPERATION))]
    host = _clean_host(_text(a.get(vocab.SERVER_ADDRESS)))
    words = [_word(a.get(vocab.VERDICT)), said, rejection, _word(a.get(vocab.CARRY))]
    about = _about(signal)
    refusal = (rejection or Rejection.OTHER) if is_refusal(said, rejection) else None
    text = json.dumps([[*place, host], words, about, *body], separators=(",", ":"))
    trace = bytes.fromhex(_hex(signal.trace))
    ours = signal.kind == SPAN
    stored = (
        line,
        _count(signal.at),
        trace,
        bytes.fromhex(_hex(signal.span)),
        bytes.fromhex(key) or b"\0" + trace,
        key,
        _word(a.get(vocab.PROVIDER)),
        _model(a.get(vocab.REQUEST_MODEL)),
        refusal is not None or _violates(body),
        refusal,
        (failed(a) or None) if ours else None,
        (unread(a) or None) if ours else None,
        ours and not in_full(a),
        text,
    )
    return stored, unjudged(a, signal.span) if ours else ()


def is_refusal(said: str, rejection: str) -> bool:
    """Whether the provider refused a request for its sealed state, or without a class known here.

    What is `rejected` as `other` was refused for something else, as whoever recorded it knew.
    """
    return (said == ProviderVerdict.REJECTED) != (rejection == Rejection.OTHER)


def _violates(body: list[Any]) -> bool:
    _, returned, rows, *_ = body
    verdicts = returned[_VERDICTS].split(",") if returned else [row[5] for row in rows]
    return Verdict.BREAKS in verdicts or Verdict.DEGRADES in verdicts


# ------------------------------------------------------------------------------------- unpacking


def unpacked(entry: Stored, file: str = "") -> Call:
    """The call an entry is of.

    Raises:
        ValueError: It is none of ours: a column or a part of the text has another shape or type, or
            holds what the vocabulary has not.
    """
    try:
        return _call(entry, file)
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise ValueError("no call") from None


def _call(entry: Stored, file: str) -> Call:
    line, at, trace, span, _, key, provider, model, _, rejection, failed, unread, _, text = entry
    texts = (key, provider, model, rejection or "", failed or "", unread or "", file)
    _typed([line, at, trace, span, *texts], (int, int, bytes, bytes, *[str] * len(texts)))
    # cleaned words are plain ASCII; the one escape is of the dash that a phrase may have
    if not (text.isascii() and text.isprintable()) or "\\" in text.replace("\\u2013", ""):
        raise ValueError("no text of ours")
    place, words, about, received, returned, rows, counts, more, usage, rest = json.loads(text)
    service, release, framework, sdks, otel = about
    _typed(place, (str, int, str, str))
    _typed(words, (str,) * 4)
    _typed([service, release, framework, otel, *sdks], (str,) * (4 + len(sdks)))
    _typed(counts, (int,) * 4)
    _typed(more, (str,) * 5)
    _typed(usage, (int,) * 4)
    _typed(rest, (str, bool, bool, int, str))
    for row in rows:
        _typed(row, _ROW)
    return Call(
        at,
        trace.hex(),
        span.hex(),
        key,
        parent=place[0],
        ended=place[1],
        operation=place[2],
        provider=provider,
        model=model,
        host=place[3],
        verdict=words[0],
        said=words[1],
        rejection=words[2],
        carry=words[3],
        failed=failed or "",
        unread=unread or "",
        received=tuple(map(Minted, *_rows(received))) if received else (),
        returned=tuple(map(Row, *_rows(returned))) if returned else tuple(Row(*r) for r in rows),
        received_count=counts[0],
        returned_count=counts[1],
        expected_count=counts[2],
        rest=counts[3],
        received_types=_list(more[0]),
        returned_types=_list(more[1]),
        tools=tuple(zip(_list(more[2]), _list(more[3]), strict=False)),
        facts=_list(more[4]),
        usage=Usage(*usage),
        about=About(service, release, framework, tuple(sdks), otel),
        key_id=rest[0],
        known=rest[1],
        truncated=rest[2],
        occurrences=rest[3],
        evidence=Evidence(rest[4]),
        file=file,
        line=line,
    )


_ROW: Final = (
    *(str, str, int, str, str, str, str, str, str, str, str),
    *(bool, str, int, str, str),
)


def _typed(values: list[Any], kinds: tuple[type, ...]) -> None:
    if [*map(type, values)] != [*kinds]:
        raise ValueError("another type")


def _rows(columns: list[Any]) -> list[Any]:
    length, *packed = columns
    if type(length) is not int or not 0 < length <= _MAX:
        raise ValueError("no number of rows")
    found = []
    for column in packed:
        values = column.split(",") if isinstance(column, str) else column
        if not isinstance(column, str):
            _typed(values, (int,) * len(values))
        if len(values) not in (1, length):
            raise ValueError("a column of another length")
        found.append(values if len(values) == length else values * length)
    return found


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


# --------------------------------------------------------------------------------------- columns


class _Cleaner(dict[Any, str]):
    """What a text is cleaned to, remembered: a record says the same few words again and again."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__()
        self._clean = clean

    def __missing__(self, key: Any) -> str:
        if not isinstance(key, str):
            return ""
        if len(self) >= _CACHED:
            self.clear()
        found = self[key] = self._clean(key) if key else ""
        return found

    def column(self, values: list[Any]) -> str:
        """A column as one text. Cleaned words have no comma."""
        try:
            return ",".join(map(self.__getitem__, values))
        except TypeError:  # something that cannot be looked up
            return ",".join(self[value] if isinstance(value, str) else "" for value in values)


_WORDS: Final = _Cleaner(vocab.word)
_PATHS: Final = _Cleaner(vocab.path)
_RULES: Final = _Cleaner(vocab.rule_id)
_MODELS: Final = _Cleaner(vocab.model_name)


def _hexes(values: list[Any]) -> str:
    with suppress(TypeError, ValueError):  # mostly all are digests, and come out as they went in
        text = ",".join(values)
        whole = len(text) == len(values) * (2 * _DIGEST + 1) - 1
        if whole and text == bytes.fromhex(text.replace(",", "")).hex(",", _DIGEST):
            return text
    return ",".join(map(_hex, values))


def _sizes(values: list[Any]) -> list[int]:
    if set(map(type, values)) == {int} and min(values) >= -1 and max(values) < _MOST:
        return values
    return [_count(value, -1) for value in values]


_Column: TypeAlias = tuple[str, Callable[[list[Any]], Any]]
_RECEIVED: Final[tuple[_Column, ...]] = (
    (vocab.RECEIVED_ARTIFACTS, _WORDS.column),
    (vocab.RECEIVED_DIGESTS, _hexes),
    (vocab.RECEIVED_SIZES, _sizes),
    (vocab.RECEIVED_POSITIONS, _PATHS.column),
    (vocab.RECEIVED_IDS, _hexes),
)
_RETURNED: Final[tuple[_Column, ...]] = (
    (vocab.RETURNED_ARTIFACTS, _WORDS.column),
    (vocab.RETURNED_DIGESTS, _hexes),
    (vocab.RETURNED_SIZES, _sizes),
    (vocab.RETURNED_POSITIONS, _PATHS.column),
    (vocab.RETURNED_FATES, _WORDS.column),
    (vocab.RETURNED_VERDICTS, _WORDS.column),
    (vocab.RETURNED_RULES, _RULES.column),
    (vocab.RETURNED_CAUSES, _WORDS.column),
)
_VERDICTS: Final = 1 + [name for name, _ in _RETURNED].index(vocab.RETURNED_VERDICTS)
_COUNTS: Final = (
    vocab.RECEIVED_COUNT,
    vocab.RETURNED_COUNT,
    vocab.EXPECTED_COUNT,
    vocab.REST_COUNT,
)
_USAGE: Final = (
    vocab.INPUT_TOKENS,
    vocab.OUTPUT_TOKENS,
    vocab.REASONING_TOKENS,
    vocab.CACHE_READ_TOKENS,
)


def _columns(a: Json, wanted: tuple[_Column, ...]) -> list[Any]:
    """The number of rows and the columns of them, one value for a column that says the same of all.

    One of another length than the first says nothing of any row.
    """
    first = a.get(wanted[0][0])
    if not isinstance(first, list) or not first:
        return []
    length = min(len(first), _MAX)
    found: list[Any] = [length]
    for name, clean in wanted:
        values = a.get(name, _NOTHING)
        if not isinstance(values, list) or len(values) != len(first):
            values = _NOTHING
        elif values.count(values[0]) == len(values):
            values = values[:1]
        found.append(clean(values[:_MAX]))
    return found


def _tools(a: Json) -> tuple[str, str]:
    calls, names = a.get(vocab.TOOL_CALLS), a.get(vocab.TOOL_NAMES)
    if not isinstance(calls, list) or not isinstance(names, list):
        return "", ""
    return ",".join(map(_hex, calls[:_MAX])), _WORDS.column(names[:_MAX])


def _row(a: Json) -> list[Any]:
    """The fields of the row an event tells of, which knows more than those of spans."""
    return [
        _word(a.get(vocab.ARTIFACT)),
        "",
        _count(a.get(vocab.RETURNED_SIZE), -1),
        _path(a.get(vocab.RETURNED_POSITION)),
        _word(a.get(vocab.FATE)),
        _word(a.get(vocab.VERDICT)),
        vocab.rule_id(_text(a.get(vocab.RULE))),
        _word(a.get(vocab.CAUSE)),
        _word(a.get(vocab.LOCUS)),
        _word(a.get(vocab.CONFIDENCE)),
        vocab.phrase(a.get(vocab.DIAGNOSIS)),
        a.get(vocab.DISPUTED) is True,
        _path(a.get(vocab.RECEIVED_POSITION)),
        _count(a.get(vocab.RECEIVED_SIZE), -1),
        _hex(a.get(vocab.ORIGIN_TRACE)),
        _hex(a.get(vocab.ORIGIN_SPAN)),
    ]


def _about(signal: Signal) -> tuple[Any, ...]:
    r, sdks = signal.resource, signal.attributes.get(vocab.SDK_VERSIONS)
    found = sdks[:_MAX] if isinstance(sdks, list) else ()
    return _made_by(
        _text(r.get("service.name")),
        _text(r.get("service.version")),
        _text(r.get("telemetry.sdk.version")),
        signal.scope,
        signal.scope_version,
        tuple(item for item in found if isinstance(item, str) and _SDK.match(item)),
    )


@lru_cache(_CACHED)
def _made_by(
    service: str, release: str, otel: str, scope: str, version: str, sdks: tuple[str, ...]
) -> tuple[Any, ...]:
    """The fields of `About`. `scope` is the framework's only where the span is not our own."""
    theirs = scope not in ("", vocab.SCOPE)
    framework = f"{_model(scope)} {_model(version)}".strip() if theirs else ""
    return _model(service), _model(release), framework, sdks, _model(otel)


# ----------------------------------------------------------------------------------------- words


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return _WORDS[value] if isinstance(value, str) else ""


def _path(value: Any) -> str:
    return _PATHS[value] if isinstance(value, str) else ""


def _model(value: Any) -> str:
    return _MODELS[value] if isinstance(value, str) else ""


_clean_host = lru_cache(_CACHED)(vocab.host_name)


def _hex(value: Any) -> str:
    return value if isinstance(value, str) and _HEX.match(value) else ""


def _join(value: Any) -> str:
    return _WORDS.column(value[: vocab.MAX_TYPES]) if isinstance(value, list) else ""


def _matching(value: Any, pattern: re.Pattern[str]) -> str:
    found = value[:_MAX] if isinstance(value, list) else ()
    return ",".join(item for item in found if isinstance(item, str) and pattern.match(item))


def _count(value: Any, missing: int = 0) -> int:
    """A number that a store can hold; `missing` for anything else."""
    return value if type(value) is int and 0 <= value < _MOST * 1024 else missing
