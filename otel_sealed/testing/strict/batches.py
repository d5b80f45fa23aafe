"""Batches of both vendors: every entry is answered as if it had been sent alone.

A batch is over as soon as it is made; its results come as a file with a JSON object a line, not in
the order of the requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .records import Obj, Reply, Request, decode, encode, objects, whole

if TYPE_CHECKING:
    from .mint import Mint

Answer = Callable[[Request], Reply]
"""Answers one entry as a request of its own."""

_MESSAGES = re.compile(r"/v1/messages/batches(?:/(?P<id>[^/]+)(?P<results>/results)?)?")
_RESPONSES = re.compile(
    r"/v1/(?:(?P<files>files)(?:/(?P<file>[^/]+)(?P<content>/content)?)?"
    r"|batches(?:/(?P<batch>[^/]+))?)"
)
_BORN = 1_790_000_000
_TIME = "2026-11-29T00:00:00Z"
_OK = 200
_JSONL = "application/x-jsonl"


class MessageBatches:
    """`/v1/messages/batches`: made, retrieved, and its results."""

    def __init__(self, mint: Mint, answer: Answer) -> None:
        self._mint = mint
        self._answer = answer
        self._results: dict[str, bytes] = {}

    def matches(self, path: str) -> bool:
        """Say whether a path is one of batches."""
        return _MESSAGES.fullmatch(path) is not None

    def answer(self, request: Request) -> Reply | None:
        """Answer a request about batches; None where there is no such thing."""
        found = _MESSAGES.fullmatch(request.path)
        ident = found["id"] if found else None
        if request.method == "POST" and ident is None:
            return self._made(request)
        if request.method != "GET" or ident not in self._results:
            return None
        if found is not None and found["results"]:
            return Reply(body=self._results[ident], content_type=_JSONL)
        return whole(self._batch(ident, request))

    def _made(self, request: Request) -> Reply:
        body = decode(request.body) or {}
        lines = [self._result(entry, request) for entry in objects(body.get("requests"))]
        ident = self._mint.ident("msgbatch_01")
        self._results[ident] = b"".join(encode(line) + b"\n" for line in reversed(lines))
        return whole(self._batch(ident, request))

    def _result(self, entry: Obj, request: Request) -> Obj:
        reply = self._answer(_alone("/v1/messages", entry.get("params"), request.headers))
        body = decode(reply.body)
        result: Obj = {"type": "errored", "error": body}
        if reply.status == _OK:
            result = {"type": "succeeded", "message": body}
        return {"custom_id": entry.get("custom_id"), "result": result}

    def _batch(self, ident: str, request: Request) -> Obj:
        where = f"http://{request.headers.get('host', '')}/v1/messages/batches/{ident}/results"
        count = self._results[ident].count(b"\n")
        counts = dict.fromkeys(("processing", "errored", "canceled", "expired"), 0)
        return {
            "id": ident,
            "type": "message_batch",
            "processing_status": "ended",
            "request_counts": {**counts, "succeeded": count},
            "created_at": _TIME,
            "expires_at": _TIME,
            "ended_at": _TIME,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": where,
        }


class ResponseBatches:
    """`/v1/files` and `/v1/batches`: the file of requests, the batch, the file of responses."""

    def __init__(self, mint: Mint, answer: Answer) -> None:
        self._mint = mint
        self._answer = answer
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, Obj] = {}

    def matches(self, path: str) -> bool:
        """Say whether a path is one of files or batches."""
        return _RESPONSES.fullmatch(path) is not None

    def answer(self, request: Request) -> Reply | None:
        """Answer a request about files or batches; None where there is no such thing."""
        found = _RESPONSES.fullmatch(request.path)
        if found is None:
            return None
        if request.method == "POST":
            return self._uploaded(request) if found["files"] else self._made(request)
        if found["batch"] in self._batches:
            return whole(self._batches[found["batch"]])
        if found["file"] not in self._files:
            return None
        content = self._files[found["file"]]
        if found["content"]:
            return Reply(body=content, content_type="application/octet-stream")
        return whole(_file(found["file"], content))

    def _uploaded(self, request: Request) -> Reply:
        boundary = request.headers.get("content-type", "").rpartition("boundary=")[2].encode()
        parts = [part for part in request.body.split(b"--" + boundary) if b"filename=" in part]
        content = parts[0].partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") if parts else b""
        return whole(_file(self._kept(content), content))

    def _kept(self, content: bytes) -> str:
        ident = self._mint.ident("file-")
        self._files[ident] = content
        return ident

    def _made(self, request: Request) -> Reply:
        body = decode(request.body) or {}
        source = str(body.get("input_file_id"))
        lines = [self._line(entry, request) for entry in _lines(self._files.get(source, b""))]
        output = self._kept(b"".join(encode(line) + b"\n" for line in reversed(lines)))
        ident = self._mint.ident("batch_")
        self._batches[ident] = {
            "id": ident,
            "object": "batch",
            "endpoint": body.get("endpoint"),
            "input_file_id": source,
            "completion_window": "24h",
            "status": "completed",
            "created_at": _BORN,
            "output_file_id": output,
        }
        return whole(self._batches[ident])

    def _line(self, entry: Obj, request: Request) -> Obj:
        reply = self._answer(_alone(str(entry.get("url")), entry.get("body"), request.headers))
        response = {
            "status_code": reply.status,
            "request_id": self._mint.ident("req_"),
            "body": decode(reply.body),
        }
        ident, custom = self._mint.ident("batch_req_"), entry.get("custom_id")
        return {"id": ident, "custom_id": custom, "response": response, "error": None}


def _alone(path: str, body: Any, headers: Mapping[str, str]) -> Request:
    return Request("POST", path, {}, headers, encode(body))


def _lines(content: bytes) -> Iterator[Obj]:
    for line in content.splitlines():
        value = json.loads(line)
        if isinstance(value, dict):
            yield value


def _file(ident: str, content: bytes) -> Obj:
    return {
        "id": ident,
        "object": "file",
        "bytes": len(content),
        "created_at": _BORN,
        "filename": "file.jsonl",
        "purpose": "batch",
        "status": "processed",
    }
