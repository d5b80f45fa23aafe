"""What the rooms of the strict provider hand to each other: a request, a reply, a minted value.

Unlike the library's own records these hold readable text and ciphertext: this is a provider, made
for tests, and a test has to know what was minted to prove that it leaked nowhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Obj: TypeAlias = dict[str, Any]
"""A JSON object of a vendor's making."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settings:
    """What a test may choose about the provider's conduct.

    Attributes:
        verify_signed_text: Refuse a signed thinking text that changed under an unchanged signature.
        populate_encrypted: OpenAI puts `encrypted_content` on every reasoning item; when off, only
            where `include` asks for it, as the API did before.
        refuse_held_duplicates: OpenAI refuses an item that the response named by
            `previous_response_id` holds already.
        seal_each_event: OpenAI seals a streamed item in other bytes for `done` and for `completed`.
        own_host: It is one of OpenAI's own hosts, which take what Codex adds to every item.
        canary: A marker that every readable text of the provider's making contains.
    """

    verify_signed_text: bool = False
    populate_encrypted: bool = True
    refuse_held_duplicates: bool = False
    seal_each_event: bool = False
    own_host: bool = True
    canary: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, its body as received.

    Attributes:
        connection: Names the WebSocket whose message it is; empty for HTTP.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    connection: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP reply: a whole body, or the frames of an event stream.

    Attributes:
        cut_after: Break the connection off after this many frames.
    """

    status: int = 200
    body: bytes = b""
    frames: tuple[bytes, ...] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Minted:
    """A sealed value that this provider handed out.

    Attributes:
        dialect: `anthropic`, `openai`, `gemini` or `chat`.
        kind: The artifact's name, e.g. `anthropic.thinking.signature`.
        value: The value as text, exactly as sent.
        issuer: The platform it is bound to, where the dialect has several (G10).
        item_id: The item id it is bound to, where there is one (O6).
        signed: The readable text it vouches for, where there is one (A6).
    """

    dialect: str
    kind: str
    value: str
    issuer: str = ""
    item_id: str | None = None
    signed: str | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply, byte for byte.

    Attributes:
        path: Path and query as received, without an API key in the query.
        response_body: As sent, freed of the transfer's chunking.
        complete: The reply was sent to its end; False where it was cut off or the client left.
        headers: The request's headers in lower case, without credentials.
    """

    dialect: str
    method: str
    path: str
    request_body: bytes
    response_body: bytes
    status: int
    stream: bool
    complete: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    response_headers: Mapping[str, str] = field(default_factory=dict)


class Dialect(Protocol):
    """One provider's way of speaking."""

    name: str

    def matches(self, path: str) -> bool:
        """Say whether a path belongs to this dialect."""

    def answer(self, request: Request) -> Reply:
        """Check one request and answer it with the next turn of the script."""

    def frame(self, event: Obj) -> bytes:
        """Write one event the way this dialect's streams do."""

    def failure(self, status: int) -> Obj:
        """Write the body of a failure that has nothing to do with what was sent."""

    def forget_state(self) -> None:
        """Lose all state held for clients, as an expiry would."""


class RefusedError(Exception):
    """The request is refused; carries the reply that says so."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def encode(value: Any) -> bytes:
    """Write JSON as the providers do: UTF-8, unescaped; escaped where that is not possible."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        # An echoed lone surrogate has no UTF-8 form.
        return json.dumps(value, separators=(",", ":")).encode()


def tokens(value: Any) -> int:
    """How many tokens a value counts as here: one for four bytes of its JSON."""
    return 1 + len(encode(value)) // 4


def decode(body: bytes) -> Obj | None:
    """Read a request body; None where it is no JSON object."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def whole(value: Any, status: int = 200, headers: Mapping[str, str] = _NOTHING) -> Reply:
    """Make a reply of one JSON body."""
    return Reply(status=status, body=encode(value), headers=headers)


def stream(frames: Sequence[bytes], headers: Mapping[str, str] = _NOTHING) -> Reply:
    """Make a reply of an event stream."""
    return Reply(frames=tuple(frames), headers=headers, content_type="text/event-stream")


def objects(value: Any) -> list[Obj]:
    """Keep the objects of what should be a list of objects."""
    return [x for x in value if isinstance(x, dict)] if isinstance(value, list) else []
