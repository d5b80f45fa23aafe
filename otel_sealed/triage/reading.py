"""Signals become calls: the arrays of a span as rows, a violation event as a call of one row.

Everything that goes into a record passes the vocabulary here, once, on its way in: what a file
says is content until then, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from otel_sealed import vocab
from otel_sealed.triage.model import About, Call, Evidence, Minted, Row, Usage
from otel_sealed.triage.sources.signal import SPAN, Json, Signal

_HEX: Final = re.compile(r"(?:[0-9a-f]{2}){1,32}\Z")
_FACT: Final = re.compile(r"[a-z0-9_.]{1,60}=[A-Za-z0-9_.:-]{0,80}\Z")
_SDK: Final = re.compile(r"[A-Za-z0-9._-]{1,60}=[A-Za-z0-9._+!-]{1,40}\Z")
_MAX: Final = vocab.MAX_ROWS
_CACHED: Final = 8192
_OURS: Final = (vocab.CARRY, vocab.CONVERSATION_KEY, vocab.VERDICT, vocab.PROVIDER_VERDICT)
_EVENTS: Final = {vocab.VIOLATION.name, vocab.DISAGREEMENT.name}


def call_of(signal: Signal, file: str = "", line: int = 0) -> Call | None:
    """The call a span or an event tells of; None where it is not about one of ours."""
    if signal.kind == SPAN:
        if not any(name in signal.attributes for name in _OURS):
            return None
        return _of_span(signal, file, line)
    return _of_event(signal, file, line) if signal.name in _EVENTS else None


def _of_span(signal: Signal, file: str, line: int) -> Call:
    a = signal.attributes
    return Call(
        at=signal.at,
        trace=signal.trace,
        span=signal.span,
        conversation=_hex(a.get(vocab.CONVERSATION_KEY)),
        parent=signal.parent,
        ended=signal.ended,
        operation=_word(a.get(vocab.OPERATION)),
        provider=_word(a.get(vocab.PROVIDER)),
        model=_model(a.get(vocab.REQUEST_MODEL)),
        host=_host(a.get(vocab.SERVER_ADDRESS)),
        verdict=_word(a.get(vocab.VERDICT)),
        said=_word(a.get(vocab.PROVIDER_VERDICT)),
        rejection=_word(a.get(vocab.REJECTION_CLASS)),
        carry=_word(a.get(vocab.CARRY)),
        received=_received(a),
        returned=_returned(a),
        received_count=_count(a.get(vocab.RECEIVED_COUNT)),
        returned_count=_count(a.get(vocab.RETURNED_COUNT)),
        expected_count=_count(a.get(vocab.EXPECTED_COUNT)),
        received_types=_words(a.get(vocab.RECEIVED_BLOCK_TYPES)),
        returned_types=_words(a.get(vocab.RETURNED_BLOCK_TYPES)),
        tools=_tools(a),
        rest=_count(a.get(vocab.REST_COUNT)),
        facts=_matching(a.get(vocab.FACTS), _FACT),
        usage=_usage(a),
        about=_about(signal),
        key_id=vocab.rule_id(_text(a.get(vocab.HASH_KEY_ID))),
        known=a.get(vocab.KNOWN) is True,
        truncated=a.get(vocab.TRUNCATED) is True,
        file=file,
        line=line,
    )


def _of_event(signal: Signal, file: str, line: int) -> Call:
    a = signal.attributes
    return Call(
        at=signal.at,
        trace=signal.trace,
        span=signal.span,
        conversation=_hex(a.get(vocab.CONVERSATION_KEY)),
        provider=_word(a.get(vocab.PROVIDER)),
        model=_model(a.get(vocab.REQUEST_MODEL)),
        host=_host(a.get(vocab.SERVER_ADDRESS)),
        verdict=_word(a.get(vocab.VERDICT)),
        said=_word(a.get(vocab.PROVIDER_VERDICT)),
        rejection=_word(a.get(vocab.REJECTION_CLASS)),
        returned=(_row(a),) if vocab.ARTIFACT in a else (),
        about=_about(signal),
        occurrences=max(1, _count(a.get(vocab.OCCURRENCES))),
        evidence=Evidence.EVENTS,
        file=file,
        line=line,
    )


# ---------------------------------------------------------------------------------------- rows


def _row(a: Json) -> Row:
    """The row an event tells of, which knows more than those of spans."""
    return Row(
        artifact=_word(a.get(vocab.ARTIFACT)),
        digest="",
        size=_count(a.get(vocab.RETURNED_SIZE), -1),
        position=_path(a.get(vocab.RETURNED_POSITION)),
        fate=_word(a.get(vocab.FATE)),
        verdict=_word(a.get(vocab.VERDICT)),
        rule=vocab.rule_id(_text(a.get(vocab.RULE))),
        cause=_word(a.get(vocab.CAUSE)),
        locus=_word(a.get(vocab.LOCUS)),
        confidence=_word(a.get(vocab.CONFIDENCE)),
        diagnosis=vocab.phrase(a.get(vocab.DIAGNOSIS)),
        disputed=a.get(vocab.DISPUTED) is True,
        came_position=_path(a.get(vocab.RECEIVED_POSITION)),
        came_size=_count(a.get(vocab.RECEIVED_SIZE), -1),
        origin_trace=_hex(a.get(vocab.ORIGIN_TRACE)),
        origin_span=_hex(a.get(vocab.ORIGIN_SPAN)),
    )


def _received(a: Json) -> tuple[Minted, ...]:
    names = a.get(vocab.RECEIVED_ARTIFACTS)
    if not isinstance(names, list) or not names:
        return ()
    return tuple(
        map(
            Minted,
            map(_word, names[:_MAX]),
            _column(a, vocab.RECEIVED_DIGESTS, names, _hex),
            _column(a, vocab.RECEIVED_SIZES, names, _count),
            _column(a, vocab.RECEIVED_POSITIONS, names, _path),
            _column(a, vocab.RECEIVED_IDS, names, _hex),
        )
    )


def _returned(a: Json) -> tuple[Row, ...]:
    names = a.get(vocab.RETURNED_ARTIFACTS)
    if not isinstance(names, list) or not names:
        return ()
    return tuple(
        map(
            Row,
            map(_word, names[:_MAX]),
            _column(a, vocab.RETURNED_DIGESTS, names, _hex),
            _column(a, vocab.RETURNED_SIZES, names, _size),
            _column(a, vocab.RETURNED_POSITIONS, names, _path),
            _column(a, vocab.RETURNED_FATES, names, _word),
            _column(a, vocab.RETURNED_VERDICTS, names, _word),
            _column(a, vocab.RETURNED_RULES, names, _rule),
            _column(a, vocab.RETURNED_CAUSES, names, _word),
        )
    )


def _column(a: Json, name: str, like: list[Any], clean: Callable[[Any], Any]) -> Iterable[Any]:
    """A column as long as the first one; one of another length says nothing of any row."""
    values = a.get(name)
    if not isinstance(values, list) or len(values) != len(like):
        values = [None] * len(like)
    return map(clean, values[:_MAX])


def _tools(a: Json) -> tuple[tuple[str, str], ...]:
    calls, names = a.get(vocab.TOOL_CALLS), a.get(vocab.TOOL_NAMES)
    if not isinstance(calls, list) or not isinstance(names, list):
        return ()
    return tuple((_hex(c), _word(n)) for c, n in zip(calls[:_MAX], names[:_MAX], strict=False))


def _usage(a: Json) -> Usage:
    return Usage(
        _count(a.get(vocab.INPUT_TOKENS), -1),
        _count(a.get(vocab.OUTPUT_TOKENS), -1),
        _count(a.get(vocab.REASONING_TOKENS), -1),
        _count(a.get(vocab.CACHE_READ_TOKENS), -1),
    )


def _about(signal: Signal) -> About:
    r = signal.resource
    return _made_by(
        _text(r.get("service.name")),
        _text(r.get("service.version")),
        _text(r.get("telemetry.sdk.version")),
        signal.scope,
        signal.scope_version,
        _matching(signal.attributes.get(vocab.SDK_VERSIONS), _SDK),
    )


@lru_cache(_CACHED)
def _made_by(
    service: str, release: str, otel: str, scope: str, version: str, sdks: tuple[str, ...]
) -> About:
    """`scope` is the framework's only where the span is not our own."""
    theirs = scope not in ("", vocab.SCOPE)
    framework = f"{_model(scope)} {_model(version)}".strip() if theirs else ""
    return About(_model(service), _model(release), framework, sdks, _model(otel))


