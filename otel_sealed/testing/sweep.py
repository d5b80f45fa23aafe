"""The canary sweep: does any output hold a secret, or a piece of one, in any encoding?

Theory of operation. Secrets are indexed as all their runs of 12 characters, lower case, each base64
secret also as the bytes it stands for. An output is peeled: beside the text itself go its unescaped
forms (JSON and Python, percent, HTML), its URL-safe base64 respelled, and what its base64 and
hexadecimal runs decode to, again and again to a depth of three, so that what was encoded twice is
found too. Every layer is slid over the index. A hit names the output, the way it was encoded and
the label of the secret, never the secret.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

RUN: Final = 12
"""Shortest piece of a secret that counts as a leak, in characters."""

_DEPTH: Final = 3
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_HEX: Final = re.compile(r"[0-9A-Fa-f]{24,}")
_ESCAPE: Final = re.compile(r"""\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|["'\\/bfnrt])""")
_URLSAFE: Final = str.maketrans("-_", "+/")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A leak: which output, which secret (by its label), and how it was encoded."""

    where: str
    secret: str
    encoding: str


class Sweeper:
    """Looks for the same secrets in any number of outputs."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """`secrets` by label. Each needs at least 12 characters, or it would be found anywhere."""
        self._index: dict[str, str] = {}
        for label, secret in secrets.items():
            if len(secret) < RUN:
                raise ValueError(f"the secret {label} is shorter than {RUN} characters")
            for form in _forms(secret):
                for at in range(len(form) - RUN + 1):
                    self._index.setdefault(form[at : at + RUN], label)

    def hits(self, where: str, output: str | bytes) -> list[Hit]:
        """Every secret that `output` holds, once for each encoding; none is what one hopes for."""
        text = output if isinstance(output, str) else output.decode("utf-8", "surrogateescape")
        found: dict[Hit, None] = {}
        for encoding, layer in _layers(text):
            low = layer.lower()
            for at in range(len(low) - RUN + 1):
                label = self._index.get(low[at : at + RUN])
                if label is not None:
                    found[Hit(where, label, encoding)] = None
        return list(found)

    def sweep(self, outputs: Mapping[str, str | bytes]) -> list[Hit]:
        """The hits of all outputs, by name."""
        return [hit for where, output in outputs.items() for hit in self.hits(where, output)]


def reprs(roots: Iterable[Any]) -> str:
    """The `repr` of every object reachable through dataclasses and containers, one a line."""
    return "\n".join(repr(thing) for thing in _reachable(roots))


def _reachable(roots: Iterable[Any]) -> Iterator[Any]:
    waiting, seen = list(roots), set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (str, bytes, int, float, type(None))):
            continue
        seen.add(id(thing))
        if isinstance(thing, Mapping):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, (list, tuple, set, frozenset)):
            waiting += thing
        else:
            yield thing
            if is_dataclass(thing) and not isinstance(thing, type):
                waiting += [getattr(thing, f.name, None) for f in fields(thing) if f.repr]


# ------------------------------------------------------------------------------------ encodings


def _forms(secret: str) -> Iterator[str]:
    """What a secret is looked for as: its text, its UTF-8 bytes, the bytes it is base64 of."""
    yield secret.lower()
    yield secret.encode("utf-8", "surrogatepass").decode("latin-1").lower()
    standard = secret.translate(_URLSAFE)
    yield standard.lower()
    if _BASE64.fullmatch(standard):
        yield _bytes_of(standard).decode("latin-1").lower()


def _layers(text: str) -> Iterator[tuple[str, str]]:
    """(encoding, text) of `text` and of everything it unfolds to."""
    waiting, seen = [("plain", text)], {text}
    for depth in range(_DEPTH + 1):
        peeled = []
        for name, layer in waiting:
            yield name, layer
            if depth < _DEPTH:
                peeled += [(f"{how} in {name}", inner) for how, inner in _peel(layer)]
        waiting = []
        for name, layer in peeled:
            if len(layer) >= RUN and layer not in seen:
                seen.add(layer)
                waiting.append((name, layer))


def _peel(text: str) -> Iterator[tuple[str, str]]:
    if "\\" in text:
        yield "escaped", _surrogates_joined(_ESCAPE.sub(_unescaped, text))
    if "%" in text:
        yield "percent", unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("latin-1")
    if "&" in text:
        yield "html", html.unescape(text)
    if "-" in text or "_" in text:
        yield "urlsafe", text.translate(_URLSAFE)
    runs = _BASE64.findall(text)
    for offset in range(4 if runs else 0):  # the run may begin with letters that are not its own
        decoded = (_bytes_of(run[offset:]).decode("latin-1") for run in runs)
        yield "base64", "\n".join(decoded)
    runs = _HEX.findall(text)
    for offset in range(2 if runs else 0):
        yield "hex", "\n".join(_unhexed(run[offset:]) for run in runs)


def _unescaped(match: re.Match[str]) -> str:
    code = match.group()[1:]
    return chr(int(code[1:], 16)) if code[0] in "ux" else _SHORT.get(code, code)


def _surrogates_joined(text: str) -> str:
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return text


def _bytes_of(run: str) -> bytes:
    bare = run.rstrip("=")
    bare = bare[: len(bare) - (len(bare) % 4 == 1)]
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        return b""


def _unhexed(run: str) -> str:
    return bytes.fromhex(run[: len(run) - len(run) % 2]).decode("latin-1")


def encodings(secret: str) -> dict[str, str]:
    """Ways in which a secret may leak, to plant it with."""
    data = secret.encode("utf-8", "surrogatepass")
    once = base64.b64encode(data).decode()
    return {
        "plain": secret,
        "piece": secret[3 : 3 + RUN],
        "lower": secret.lower(),
        "base64": once,
        "base64 after letters": "ab" + once,
        "base64 of a longer text": base64.b64encode(b"x: " + data).decode(),
        "urlsafe base64": base64.urlsafe_b64encode(data).decode(),
        "base64 twice": base64.b64encode(once.encode()).decode(),
        "hex": data.hex(),
        "hex, upper": data.hex().upper(),
        "hex of base64": once.encode().hex(),
        "json": json.dumps(secret),
        "json twice": json.dumps(json.dumps({"x": secret})),
        "json, every character": "".join(f"\\u{unit:04x}" for unit in _units(secret)),
        "repr of bytes": repr(data),
        "percent": "".join(f"%{byte:02X}" for byte in data),
        "html": html.escape(secret),
    }


def _units(text: str) -> Iterator[int]:
    data = text.encode("utf-16-le", "surrogatepass")
    return (int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2))
