"""VCR cassettes: vcrpy's YAML and JSON (format 1), and those of the Ruby original.

Fields of vcrpy: `interactions[].request.{method,uri,headers{name: [values]},body}` and
`response.{status.code,headers,body.string}`; the httpx stub of older releases wrote
`response.{status_code,content}` instead. Ruby: `http_interactions[]`, and `body.{string,
base64_string}` on both sides. Some projects replace `body` by `parsed_body`, already JSON.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from importlib import import_module
from io import BufferedReader
from typing import Any, Final

from otel_sealed.errors import SealedError
from otel_sealed.evidence.har import whole
from otel_sealed.evidence.records import Capture
from otel_sealed.wire.parse import as_count, as_text

_REMEDY: Final = "a cassette as vcrpy writes it"
_PYTHON_TAGS: Final = "tag:yaml.org,2002:python/"


def from_yaml(file: BufferedReader, name: str) -> Any:
    """The document of a YAML cassette, plain values only: no tag of it makes an object.

    Raises:
        SealedError: PyYAML is not installed, or the file is no YAML.
    """
    data = whole(file, name)
    try:
        yaml: Any = import_module("yaml")
    except ModuleNotFoundError:
        raise SealedError(
            "a YAML cassette needs PyYAML",
            where=name,
            remedy="python -m pip install 'otel-sealed[cli]'",
        ) from None
    try:
        return yaml.load(data, Loader=_loader(yaml))
    except Exception as error:  # noqa: BLE001 - a parser of files fails in many ways, quoting them
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = name if line is None else f"{name}, line {line + 1}"
        raise SealedError("not valid YAML", where=where, remedy=_REMEDY) from None


def _loader(yaml: Any) -> Any:
    """PyYAML's safe loader; tags of Python objects, which old cassettes have, read as plain."""
    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def plain(loader: Any, _suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.MappingNode):
            return loader.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return loader.construct_sequence(node, deep=True)
        return loader.construct_scalar(node)

    loader = type("Loader", (base,), {})
    yaml.add_multi_constructor(_PYTHON_TAGS, plain, Loader=loader)
    return loader


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
