"""Drift: keys that look sealed and that no provider file describes, by name and size only.

A new sealed field of a vendor shows up here before anybody edits a file.
"""

from __future__ import annotations

import re
from typing import Any

from otel_sealed.contract import Carrier, Dialect, snake
from otel_sealed.steps import spend
from otel_sealed.vocab import word

_NAME = re.compile(
    r"signature|encrypt|cipher|sealed|opaque|redacted|fingerprint|continuation", re.IGNORECASE
)
_LOOKS = re.compile(r"[A-Za-z0-9+/_-]{64,}={0,2}")
_MIXED = re.compile(r"\A(?=.*[a-z])(?=.*[A-Z])(?=.*\d)")
_MIN_NAMED = 16
_MAX_DEPTH = 12
_MAX_FOUND = 16
_MAX_STRINGS = 5_000
# what is known to be long and is not sealed: media, ids, readable tokens
_PLAIN = frozenset({"data", "id", "url", "uri", "b64_json", "result", "image_url", "file_data"})


def drift(parts: tuple[tuple[str, Any], ...], dialect: Dialect) -> tuple[tuple[str, int], ...]:
    """(key, characters) of each undescribed sealed-looking value of a response, at most 16."""
    found: dict[str, int] = {}
    strings = 0
    waiting: list[_Node] = [
        (part, "", _NOTHING, 0)
        for _, part in reversed(parts)
        if isinstance(part, (dict, list, str))
    ]
    while waiting:
        value, key, described, depth = waiting.pop()
        if isinstance(value, str):
            strings += 1
            if strings > _MAX_STRINGS or len(found) >= _MAX_FOUND:
                break
            if len(value) >= _MIN_NAMED and _sealed_looking(key, value):
                found.setdefault(word(snake(key)), len(value))
            continue
        spend(1 + len(value))
        if isinstance(value, dict):
            carrier = dialect.carriers.get(dialect.type_of(value))
            if carrier is not None:
                described = _described(dialect.name, carrier) | described
        if depth >= _MAX_DEPTH:
            continue
        pairs = value.items() if isinstance(value, dict) else [(key, child) for child in value]
        for name, child in reversed(pairs):
            if isinstance(child, (dict, list)) or (
                isinstance(child, str) and name not in described
            ):
                waiting.append((child, str(name), described, depth + 1))
    return tuple(found.items())


_Node = tuple[Any, str, frozenset[str], int]
_NOTHING: frozenset[str] = frozenset()


def _sealed_looking(key: str, text: str) -> bool:
    """Whether a value of at least 16 characters is named or looks like a seal."""
    if " " in text or "\n" in text:
        return False
    if _NAME.search(key):
        return True
    return key not in _PLAIN and _LOOKS.fullmatch(text) is not None and bool(_MIXED.match(text))


def _described(dialect: str, carrier: Carrier) -> frozenset[str]:
    found = _known.get((dialect, carrier.type))
    if found is None or found[0] is not carrier:
        found = _known[dialect, carrier.type] = (carrier, _keys(carrier))
    return found[1]


_known: dict[tuple[str, str], tuple[Carrier, frozenset[str]]] = {}


def _keys(carrier: Carrier) -> frozenset[str]:
    keys = [name for f in carrier.fields for name in f.names()]
    keys += [*carrier.ids, *carrier.payload, *carrier.shadows, carrier.arguments, carrier.result]
    return frozenset(key.rsplit(".", 1)[-1] for key in keys if key) | carrier.keys