# ---------------------------------------------------------------------------------------- words


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _word(value: Any) -> str:
    return _clean_word(value) if isinstance(value, str) and value else ""


_clean_word = lru_cache(_CACHED)(vocab.word)


def _path(value: Any) -> str:
    return vocab.path(value) if isinstance(value, str) else ""


def _rule(value: Any) -> str:
    return _clean_rule(value) if isinstance(value, str) and value else ""


_clean_rule = lru_cache(_CACHED)(vocab.rule_id)


def _hex(value: Any) -> str:
    return value if isinstance(value, str) and _HEX.match(value) else ""


def _model(value: Any) -> str:
    return _clean_model(value) if isinstance(value, str) and value else ""


_clean_model = lru_cache(_CACHED)(vocab.model_name)


def _host(value: Any) -> str:
    return _clean_host(value) if isinstance(value, str) and value else ""


_clean_host = lru_cache(_CACHED)(vocab.host_name)


def _words(value: Any) -> tuple[str, ...]:
    return tuple(map(_word, value[: vocab.MAX_TYPES])) if isinstance(value, list) else ()


def _matching(value: Any, pattern: re.Pattern[str]) -> tuple[str, ...]:
    found = value[:_MAX] if isinstance(value, list) else ()
    return tuple(item for item in found if isinstance(item, str) and pattern.match(item))


_MOST: Final = 1 << 53


def _count(value: Any, missing: int = 0) -> int:
    """A number that a store can hold; `missing` for anything else."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and 0 <= value < _MOST else missing


def _size(value: Any) -> int:
    return _count(value, -1)
