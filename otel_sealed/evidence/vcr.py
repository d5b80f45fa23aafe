"""VCR cassettes: vcrpy's YAML and JSON (format 1), and those of the Ruby original.

Fields of vcrpy: `interactions[].request.{method,uri,headers{name: [values]},body}` and
`response.{status.code,headers,body.string}`; the httpx stub of older releases wrote
`response.{status_code,content}` instead. Ruby: `http_interactions[]`, and `body.{string,
base64_string}` on both sides. Some projects replace `body` by `parsed_body`, already JSON.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from io import BufferedReader
from typing import Any, Final

from otel_sealed.errors import SealedError
from otel_sealed.evidence.har import whole
from otel_sealed.http.records import Capture
from otel_sealed.wire.parse import as_count, as_text

_REMEDY: Final = "a cassette as vcrpy writes it"
MAX_YAML: Final = 1 << 26
"""Most bytes of a cassette in YAML (64 MiB), of which its parser makes three copies."""
MAX_NODES: Final = 1 << 19
"""Most values of one: a node of the parser takes half a KB, so that all take 256 MiB."""
SHARED: Final = 8
"""What an alias names counts again wherever it is used. All values together may come to so many
times the bytes of the file; without aliases they come to these bytes at most."""
FREE: Final = 1 << 16
"""What any cassette may come to."""
_YAML: Final = "tag:yaml.org,2002:"
_SCALARS: Final = (
    ("null", "~nN\0", re.compile(r"(?:~|null|Null|NULL|)\Z")),
    ("bool", "tTfF", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")),
    ("int", "-0123456789", re.compile(r"-?(?:0|[1-9][0-9]{0,17})\Z")),
    (
        "float",
        "-0123456789",
        re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}(?:[eE][-+]?[0-9]{1,3})?\Z"),
    ),
)
"""Plain scalars that are no text: what JSON knows. YAML's other numbers and times stay text."""


def from_yaml(file: BufferedReader, name: str) -> Any:
    """The document of a YAML cassette, plain values only: no tag of it makes an object.

    Raises:
        SealedError: PyYAML is not installed, the file is no YAML, or its aliases come to too much.
    """
    data = whole(file, name, MAX_YAML)
    try:
        yaml: Any = import_module("yaml")
    except ModuleNotFoundError:
        raise SealedError(
            "a YAML cassette needs PyYAML",
            where=name,
            remedy="python -m pip install 'otel-sealed[cli]'",
        ) from None
    try:
        found = yaml.load(data, Loader=_loader(yaml))
        weigh(found, FREE + SHARED * len(data))
    except TooMuch:
        what = "its values come to more than a file of its size can hold"
        raise SealedError(what, where=name, remedy="write it without aliases") from None
    except Exception as error:  # noqa: BLE001 - a parser of files fails in many ways, quoting them
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = name if line is None else f"{name}, line {line + 1}"
        raise SealedError("not valid YAML", where=where, remedy=_REMEDY) from None
    return found


class TooMuch(ValueError):  # noqa: N818 - of a file, not a fault of ours
    """A document has more values than it may have."""


