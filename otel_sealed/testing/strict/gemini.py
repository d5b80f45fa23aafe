"""The generateContent dialect: the script's turns as parts, and the error shape.

Developer API and Vertex are told apart by the path; their signatures are not exchangeable (G10).
The checks on what comes back are in `gemini_checks`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import gemini_checks as checks
from . import sse
from .records import Obj, Reply, Request, Settings, decode, objects, stream, tokens, whole
from .script import Stage, arguments, stage

if TYPE_CHECKING:
    from .mint import Mint

SIGNATURE = "gemini.part.thought_signature"
_PATH = re.compile(
    r"\A/v[0-9]\w*/(?P<where>.*/)?(?:models|endpoints)/(?P<model>[^/:]+):(?P<method>\w+)"
)
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True, slots=True)
class _Call:
    """One request, read."""

    model: str
    vertex: bool
    body: Obj
    contents: list[Obj]
    streamed: bool

    @property
    def platform(self) -> str:
        """The platform a signature is bound to."""
        return "vertex" if self.vertex else "developer"


class Gemini:
    """Speaks `models/{model}:generateContent` and its streamed and counting siblings."""

    name = "gemini"

    def __init__(self, mint: Mint, settings: Settings) -> None:
        self._mint = mint
        self._settings = settings

    def matches(self, path: str) -> bool:
        """Say whether a path names a model's method, in any version and on either platform."""
        return _PATH.fullmatch(path) is not None

    def frame(self, event: Obj) -> bytes:
        """Write one event of a stream."""
        return sse.unnamed(event)

    def failure(self, status: int) -> Obj:
        """Write an error that has nothing to do with what was sent."""
        return _error_body(status, "The model is overloaded. Please try again later.")

    def forget_state(self) -> None:
        """Do nothing: this dialect holds no state for clients."""

    def answer(self, request: Request) -> Reply:
        """Check a request and answer it."""
        path = _PATH.fullmatch(request.path)
        if path is None or request.method != "POST":
            return _refusal(404, "Not Found")
        body = decode(request.body)
        if body is None:
            return _refusal(400, "Invalid JSON payload received.")
        method = path["method"]
        if method == "countTokens":
            return whole({"totalTokens": tokens(body)})
        if method not in ("generateContent", "streamGenerateContent"):
            return _refusal(404, "Not Found")
        call = _Call(
            model=path["model"],
            vertex="publishers/" in (path["where"] or ""),
            body=body,
            contents=objects(body.get("contents")),
            streamed=method == "streamGenerateContent",
        )
        try:
            checks.check(call.contents, call.model, self._vouched(call), vertex=call.vertex)
        except checks.BrokenRuleError as broken:
            return _refusal(400, broken.message)
        return self._reply(call, sse_asked=request.query.get("alt") == "sse")

    def _vouched(self, call: _Call) -> checks.Vouched:
        def vouched(value: str) -> bool:
            return self._mint.known(SIGNATURE, value, call.platform) is not None

        return vouched

    # ------------------------------------------------------------------------------ writing

    def _reply(self, call: _Call, *, sse_asked: bool) -> Reply:
        parts = self._parts(call)
        ident = self._mint.ident("", 22)
        if not call.streamed:
            return whole(_body(call, parts, parts, ident))
        # Every part in a chunk of its own, and each chunk a whole response.
        chunks = [_body(call, [part], parts, ident) for part in parts]
        for chunk in chunks[:-1]:
            del chunk["candidates"][0]["finishReason"]
        if sse_asked:
            return stream([sse.unnamed(chunk) for chunk in chunks])
        return whole(chunks)

    def _parts(self, call: _Call) -> list[Obj]:
        tools = _tools(call.body)
        now = _stage(call, tools)
        if now is Stage.FIRST:
            summary = {"text": self._mint.text("summary"), "thought": True}
            return [summary, self._signed(call, self._function_call(tools[0]))]
        if now is Stage.SECOND:
            # G2: of parallel calls only the first is signed.
            first = self._signed(call, self._function_call(tools[0]))
            return [first, self._function_call(tools[-1])]
        said: list[Obj] = [{"text": self._mint.text("answer")}, {"text": self._mint.text("more")}]
        if call.streamed:
            # G5: the signature comes in a final part whose text is empty.
            return [*said, self._signed(call, {"text": ""})]
        return [said[0], self._signed(call, said[1])]  # G4: on the last part

    def _signed(self, call: _Call, part: Obj) -> Obj:
        signature = self._mint.seal(self.name, SIGNATURE, issuer=call.platform)
        return {**part, "thoughtSignature": signature}

    def _function_call(self, tool: Obj) -> Obj:
        schema = (
            tool.get("parametersJsonSchema")
            or tool.get("parameters_json_schema")
            or tool.get("parameters")
        )
        made = arguments(schema, self._mint.word)
        return {"functionCall": {"id": self._mint.ident("", 8), "name": tool["name"], "args": made}}


def _body(call: _Call, parts: list[Obj], told: list[Obj], ident: str) -> Obj:
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "STOP",
        "index": 0,
    }
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(call.contents, told),
        "modelVersion": call.model,
        "responseId": ident,
    }


def _tools(body: Obj) -> list[Obj]:
    """List the functions offered, unless the request forbids calls."""
    config = body.get("toolConfig") or body.get("tool_config") or {}
    calling = config.get("functionCallingConfig") or config.get("function_calling_config") or {}
    if str(calling.get("mode", "")).upper() == "NONE":
        return []
    offered = [
        function
        for tool in objects(body.get("tools"))
        for function in objects(
            tool.get("functionDeclarations") or tool.get("function_declarations")
        )
        if "name" in function
    ]
    allowed = calling.get("allowedFunctionNames") or []
    return [x for x in offered if x["name"] in allowed] or offered


def _stage(call: _Call, tools: list[Obj]) -> Stage:
    results = [
        [p for p in checks.parts(content) if checks.has(p, "functionResponse")]
        for content in call.contents
    ]
    return stage(
        tools=bool(tools),
        results=sum(len(x) for x in results),
        ends_in_result=bool(results) and bool(results[-1]),
        follows=any(content.get("role") == "model" for content in call.contents),
    )


def _usage(contents: list[Obj], told: list[Obj]) -> Obj:
    into, out, thought = tokens(contents), tokens(told), 40 + 7 * len(told)
    return {
        "promptTokenCount": into,
        "cachedContentTokenCount": tokens(contents[:-1]) if len(contents) > 1 else 0,
        "candidatesTokenCount": out,
        "thoughtsTokenCount": thought,
        "totalTokenCount": into + out + thought,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": into}],
    }


def _error_body(status: int, message: str) -> Obj:
    word = _STATUSES.get(status, "INTERNAL")
    return {"error": {"code": status, "message": message, "status": word}}


def _refusal(status: int, message: str) -> Reply:
    return whole(_error_body(status, message), status)