def _loader(yaml: Any) -> Any:
    """PyYAML's parser with constructors of our own: JSON's values and bytes, all else as text.

    A key `<<` is a key like any other: merged mappings would be copied again and again.
    """
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def plain(loader: Any, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    def counted(loader: Any, parent: Any, index: Any) -> None:
        loader.nodes += 1
        if loader.nodes > MAX_NODES:
            raise TooMuch
        base.descend_resolver(loader, parent, index)

    def converted(pattern: re.Pattern[str], convert: Callable[[str], Any]) -> Any:
        def construct(loader: Any, node: Any) -> Any:
            text = plain(loader, node)
            return convert(text) if isinstance(text, str) and pattern.match(text) else text

        return construct

    patterns = {name: pattern for name, _, pattern in _SCALARS}
    constructors = {
        None: plain,
        f"{_YAML}map": base.construct_yaml_map,
        f"{_YAML}seq": base.construct_yaml_seq,
        f"{_YAML}binary": base.construct_yaml_binary,
        f"{_YAML}null": converted(patterns["null"], lambda _: None),
        f"{_YAML}bool": converted(patterns["bool"], lambda text: text.lower() == "true"),
        f"{_YAML}int": converted(patterns["int"], int),
        f"{_YAML}float": converted(patterns["float"], float),
    }
    resolvers: dict[str, list[Any]] = {}
    for name, firsts, pattern in _SCALARS:
        for first in firsts:
            resolvers.setdefault("" if first == "\0" else first, []).append((_YAML + name, pattern))
    members = {
        "nodes": 0,
        "yaml_constructors": constructors,
        "yaml_multi_constructors": {},
        "yaml_implicit_resolvers": resolvers,
        "descend_resolver": counted,
        "flatten_mapping": lambda _loader, _node: None,
    }
    return type("Loader", (base,), members)


def weigh(value: Any, most: int) -> int:
    """What a document comes to with each alias counted where it is used: values, and characters.

    Every container is looked at once, however often it is used.

    Raises:
        TooMuch: It is more than `most`, or a value holds itself.
    """
    weights: dict[int, int] = {}
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        found, over = stack.pop()
        if not isinstance(found, (dict, list)):
            continue
        if over:
            weight = 1 + sum(_weight(part, weights) for part in _parts(found))
            if weight > most:
                raise TooMuch
            weights[id(found)] = weight
            continue
        known = weights.get(id(found), 0)
        if known < 0:  # it is open: this is inside of it
            raise TooMuch
        if not known:
            weights[id(found)] = -1
            stack.append((found, True))
            stack += [(part, False) for part in _parts(found)]
    return _weight(value, weights)


def _parts(found: dict[Any, Any] | list[Any]) -> Iterator[Any]:
    if isinstance(found, dict):
        yield from found.keys()
        yield from found.values()
    else:
        yield from found


def _weight(part: Any, weights: Mapping[int, int]) -> int:
    if isinstance(part, (dict, list)):
        return weights[id(part)]
    return 1 + (len(part) if isinstance(part, (str, bytes)) else 0)


def read(cassette: Any, name: str) -> Iterator[Capture | None]:
    """The interactions of a cassette in their order; None for one that has not its shape."""
    found = cassette if isinstance(cassette, dict) else {}
    interactions = found.get("interactions", found.get("http_interactions"))
    if not isinstance(interactions, list):
        raise SealedError("holds no interactions", where=name, remedy=_REMEDY)
    for interaction in interactions:
        yield _capture(interaction) if isinstance(interaction, dict) else None


def _capture(interaction: Mapping[str, Any]) -> Capture | None:
    request, response = interaction.get("request"), interaction.get("response")
    if not isinstance(request, dict) or not isinstance(request.get("uri"), str):
        return None
    if not isinstance(response, dict):
        response = {}
    status = response.get("status")
    code = status.get("code") if isinstance(status, dict) else response.get("status_code")
    return Capture(
        method=as_text(request.get("method")),
        url=request["uri"],
        headers=_headers(request.get("headers")),
        request=_body(request),
        status=as_count(code),
        answered=_headers(response.get("headers")),
        response=_body(response),
    )


def _headers(value: Any) -> dict[str, str]:
    """Names in lower case; of a list of values the first."""
    headers = value if isinstance(value, dict) else {}
    firsts = {
        str(name).lower(): (values[0] if isinstance(values, (list, tuple)) and values else values)
        for name, values in headers.items()
    }
    return {
        name: v.decode("latin-1") if isinstance(v, bytes) else as_text(v)
        for name, v in firsts.items()
    }


def _body(holder: Mapping[str, Any]) -> Any:
    """Text, bytes or parsed JSON of whichever key this kind of cassette has it under."""
    if "parsed_body" in holder:
        return holder["parsed_body"]
    body = holder.get("body", holder.get("content"))
    if isinstance(body, dict):
        if isinstance(encoded := body.get("base64_string"), (str, bytes)):
            try:
                return base64.b64decode(encoded)
            except (binascii.Error, ValueError):
                return None
        body = body.get("string")
    return body if isinstance(body, (str, bytes)) else None
